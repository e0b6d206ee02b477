"""The core room against texts recorded from PyTorch, and against PyTorch itself where it is at hand."""

from __future__ import annotations

import json
import math
import pickle
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compat_tests.rooms import core_cases as cases
from torchlike._src.core import device, dtype, errors, info, layout, promotion, size


def core_namespace() -> types.SimpleNamespace:
    """The core room's names as they stand in ``torch``."""
    torch = types.SimpleNamespace()
    for d in dtype.ALL:
        setattr(torch, d.name, d)
    vars(torch).update(dtype.ALIASES)
    for module, names in (
        (dtype, "dtype set_default_dtype get_default_dtype"),
        (device, "device set_default_device get_default_device"),
        (size, "Size"),
        (info, "finfo iinfo"),
        (promotion, "promote_types can_cast"),
        (layout, "layout memory_format strided sparse_coo sparse_csr sparse_bsc _mkldnn jagged contiguous_format"),
        (layout, "channels_last channels_last_3d preserve_format legacy_contiguous_format"),
        (layout, "per_tensor_affine per_channel_symmetric"),
    ):
        for name in names.split():
            setattr(torch, name, getattr(module, name))
    torch.broadcast_shapes = errors.public_broadcast_shapes
    return torch


TORCH = core_namespace()


def result_type(left: Any, right: Any) -> dtype.dtype:
    def operand(o: Any) -> Any:
        return (dtype.by_name(o[0]), o[1]) if isinstance(o, tuple) else type(cases.NUMBERS[o])

    return promotion.result_type([operand(left), operand(right)])


def reduced_shape(shape: tuple[int, ...], dims: Any) -> list[int]:
    gone = errors.canonical_dims(dims, len(shape))
    return [length for position, length in enumerate(shape) if position not in gone]


def ours() -> dict[str, dict[str, str]]:
    return {
        "expressions": cases.evaluate(TORCH),
        "dtypes": cases.dtype_facts(TORCH),
        "promotion": cases.promotion_table(TORCH, result_type),
        "pairs": cases.pair_table(TORCH),
        "shapes": cases.shape_facts(
            lambda shape, sizes: errors.infer_size(sizes, math.prod(shape)),
            errors.broadcast_shapes,
            lambda shape, sizes: errors.expand_shape(sizes, shape),
            reduced_shape,
        ),
    }


def differences(got: dict[str, dict[str, str]], want: dict[str, dict[str, str]]) -> list[str]:
    assert got.keys() == want.keys()
    found = []
    for group in want:
        assert got[group].keys() == want[group].keys()
        found += [
            f"{group} {key}\n    here    {got[group][key]}\n    PyTorch {want[group][key]}"
            for key in want[group]
            if got[group][key] != want[group][key]
        ]
    return found


def test_agrees_with_the_recorded_texts() -> None:
    found = differences(ours(), json.loads(cases.EXPECTED.read_text()))
    assert not found, "\n".join(found)


@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
def test_agrees_with_pytorch(oracle: Any) -> None:
    found = differences(ours(), cases.of_pytorch(oracle))
    assert not found, "\n".join(found)


def test_from_numpy_covers_what_numpy_has() -> None:
    for d in dtype.ALL:
        if d.np is not None:
            assert dtype.from_numpy(d.np) is d
    assert dtype.from_numpy(np.dtype(ml_dtypes.bfloat16)) is dtype.bfloat16
    assert dtype.from_numpy(np.dtype(np.longlong)) is dtype.int64
    with pytest.raises(TypeError, match=r"can't convert np.ndarray of type numpy.str_. The only supported types are"):
        dtype.from_numpy(np.array(["a"]).dtype)
    with pytest.raises(TypeError, match="numpy.object_"):
        dtype.from_numpy(np.dtype(object))
    with pytest.raises(ValueError, match="byte order different"):
        dtype.from_numpy(np.dtype(">f4"))


def test_dtypes_without_arrays_say_so() -> None:
    with pytest.raises(NotImplementedError, match="torch.complex32"):
        dtype.require_numpy(dtype.complex32)


def test_promote_kinds() -> None:
    kinds = promotion.Promote
    half, long, single = (dtype.float16, 1), (dtype.int64, 1), (dtype.float32, 1)
    complex_half, bools = (dtype.complex32, 2), (dtype.bool_, 1)
    for kind, operands, want in (
        (kinds.DEFAULT, [half, float], ("float32", "float16")),
        (kinds.DEFAULT, [(dtype.bfloat16, 1), (dtype.float32, 0)], ("float32", "bfloat16")),
        (kinds.DEFAULT, [long, float], ("float32", "float32")),
        (kinds.NO_OPMATH, [half, int], ("float16", "float16")),
        (kinds.INT_TO_FLOAT, [long], ("float32", "float32")),
        (kinds.INT_TO_FLOAT, [bools, bools], ("float32", "float32")),
        (kinds.INT_TO_FLOAT, [half], ("float32", "float16")),
        (kinds.ALWAYS_BOOL, [half, single], ("float32", "bool")),
        (kinds.ALWAYS_BOOL, [half], ("float32", "bool")),
        (kinds.COMPLEX_TO_FLOAT, [complex_half], ("complex64", "float16")),
        (kinds.COMPLEX_TO_FLOAT, [(dtype.complex128, 0)], ("complex128", "float64")),
        (kinds.COMPLEX_TO_FLOAT, [single], ("float32", "float32")),
        (kinds.BOOL_TO_LONG, [bools], ("int64", "int64")),
        (kinds.BOOL_TO_LONG, [half], ("float32", "float16")),
    ):
        assert tuple(d.name for d in promotion.promote(kind, operands)) == want, (kind, operands)


def test_promotion_follows_the_default_dtype() -> None:
    operands = [(dtype.int64, 1), float]
    assert promotion.promote(promotion.Promote.DEFAULT, operands)[1] is dtype.float32
    dtype.set_default_dtype(dtype.float64)
    try:
        assert promotion.promote(promotion.Promote.DEFAULT, operands)[1] is dtype.float64
        assert promotion.promote(promotion.Promote.INT_TO_FLOAT, operands[:1])[1] is dtype.float64
        assert promotion.result_type([operands[0], complex]) is dtype.complex128
    finally:
        dtype.set_default_dtype(dtype.float32)


def test_devices_are_interned_and_nest_as_defaults() -> None:
    cuda = device.device("cuda", 1)
    assert cuda is device.device("cuda:1") is pickle.loads(pickle.dumps(cuda))
    assert device.default_device() is device.CPU
    with device.device("meta") as meta:
        assert device.default_device() is meta is device.META
        with device.device("cpu"):
            assert device.default_device() is device.CPU
        assert device.default_device() is meta
    device.set_default_device("cuda:1")
    try:
        assert device.get_default_device() is cuda
    finally:
        device.set_default_device(None)
    assert device.default_device() is device.CPU


def test_a_bare_index_means_the_accelerator() -> None:
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available."):
        device.device(0)
    before = device.find_accelerator
    device.set_accelerator_finder(lambda: "cuda")
    try:
        assert device.device(1) is device.device("cuda:1")
    finally:
        device.set_accelerator_finder(before)


def test_size_takes_anything_with_an_index() -> None:
    class Two:
        def __index__(self) -> int:
            return 2

    assert size.Size([Two(), 1]) == (2, 1)
    assert type(size.Size([Two()])[0]) is int
