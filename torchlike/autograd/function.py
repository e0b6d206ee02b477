"""torch.autograd.function."""

from torchlike._src.tensor.function import BackwardFunction as BackwardCFunction
from torchlike._src.tensor.function import Function, FunctionCtx, FunctionMeta, once_differentiable

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "once_differentiable"]
