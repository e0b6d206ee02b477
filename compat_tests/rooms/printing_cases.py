"""Tensors whose text is compared with PyTorch's.

``python -m compat_tests.rooms.printing_cases`` in an environment with PyTorch rewrites ``printing_expected.json``.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import ml_dtypes
import numpy as np

EXPECTED = pathlib.Path(__file__).with_name("printing_expected.json")
INTEGERS = "uint8 int8 int16 int32 int64 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
DTYPES = ["bool", *INTEGERS, *FLOATS.split(), "complex64", "complex128"]


def numpy_type(name: str) -> np.dtype:
    """The NumPy type of the dtype called ``name``."""
    return np.dtype(getattr(ml_dtypes, name) if name.startswith(("bfloat16", "float8")) else name)


@dataclasses.dataclass
class Case:
    """One tensor, the options it is printed under, and what else its text shows."""

    array: np.ndarray
    name: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    default: str = "float32"
    requires_grad: bool = False
    grad_fn: bool = False
    meta: bool = False


def case(values: Any, name: str = "float32", **kwargs: Any) -> Case:
    with np.errstate(all="ignore"):
        return Case(np.asarray(values).astype(numpy_type(name)), name, **kwargs)


def fixed_cases() -> list[Case]:
    """The corners: notation, widths, summaries, suffixes, options, default dtypes."""
    nan, inf = np.nan, np.inf
    line = np.arange(30.0)
    return [
        case(1.5), case(2.0), case(0.0), case(-0.0), case(nan), case(1e-5), case(123456789.0), case(3, "int64"),
        case(True, "bool"), case(1 + 2j, "complex64"), case(1 - 2j, "complex128"), case(-0.0j, "complex64"),
        case([]), case([], "int64"), case([], "bool"), case(np.zeros((0, 3))), case(np.zeros((2, 0)), "float64"),
        case([1.0, 2.0]), case([1.0, 2.5]), case([1.0, nan]), case([1.5, -inf]), case([nan, inf]), case([0.0, inf]),
        case([1e8]), case([1.0001e8]), case([1e-4]), case([0.99e-4]), case([1.0, 1000.0]), case([1.0, 1001.0]),
        case([0.1, 100.1]), case([1e-45, 1.0]), case([1e300, 1.0], "float64"), case([65504.0, 0.1], "float16"),
        case([[1, -2], [30, 4]], "int32"), case([[True], [False]], "bool"), case([2**64 - 1, 0], "uint64"),
        case([1.5 + 2j, -3 - 400j], "complex64"), case([complex(1, nan), complex(inf, -inf)], "complex128"),
        case([1e-9 + 1j], "complex64"), case(line), case(line / 7), case(line.reshape(2, 3, 5)),
        case(np.arange(2000), "int64"), case(np.arange(4000.0).reshape(2, 2000)),
        case(np.arange(1100.0).reshape(10, 110)), case(np.arange(2000.0).reshape(20, 10, 10)),
        case(np.arange(1001) + 0j, "complex64"), case(np.ones((1, 1, 1, 1))), case(np.arange(16.0).reshape(2, 2, 2, 2)),
        case(line, options={"precision": 2}), case(line / 7, options={"precision": 0}),
        case(line, options={"sci_mode": True}), case([1e-9, 1.0], options={"sci_mode": False}),
        case(line, options={"threshold": 5}), case(line, options={"threshold": 5, "edgeitems": 1}),
        case(line, options={"threshold": 5, "edgeitems": 0}), case(line.reshape(6, 5), options={"edgeitems": 0}),
        case(line.reshape(6, 5), options={"threshold": 0, "edgeitems": 0}),
        case(line, options={"linewidth": 30}), case(line, options={"linewidth": 1}),
        case(np.arange(1500.0), options={"profile": "full", "linewidth": 1000}),
        case(line / 7, options={"profile": "short"}), case(line / 7, options={"profile": "unknown"}),
        case(line, "float64"), case(line, "float64", default="float64"), case(line, default="float64"),
        case([1j], "complex64", default="float64"), case([1j], "complex128", default="float64"),
        case([1j], "complex64", default="float16"), case([1.0], "bfloat16", default="bfloat16"),
        case([], "float32", default="float64"), case([1.0], requires_grad=True), case([1.0], grad_fn=True),
        case(line[:11] / 7, requires_grad=True), case(line[:10] / 7, grad_fn=True),
        case(line / 7, "float64", grad_fn=True),
        case(np.zeros((0, 3)), requires_grad=True), case(np.zeros((2, 3)), meta=True),
        case(np.zeros(()), "int64", meta=True), case(np.zeros((0,)), "float16", meta=True),
        case([1.0], requires_grad=True, options={"linewidth": 20}), case(3.0, grad_fn=True),
    ]  # fmt: skip


def random_case(r: np.random.Generator) -> Case:
    """A random tensor, with random options now and then."""
    shapes = [(), (int(r.integers(0, 30)),), (int(r.integers(1, 3000)),), tuple(map(int, r.integers(1, 50, 2)))]
    shapes += [tuple(map(int, r.integers(0, 4, r.integers(2, 5))))]
    shapes += [tuple(map(int, r.integers(1, 9, r.integers(1, 5)))) for _ in range(3)]
    shape = shapes[r.integers(len(shapes))]
    name = str(r.choice(DTYPES))
    kind = numpy_type(name).kind
    if name in INTEGERS:
        limits = np.iinfo(name)
        low, high = [(max(limits.min, -9), 9), (limits.min, limits.max), (0, 100)][r.integers(3)]
        values: Any = r.integers(low, high, shape, dtype=name, endpoint=True)
    elif name == "bool":
        values = r.integers(0, 2, shape)
    else:
        values = random_floats(r, shape)
        if kind == "c":
            both = np.empty(shape, np.complex128)
            both.real, both.imag = values, random_floats(r, shape)
            values = both
    options: dict[str, Any] = {}
    for option, choices in (
        ("precision", range(9)),
        ("threshold", range(50)),
        ("edgeitems", range(6)),
        ("linewidth", range(1, 200)),
        ("sci_mode", (True, False)),
        ("profile", ("default", "short", "full")),
    ):
        if r.random() < 0.15:
            options[option] = choices[r.integers(len(choices))]
    default = "float32" if r.random() < 0.8 else str(r.choice(["float64", "float16", "bfloat16"]))
    graph = name not in INTEGERS and name != "bool" and "float8" not in name and r.random()
    return case(
        values,
        name,
        options=options,
        default=default,
        requires_grad=bool(graph and graph < 0.2),
        grad_fn=bool(graph and 0.2 < graph < 0.4),
    )


def random_floats(r: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Floats of one of the kinds that print differently."""
    a = np.asarray(r.standard_normal(shape))
    special = r.choice([np.nan, np.inf, -np.inf, -0.0], shape)
    kind = r.integers(8)
    if kind == 1:
        return np.round(a * 10.0 ** r.integers(0, 10))
    if kind == 2:
        return a * 10.0 ** r.integers(-12, 12)
    if kind == 3:
        return a * 10.0 ** r.integers(-6, 6, shape)
    if kind == 4:
        return np.where(r.random(shape) < 0.4, special, a)
    if kind == 5:
        return np.where(r.random(shape) < 0.4, special, np.round(a * 3))
    if kind == 6:
        return np.where(r.random(shape) < 0.1, special, 0.0)
    return a


def all_cases() -> list[Case]:
    """The corners, and random cases that are always the same."""
    r = np.random.default_rng(20)
    return fixed_cases() + [c for c in (random_case(r) for _ in range(400)) if c.array.size < 60]


def pytorch_text(torch: Any, c: Case) -> str:
    """``repr`` of the case by PyTorch."""
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**c.options)
    torch.set_default_dtype(getattr(torch, c.default))
    try:
        kind = getattr(torch, c.name)
        if c.meta:
            return repr(torch.empty(c.array.shape, dtype=kind, device="meta"))
        array = np.array(c.array, order="C")
        # NumPy types that PyTorch does not know go over as bytes
        raw = array.reshape(-1).view(np.uint8)
        t = torch.from_numpy(raw).view(kind).reshape(array.shape)
        if c.requires_grad or c.grad_fn:
            t.requires_grad_()
        return repr(t.clone() if c.grad_fn else t)
    finally:
        torch.set_printoptions(profile="default")
        torch.set_default_dtype(torch.float32)


if __name__ == "__main__":
    import torch

    EXPECTED.write_text(json.dumps([pytorch_text(torch, c) for c in all_cases()], indent=0) + "\n")
