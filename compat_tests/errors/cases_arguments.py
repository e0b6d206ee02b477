"""Sizes and other arguments of functions that create, fill and reshape tensors, as PyTorch's binding takes or refuses
them."""

import numpy as np

from compat_tests.harness import case

SIZES = {
    "none": (), "two tuples": ((2,), (3,)), "list, int": ([2], 3), "int, list": (2, [3]), "bool": (True,),
    "float": (2.5,), "int, float": (2, 3.0), "list with str": ([2, "a"],), "float list": ([2.0],), "negative": (-1,),
    "None": (None,), "str": ("a",), "range": (range(2),), "set": ({2},), "nested": (((2, 3),),),
    "NumPy int": (np.int64(3), 2), "NumPy float": (np.float64(3),), "NumPy bool": (np.bool_(True),),
    "array": (np.array([2, 3]),), "bool list": ([True, 2],), "list with bool": ([2, True],), "object": (object(),),
}  # fmt: skip


def outcome(function, *args, **kwargs):
    """The shape of the tensor, or the error."""
    try:
        return list(function(*args, **kwargs).shape)
    except Exception as error:
        return [type(error).__name__, str(error)]


@case
@case.params("name", ["zeros", "ones", "empty", "rand", "randn"])
def case_sizes(torch, name):
    function = getattr(torch, name)
    found = {key: outcome(function, *size) for key, size in SIZES.items()}
    found["tensors"] = [outcome(function, torch.tensor(3), 2), outcome(function, torch.tensor([2, 3]))]
    found["by name"] = [outcome(function, size=(2, 3)), outcome(function, size=3), outcome(function, 2, size=(3,))]
    return found


@case
def case_sizes_beside_others(torch):
    x = torch.zeros(2)
    calls = {
        "full": lambda s: torch.full(s, 1.5), "randint": lambda s: torch.randint(1, 5, s),
        "normal": lambda s: torch.normal(0.0, 1.0, s), "new_full": lambda s: x.new_full(s, 2),
        "empty_strided": lambda s: torch.empty_strided(s, (1,)),
    }  # fmt: skip
    return {name: {key: outcome(call, size[0]) for key, size in SIZES.items() if size} for name, call in calls.items()}


@case
@case.params("name", ["view", "reshape", "expand", "repeat", "permute", "tile", "flip", "resize_", "new_zeros"])
def case_sizes_of_methods(torch, name):
    return {key: outcome(getattr(torch.arange(6.0), name), *size) for key, size in SIZES.items() if key != "negative"}


@case
def case_options(torch):
    zeros, x, y = torch.zeros, torch.zeros(2), torch.zeros(2, dtype=torch.int32)
    calls = [
        lambda: zeros(2, foo=1), lambda: zeros(foo=2), lambda: zeros(2, dtype="float32"), lambda: zeros(2, dtype=int),
        lambda: zeros(2, device=3.5), lambda: zeros(2, device=True), lambda: zeros(2, requires_grad=1),
        lambda: zeros(2, out=3), lambda: zeros(2, out=torch.zeros(5)), lambda: zeros(2, out=x, dtype=torch.int8),
        lambda: zeros(2, out=torch.zeros(2, requires_grad=True)), lambda: zeros(2, names=None),
        lambda: zeros(2**40, 2**40), lambda: torch.rand(2**40, 2**40), lambda: torch.full((2,), "a"),
        lambda: torch.full((2,), x), lambda: torch.full((2,)), lambda: torch.full(), lambda: torch.zeros_like([1]),
        lambda: torch.zeros_like(), lambda: torch.zeros_like(x, memory_format=torch.channels_last),
        lambda: torch.full_like(x), lambda: torch.full_like(x, "a"), lambda: torch.full_like(y, 2**40),
        lambda: torch.full_like(x, 1j), lambda: x.new_zeros(2, dtype="x"), lambda: x.new_zeros(size=2),
        lambda: y.new_full((2,), 2**40), lambda: torch.scalar_tensor([1]), lambda: torch.scalar_tensor(1j),
        lambda: torch.rand_like([1.0]), lambda: torch.rand_like(x, 5),
        lambda: torch.rand_like(x, memory_format=torch.channels_last), lambda: torch.empty_strided((2,), (1, 2)),
        lambda: torch.empty_strided((2,), (-1,)), lambda: torch.zeros(2, out=torch.zeros(2), requires_grad=True),
    ]  # fmt: skip
    return [outcome(call) for call in calls]


@case
def case_ranges(torch):
    arange, linspace, eye = torch.arange, torch.linspace, torch.eye
    calls = [
        lambda: arange("a"), lambda: arange(1, "a"), lambda: arange(), lambda: arange(1, 2, 3, 4),
        lambda: arange(5, step=2), lambda: arange(start=5), lambda: arange(torch.tensor([5])), lambda: arange(1j),
        lambda: arange(end=5), lambda: arange(2**63), lambda: arange(0, None), lambda: arange(5, foo=1),
        lambda: arange(5, out=torch.zeros(5), dtype=torch.float64), lambda: linspace(0, 1), lambda: linspace(0, 1, 3.0),
        lambda: linspace("a", 1, 3), lambda: linspace(0, 1, True), lambda: linspace(0, 1j, 3, dtype=torch.float32),
        lambda: torch.logspace(0, 1, 3, "a"), lambda: torch.logspace(0, 1), lambda: eye(2.0), lambda: eye(2, None),
        lambda: eye(m=2), lambda: eye(2, 3, 4), lambda: eye(True), lambda: eye((2,)), lambda: eye(torch.tensor(2)),
        lambda: eye(2, out=torch.zeros(1), dtype=torch.float64), lambda: torch.range(0, 5, 0),
        lambda: torch.range(5, 0),
    ]  # fmt: skip
    return [outcome(call) for call in calls]
