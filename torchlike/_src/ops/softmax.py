"""softmax and log_softmax over one dim. Half types are computed in float32 and rounded once."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import canonical_dim
from torchlike._src.ops.declare import T, cast, op
from torchlike._src.ops.reduction import not_for, widen


def _check(kernel: str) -> Any:
    def check(input: Aval, dim: int, dtype: Any = None) -> None:
        given = dtype or input.dtype
        last = canonical_dim(dim, input.ndim) == input.ndim - 1
        if not given.is_floating_point:
            raise not_for(f"{kernel}_lastdim_kernel_impl" if last else f"{kernel}_kernel_impl", given)

    return check


def _aval(input: Aval, dim: int, dtype: Any = None) -> Aval:
    return input if dtype is None else input.with_dtype(dtype)


def _along(x: Any, dim: int) -> tuple[Any, tuple]:
    """x with at least one dim, and the dim to reduce."""
    x = x.reshape(1) if x.ndim == 0 else x
    return x, (dim % x.ndim,)


def _shifted(x: Any, dims: tuple) -> Any:
    if 0 in x.shape:
        return x
    return x - lax.expand_dims(lax.stop_gradient(lax.reduce_max(x, dims)), dims)


def _sum(x: Any, dims: tuple) -> Any:
    return lax.expand_dims(lax.reduce_sum(x, dims), dims)


def _softmax_pull(g: Any, out: Any, dim: int) -> Any:
    shape = g.shape
    (g, dims), (out, _) = _along(widen(g), dim), _along(widen(out), dim)
    weighted = g * out
    return (weighted - out * _sum(weighted, dims)).reshape(shape)


def _log_softmax_pull(g: Any, out: Any, dim: int) -> Any:
    shape = g.shape
    (g, dims), (out, _) = _along(widen(g), dim), _along(widen(out), dim)
    return (g - jnp.exp(out) * _sum(g, dims)).reshape(shape)


@op(check=_check("softmax"), shape=_aval, vjp={"input": _softmax_pull}, autocast="float32")
def softmax(input: T, dim, dtype=None):
    """exp(input) / sum(exp(input)) along `dim`; `dtype` casts first."""
    result = input.dtype if dtype is None else dtype.np
    x, dims = _along(widen(cast(input, result)), dim)
    weights = jnp.exp(_shifted(x, dims))
    return (weights / _sum(weights, dims)).reshape(input.shape).astype(result)


@op(check=_check("log_softmax"), shape=_aval, vjp={"input": _log_softmax_pull}, autocast="float32")
def log_softmax(input: T, dim, dtype=None):
    """log(softmax(input)) along `dim`, without overflow; `dtype` casts first."""
    result = input.dtype if dtype is None else dtype.np
    x, dims = _along(widen(cast(input, result)), dim)
    x = _shifted(x, dims)
    total = _sum(jnp.exp(x), dims)
    if jnp.dtype(result).itemsize == 2 and dims[0] == x.ndim - 1:
        # PyTorch keeps the sum and its logarithm in the half type when it works along the last dim.
        info = jnp.finfo(result)
        bits = {"exponent_bits": info.nexp, "mantissa_bits": info.nmant}
        log = lax.reduce_precision(jnp.log(lax.reduce_precision(total, **bits)), **bits)
    else:
        log = jnp.log(total)
    return (x - log).reshape(input.shape).astype(result)
