"""torch.autograd.function."""

from typing import Any

from torchlike._src.tensor.function import BackwardFunction as BackwardCFunction
from torchlike._src.tensor.function import Function, FunctionCtx, FunctionMeta, once_differentiable

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
]


class InplaceFunction(Function):
    """A Function that remembers whether it is to work in place, as old code has it."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A Function of nested tuples: not available."""

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Not available."""
        raise NotImplementedError("torchlike: torch.autograd.NestedIOFunction; pass tensors as separate arguments")
