"""Whether mixed precision on CUDA is possible at all."""

from torchlike.amp.autocast_mode import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
