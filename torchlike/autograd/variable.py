"""torch.autograd.variable: what tensors with gradients were called long ago."""

from torchlike._src.tensor.tensor import Tensor as Variable

__all__ = ["Variable"]
