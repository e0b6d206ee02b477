"""torch.autograd.grad_mode."""

import threading
from typing import Any

from torchlike._src.tensor.modes import _Decorator, enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "enable_grad", "enforce_grad_layout_policy", "inference_mode", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip


class _Flags(threading.local):
    """Settings of a thread that say how PyTorch's engine is to work, which leaves results as they are."""

    multithreading = True
    layout = True


_flags = _Flags()


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` set."""
    return _flags.multithreading


def is_view_replay_enabled() -> bool:
    """False: PyTorch's choice of how views are remade is no setting here."""
    return False


class set_multithreading_enabled(_Decorator):
    """A context manager (or function) that PyTorch has to keep backward in one thread. Here it always is."""

    def __init__(self, mode: bool) -> None:
        self.prev, self.mode = _flags.multithreading, mode
        _flags.multithreading = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        _flags.multithreading = self.prev

    def clone(self) -> "set_multithreading_enabled":
        return type(self)(self.mode)


class enforce_grad_layout_policy(_Decorator):
    """A context manager (or function): whether an accumulated gradient must have its parameter's strides. Here
    gradients are row-major either way."""

    def __init__(self, enable: bool = True) -> None:
        self.prev, self.mode = _flags.layout, enable
        _flags.layout = enable

    def __call__(self, function: Any) -> Any:
        _flags.layout = self.prev
        return super().__call__(function)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        _flags.layout = self.prev

    def clone(self) -> "enforce_grad_layout_policy":
        return type(self)(self.mode)


for _item in (set_multithreading_enabled, enforce_grad_layout_policy):
    _item.__module__ = "torch.autograd.grad_mode"
