"""What the core room is checked on: expressions over a module called ``torch``, and their text.

``python -m compat_tests.rooms.core_cases`` in an environment with PyTorch rewrites ``core_expected.json``.
"""

from __future__ import annotations

import copy
import itertools
import json
import pathlib
import pickle
from typing import Any

import numpy as np

EXPECTED = pathlib.Path(__file__).with_name("core_expected.json")

DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64 "
    "complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
).split()
NAMES_ONLY = "qint8 quint8 qint32 bits8 bits16 int4 uint4 uint1".split()
NUMBERS = {"bool": True, "int": 2, "float": 1.5, "complex": 1j}

EXPRESSIONS = """
torch.float32
torch.half, torch.float, torch.double, torch.short, torch.int, torch.long, torch.cfloat, torch.cdouble, torch.chalf
torch.dtype()
pickle.loads(pickle.dumps(torch.bfloat16)) is torch.bfloat16
copy.deepcopy([torch.float8_e5m2])[0] is torch.float8_e5m2
torch.float32 == torch.float, torch.float32 != torch.float64, hash(torch.half) == hash(torch.float16)
torch.get_default_dtype()
torch.set_default_dtype(torch.int64)
torch.set_default_dtype(3)
torch.set_default_dtype('float32')
torch.set_default_dtype(torch.float8_e5m2)
torch.set_default_dtype(torch.complex64)
[torch.set_default_dtype(d) or torch.get_default_dtype() for d in (torch.float16, torch.bfloat16, torch.float32)]
torch.promote_types(3, torch.int8)
torch.promote_types(torch.int8, None)
torch.can_cast(1, torch.int8)
torch.device()
torch.device('')
torch.device('cuda')
torch.device('cuda', 0)
torch.device('cuda:0')
torch.device('cuda:0', 1)
torch.device('cuda:-1')
torch.device('cuda:')
torch.device('cuda:01')
torch.device('cuda:1x')
torch.device('foo')
torch.device('foo:01')
torch.device('CUDA')
torch.device(-1)
torch.device(1.5)
torch.device(None)
torch.device(True)
torch.device(torch.device('cpu'))
torch.device(torch.device('cpu'), 1)
torch.device(type='cuda', index=2)
torch.device(index=1)
torch.device('cpu', index=None), torch.device('cpu', index=0)
torch.device('cpu', -1)
torch.device('cuda', '0')
torch.device('cuda', True)
torch.device('cuda', 1, 2)
torch.device('cuda', index=1, foo=2)
torch.device('cuda:99999999999999')
torch.device(b'cpu')
torch.device(device='cpu')
torch.device(' cpu')
torch.device('a b')
str(torch.device('cuda', 1)), repr(torch.device('cuda')), torch.device('cuda').index, torch.device('cuda:3').type
torch.device('cpu:0') == torch.device('cpu'), torch.device('cuda', 1) == torch.device('cuda:1')
torch.device('cuda') == 'cuda', torch.device('cuda') != torch.device('cpu')
torch.device('cuda') < torch.device('cpu')
hash(torch.device('cuda', 1)) == hash(torch.device('cuda:1'))
{torch.device('cuda:1'): 1}[torch.device('cuda', 1)]
pickle.loads(pickle.dumps(torch.device('cuda', 1)))
copy.deepcopy(torch.device('meta'))
[torch.device(x) for x in 'mps xla xpu hpu ideep opengl opencl hip fpga maia vulkan ve lazy ipu mtia'.split()]
torch.device('cuda:300').type
torch.Size()
torch.Size([])
torch.Size((1, 2))
torch.Size([1, 2.0])
torch.Size([1, 'a'])
torch.Size('ab')
torch.Size(3)
torch.Size([True, 2])
torch.Size([-1])
torch.Size([np.int64(3)])
torch.Size([np.float32(1)])
torch.Size([1, [2]])
torch.Size([None])
torch.Size(x for x in [1, 2])
torch.Size(x=1)
torch.Size([1], 2)
torch.Size((2, 3)) + (4,)
(4,) + torch.Size((2, 3))
torch.Size((2, 3)) + [1]
torch.Size((2, 3)) + 3
torch.Size((2, 3)) + (1.5,)
(1.5,) + torch.Size((2, 3))
torch.Size((2, 3)) + np.array([1, 2])
torch.Size((2, 3)) * 2, 2 * torch.Size((2, 3)), torch.Size((2,)) * True, torch.Size((2,)) * -1
torch.Size((2, 3)) * 1.5
torch.Size((2, 3))[:1], torch.Size((2, 3))[0], torch.Size((2, 3))[-1], torch.Size((2, 3))[::-1]
torch.Size((2, 3))[5]
torch.Size((2, 3)).numel(), torch.Size().numel(), torch.Size((0, 3)).numel()
torch.Size((2, 3)) == (2, 3), hash(torch.Size((2, 3))) == hash((2, 3)), torch.Size((2, 3)) == [2, 3]
pickle.loads(pickle.dumps(torch.Size((2, 3)))), copy.deepcopy(torch.Size((2, 3))), copy.copy(torch.Size((2,)))
torch.Size((1, 2)).index(2), torch.Size((1, 2)).count(2), len(torch.Size((1, 2))), 2 in torch.Size((1, 2))
f"{torch.Size((1, 2))}", str(torch.Size((1, 2)))
torch.finfo()
torch.finfo(3)
torch.finfo(None)
torch.finfo(dtype=torch.float16)
torch.finfo(type=torch.float16)
torch.finfo(torch.bool)
torch.iinfo()
torch.iinfo('a')
torch.iinfo(torch.bool)
torch.iinfo(torch.float32)
torch.finfo(torch.float32) == torch.finfo(torch.float32), torch.finfo(torch.float32) == torch.finfo(torch.float64)
torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_bsc, torch._mkldnn, torch.jagged
torch.contiguous_format, torch.channels_last, torch.channels_last_3d, torch.preserve_format
torch.legacy_contiguous_format
torch.layout()
torch.memory_format()
copy.deepcopy(torch.channels_last) is torch.channels_last, torch.strided == torch.sparse_coo
torch.per_tensor_affine, torch.per_channel_symmetric
type(torch.float32), type(torch.device('cpu')), type(torch.Size()), type(torch.strided), type(torch.channels_last)
torch.broadcast_shapes((2, 3), (4,))
torch.broadcast_shapes((2, 3), (1,), (2, 1))
torch.broadcast_shapes((2, -1), (1,))
torch.broadcast_shapes(2, (3, 2)), torch.broadcast_shapes(), torch.broadcast_shapes((2, 0), (3, 1, 1))
torch.broadcast_shapes((2,), (3,))
torch.broadcast_shapes((3, 1), (1, 4), (3, 5))
"""

# (shape of the tensor, sizes asked for)
VIEWS = [
    ((2, 3), (4, -1)), ((2, 3), (-1, -1)), ((2, 3), (5,)), ((2, 3), (-2, 3)), ((0, 3), (-1, 0)), ((0, 3), (-1, 3)),
    ((0,), (0, -1)), ((0,), (-1,)), ((2, 3), (0, -1)), ((2, 3), (6, 1, -1)), ((1,), ()), ((), (1, 1)), ((), (-1,)),
    ((2, 3), ()), ((4,), (2, -1, 2)), ((2, 3), (3, -5, -1)), ((0,), (0,)), ((2, 3), (-1, 6)),
]  # fmt: skip
BROADCASTS = [
    ((2, 3), (4,)), ((2, 3), (2, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((), (2,)), ((5, 1, 2), (3, 1)), ((0,), (1,)),
    ((0,), (2,)), ((2, 3, 4), (5, 4)), ((2, 3, 4), (2, 1, 1)), ((1, 2), (3, 2)), ((2, 5), (3, 6)),
]  # fmt: skip
EXPANDS = [
    ((2, 3), (4, 5)), ((2, 3), (4, -1, -1)), ((2, 3), (3,)), ((2, 3), (-1, 2, 3)), ((1, 3), (4, 3)), ((2, 3), (0, 3)),
    ((1,), (0,)), ((), (2, 2)), ((1, 3), (-1, -1)), ((2, 3), (2, 3)), ((2, 1), (7, 2, 5)), ((2, 3), (2, -2, 3)),
]  # fmt: skip
DIMS = [
    ((2, 3), 5), ((2, 3), -3), ((), 1), ((), 0), ((), -1), ((), -2), ((2, 3), (0, 0)), ((2, 3), (0, -2)),
    ((2, 3), (0, 7)), ((), (0, 0)), ((2, 3, 4), (-1, 0)), ((2, 3), (1,)),
]  # fmt: skip


def text(call: Any) -> str:
    """What a call gives, or the error it raises, as text."""
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def evaluate(torch: Any) -> dict[str, str]:
    """The text of each of `EXPRESSIONS` over ``torch``."""
    names = {"torch": torch, "np": np, "copy": copy, "pickle": pickle}
    lines = EXPRESSIONS.strip().splitlines()
    return {line: text(lambda line=line: eval(line, names)) for line in lines}


def dtype_facts(torch: Any) -> dict[str, str]:
    """Attributes and limits of each dtype."""
    facts = {}
    for name in DTYPES + NAMES_ONLY:
        d = getattr(torch, name)
        calls = {
            attribute: lambda d=d, attribute=attribute: getattr(d, attribute)
            for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed")
        }
        calls["to_real"] = d.to_real
        calls["to_complex"] = d.to_complex
        for kind, attributes in (
            ("finfo", "bits eps max min tiny smallest_normal resolution dtype"),
            ("iinfo", "bits max min dtype"),
        ):
            if name.startswith("q"):
                continue
            limits = getattr(torch, kind)
            calls[kind] = lambda d=d, limits=limits, attributes=attributes: (
                limits(d),
                [getattr(limits(d), attribute) for attribute in attributes.split()],
            )
        facts[name] = "|".join(text(call) for call in calls.values())
    return facts


def promotion_table(torch: Any, result_type: Any) -> dict[str, str]:
    """``result_type`` of each pair of operands, one line of the table for each left operand and default dtype.

    An operand is a dtype name with a number of dims, or a kind of number.
    """
    operands = [(name, ndim) for name in DTYPES for ndim in (0, 1)] + list(NUMBERS)
    table = {}
    try:
        for default, left in itertools.product(("float32", "float64", "bfloat16"), operands):
            torch.set_default_dtype(getattr(torch, default))
            row = [text(lambda left=left, right=right: result_type(left, right)) for right in operands]
            table[f"{default} {left}"] = " ".join(
                "E" if "Error" in item else item.removeprefix("torch.") for item in row
            )
    finally:
        torch.set_default_dtype(torch.float32)
    return table


def pair_table(torch: Any) -> dict[str, str]:
    """promote_types, with its errors, and can_cast of each pair of dtypes."""
    table = {}
    names = DTYPES + ["qint8", "quint8", "bits8"]
    for left in names:
        pairs = [(getattr(torch, left), getattr(torch, right)) for right in names]
        table["promote " + left] = "|".join(text(lambda p=p: torch.promote_types(*p)) for p in pairs)
        table["cast " + left] = "".join(str(int(torch.can_cast(*p))) for p in pairs)
    return table


def shape_facts(view: Any, broadcast: Any, expand: Any, dims: Any) -> dict[str, str]:
    """Texts of the four shape rules on their cases; each takes the two items of a case and gives a shape."""
    facts = {}
    for name, rule, cases in (
        ("view", view, VIEWS),
        ("broadcast", broadcast, BROADCASTS),
        ("expand", expand, EXPANDS),
        ("dims", dims, DIMS),
    ):
        for case in cases:
            facts[f"{name} {case}"] = text(lambda rule=rule, case=case: tuple(rule(*case)))
    return facts


def of_pytorch(torch: Any) -> dict[str, dict[str, str]]:
    """Everything above, from PyTorch itself."""

    def operand(o: Any) -> Any:
        return torch.empty((1,) * o[1], dtype=getattr(torch, o[0])) if isinstance(o, tuple) else NUMBERS[o]

    made = _cached(operand)
    return {
        "expressions": evaluate(torch),
        "dtypes": dtype_facts(torch),
        "promotion": promotion_table(torch, lambda a, b: torch.result_type(made(a), made(b))),
        "pairs": pair_table(torch),
        "shapes": shape_facts(
            lambda shape, sizes: torch.ones(shape).reshape(sizes).shape,
            lambda a, b: (torch.ones(a) + torch.ones(b)).shape,
            lambda shape, sizes: torch.ones(shape).expand(sizes).shape,
            lambda shape, dims: torch.ones(shape).sum(dims).shape,
        ),
    }


def _cached(function: Any) -> Any:
    """A cache by argument (the promotion table asks for the same few tensors thousands of times)."""
    known: dict[Any, Any] = {}
    return lambda key: known[key] if key in known else known.setdefault(key, function(key))


if __name__ == "__main__":
    import torch

    EXPECTED.write_text(json.dumps(of_pytorch(torch), indent=0, sort_keys=True) + "\n")
