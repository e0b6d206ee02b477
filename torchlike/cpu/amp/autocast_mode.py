"""The deprecated spelling of torch.amp.autocast for the CPU."""

import warnings
from typing import Any

from torchlike._src.core import dtype as dtypes
from torchlike.amp import autocast_mode as _new

__all__ = ["autocast"]


class autocast(_new.autocast):
    """torch.amp.autocast("cpu", …). Deprecated."""

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.bfloat16, cache_enabled: bool = True) -> None:
        if type(self) is autocast:
            warnings.warn(
                "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` "
                "instead.",
                FutureWarning,
                stacklevel=2,
            )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
