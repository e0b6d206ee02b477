"""Gradients of convolutions, as functions."""

from collections.abc import Callable, Sequence
from typing import Any

from torchlike import autograd
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F


def _pull(convolve: Callable, input: Any, weight: Any, wanted: int, grad_output: Tensor, arguments: tuple) -> Tensor:
    """The gradient of operand `wanted`, which is given by its size alone: a convolution is linear in it."""
    operands = [input, weight]
    size = operands[wanted]
    operands = [o if isinstance(o, Tensor) else None for o in operands]
    with torch.enable_grad():
        zeros = torch.zeros(tuple(size), dtype=grad_output.dtype, device=grad_output.device)
        operands[wanted] = zeros.requires_grad_()
        out = convolve(*operands, None, *arguments)
        return autograd.grad(out, zeros, grad_output, create_graph=grad_output.requires_grad)[0]


def _input(convolve: Callable, n: int) -> Callable:
    def conv_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        return _pull(convolve, input_size, weight, 0, grad_output, (stride, padding, dilation, groups))

    conv_input.__name__ = conv_input.__qualname__ = f"conv{n}d_input"
    conv_input.__doc__ = f"The gradient of conv{n}d with respect to its input, of size input_size."
    return conv_input


def _weight(convolve: Callable, n: int) -> Callable:
    def conv_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        return _pull(convolve, input, weight_size, 1, grad_output, (stride, padding, dilation, groups))

    conv_weight.__name__ = conv_weight.__qualname__ = f"conv{n}d_weight"
    conv_weight.__doc__ = f"The gradient of conv{n}d with respect to its weight, of size weight_size."
    return conv_weight


conv1d_input, conv1d_weight = _input(F.conv1d, 1), _weight(F.conv1d, 1)
conv2d_input, conv2d_weight = _input(F.conv2d, 2), _weight(F.conv2d, 2)
conv3d_input, conv3d_weight = _input(F.conv3d, 3), _weight(F.conv3d, 3)
