"""torch.autograd.forward_ad: derivatives in forward mode, which torchlike does not have (see torch.func.jvp)."""

from typing import Any

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_MISSING = "torchlike: forward-mode automatic differentiation (torch.autograd.forward_ad)"


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Not available."""
    raise NotImplementedError(_MISSING)


def unpack_dual(tensor: Any, *, level: int | None = None) -> Any:
    """Not available."""
    raise NotImplementedError(_MISSING)


def enter_dual_level() -> int:
    """Not available."""
    raise NotImplementedError(_MISSING)


def exit_dual_level(*, level: int | None = None) -> None:
    """Not available."""
    raise NotImplementedError(_MISSING)


class dual_level:
    """Not available."""

    def __init__(self) -> None:
        raise NotImplementedError(_MISSING)


class UnpackedDualTensor:
    """Not available."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(_MISSING)
