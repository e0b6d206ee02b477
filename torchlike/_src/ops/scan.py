"""Running sums, products and extrema along one dim."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim
from torchlike._src.ops.declare import T, op
from torchlike._src.ops.gather_scatter import scatter_along
from torchlike._src.ops.reduction import _as_sum_dtype, is_nan, not_for, sum_dtype, widen


def _aval(input: Aval, dim: int, dtype: Any) -> Aval:
    canonical_dim(dim, input.ndim)
    return input.with_dtype(sum_dtype(input.dtype, dtype))


def _scan(x: Any, dim: int, scan: Any, reverse: bool = False) -> Any:
    """`scan` along `dim`; nothing to do for a 0-dim array."""
    return scan(x, axis=dim % x.ndim, reverse=reverse) if x.ndim else x


@op(
    shape=_aval,
    vjp={"input": lambda g, dim: _scan(widen(g), dim, lax.cumsum, reverse=True)},
    inplace=True,
    autocast="float32",
)
def cumsum(input: T, dim, *, dtype=None):
    """The running sum along `dim`. Integers and bool give int64 unless `dtype` says else."""
    x = _as_sum_dtype(input, dtype)
    return _scan(widen(x), dim, lax.cumsum).astype(x.dtype)


def _running_product(x: Any, dim: int) -> Any:
    return _scan(x, dim, lax.cumprod)


def _cumprod_pull(g: Any, input: Any, dim: int) -> Any:
    """By JAX's rule, which multiplies and never divides: zeros need no case of their own."""
    pull = jax.vjp(lambda x: _running_product(x, dim), widen(input).astype(widen(g).dtype))[1]
    d = pull(jnp.conj(widen(g)))[0]
    return jnp.conj(d)


@op(shape=_aval, vjp={"input": _cumprod_pull}, inplace=True, autocast="float32")
def cumprod(input: T, dim, *, dtype=None):
    """The running product along `dim`. Integers and bool give int64 unless `dtype` says else."""
    x = _as_sum_dtype(input, dtype)
    return _running_product(widen(x), dim).astype(x.dtype)


def _extreme_check(name: str) -> Any:
    def check(input: Aval, dim: int) -> None:
        if not input.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        canonical_dim(dim, input.ndim)
        if input.dtype.is_complex:
            raise not_for(f"{name}_cpu", input.dtype)

    return check


def _running_extreme(input: Any, dim: int, scan: Any) -> tuple:
    if not input.ndim:
        return input, jnp.zeros((), jnp.int64)
    x = input.astype(jnp.uint8) if input.dtype == bool else input
    values = _scan(x, dim, scan)
    # The index moves on at each element that equals the extreme so far: the last of equal ones, the last NaN.
    hit = lax.bitwise_or(x == values, is_nan(x)) if x.dtype.kind not in "biu" else x == values
    positions = lax.broadcasted_iota(jnp.int64, x.shape, dim % x.ndim)
    indices = _scan(jnp.where(hit, positions, 0), dim, lax.cummax)
    return values.astype(input.dtype), indices


def _scatter_add_along(g0: Any, out1: Any, input_aval: Aval, dim: int) -> Any:
    """g added up at `out1` along `dim`."""
    return scatter_along(jnp.zeros(input_aval.shape, g0.dtype), dim, out1, g0, "add")


def _values_indices(input: Aval, dim: int) -> tuple[Aval, Aval]:
    return input, aval(input.shape, dt.int64, input.device)


@op(
    check=_extreme_check("cummax"),
    shape=_values_indices,
    vjp={"input": _scatter_add_along},
    outputs=("values", "indices"),
)
def cummax(input: T, dim):
    """(values, indices) of the largest element so far along `dim`; the last of equal ones."""
    return _running_extreme(input, dim, lax.cummax)


@op(
    check=_extreme_check("cummin"),
    shape=_values_indices,
    vjp={"input": _scatter_add_along},
    outputs=("values", "indices"),
)
def cummin(input: T, dim):
    """(values, indices) of the smallest element so far along `dim`; the last of equal ones."""
    return _running_extreme(input, dim, lax.cummin)


def _logcumsumexp_check(input: Aval, dim: int) -> None:
    canonical_dim(dim, input.ndim)
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise not_for("logcumsumexp_out_cpu", input.dtype)
    if input.dtype.is_complex:
        raise NotImplementedError("logcumsumexp of a complex tensor is not implemented")


def _logcumsumexp_pull(g: Any, input: Any, out: Any, dim: int) -> Any:
    """exp(x_j) * sum over k >= j of g_k / exp(out_k), positive and negative gradients apart, by logarithms."""
    g, x, out = widen(g), widen(input), widen(out)
    least = jnp.finfo(g.dtype).min

    def part(g: Any) -> Any:
        size = jnp.where(g > 0, jnp.log(jnp.where(g > 0, g, 1)), least)
        return jnp.exp(_scan(size - out, dim, lax.cumlogsumexp, reverse=True) + x)

    return part(g) - part(-g)


@op(check=_logcumsumexp_check, shape=lambda input, dim: input, vjp={"input": _logcumsumexp_pull})
def logcumsumexp(input: T, dim):
    """The logarithm of the running sum of exponentials along `dim`."""
    return _scan(widen(input), dim, lax.cumlogsumexp).astype(input.dtype)
