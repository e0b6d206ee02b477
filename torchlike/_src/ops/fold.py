"""unfold and fold: sliding windows as columns, and back."""

import math
from typing import Any

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import shape_text
from torchlike._src.ops.convolution import Config, conv_sizes, patches, patches_transpose
from torchlike._src.ops.convolution import _tuple as as_tuple
from torchlike._src.ops.declare import T, op

# -- unfold and fold ------------------------------------------------------------------------------------------


def _fold_config(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple, Config]:
    p = as_tuple(padding, 2)
    return as_tuple(kernel_size, 2), Config(as_tuple(stride, 2), tuple((q, q) for q in p), as_tuple(dilation, 2), 1)


def _paren(values: tuple) -> str:
    return f"({', '.join(map(str, values))})"


def _check_fold_settings(kernel: tuple, c: Config) -> None:
    for label, values in (("kernel size", kernel), ("dilation", c.dilation), ("stride", c.stride)):
        if min(values) <= 0:
            word = {
                "kernel size": "kernel_height: {} kernel_width: {}",
                "dilation": "dilation_height: {} dilation_width: {}",
                "stride": "stride_height: {} stride_width: {}",
            }[label]
            raise RuntimeError(f"{label} should be greater than zero, but got {word.format(*values)}")
    if min(low for low, _ in c.pads) < 0:
        raise RuntimeError(
            f"padding should be non-negative, but got pad_height: {c.pads[0][0]} pad_width: {c.pads[1][0]}"
        )


def check_unfold(input: Aval, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
    kernel, c = _fold_config(kernel_size, dilation, padding, stride)
    _check_fold_settings(kernel, c)
    if input.ndim not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape_text(input.shape)}"
        )
    out = conv_sizes(input.shape[-2:], kernel, c)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_paren(input.shape[-2:])}, kernel_size={_paren(kernel)}, "
            f"dilation={_paren(c.dilation)}, padding={_paren(tuple(p for p, _ in c.pads))}, calculated shape of the "
            f"array of sliding blocks as {_paren(out)}, but its components must be at least one."
        )


def _unfold(x: Any, kernel: tuple, c: Config) -> Any:
    y = patches(x if x.ndim == 4 else x[None], kernel, conv_sizes(x.shape[-2:], kernel, c), c)
    return y if x.ndim == 4 else y[0]


def _fold(d: Any, sizes: tuple, kernel: tuple, c: Config) -> Any:
    batched = d.ndim == 3
    d = d if batched else d[None]
    shape = (d.shape[0], d.shape[1] // math.prod(kernel), *sizes)
    y = patches_transpose(d, shape, kernel, conv_sizes(sizes, kernel, c), c)
    return y if batched else y[0]


def unfold_grad(g, input_aval, kernel_size, dilation, padding, stride):
    kernel, c = _fold_config(kernel_size, dilation, padding, stride)
    return _fold(g, input_aval.shape[-2:], kernel, c)


def fold_grad(g, kernel_size, dilation, padding, stride):
    kernel, c = _fold_config(kernel_size, dilation, padding, stride)
    return _unfold(g, kernel, c)


@op(
    name="_im2col",
    namespaces=(),
    method=False,
    out=False,
    check=check_unfold,
    grad_name="Im2ColBackward0",
    vjp={"input": unfold_grad},
)
def im2col(input: T, kernel_size, dilation=1, padding=0, stride=1):
    """F.unfold: (N, C, H, W) or (C, H, W) -> (N, C * kH * kW, positions): every window as a column."""
    return _unfold(input, *_fold_config(kernel_size, dilation, padding, stride))


def check_fold(input: Aval, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> None:
    kernel, c = _fold_config(kernel_size, dilation, padding, stride)
    _check_fold_settings(kernel, c)
    sizes = as_tuple(output_size, 2)
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape_text(input.shape)}"
        )
    if input.shape[-2] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={input.shape[-2]} and kernel_size={_paren(kernel)}."
        )
    blocks = conv_sizes(sizes, kernel, c)
    if math.prod(blocks) != input.shape[-1] or min(blocks) < 1:
        raise RuntimeError(
            f"Given output_size={_paren(sizes)}, kernel_size={_paren(kernel)}, dilation={_paren(c.dilation)}, "
            f"padding={_paren(tuple(p for p, _ in c.pads))}, stride={_paren(c.stride)}, expected size of input's "
            f"dimension 2 to match the calculated number of sliding blocks {blocks[0]} * {blocks[1]} = "
            f"{math.prod(blocks)}, but got input.size(2)={input.shape[-1]}."
        )


@op(
    name="_col2im",
    namespaces=(),
    method=False,
    out=False,
    check=check_fold,
    grad_name="Col2ImBackward0",
    vjp={"input": fold_grad},
)
def col2im(input: T, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """F.fold: (N, C * kH * kW, positions) or unbatched -> (N, C, *output_size): overlapping windows add up."""
    return _fold(input, as_tuple(output_size, 2), *_fold_config(kernel_size, dilation, padding, stride))
