"""Pooling functions with optional indices, unpooling, power-average and fractional pooling, unfold and fold."""

import functools
import math
from typing import Any

from torchlike._src.ops.adaptive_pooling import adaptive_sizes
from torchlike._src.ops.declare import OPS
from torchlike._src.tensor.call import apply
from torchlike._src.tensor.composite import NN, internal, ints, names, public
from torchlike._src.tensor.namespace import F, torch
from torchlike._src.tensor.publish import TENSOR_TYPES


def _ones(n: int, value: Any, what: str) -> tuple[int, ...]:
    """A 1-d pooling setting, or a 2-d and 3-d one with its own message."""
    value = ints(value, n)
    if len(value) != n:
        if n == 1:
            raise RuntimeError(
                f"max_pool1d() {what} must be an int, list of ints or tuple of ints of size 1 but got size {len(value)}"
            )
        if what == "kernel_size":
            raise RuntimeError(
                f"max_pool{n}d: kernel_size must either be a single int, or a tuple of "
                + ("two ints" if n == 2 else "three ints")
            )
    return value


def _settings(n: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple:
    """Max pooling's settings as `_max_pool` takes them."""
    kernel = _ones(n, kernel_size, "kernel_size")
    stride = kernel if stride is None or stride in ((), []) else _ones(n, stride, "stride")
    return kernel, stride, _ones(n, padding, "padding"), _ones(n, dilation, "dilation"), bool(ceil_mode)


_known_settings = functools.lru_cache(1024)(_settings)
MAX_POOL = OPS["_max_pool"]


def _max_pool(
    n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: bool
) -> Any:
    try:
        settings = _known_settings(n, kernel_size, stride, padding, dilation, ceil_mode)
    except TypeError:  # lists
        settings = _settings(n, kernel_size, stride, padding, dilation, ceil_mode)
    if type(input) in TENSOR_TYPES:
        out, code = apply(MAX_POOL, settings, (input,), True)
    else:
        out, code = internal.max_pool(input, *settings)
    if not indices:
        return out
    return out, internal.max_pool_indices(code, tuple(input.shape[-n:]), *settings[:4])


@public(NN)
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """(N, C, L) or (C, L): the maximum of each window; with return_indices also its position, int64."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public(NN)
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """(N, C, H, W) or (C, H, W): the maximum of each window; with return_indices also its flat position, int64."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@public(NN)
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """(N, C, D, H, W) or (C, D, H, W): the maximum of each window; with return_indices also its flat position."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _torch_max_pool(n: int) -> Any:
    def function(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, False)

    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, True)

    function.__name__ = function.__qualname__ = f"max_pool{n}d"
    with_indices.__name__ = with_indices.__qualname__ = f"max_pool{n}d_with_indices"
    function.__doc__ = f"The maximum of each window of {n} dims; see torch.nn.functional.max_pool{n}d."
    with_indices.__doc__ = f"(maximum, flat position) of each window of {n} dims."
    public("torch")(function)
    public(NN)(with_indices)
    if n == 1:
        public("torch")(with_indices)
    return function


for _n in (1, 2, 3):
    _torch_max_pool(_n)


def _adaptive_max(n: int, input: Any, output_size: Any, indices: bool) -> Any:
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(sizes) == n and input.dim() > n:
        sizes = adaptive_sizes(tuple(input.shape), sizes, n)
    elif len(sizes) == 1:
        sizes = sizes * n
    out, where = internal.adaptive_max_pool(input, sizes)
    return (out, where) if indices else out


@public(NN)
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """(N, C, L) or (C, L) -> (..., output_size): maxima over windows that tile the input."""
    return _adaptive_max(1, input, output_size, return_indices)


@public(NN)
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """(N, C, H, W) or (C, H, W) -> (..., *output_size): maxima over windows that tile the input."""
    return _adaptive_max(2, input, output_size, return_indices)


@public(NN)
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """(N, C, D, H, W) or (C, D, H, W) -> (..., *output_size): maxima over windows that tile the input."""
    return _adaptive_max(3, input, output_size, return_indices)


def _adaptive_with_indices(n: int) -> None:
    def function(input, output_size, return_indices=False):
        return _adaptive_max(n, input, output_size, True)

    function.__name__ = function.__qualname__ = f"adaptive_max_pool{n}d_with_indices"
    function.__doc__ = f"(maximum, flat position) over windows that tile the last {n} dims."
    public(NN)(function)
    if n == 1:
        names("torch")["adaptive_max_pool1d"] = lambda input, output_size: _adaptive_max(1, input, output_size, True)


for _n in (1, 2, 3):
    _adaptive_with_indices(_n)


# -- unpooling ------------------------------------------------------------------------------------------------


def _unpool_sizes(
    n: int, input: Any, kernel: tuple, stride: tuple, padding: tuple, output_size: Any
) -> tuple[int, ...]:
    shape = tuple(input.shape)
    default = tuple((shape[len(shape) - n + k] - 1) * stride[k] - 2 * padding[k] + kernel[k] for k in range(n))
    if output_size is None:
        return default
    sizes = tuple(int(s) for s in output_size)
    if len(sizes) == n + 2:
        sizes = sizes[2:]
    if len(sizes) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(sizes)}'"
        )
    for k in range(n):
        low, high = default[k] - stride[k], default[k] + stride[k]
        if not low < sizes[k] < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {k} must be between {low} and {high})')
    return sizes


def _unpool(n: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    kernel = ints(kernel_size, n)
    stride = kernel if stride is None else ints(stride, n)
    sizes = _unpool_sizes(n, input, kernel, stride, ints(padding, n), output_size)
    return internal.max_unpool(input, indices, sizes)


@public(NN)
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The inverse of max_pool1d from its maxima and indices; other elements are 0."""
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


@public(NN)
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The inverse of max_pool2d from its maxima and indices; other elements are 0."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


@public(NN)
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """The inverse of max_pool3d from its maxima and indices; other elements are 0."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# -- power-average and fractional pooling ---------------------------------------------------------------------


def _lp_pool(n: int, input: Any, norm_type: Any, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    kernel = ints(kernel_size, n)
    average = getattr(F, f"avg_pool{n}d")(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    return (torch.sign(average) * F.relu(torch.abs(average))).mul(math.prod(kernel)).pow(1.0 / norm_type)


@public(NN)
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window, p = norm_type."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@public(NN)
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window, p = norm_type."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@public(NN)
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The p-norm of each window, p = norm_type."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _fractional(n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> tuple:
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    kernel = ints(kernel_size, n)
    if output_size is None:
        if len(output_ratio) > n if n == 2 else isinstance(output_ratio, (tuple, list)) and len(output_ratio) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
        output_size = tuple(int(input.shape[k - n] * ratio[k]) for k in range(n))
    sizes = ints(output_size, n)
    batched = input.dim() == n + 2
    x = input if batched else input.unsqueeze(0)
    if samples is None:
        samples = torch.rand(x.shape[0], x.shape[1], n, dtype=input.dtype, device=input.device)
    elif samples.dim() == 3 and samples.shape[0] > x.shape[0]:
        samples = samples[: x.shape[0]]  # PyTorch reads as many as it needs
    for k in range(n):
        if sizes[k] + kernel[k] - 1 > x.shape[2 + k]:
            axis = ("height", "width") if n == 2 else ("time", "height", "width")
            public_name = name + ("_out" if n == 3 else "")
            raise RuntimeError(
                f"{public_name}(): pool {axis[k]} {kernel[k]} too large relative to input {axis[k]} {x.shape[2 + k]}"
            )
    out, where = internal.fractional_max_pool(x, samples, kernel, sizes)
    return (out, where) if batched else (out.squeeze(0), where.squeeze(0))


def _fractional_functions(n: int) -> None:
    def function(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        found = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]

    def with_indices(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    function.__name__ = function.__qualname__ = f"fractional_max_pool{n}d"
    with_indices.__name__ = with_indices.__qualname__ = f"fractional_max_pool{n}d_with_indices"
    function.__doc__ = f"Max pooling over {n} dims at pseudo-random window starts (Graham, Fractional Max-Pooling)."
    with_indices.__doc__ = function.__doc__ + " Returns (maximum, flat position)."
    public(NN)(function)
    public(NN)(with_indices)


for _n in (2, 3):
    _fractional_functions(_n)


# -- unfold and fold ------------------------------------------------------------------------------------------


@public(NN)
def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C, H, W) or (C, H, W) -> (N, C * kH * kW, positions): every sliding window as a column."""
    return internal.im2col(input, ints(kernel_size, 2), ints(dilation, 2), ints(padding, 2), ints(stride, 2))


@public(NN)
def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C * kH * kW, positions) -> (N, C, *output_size): sliding windows put back, overlaps added."""
    return internal.col2im(
        input, ints(output_size, 2), ints(kernel_size, 2), ints(dilation, 2), ints(padding, 2), ints(stride, 2)
    )
