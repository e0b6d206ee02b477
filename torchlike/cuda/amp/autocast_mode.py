"""The deprecated spellings of torch.amp.autocast, custom_fwd and custom_bwd for CUDA."""

import warnings
from collections.abc import Callable
from typing import Any

from torchlike._src.core import dtype as dtypes
from torchlike.amp import autocast_mode as _new

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.amp.{old}(args...)` is deprecated. Please use `torch.amp.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(_new.autocast):
    """torch.amp.autocast("cuda", …). Deprecated."""

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True) -> None:
        if type(self) is autocast:
            _warn("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: Any = None) -> Callable:
    """torch.amp.custom_fwd for CUDA. Deprecated."""
    _warn("custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return _new.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable) -> Callable:
    """torch.amp.custom_bwd for CUDA. Deprecated."""
    _warn("custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _new.custom_bwd(bwd, device_type="cuda")
