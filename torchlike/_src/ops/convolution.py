"""Convolutions, transposed convolutions, unfold and fold.

Three linear maps carry everything: `forward`, its transpose in the input (`input_gradient`, which is also a
transposed convolution) and its transpose in the weight (`weight_gradient`). On CPU they are formulated by shape, see
`convolution_cpu`; here is what all platforms share, and one channel per group as shifted multiples.
"""

import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.build_target import on_cpu
from torchlike._src.core.errors import shape_text
from torchlike._src.ops import convolution_cpu as cpu
from torchlike._src.ops.declare import TO, T, op
from torchlike._src.ops.matmul import HALF, barrier, conj
from torchlike._src.ops.normalization import channel_sum


class Config(NamedTuple):
    """A convolution's static part: per spatial dim stride, (low, high) padding, dilation; and groups."""

    stride: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    groups: int


SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


# -- the three maps -------------------------------------------------------------------------------------------


def wide(a: Any) -> Any:
    """Half types in float32 on CPU, which has no half-precision convolution worth using."""
    return a.astype(jnp.float32) if a.dtype.name in HALF and on_cpu() else a


def conv_sizes(sizes: tuple, kernel: tuple, c: Config) -> tuple[int, ...]:
    return tuple(
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, (low, high), d in zip(sizes, kernel, c.stride, c.pads, c.dilation, strict=True)
    )


def xla_conv(x: Any, w: Any, c: Config) -> Any:
    letters = SPATIAL[x.ndim - 2]
    return lax.conv_general_dilated(
        x,
        w,
        c.stride,
        c.pads,
        rhs_dilation=c.dilation,
        dimension_numbers=("NC" + letters, "OI" + letters, "NC" + letters),
        feature_group_count=c.groups,
    )


def kind(w_shape: tuple, c: Config) -> str:
    """Which formulation serves a weight of this shape: "xla", "cpu" or "depthwise"."""
    if not on_cpu():
        return "xla"
    if c.groups > 1 and w_shape[1] == 1 and w_shape[0] == c.groups and math.prod(w_shape[2:]) <= 32:
        return "depthwise"
    return "cpu"


def pad_input(x: Any, c: Config) -> Any:
    if not any(low or high for low, high in c.pads):
        return x
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *((low, high, 0) for low, high in c.pads)])


def unpad_input(d: Any, sizes: tuple, c: Config) -> Any:
    """The gradient of `pad_input`; d may be shorter than the padded input where windows leave a rest."""
    config = [(0, 0, 0), (0, 0, 0)]
    for n, size, (low, _) in zip(d.shape[2:], sizes, c.pads, strict=True):
        config.append((-low, size + low - n, 0))
    return d if all(p == (0, 0, 0) for p in config) else lax.pad(d, jnp.zeros((), d.dtype), config)


def taps_of(kernel: tuple) -> list[tuple[int, ...]]:
    return list(itertools.product(*[range(k) for k in kernel]))


def shifted(x: Any, at: tuple, out: tuple, c: Config) -> Any:
    """The padded input's elements that kernel position `at` meets, one per output position."""
    starts = [i * d for i, d in zip(at, c.dilation, strict=True)]
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(starts, out, c.stride, strict=True)]
    return lax.slice(x, (0, 0, *starts), (*x.shape[:2], *ends), (1, 1, *c.stride))


def unshifted(d: Any, at: tuple, kernel: tuple, c: Config) -> Any:
    """The transpose of `shifted`."""
    config = [(0, 0, 0), (0, 0, 0)]
    for i, k, dilation, s in zip(at, kernel, c.dilation, c.stride, strict=True):
        config.append((i * dilation, (k - 1 - i) * dilation, s - 1))
    return lax.pad(d, jnp.zeros((), d.dtype), config)


def patches(x: Any, kernel: tuple, out: tuple, c: Config) -> Any:
    """(N, C, *sizes) -> (N, C * taps, positions)."""
    padded = pad_input(x, c)
    parts = [shifted(padded, at, out, c) for at in taps_of(kernel)]
    n, channels = x.shape[:2]
    return jnp.stack(parts, 2).reshape(n, channels * len(parts), math.prod(out))


def patches_transpose(d: Any, shape: tuple, kernel: tuple, out: tuple, c: Config) -> Any:
    """(N, C * taps, positions) -> (N, C, *sizes): overlapping patches add up."""
    taps = taps_of(kernel)
    d = d.reshape(*shape[:2], len(taps), *out)
    total = None
    for k, at in enumerate(taps):
        part = unshifted(d[:, :, k], at, kernel, c)
        total = part if total is None else total + part
    return unpad_input(total, shape[2:], c)


def fit_output(g: Any, shape: tuple, kernel: tuple, c: Config) -> Any:
    """g with as many positions as the convolution of an input of `shape` has: a transposed convolution whose output
    padding exceeds its stride has fewer, the rest meets nothing."""
    out = conv_sizes(shape[2:], kernel, c)
    if out == g.shape[2:]:
        return g
    config = [(0, 0, 0), (0, 0, 0), *((0, n - have, 0) for n, have in zip(out, g.shape[2:], strict=True))]
    return lax.pad(g, jnp.zeros((), g.dtype), config)


def forward(x: Any, w: Any, c: Config, bias: Any = None) -> Any:
    """(N, C, *sizes), (O, C / groups, *kernel), (O,) or None -> (N, O, *out)."""
    kernel = w.shape[2:]
    out = conv_sizes(x.shape[2:], kernel, c)
    if 0 in x.shape or 0 in w.shape or 0 in out:
        return add_bias(jnp.zeros((x.shape[0], w.shape[0], *out), x.dtype), bias, x.dtype)
    dtype = x.dtype
    x, w = wide(x), wide(w)
    k = kind(w.shape, c)
    if k == "cpu":
        y = cpu.first(cpu.forward(barrier(cpu.last(x)), w, c, out))
    elif k == "depthwise":
        padded, y = pad_input(x, c), None
        for at in taps_of(kernel):
            part = shifted(padded, at, out, c) * _per_channel(w[(slice(None), 0, *at)], len(kernel))
            y = part if y is None else y + part
    else:
        y = xla_conv(x, w, c)
    return add_bias(y, bias, dtype)


def add_bias(y: Any, bias: Any, dtype: Any) -> Any:
    """y plus a bias per channel, in y's precision, rounded once to dtype."""
    if bias is not None:
        y = y + _per_channel(bias.astype(y.dtype), y.ndim - 2)
    return y.astype(dtype)


def _per_channel(v: Any, n: int) -> Any:
    return v.reshape(-1, *[1] * n)


def input_gradient(g: Any, w: Any, shape: tuple, c: Config) -> Any:
    """The transpose of `forward` in its input of `shape`: (N, O, *out), weight -> (N, C, *sizes)."""
    kernel = w.shape[2:]
    if 0 in shape or 0 in w.shape or 0 in g.shape:
        return jnp.zeros(shape, g.dtype)
    dtype = g.dtype
    g = fit_output(g, shape, kernel, c)
    g, w = wide(g), wide(w)
    k = kind(w.shape, c)
    g = g if k == "cpu" else barrier(g)
    if g.dtype.kind in "iu":  # JAX transposes no linear map of integers
        d = _grouped_columns(g, w, shape, c)
    elif k == "cpu":
        d = cpu.first(cpu.input_gradient(barrier(cpu.last(g)), w, shape[2:], c))
    elif k == "depthwise":
        d = None
        for at in taps_of(kernel):
            part = unshifted(g * _per_channel(w[(slice(None), 0, *at)], len(kernel)), at, kernel, c)
            d = part if d is None else d + part
        d = unpad_input(d, shape[2:], c)
    else:
        spec = jax.ShapeDtypeStruct(shape, g.dtype)
        (d,) = jax.linear_transpose(lambda x: xla_conv(x, w, c), spec)(g)
    return d.astype(dtype)


def _grouped_columns(g: Any, w: Any, shape: tuple, c: Config) -> Any:
    """`input_gradient` by patches, for any number of groups."""
    n, groups = g.shape[0], c.groups
    rows = g.reshape(n, groups, g.shape[1] // groups, -1)
    weights = jnp.broadcast_to(
        w.reshape(1, groups, w.shape[0] // groups, -1), (n, groups, w.shape[0] // groups, w[0].size)
    )
    columns = lax.dot_general(
        weights, rows, (((2,), (2,)), ((0, 1), (0, 1)))
    )  # (n, groups, channels * taps, positions)
    columns = columns.reshape(n, -1, columns.shape[3])
    return patches_transpose(columns, shape, w.shape[2:], g.shape[2:], c)


def weight_gradient(g: Any, x: Any, shape: tuple, c: Config) -> Any:
    """The transpose of `forward` in its weight of `shape`: (N, O, *out), (N, C, *sizes) -> weight's shape."""
    kernel = shape[2:]
    if 0 in shape or 0 in x.shape or 0 in g.shape:
        return jnp.zeros(shape, g.dtype)
    dtype = g.dtype
    g = fit_output(g, x.shape, kernel, c)
    out = g.shape[2:]
    g, x = wide(g), wide(x)
    k = kind(shape, c)
    g = g if k == "cpu" else barrier(g)
    if k == "cpu":
        d = cpu.weight_gradient(barrier(cpu.last(g)), barrier(cpu.last(x)), shape, c)
    elif k == "depthwise":
        padded = pad_input(x, c)
        axes = (0, *range(2, x.ndim))
        taps = [(shifted(padded, at, out, c) * g).sum(axes) for at in taps_of(kernel)]
        d = jnp.stack(taps, 1).reshape(shape)
    else:
        spec = jax.ShapeDtypeStruct(shape, g.dtype)
        (d,) = jax.linear_transpose(lambda w: xla_conv(x, w, c), spec)(g)
    return d.astype(dtype)


# -- settings and checks --------------------------------------------------------------------------------------


def _tuple(value: Any, n: int) -> tuple[int, ...]:
    if isinstance(value, tuple):
        return value * n if len(value) == 1 else value
    return (value,) * n


def config(kernel: tuple, stride: Any, padding: Any, dilation: Any, groups: int) -> Config:
    n = len(kernel)
    dilation = _tuple(dilation, n)
    if padding == "valid":
        pads: tuple = ((0, 0),) * n
    elif padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        pads = tuple((t // 2, t - t // 2) for t in total)
    else:
        pads = tuple((p, p) for p in _tuple(padding, n))
    return Config(_tuple(stride, n), pads, dilation, groups)


def _check_list(name: str, value: Any, n: int) -> None:
    if isinstance(value, tuple) and len(value) not in (1, n):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {name}={shape_text(value)}"
        )


def _check_positive(stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int, n: int) -> None:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if not isinstance(padding, str) and min(_tuple(padding, n)) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(_tuple(output_padding, n)) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(_tuple(stride, n)) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(_tuple(dilation, n)) <= 0:
        raise RuntimeError("non-positive dilation is not supported")


def _legacy_type(a: Aval) -> str:
    names = {"bfloat16": "CPUBFloat16Type", "float16": "CPUHalfType"}
    return names.get(a.dtype.name, a.dtype.type_name)


def _check_types(a: Aval, w: Aval, b: Aval | None) -> None:
    if b is not None and b.dtype is not a.dtype:
        raise RuntimeError(f"Input type ({a.dtype.cpp_name}) and bias type ({b.dtype.cpp_name}) should be the same")
    if w.dtype is not a.dtype:
        if a.dtype.name in ("float32", "bfloat16", "float16"):  # PyTorch's message comes from the backend it picks
            raise RuntimeError(
                f"Input type ({_legacy_type(a)}) and weight type ({_legacy_type(w)}) should be the same or input "
                "should be a MKLDNN tensor and weight is a dense tensor"
            )
        raise RuntimeError(f"expected scalar type {a.dtype.scalar_name} but found {w.dtype.scalar_name}")
    if a.dtype.name == "bool":
        raise NotImplementedError("\"slow_conv2d_cpu\" not implemented for 'Bool'")


def _check_conv(
    a: Aval,
    w: Aval,
    b: Aval | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    n: int,
    transposed: bool = False,
    output_padding: Any = 0,
) -> None:
    name = f"conv_transpose{n}d" if transposed else f"conv{n}d"
    if a.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{shape_text(a.shape)}"
        )
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    spatial = w.ndim - 2
    if w.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if spatial != n:  # the lists have n values, the weight says otherwise
        expand = [("stride", stride), ("padding", padding), ("dilation", dilation)]
        for label, value in expand:
            if not isinstance(value, str):
                _check_list(label, _tuple(value, n), spatial)
    for label, value in (("stride", stride), ("padding", padding), ("dilation", dilation)):
        _check_list(label, value, n)
    if padding == "same" and any(s != 1 for s in _tuple(stride, n)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    _check_types(a, w, b)
    _check_positive(stride, padding, output_padding, dilation, groups, n)
    x_shape = a.shape if a.ndim == n + 2 else (1, *a.shape)
    if len(x_shape) != w.ndim:
        raise RuntimeError(
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight {shape_text(w.shape)}, but got "
            f"{len(x_shape)}-dimensional input of size {shape_text(x_shape)} instead"
        )
    _check_channels(x_shape, w, b, groups, transposed)
    if not transposed:
        c = config(w.shape[2:], stride, padding, dilation, groups)
        padded = [s + low + high for s, (low, high) in zip(x_shape[2:], c.pads, strict=True)]
        spans = [d * (k - 1) + 1 for d, k in zip(c.dilation, w.shape[2:], strict=True)]
        if any(p < k for p, k in zip(padded, spans, strict=True)):
            raise RuntimeError(
                f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
                f"({' x '.join(map(str, spans))}). Kernel size can't be greater than actual input size"
            )


def _check_channels(x_shape: tuple, w: Aval, b: Aval | None, groups: int, transposed: bool) -> None:
    if w.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{shape_text(w.shape)}] instead"
        )
    if transposed:
        if x_shape[1] != w.shape[0]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {shape_text(w.shape)}, expected input{shape_text(x_shape)} to "
                f"have {w.shape[0]} channels, but got {x_shape[1]} channels instead"
            )
        outs = w.shape[1] * groups
        given = "Given transposed=1, weight"
    else:
        if x_shape[1] != w.shape[1] * groups:
            raise RuntimeError(
                f"Given groups={groups}, weight of size {shape_text(w.shape)}, expected input{shape_text(x_shape)} to "
                f"have {w.shape[1] * groups} channels, but got {x_shape[1]} channels instead"
            )
        outs = w.shape[0]
        given = "Given weight"
    if b is not None and b.shape != (outs,):
        raise RuntimeError(
            f"{given} of size {shape_text(w.shape)}, expected bias to be 1-dimensional with {outs} elements, but got "
            f"bias of size {shape_text(b.shape)} instead"
        )


# -- convolution ----------------------------------------------------------------------------------------------


def _convolve(x: Any, w: Any, b: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    n = w.ndim - 2
    unbatched = x.ndim == n + 1
    y = forward(x[None] if unbatched else x, w, config(w.shape[2:], stride, padding, dilation, groups), b)
    return y[0] if unbatched else y


def _grad_input(g, weight, input_aval, stride, padding, dilation, groups):
    unbatched = input_aval.ndim == weight.ndim - 1
    shape = (1, *input_aval.shape) if unbatched else input_aval.shape
    c = config(weight.shape[2:], stride, padding, dilation, groups)
    d = input_gradient(g[None] if unbatched else g, conj(weight), shape, c)
    return d[0] if unbatched else d


def _grad_weight(g, input, weight_aval, stride, padding, dilation, groups):
    unbatched = input.ndim == weight_aval.ndim - 1
    c = config(weight_aval.shape[2:], stride, padding, dilation, groups)
    g, x = (g[None], input[None]) if unbatched else (g, input)
    return weight_gradient(g, conj(x), weight_aval.shape, c)


def _grad_bias(g, weight_aval):
    batched = g[None] if g.ndim == weight_aval.ndim - 1 else g
    return channel_sum(wide(batched)).astype(g.dtype)


def _conv_shape(a: Aval, w: Aval, stride: Any, padding: Any, dilation: Any, groups: int) -> Aval:
    n = w.ndim - 2
    c = config(w.shape[2:], stride, padding, dilation, groups)
    out = conv_sizes(a.shape[a.ndim - n :], w.shape[2:], c)
    return a.with_shape((*a.shape[: a.ndim - n - 1], w.shape[0], *out))


def _name(n: int, unbatched_ndim: int) -> str:
    return "SqueezeBackward1" if n == unbatched_ndim else "ConvolutionBackward0"


def _conv_options(n: int) -> dict:
    return {
        "namespaces": ("torch", "torch.nn.functional"),
        "method": False,
        "out": False,
        "autocast": "lower",
        "check": lambda input, weight, bias, stride, padding, dilation, groups: _check_conv(
            input, weight, bias, stride, padding, dilation, groups, n
        ),
        "shape": lambda input, weight, bias, stride, padding, dilation, groups: _conv_shape(
            input, weight, stride, padding, dilation, groups
        ),
        "grad_name": lambda input, **_: _name(input.ndim, n + 1),
        "vjp": {"input": _grad_input, "weight": _grad_weight, "bias": _grad_bias},
    }


@op(**_conv_options(1))
def conv1d(input: T, weight: T, bias: TO = None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, L) or (C, L), (O, C / groups, k), (O,) -> (N, O, L'). `padding` may be "valid" or "same"."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups)


@op(**_conv_options(2))
def conv2d(input: T, weight: T, bias: TO = None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, H, W) or (C, H, W), (O, C / groups, kH, kW), (O,) -> (N, O, H', W')."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups)


@op(**_conv_options(3))
def conv3d(input: T, weight: T, bias: TO = None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, D, H, W) or (C, D, H, W), (O, C / groups, kD, kH, kW), (O,) -> (N, O, D', H', W')."""
    return _convolve(input, weight, bias, stride, padding, dilation, groups)


# -- transposed convolution -----------------------------------------------------------------------------------


def transposed_sizes(sizes: tuple, kernel: tuple, c: Config, output_padding: tuple) -> tuple[int, ...]:
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + extra + 1
        for n, k, s, (p, _), d, extra in zip(sizes, kernel, c.stride, c.pads, c.dilation, output_padding, strict=True)
    )


def _transpose(
    x: Any, w: Any, b: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any
) -> Any:
    n = w.ndim - 2
    unbatched = x.ndim == n + 1
    x = x[None] if unbatched else x
    c = config(w.shape[2:], stride, padding, dilation, groups)
    out = transposed_sizes(x.shape[2:], w.shape[2:], c, _tuple(output_padding, n))
    dtype = x.dtype
    x, w = wide(x), wide(w)
    y = add_bias(input_gradient(x, w, (x.shape[0], w.shape[1] * groups, *out), c), b, dtype)
    return y[0] if unbatched else y


def _transpose_grad_input(g, weight, input_aval, stride, padding, dilation, groups):
    unbatched = input_aval.ndim == weight.ndim - 1
    c = config(weight.shape[2:], stride, padding, dilation, groups)
    d = forward(g[None] if unbatched else g, conj(weight), c)
    sizes = input_aval.shape[input_aval.ndim - (weight.ndim - 2) :]
    d = d[(slice(None), slice(None), *(slice(0, n) for n in sizes))]
    return d[0] if unbatched else d


def _transpose_grad_weight(g, input, weight_aval, stride, padding, dilation, groups):
    unbatched = input.ndim == weight_aval.ndim - 1
    c = config(weight_aval.shape[2:], stride, padding, dilation, groups)
    g, x = (g[None], input[None]) if unbatched else (g, input)
    return weight_gradient(conj(x), g, weight_aval.shape, c)


def _check_transpose(a, w, b, stride, padding, output_padding, groups, dilation, n):
    _check_conv(a, w, b, stride, padding, dilation, groups, n, True, output_padding)
    strides, dilations, extra = _tuple(stride, n), _tuple(dilation, n), _tuple(output_padding, n)
    if any(e >= s and e >= d for e, s, d in zip(extra, strides, dilations, strict=True)):
        names = {1: ("height", "width"), 2: ("height", "width"), 3: ("depth", "height", "width")}[n]
        fill = (len(names) - n) * (1,)
        parts = [
            f"{label}_{name}: {v}"
            for label, values in (
                ("output_padding", (0,) * len(fill) + extra),
                ("stride", fill + strides),
                ("dilation", fill + dilations),
            )
            for name, v in zip(names, values, strict=True)
        ]
        raise RuntimeError("output padding must be smaller than either stride or dilation, but got " + " ".join(parts))


def _transpose_shape(a: Aval, w: Aval, stride, padding, output_padding, groups, dilation) -> Aval:
    n = w.ndim - 2
    c = config(w.shape[2:], stride, padding, dilation, groups)
    out = transposed_sizes(a.shape[a.ndim - n :], w.shape[2:], c, _tuple(output_padding, n))
    if min(out) < 0 or (min(out) == 0 and a.numel):
        sizes = " x ".join(map(str, a.shape[a.ndim - n :]))
        raise RuntimeError(
            f"Given input size per channel: ({sizes}). Calculated output size per channel: "
            f"({' x '.join(map(str, out))}). Output size is too small"
        )
    return a.with_shape((*a.shape[: a.ndim - n - 1], w.shape[1] * groups, *out))


def _transpose_options(n: int) -> dict:
    return {
        "namespaces": ("torch", "torch.nn.functional"),
        "method": False,
        "out": False,
        "autocast": "lower",
        "check": lambda input, weight, bias, stride, padding, output_padding, groups, dilation: _check_transpose(
            input, weight, bias, stride, padding, output_padding, groups, dilation, n
        ),
        "shape": lambda input, weight, bias, stride, padding, output_padding, groups, dilation: _transpose_shape(
            input, weight, stride, padding, output_padding, groups, dilation
        ),
        "grad_name": lambda input, **_: _name(input.ndim, n + 1),
        "vjp": {"input": _transpose_grad_input, "weight": _transpose_grad_weight, "bias": _grad_bias},
    }


@op(**_transpose_options(1))
def conv_transpose1d(input: T, weight: T, bias: TO = None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """(N, C, L) or (C, L), (C, O / groups, k), (O,) -> (N, O, L'): the transpose of conv1d."""
    return _transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


@op(**_transpose_options(2))
def conv_transpose2d(input: T, weight: T, bias: TO = None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """(N, C, H, W) or (C, H, W), (C, O / groups, kH, kW), (O,) -> (N, O, H', W'): the transpose of conv2d."""
    return _transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


@op(**_transpose_options(3))
def conv_transpose3d(input: T, weight: T, bias: TO = None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """(N, C, D, H, W) or (C, D, H, W), (C, O / groups, kD, kH, kW), (O,) -> (N, O, D', H', W')."""
    return _transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)


def _tbc_grad_input(g, weight, input_aval, pad):
    d = input_gradient(g.transpose(1, 2, 0), weight.transpose(2, 1, 0), _tbc_shape(input_aval), _tbc(pad))
    return d.transpose(2, 0, 1)


def _tbc_grad_weight(g, input, weight_aval, pad):
    k, channels, outs = weight_aval.shape
    d = weight_gradient(g.transpose(1, 2, 0), input.transpose(1, 2, 0), (outs, channels, k), _tbc(pad))
    return d.transpose(2, 1, 0)


def _tbc(pad: int) -> Config:
    return Config((1,), ((pad, pad),), (1,), 1)


def _tbc_shape(a: Aval) -> tuple:
    t, b, c = a.shape
    return (b, c, t)


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    autocast="lower",
    vjp={"input": _tbc_grad_input, "weight": _tbc_grad_weight, "bias": lambda g: g.sum((0, 1))},
)
def conv_tbc(input: T, weight: T, bias: T, pad=0):
    """(T, B, C), (k, C, O), (O,) -> (T', B, O): a 1-d convolution over the first dim."""
    y = forward(input.transpose(1, 2, 0), weight.transpose(2, 1, 0), _tbc(pad))
    return y.transpose(2, 0, 1) + bias
