"""What the hand-written functions share: registration under their public names, and the internal operators."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._src.tensor.guarded import settle
from torchlike._src.tensor.namespace import names
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import Tensor


def public(*spaces: str, name: str | None = None) -> Callable[[Callable], Callable]:
    """Publish a function in these namespaces under its own name, or `name`."""

    def register(function: Callable) -> Callable:
        for space in spaces:
            names(space)[name or function.__name__] = function
        return function

    return register


FAIL_BY_DATA = {"linalg_svd", "linalg_eig", "linalg_pinv", "matrix_rank", "cholesky_inverse"}


def _settling(function: Callable) -> Callable:
    def settled(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        settle(*(found if isinstance(found, tuple) else (found,)))
        return found

    return settled


class _Internal:
    """`internal.x(...)` calls the generated function of the operator `_x`."""

    def __getattr__(self, name: str) -> Callable:
        function = PUBLIC["_" + name]
        if name in FAIL_BY_DATA:
            function = _settling(function)
        setattr(self, name, function)
        return function


internal = _Internal()

NN = "torch.nn.functional"


def known_array(t: Any) -> np.ndarray | None:
    """The data of a plain tensor on the CPU if nothing is left to be recorded for it, waiting for a program that runs
    (what depends on this is the same in every run); else None."""
    if type(t) is not Tensor or t._view is not None or t._aval.device.type != "cpu":
        return None
    array = t._s.value.array
    if type(array) is np.ndarray:
        return array if array.shape == t._aval.shape else None
    # not a tracer, and not one more dim of a vmap
    return np.asarray(array) if hasattr(array, "is_ready") and array.shape == t._aval.shape else None


def ints(value: Any, n: int) -> tuple[int, ...]:
    """An int, or a sequence of one or n ints, as n ints (a sequence of another length stays as it is)."""
    if type(value) is int:
        return (value,) * n
    if isinstance(value, (tuple, list)):
        value = tuple(int(v) for v in value)
        return value * n if len(value) == 1 else value
    return (int(value),) * n


def legacy_reduction(size_average: Any, reduce: Any, reduction: str) -> str:
    """The reduction that the deprecated arguments size_average and reduce ask for."""
    if size_average is None and reduce is None:
        return reduction
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    chosen = ("mean" if size_average else "sum") if reduce else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead.", stacklevel=3
    )
    return chosen


def check_reduction(reduction: str) -> str:
    """Raises PyTorch's error for an unknown reduction."""
    if reduction not in ("none", "mean", "sum"):
        if reduction == "elementwise_mean":
            warnings.warn(
                "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3
            )
            return "mean"
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def not_differentiable(function: str, argument: str, value: Any) -> None:
    """Some kernels have no gradient for an operand and refuse one that asks for it."""
    if value is not None and value.requires_grad and names("torch")["is_grad_enabled"]():
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
            "have requires_grad True."
        )


def expect(result: Any, info: Any, name: str) -> Any:
    """`result`, whose value there should not be where `info` is not 0: reading it then raises what `name` says in
    ops/faults.py. It stays the same tensor, with the same history."""
    with names("torch")["no_grad"]():
        checked = internal.expect(result, info, name)
    if result._view is None:
        result._s.value = checked._read()
    settle(result)
    return result
