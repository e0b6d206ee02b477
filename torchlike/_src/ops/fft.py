"""Discrete Fourier transforms: complex to complex, real to complex, complex to real. All are linear."""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.dtype import complex128, float64
from torchlike._src.ops.declare import T, op

MOST_DIMS = 3
"""XLA transforms at most three dims at once."""


def scale_of(norm: str | None, sizes: tuple[int, ...], forward: bool) -> float:
    """The factor on a transform of these sizes: norm is None (as "backward"), "backward", "ortho" or "forward"."""
    n = math.prod(sizes)
    if norm == "ortho":
        return 1 / math.sqrt(n)
    if (norm or "backward") == ("forward" if forward else "backward"):
        return 1 / n
    return 1.0


def resized(input: Any, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """`input` cut, or filled with zeros, to `sizes` along `dims`."""
    for d, n in zip(dims, sizes, strict=True):
        have = input.shape[d]
        if n < have:
            input = lax.slice_in_dim(input, 0, n, axis=d)
        elif n > have:
            input = lax.pad(
                input, jnp.zeros((), input.dtype), [(0, n - have if k == d else 0, 0) for k in range(input.ndim)]
            )
    return input


def _transform(input: Any, dims: tuple[int, ...], kind: str, lengths: tuple[int, ...]) -> Any:
    """lax.fft over any dims."""
    rest = [k for k in range(input.ndim) if k not in dims]
    order = [*rest, *dims]
    moved = input if order == list(range(input.ndim)) else lax.transpose(input, order)
    out = lax.fft(moved, kind, lengths)
    if order == list(range(input.ndim)):
        return out
    return lax.transpose(out, [order.index(k) for k in range(input.ndim)])


def _complex_transform(input: Any, dims: tuple[int, ...], sizes: tuple[int, ...], forward: bool) -> Any:
    for k in range(0, len(dims), MOST_DIMS):
        input = _transform(input, dims[k : k + MOST_DIMS], "FFT" if forward else "IFFT", sizes[k : k + MOST_DIMS])
    return input if forward or not dims else input * math.prod(sizes)  # XLA's inverse divides by n


def _with_sizes(input: Aval, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Aval:
    shape = list(input.shape)
    for d, n in zip(dims, sizes, strict=True):
        shape[d] = n
    return input.with_shape(tuple(shape))


@op(
    namespaces=(), method=False, out=False, linear=True, grad_name="FftC2CBackward0",
    shape=lambda input, dims, sizes, norm, forward: _with_sizes(input, dims, sizes),
)  # fmt: skip
def _fft_c2c(input: T, dims, sizes, norm, forward):
    """Complex (...) -> complex, transformed over `dims` after resizing them to `sizes`."""
    out = _complex_transform(resized(input, dims, sizes), dims, sizes, forward)
    scale = scale_of(norm, sizes, forward)
    return out if scale == 1 else out * jnp.asarray(scale, out.dtype)


def _half_shape(input: Aval, dims: tuple, sizes: tuple, norm: Any, forward: bool, onesided: bool) -> Aval:
    last = sizes[-1] // 2 + 1 if onesided else sizes[-1]
    return _with_sizes(input, dims, (*sizes[:-1], last)).with_dtype(input.dtype.to_complex())


def _half_name(forward: bool, **_: Any) -> str:
    return "FftR2CBackward0" if forward else "ConjBackward0"


@op(namespaces=(), method=False, out=False, linear=True, grad_name=_half_name, shape=_half_shape)
def _fft_r2c(input: T, dims, sizes, norm, forward, onesided):
    """Real (...) -> complex; onesided keeps the first half of the last of `dims`. Backward means the conjugate."""
    x = resized(input, dims, sizes)
    if onesided:
        out = _transform(x, dims[-1:], "RFFT", sizes[-1:])
        out = _complex_transform(out, dims[:-1], sizes[:-1], True)
    else:
        out = _complex_transform(lax.complex(x, jnp.zeros_like(x)), dims, sizes, True)
    if not forward:
        out = jnp.conj(out)
    scale = scale_of(norm, sizes, forward)
    return out if scale == 1 else out * jnp.asarray(scale, out.dtype)


def _whole_shape(input: Aval, dims: tuple, sizes: tuple, norm: Any, forward: bool) -> Aval:
    return _with_sizes(input, dims, sizes).with_dtype(float64 if input.dtype is complex128 else input.dtype.to_real())


@op(namespaces=(), method=False, out=False, linear=True, grad_name="FftC2RBackward0", shape=_whole_shape)
def _fft_c2r(input: T, dims, sizes, norm, forward):
    """Complex (...), the first half of a Hermitian signal along the last of `dims` -> real of `sizes`."""
    last = sizes[-1]
    x = resized(input, dims, (*sizes[:-1], last // 2 + 1))
    if forward:
        x = jnp.conj(x)
    x = _complex_transform(x, dims[:-1], sizes[:-1], False)
    out = _transform(x, dims[-1:], "IRFFT", (last,)) * last
    scale = scale_of(norm, sizes, forward)
    return out if scale == 1 else out * jnp.asarray(scale, out.dtype)
