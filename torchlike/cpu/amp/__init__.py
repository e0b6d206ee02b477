"""torch.cpu.amp: the older names of torch.amp, for the CPU."""

from torchlike.cpu.amp.autocast_mode import autocast
from torchlike.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
