"""torch.autograd.grad_mode."""

from typing import Any

from torchlike._src.tensor.modes import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

_multithreading = [True]


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` set."""
    return _multithreading[0]


class set_multithreading_enabled:
    """A context manager (or function) that PyTorch has to keep backward in one thread. Here it always is."""

    def __init__(self, mode: bool) -> None:
        self.before, self.mode = _multithreading[0], mode
        _multithreading[0] = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        _multithreading[0] = self.before


set_multithreading_enabled.__module__ = "torch.autograd.grad_mode"
