"""All parameters as one vector, and back."""

from collections.abc import Iterable
from typing import Any

from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules._naming import type_name

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _same_device(params: Iterable[Tensor]) -> Iterable[Tensor]:
    first: Any = None
    for param in params:
        first = param.device if first is None else first
        if param.device != first:
            raise TypeError("Found two parameters on different devices, this is currently not supported.")
        yield param


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other, as a 1-d tensor (with gradients)."""
    return torch.cat([param.view(-1) for param in _same_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters their parts of `vec` as data. TypeError: no tensor, or parameters on several devices."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type_name(vec)}")
    start = 0
    for param in _same_device(parameters):
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
