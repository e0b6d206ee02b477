"""torch.utils.hooks: handles of registered hooks."""

from collections.abc import Callable

from torchlike._src.autograd.tape import RemovableHandle
from torchlike._src.checkpoint.pickler import warn_if_has_hooks

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

RemovableHandle.__module__ = __name__


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook that cannot be saved with its tensor: `warn_if_has_hooks` stays silent about it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
