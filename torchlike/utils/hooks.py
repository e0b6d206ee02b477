"""torch.utils.hooks: handles of registered hooks."""

import warnings
from collections.abc import Callable
from typing import Any

from torchlike._src.autograd.tape import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

RemovableHandle.__module__ = __name__


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook that cannot be saved with its tensor: `warn_if_has_hooks` stays silent about it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn that the backward hooks of a tensor that is being saved will be lost."""
    for hook in (tensor._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
