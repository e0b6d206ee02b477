"""Adaptive, fractional and inverse pooling: windows of unequal size, or positions given as data."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import shape_text
from torchlike._src.ops.convolution_cpu import first, last
from torchlike._src.ops.declare import Promote, T, op
from torchlike._src.ops.pooling import INT64, MAX_SLICES, ntuple

# -- adaptive pooling -----------------------------------------------------------------------------------------


def adaptive_sizes(shape: tuple, output_size: Any, n: int) -> tuple[int, ...]:
    """The output's spatial sizes: None keeps the input's."""
    return tuple(
        shape[len(shape) - n + k] if size is None else int(size) for k, size in enumerate(ntuple(output_size, n))
    )


def _bounds(size: int, out: int) -> list[tuple[int, int]]:
    return [(i * size // out, -((-(i + 1) * size) // out)) for i in range(out)]


def _mean_matrix(size: int, out: int, dtype: Any) -> Any:
    """(out, size): each row averages its window."""
    m = np.zeros((out, size))
    for i, (low, high) in enumerate(_bounds(size, out)):
        m[i, low:high] = 1.0 / (high - low)
    return jnp.asarray(m, dtype)


def _adaptive_mean_dim(x: Any, dim: int, out: int) -> Any:
    size = x.shape[dim]
    if out == size:
        return x
    if out and size % out == 0:
        k = size // out
        return x.reshape(*x.shape[:dim], out, k, *x.shape[dim + 1 :]).sum(dim + 1) / jnp.asarray(k, x.dtype)
    if 0 < out <= MAX_SLICES:
        parts = [
            lax.slice_in_dim(x, low, high, 1, dim).sum(dim, keepdims=True) / jnp.asarray(high - low, x.dtype)
            for low, high in _bounds(size, out)
        ]
        return jnp.concatenate(parts, dim)
    y = lax.dot_general(x, _mean_matrix(size, out, x.dtype), (((dim,), (1,)), ((), ())))
    return jnp.moveaxis(y, -1, dim)


def _adaptive_mean_dim_grad(g: Any, dim: int, size: int) -> Any:
    out = g.shape[dim]
    if out == size:
        return g
    if out and size % out == 0:
        k = size // out
        g = jnp.expand_dims(g / jnp.asarray(k, g.dtype), dim + 1)
        g = jnp.broadcast_to(g, (*g.shape[: dim + 1], k, *g.shape[dim + 2 :]))
        return g.reshape(*g.shape[:dim], size, *g.shape[dim + 2 :])
    y = lax.dot_general(g, _mean_matrix(size, out, g.dtype), (((dim,), (0,)), ((), ())))
    return jnp.moveaxis(y, -1, dim)


def _check_adaptive(a: Aval, output_size: Any, n: int, kind: str) -> None:
    name = f"adaptive_{kind}_pool{n}d"
    colon = "" if kind == "avg" else ":"
    if n == 1 and a.ndim not in (2, 3):
        if kind == "avg":
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {a.ndim}-dimensional tensor for argument #1 'self' "
                f"(while checking arguments for {name})"
            )
        raise RuntimeError(f"{name}(): Expected 2D or 3D tensor, but got: {shape_text(a.shape)}")
    if n > 1 and isinstance(output_size, tuple) and a.ndim <= n:
        raise ValueError(f"Input dimension should be at least {n + 1}")
    if isinstance(output_size, tuple) and len(output_size) != n:
        raise RuntimeError(
            f"{name}: output_size must be {n}"
            if kind == "avg"
            else f"{name}(): internal error: output_size.size() must be {n}"
        )
    if a.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {shape_text(a.shape)}")
    for k in range(a.ndim - n, a.ndim):
        if a.shape[k] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{shape_text(a.shape)} with dimension {k} being empty"
            )
    sizes = adaptive_sizes(a.shape, output_size, n)
    if min(sizes) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{', '.join(map(str, sizes))}}}"
        )
    if not a.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name.replace('1d', '2d')}\" not implemented for '{a.dtype.scalar_name}'")


def _adaptive_avg(x: Any, output_size: Any, n: int) -> Any:
    sizes = adaptive_sizes(x.shape, output_size, n)
    batched = x.ndim == n + 2  # then channels-last, as convolutions have it on CPU
    x = last(x) if batched else x
    for k, out in enumerate(sizes):
        x = _adaptive_mean_dim(x, 1 + k, out)
    return first(x) if batched else x


def _adaptive_avg_grad(g: Any, input_aval: Aval, n: int) -> Any:
    batched = g.ndim == n + 2
    sizes = input_aval.shape[g.ndim - n :]
    g = last(g) if batched else g
    for k, size in enumerate(sizes):
        g = _adaptive_mean_dim_grad(g, 1 + k, size)
    return first(g) if batched else g


def _adaptive_avg_op(n: int) -> dict:
    def name(input: Aval, output_size: Any) -> str:
        if n == 1:
            return "SqueezeBackward1"
        ones = all(s == 1 for s in adaptive_sizes(input.shape, output_size, n))
        return "MeanBackward1" if ones else f"AdaptiveAvgPool{n}DBackward0"

    return {
        "method": False,
        "out": False,
        "promote": Promote.DEFAULT,
        "check": lambda input, output_size: _check_adaptive(input, output_size, n, "avg"),
        "shape": lambda input, output_size: input.with_shape(
            input.shape[: input.ndim - n] + adaptive_sizes(input.shape, output_size, n)
        ),
        "grad_name": name,
        "vjp": {"input": lambda g, input_aval: _adaptive_avg_grad(g, input_aval, n)},
    }


@op(namespaces=("torch", "torch.nn.functional"), **_adaptive_avg_op(1))
def adaptive_avg_pool1d(input: T, output_size):
    """(N, C, L) or (C, L) -> (..., output_size): means over windows that tile the input."""
    return _adaptive_avg(input, output_size, 1)


@op(namespaces=("torch.nn.functional",), **_adaptive_avg_op(2))
def adaptive_avg_pool2d(input: T, output_size):
    """(N, C, H, W) or (C, H, W) -> (..., *output_size); a None size keeps the input's."""
    return _adaptive_avg(input, output_size, 2)


@op(namespaces=("torch.nn.functional",), **_adaptive_avg_op(3))
def adaptive_avg_pool3d(input: T, output_size):
    """(N, C, D, H, W) or (C, D, H, W) -> (..., *output_size); a None size keeps the input's."""
    return _adaptive_avg(input, output_size, 3)


def _adaptive_max_dim(x: Any, index: Any, dim: int, out: int, factor: int) -> tuple[Any, Any]:
    """One dim of adaptive max pooling; `index` is the flat position so far (None: nothing reduced yet)."""
    size = x.shape[dim]
    values, indices = [], []
    for low, high in _bounds(size, out):
        window = lax.slice_in_dim(x, low, high, 1, dim)
        winner = lax.argmax(window, dim, jnp.int64)
        values.append(window.max(dim, keepdims=True))
        winner = jnp.expand_dims(winner, dim)
        position = (winner + low) * factor
        if index is not None:
            position = position + jnp.take_along_axis(lax.slice_in_dim(index, low, high, 1, dim), winner, dim)
        indices.append(position)
    return jnp.concatenate(values, dim), jnp.concatenate(indices, dim)


def _scatter_spatial(g: Any, indices: Any, shape: tuple, n: int, add: bool) -> Any:
    """Puts g at flat spatial positions `indices` of zeros of `shape`."""
    rows = math.prod(shape[: len(shape) - n])
    if not rows:
        return jnp.zeros(shape, g.dtype)
    flat = indices.reshape(rows, -1)
    row = lax.broadcasted_iota(flat.dtype, flat.shape, 0)
    zeros = jnp.zeros((rows, math.prod(shape[len(shape) - n :])), g.dtype)
    at = zeros.at[row, flat]
    values = g.reshape(flat.shape)
    return (at.add(values) if add else at.set(values)).reshape(shape)


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "indices"),
    check=lambda input, output_size: _check_adaptive(input, output_size, len(output_size), "max"),
    shape=lambda input, output_size: tuple(
        aval(
            input.shape[: input.ndim - len(output_size)] + adaptive_sizes(input.shape, output_size, len(output_size)),
            d,
            input.device,
        )
        for d in (input.dtype, INT64)
    ),
    grad_name=lambda input, output_size: (
        "SqueezeBackward1" if len(output_size) == 1 else f"AdaptiveMaxPool{len(output_size)}DBackward0"
    ),
    vjp={
        "input": lambda g0, out1, input_aval, output_size: _scatter_spatial(
            g0, out1, input_aval.shape, len(output_size), True
        )
    },
)
def _adaptive_max_pool(input: T, output_size: tuple):
    """(maximum, flat spatial position) over windows that tile the last len(output_size) dims."""
    n = len(output_size)
    lead = input.ndim - n
    sizes = adaptive_sizes(input.shape, output_size, n)
    out, index, factor = input, None, 1
    for k in reversed(range(n)):
        out, index = _adaptive_max_dim(out, index, lead + k, sizes[k], factor)
        factor *= input.shape[lead + k]
    return out, index


# -- unpooling and fractional pooling -------------------------------------------------------------------------


def check_max_unpool(input: Aval, indices: Aval, output_size: tuple) -> None:
    n = len(output_size)
    if indices.dtype is not INT64:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.scalar_name}")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Input to max_unpooling{n}d should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with "
            f"{input.ndim} dimensions."
        )
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({shape_text(input.shape)}) but got "
            f"indices tensor with shape: {shape_text(indices.shape)}"
        )


def _gather_spatial(x: Any, indices: Any, n: int) -> Any:
    rows = math.prod(x.shape[: x.ndim - n])
    flat = indices.reshape(rows, -1)
    return jnp.take_along_axis(x.reshape(rows, -1), flat, 1).reshape(indices.shape)


@op(
    namespaces=(),
    method=False,
    out=False,
    check=check_max_unpool,
    shape=lambda input, indices, output_size: input.with_shape(
        input.shape[: input.ndim - len(output_size)] + output_size
    ),
    grad_name=lambda output_size, **_: (
        "SqueezeBackward1" if len(output_size) == 1 else f"MaxUnpool{len(output_size)}DBackward0"
    ),
    vjp={"input": lambda g, indices, output_size: _gather_spatial(g, indices, len(output_size))},
)
def _max_unpool(input: T, indices: T, output_size: tuple):
    """Zeros of spatial size `output_size` with the input's values at flat positions `indices`."""
    n = len(output_size)
    return _scatter_spatial(input, indices, input.shape[: input.ndim - n] + output_size, n, False)


def _fractional_starts(sample: Any, size: int, out: int, kernel: int) -> Any:
    """(N, C) uniform samples -> (N, C, out) window starts."""
    if out == 1:
        return jnp.full((*sample.shape, 1), size - kernel, jnp.int64)
    alpha = jnp.asarray((size - kernel) / (out - 1), sample.dtype)
    steps = jnp.arange(out, dtype=sample.dtype)
    starts = (jnp.floor((steps + sample[..., None]) * alpha) - jnp.floor(sample[..., None] * alpha)).astype(jnp.int64)
    return starts.at[..., -1].set(size - kernel)


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "indices"),
    grad_name=lambda kernel_size, **_: f"FractionalMaxPool{len(kernel_size)}DBackward0",
    vjp={
        "input": lambda g0, out1, input_aval, kernel_size: _scatter_spatial(
            g0, out1, input_aval.shape, len(kernel_size), True
        )
    },
)
def _fractional_max_pool(input: T, samples: T, kernel_size: tuple, output_size: tuple):
    """(N, C, *spatial), (N, C, n) uniform samples in [0, 1): (maximum, flat position) over windows at pseudo-random
    starts. The samples' last dim holds one number per spatial dim: (w, h) in two dims, (t, h, w) in three."""
    n = len(kernel_size)
    spatial = input.shape[2:]
    if 0 in input.shape[:2]:
        shape = (*input.shape[:2], *output_size)
        return jnp.zeros(shape, input.dtype), jnp.zeros(shape, jnp.int64)
    flat: Any = jnp.zeros((), jnp.int64)
    for k in range(n):
        sample = samples[..., 1 - k if n == 2 else k]
        starts = _fractional_starts(sample, spatial[k], output_size[k], kernel_size[k])
        at = starts[..., None] + jnp.arange(kernel_size[k], dtype=jnp.int64)  # (N, C, out, kernel)
        sides = [*at.shape[:2], *[1] * (2 * n)]
        sides[2 + k], sides[2 + n + k] = output_size[k], kernel_size[k]
        flat = flat * spatial[k] + at.reshape(sides)
    lead = input.shape[:2]
    flat = jnp.broadcast_to(flat, (*lead, *output_size, *kernel_size)).reshape(*lead, *output_size, -1)
    values = jnp.take_along_axis(input.reshape(*lead, -1), flat.reshape(*lead, -1), 2).reshape(flat.shape)
    winner = lax.argmax(values, values.ndim - 1, jnp.int64)[..., None]
    return values.max(-1), jnp.take_along_axis(flat, winner, -1)[..., 0]
