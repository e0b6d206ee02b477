"""`torch._utils`: the functions that PyTorch's pickles name."""

from torchlike.nn.parameter import _rebuild_parameter, _rebuild_parameter_with_state

__all__ = ["_rebuild_parameter", "_rebuild_parameter_with_state"]
