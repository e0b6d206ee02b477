"""`torch.utils.serialization`: settings of torch.save and torch.load."""

from torchlike.utils.serialization import config

__all__ = ["config"]
