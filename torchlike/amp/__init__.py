"""torch.amp: automatic mixed precision."""

import sys as _sys

from torchlike.amp import autocast_mode as _mode
from torchlike.amp import grad_scaler as _scaler
from torchlike.amp.autocast_mode import (
    _enter_autocast,
    _exit_autocast,
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from torchlike.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# The functions that `torch` itself has.
_sys.modules[__name__.split(".", 1)[0]].__dict__.update(_mode.public_functions(), autocast=autocast)

from torchlike import cpu as _cpu

_ = _scaler, _enter_autocast, _exit_autocast, _cpu
