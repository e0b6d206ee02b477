"""torch.autograd.variable: what tensors with gradients were called long ago."""

import warnings
from typing import Any

from torchlike._src.tensor.creation import tensor
from torchlike._src.tensor.tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Every tensor is a Variable."""

    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """Variable(data, requires_grad=False): a tensor with the data of `data` and no history. Old code's way to make
    one."""

    def __new__(
        cls, data: Any = None, requires_grad: bool = False, volatile: Any = None, _grad_fn: Any = None, name: Any = None
    ) -> Any:
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2
            )
        if data is None:
            data = tensor([])
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        out = data.detach()
        if requires_grad:
            out.requires_grad_()
        out._name = name
        return out


def variable(*args: Any, **kwargs: Any) -> Any:
    """Not available, as in PyTorch."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


variable.Variable = Variable  # type: ignore[attr-defined]
Variable.__module__ = "torch.autograd.variable"
