"""torch.autograd.forward_ad: derivatives in forward mode."""

import threading
from typing import Any, NamedTuple

from torchlike._src.autograd.dual import FORWARD, DualLevel, close_level, new_level
from torchlike._src.tensor import dual
from torchlike._src.tensor.modes import _Decorator
from torchlike._src.tensor.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Levels(threading.local):
    """The level that a thread is in, and its number as users see it (-1 for none)."""

    current: DualLevel | None = None

    @property
    def number(self) -> int:
        return -1 if self.current is None else 0


_levels = _Levels()


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns. tangent: None if the tensor is not dual."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Begin forward differentiation; returns the level's number, 0. RuntimeError inside of another level."""
    if _levels.current is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.current = new_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward differentiation: dual tensors made since `enter_dual_level` lose their tangents."""
    if level is None:
        level = _levels.number
    if level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if level != _levels.number or _levels.current is None:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    close_level(_levels.current)
    _levels.current = None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` with `tangent`, of the same shape, along which all that is made of it is differentiated.

    Unlike PyTorch's, the result has its own memory: in-place changes of it do not show in `tensor`. RuntimeError
    outside of a level, for another shape, and for a tensor that is dual already."""
    if level is None:
        level = _levels.number
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if not (tangent.is_floating_point() or tangent.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    current = _levels.current
    if current is None or level != 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    if dual.is_dual(tensor, current):
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if dual.is_dual(tangent, current):
        tangent = dual.primal_at(tangent, current)
    return dual.make_dual(tensor, tangent, current)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a dual tensor; (tensor, None) of another, and outside of a level."""
    if level is None:
        level = _levels.number
    current = _levels.current
    if level < 0 or current is None:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    return UnpackedDualTensor(dual.primal_at(tensor, current), dual.tangent_at(tensor, current))


class dual_level(_Decorator):
    """A context manager (and decorator) within which dual tensors can be made; gives the level's number."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *unused: Any) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled(_Decorator):
    """Switch forward differentiation off, or on again."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.before = FORWARD.limit
        FORWARD.limit = float("inf") if mode else 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        FORWARD.limit = self.before

    def clone(self) -> "_set_fwd_grad_enabled":
        return type(self)(self.mode)


def _is_fwd_grad_enabled() -> bool:
    return FORWARD.limit == float("inf")


for _item in (UnpackedDualTensor, dual_level, enter_dual_level, exit_dual_level, make_dual, unpack_dual):
    _item.__module__ = "torch.autograd.forward_ad"
