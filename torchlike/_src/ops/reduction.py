"""Reductions: sums, products, extrema, moments, norms. Half types are reduced in float32 and cast at the end."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim, canonical_dims
from torchlike._src.ops.declare import T, cast, op

HALF = ("float16", "bfloat16")


# -- what the families here share ------------------------------------------------------------------------------


def widen(x: Any) -> Any:
    """Half types as float32, anything else as it is."""
    return x.astype(jnp.float32) if x.dtype.name in HALF else x


def reduce_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dims that a reduction goes over: None and () mean all of them."""
    if dim is None or (isinstance(dim, tuple) and not dim):
        return tuple(range(ndim))
    dims = canonical_dims(dim, ndim)
    return dims if ndim else ()


def reduce_shape(shape: tuple, dim: Any, keepdim: bool) -> tuple[int, ...]:
    """The shape that is left after reducing `dim`."""
    dims = reduce_dims(dim, len(shape))
    if keepdim:
        return tuple(1 if k in dims else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in dims)


def keep(x: Any, ndim: int, dim: Any, keepdim: bool) -> Any:
    """A reduced array with its reduced dims put back as size 1, ready to broadcast against the input."""
    return x if keepdim or not ndim else lax.expand_dims(x, reduce_dims(dim, ndim))


def finish(x: Any, dims: tuple, keepdim: bool) -> Any:
    """A reduction's result with its dims put back if `keepdim`."""
    return lax.expand_dims(x, dims) if keepdim and dims else x


def add_up(x: Any, dims: tuple) -> Any:
    return lax.reduce_sum(x, dims) if dims else x


def count_along(shape: tuple, dim: Any) -> int:
    """How many elements one result of a reduction covers."""
    return math.prod(shape[d] for d in reduce_dims(dim, len(shape)))


def is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def one_hot_pull(g: Any, index: Any, shape: tuple, dim: int, keepdim: bool) -> Any:
    """The gradient of picking one element along `dim`: g at `index`, zero elsewhere.

    A comparison with the positions, because a scatter is a slow serial loop on CPU."""
    if not shape:
        return g
    dim = canonical_dim(dim, len(shape))
    if not keepdim:
        g, index = lax.expand_dims(g, (dim,)), lax.expand_dims(index, (dim,))
    sizes = tuple(n if k == dim else 1 for k, n in enumerate(shape))
    hit = lax.broadcasted_iota(jnp.int32, sizes, dim) == index.astype(jnp.int32)
    return jnp.where(hit, g, jnp.zeros((), g.dtype))


def need_nonempty(name: str, input: Aval, dim: Any, text: str) -> None:
    """PyTorch's errors for reductions without an identity on an empty input."""
    reduce_dims(dim, input.ndim)
    if input.numel:
        return
    if dim is None or dim == ():
        raise (IndexError if name in ("argmax", "argmin") else RuntimeError)(text)
    given = dim if isinstance(dim, tuple) else (dim,)
    for d, shown in zip(canonical_dims(dim, input.ndim), given, strict=True):
        if input.shape[d] == 0:
            colon = "" if name == "aminmax" else "()"
            d = shown if name in ("amax", "amin") else d
            raise IndexError(f"{name}{colon}: Expected reduction dim {d} to have non-zero size.")


def not_for(kernel: str, dtype: dt.dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'")


def sum_dtype(given: dt.dtype, dtype: Any) -> dt.dtype:
    """What sums, products and their running forms return: `dtype` if given, int64 for integers and bool."""
    if dtype is not None:
        return dtype
    return given if given.is_floating_point or given.is_complex else dt.int64


def _sum_aval(input: Aval, dim: Any, keepdim: bool, dtype: Any) -> Aval:
    return aval(reduce_shape(input.shape, dim, keepdim), sum_dtype(input.dtype, dtype), input.device)


def _same_aval(input: Aval, dim: Any, keepdim: bool, **_: Any) -> Aval:
    return input.with_shape(reduce_shape(input.shape, dim, keepdim))


def numbered(base: str) -> Any:
    """grad_name of the reductions whose full form is node 0 and whose form with dims is node 1."""

    def name(dim: Any = None, **_: Any) -> str:
        return f"{base}Backward{0 if dim is None else 1}"

    return name


def _as_sum_dtype(x: Any, dtype: Any) -> Any:
    return cast(x, sum_dtype(dt.from_numpy(x.dtype), dtype).np)


# -- sums ------------------------------------------------------------------------------------------------------


@op(
    shape=_sum_aval,
    autocast="float32",
    vjp={"input": lambda g, input_aval, dim, keepdim: keep(g, input_aval.ndim, dim, keepdim)},
    grad_name=numbered("Sum"),
)
def sum(input: T, dim=None, keepdim=False, *, dtype=None):
    """The sum over `dim` (an int, several, or None for all). Integers and bool give int64 unless `dtype` says else."""
    x = _as_sum_dtype(input, dtype)
    dims = reduce_dims(dim, x.ndim)
    return finish(add_up(widen(x), dims).astype(x.dtype), dims, keepdim)


def _nansum_pull(g: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    return jnp.where(is_nan(input), 0, keep(g, input.ndim, dim, keepdim))


@op(shape=_sum_aval, vjp={"input": _nansum_pull}, check=lambda input, dim, **_: _check_nansum(input, dim))
def nansum(input: T, dim=None, keepdim=False, *, dtype=None):
    """The sum over `dim` with NaN counted as zero."""
    x = _as_sum_dtype(input, dtype)
    dims = reduce_dims(dim, x.ndim)
    return finish(add_up(jnp.where(is_nan(x), 0, widen(x)), dims).astype(x.dtype), dims, keepdim)


def _check_nansum(input: Aval, dim: Any) -> None:
    reduce_dims(dim, input.ndim)
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")


def _check_mean(input: Aval, dtype: Any, **_: Any) -> None:
    kind, given = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (given.is_floating_point or given.is_complex):
        raise RuntimeError(
            f"mean(): could not infer output dtype. {kind} dtype must be either a floating point or complex dtype. "
            f"Got: {given.scalar_name}"
        )


def _mean_pull(g: Any, input_aval: Aval, dim: Any, keepdim: bool) -> Any:
    count = count_along(input_aval.shape, dim)
    return keep(g, input_aval.ndim, dim, keepdim) / np.asarray(count, g.dtype)


@op(shape=_sum_aval, check=_check_mean, vjp={"input": _mean_pull}, grad_name=numbered("Mean"))
def mean(input: T, dim=None, keepdim=False, *, dtype=None):
    """The mean over `dim`; RuntimeError for integers."""
    x = _as_sum_dtype(input, dtype)
    dims = reduce_dims(dim, x.ndim)
    wide = widen(x)
    total = add_up(wide, dims) / np.asarray(count_along(x.shape, dim), wide.dtype)
    return finish(total.astype(x.dtype), dims, keepdim)


def _check_nanmean(input: Aval, dim: Any, dtype: Any, **_: Any) -> None:
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_name}"
        )
    _check_nansum(input, dim)
    if dtype is not None:
        _check_mean(input, dtype)


def _nanmean_pull(g: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    nan = is_nan(input)
    dims = reduce_dims(dim, input.ndim)
    count = add_up(lax.bitwise_not(nan).astype(g.dtype), dims)
    spread = keep(g, input.ndim, dim, keepdim) / finish(count, dims, True)
    return jnp.where(nan, 0, spread)


@op(shape=_sum_aval, check=_check_nanmean, vjp={"input": _nanmean_pull}, grad_name="DivBackward0")
def nanmean(input: T, dim=None, keepdim=False, *, dtype=None):
    """The mean over `dim` of what is not NaN."""
    x = _as_sum_dtype(input, dtype)
    dims = reduce_dims(dim, x.ndim)
    wide = widen(x)
    nan = is_nan(wide)
    count = add_up(lax.bitwise_not(nan).astype(wide.dtype), dims)
    return finish((add_up(jnp.where(nan, 0, wide), dims) / count).astype(x.dtype), dims, keepdim)


def _prod_pull(g: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
    """g * out / input, with the zeros taken out: one zero gets the product of the rest, two leave nothing."""
    dims = reduce_dims(dim, input.ndim)
    wide = widen(cast(input, g.dtype))
    zero = wide == 0
    zeros = finish(add_up(zero.astype(jnp.int32), dims), dims, True)
    rest = jnp.where(zero, jnp.ones((), wide.dtype), wide)
    product = finish(lax.reduce_prod(rest, dims), dims, True) if dims else rest
    others = jnp.where(zero, jnp.where(zeros == 1, product, 0), jnp.where(zeros == 0, product / rest, 0))
    return keep(g, input.ndim, dim, keepdim) * jnp.conj(others).astype(g.dtype)


@op(
    shape=_sum_aval,
    autocast="float32",
    vjp={"input": _prod_pull},
    grad_name=numbered("Prod"),
    check=lambda input, dim, **_: canonical_dim(dim, input.ndim) if dim is not None else None,
)
def prod(input: T, dim=None, keepdim=False, *, dtype=None):
    """The product over `dim` (one int, or None for all). Integers and bool give int64 unless `dtype` says else."""
    x = _as_sum_dtype(input, dtype)
    dims = reduce_dims(dim, x.ndim)
    wide = widen(x)
    return finish((lax.reduce_prod(wide, dims) if dims else wide).astype(x.dtype), dims, keepdim)


def _trace_check(input: Aval, **_: Any) -> None:
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype is dt.bool_:
        raise not_for("trace", input.dtype)


@op(
    check=_trace_check,
    shape=lambda input: aval((), sum_dtype(input.dtype, None), input.device),
    vjp={"input": lambda g, input_aval: jnp.where(eye_mask(input_aval.shape), g, 0)},
)
def trace(input: T):
    """(n, m) -> (): the sum of the diagonal."""
    x = _as_sum_dtype(input, None)
    total = add_up(jnp.where(eye_mask(x.shape), widen(x), 0), (0, 1))
    return total.astype(x.dtype)


def eye_mask(shape: tuple) -> Any:
    """True on the main diagonal."""
    return lax.broadcasted_iota(jnp.int32, shape, 0) == lax.broadcasted_iota(jnp.int32, shape, 1)


@op(
    shape=lambda input, dim: aval(reduce_shape(input.shape, dim, False), dt.int64, input.device),
    differentiable=False,
    out=False,
)
def count_nonzero(input: T, dim=None):
    """How many elements over `dim` are not zero, as int64."""
    return add_up((input != 0).astype(jnp.int64), reduce_dims(dim, input.ndim))


# -- all and any -----------------------------------------------------------------------------------------------


def _truth_dims(dim: Any, ndim: int) -> tuple[int, ...]:
    return () if dim == () else reduce_dims(dim, ndim)  # an empty tuple reduces nothing here, unlike in sum


def _truth_aval(input: Aval, dim: Any, keepdim: bool) -> Aval:
    shape = input.shape if dim == () else reduce_shape(input.shape, dim, keepdim)
    return aval(shape, dt.uint8 if input.dtype is dt.uint8 else dt.bool_, input.device)


def _truth(input: Any, dim: Any, keepdim: bool, reduce: Any) -> Any:
    dims = _truth_dims(dim, input.ndim)
    truth = input if input.dtype == bool else input != 0
    out = finish(reduce(truth, dims) if dims else truth, dims, keepdim)
    return out.astype(jnp.uint8) if input.dtype == jnp.uint8 else out


@op(shape=_truth_aval, differentiable=False)
def all(input: T, dim=None, keepdim=False):
    """Whether every element over `dim` is not zero (uint8 stays uint8)."""
    return _truth(input, dim, keepdim, lax.reduce_and)


@op(shape=_truth_aval, differentiable=False)
def any(input: T, dim=None, keepdim=False):
    """Whether some element over `dim` is not zero (uint8 stays uint8)."""
    return _truth(input, dim, keepdim, lax.reduce_or)


# -- extrema ---------------------------------------------------------------------------------------------------


def _largest(x: Any, dims: tuple) -> Any:
    return lax.reduce_max(x, dims) if dims else x


def _smallest(x: Any, dims: tuple) -> Any:
    return lax.reduce_min(x, dims) if dims else x


def _share(g: Any, hits: Any, dims: tuple) -> Any:
    """g shared evenly among the elements where `hits`."""
    counts = finish(add_up(hits.astype(g.dtype if g.dtype.name not in HALF else jnp.float32), dims), dims, True)
    return g * hits.astype(g.dtype) / counts.astype(g.dtype)  # no hit at all (a NaN result): NaN, as in PyTorch


def _share_all(g: Any, input: Any, out: Any) -> Any:
    hits = lax.bitwise_or(input == out, lax.bitwise_and(is_nan(input), is_nan(out)))
    return _share(g, hits, tuple(range(input.ndim)))


def _share_dims(g: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
    dims = reduce_dims(dim, input.ndim)
    return _share(keep(g, input.ndim, dim, keepdim), input == keep(out, input.ndim, dim, keepdim), dims)


def _all_check(name: str) -> Any:
    text = (
        f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
        "Specify the reduction dim with the 'dim' argument."
    )

    def check(input: Aval) -> None:
        if input.numel == 0:
            raise RuntimeError(text)
        if input.dtype.is_complex:
            raise not_for(f"{name}_all", input.dtype)

    return check


def _dim_check(name: str) -> Any:
    def check(input: Aval, dim: int, keepdim: bool) -> None:
        need_nonempty(name, input, dim, "")
        if input.dtype.is_complex:
            raise RuntimeError(f"{name}(): does not support complex input")

    return check


def _with_indices(input: Aval, dim: int, keepdim: bool) -> tuple[Aval, Aval]:
    shape = reduce_shape(input.shape, dim, keepdim)
    return input.with_shape(shape), aval(shape, dt.int64, input.device)


def _pick_pull(g0: Any, out1: Any, input_aval: Aval, dim: int, keepdim: bool) -> Any:
    return one_hot_pull(g0, out1, input_aval.shape, dim, keepdim)


@op(
    check=_all_check("max"),
    shape=lambda input: input.with_shape(()),
    vjp={"input": _share_all},
    namespaces=(),
    grad_name="MaxBackward1",
)
def _max_all(input: T):
    """The largest element; NaN if there is one. Ties share the gradient."""
    return _largest(input, tuple(range(input.ndim)))


@op(
    check=_all_check("min"),
    shape=lambda input: input.with_shape(()),
    vjp={"input": _share_all},
    namespaces=(),
    grad_name="MinBackward1",
)
def _min_all(input: T):
    """The smallest element; NaN if there is one. Ties share the gradient."""
    return _smallest(input, tuple(range(input.ndim)))


def _extreme_dim(input: Any, dim: int, keepdim: bool, reduce: Any) -> tuple:
    dims = reduce_dims(dim, input.ndim)
    if not dims:
        return input, jnp.zeros((), jnp.int64)
    values = reduce(input, dims)
    return finish(values, dims, keepdim), finish(_first(input, values, dims[0]), dims, keepdim)


def _first(x: Any, extreme: Any, dim: int) -> Any:
    """Where `extreme` first stands along `dim`; the first NaN if there is one.

    A comparison and a minimum of positions: an order of magnitude faster on CPU than XLA's argmax."""
    hit = x == lax.expand_dims(extreme, (dim,))
    if x.dtype.kind not in "biu":
        hit = lax.bitwise_or(hit, is_nan(x))
    kind = jnp.int32 if x.shape[dim] < 2**31 else jnp.int64
    positions = lax.broadcasted_iota(kind, x.shape, dim)
    found = lax.reduce_min(jnp.where(hit, positions, np.asarray(x.shape[dim], kind)), (dim,))
    return found.astype(jnp.int64)


@op(
    check=_dim_check("max"),
    shape=_with_indices,
    vjp={"input": _pick_pull},
    namespaces=(),
    outputs=("values", "indices"),
    grad_name="MaxBackward0",
)
def _max_dim(input: T, dim, keepdim=False):
    """(values, indices) of the largest element along `dim`; the first of equal ones."""
    return _extreme_dim(input, dim, keepdim, _largest)


@op(
    check=_dim_check("min"),
    shape=_with_indices,
    vjp={"input": _pick_pull},
    namespaces=(),
    outputs=("values", "indices"),
    grad_name="MinBackward0",
)
def _min_dim(input: T, dim, keepdim=False):
    """(values, indices) of the smallest element along `dim`; the first of equal ones."""
    return _extreme_dim(input, dim, keepdim, _smallest)


def _am_check(name: str, kernel: str) -> Any:
    text = (
        f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
        "Specify the reduction dim with the 'dim' argument."
    )

    def check(input: Aval, dim: Any, keepdim: bool) -> None:
        need_nonempty(name, input, dim, text)
        if input.dtype.is_complex:
            raise not_for(kernel, input.dtype)

    return check


@op(check=_am_check("amax", "max_values_cpu"), shape=_same_aval, vjp={"input": _share_dims})
def amax(input: T, dim=(), keepdim=False):
    """The largest element over `dim`; ties share the gradient."""
    dims = reduce_dims(dim, input.ndim)
    return finish(_largest(input, dims), dims, keepdim)


@op(check=_am_check("amin", "min_values_cpu"), shape=_same_aval, vjp={"input": _share_dims})
def amin(input: T, dim=(), keepdim=False):
    """The smallest element over `dim`; ties share the gradient."""
    dims = reduce_dims(dim, input.ndim)
    return finish(_smallest(input, dims), dims, keepdim)


def _aminmax_check(input: Aval, dim: Any, keepdim: bool) -> None:
    text = "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
    need_nonempty("aminmax", input, dim, text)
    if input.dtype.is_complex:
        raise not_for("aminmax_cpu", input.dtype)


def _aminmax_pull(g0: Any, g1: Any, input: Any, out0: Any, out1: Any, dim: Any, keepdim: bool) -> Any:
    return _share_dims(g0, input, out0, dim, keepdim) + _share_dims(g1, input, out1, dim, keepdim)


@op(
    check=_aminmax_check,
    shape=lambda input, dim, keepdim: (_same_aval(input, dim, keepdim),) * 2,
    vjp={"input": _aminmax_pull},
    outputs=("min", "max"),
)
def aminmax(input: T, *, dim=None, keepdim=False):
    """(min, max) over `dim`, one int or None for all."""
    dims = reduce_dims(dim, input.ndim)
    return finish(_smallest(input, dims), dims, keepdim), finish(_largest(input, dims), dims, keepdim)


def _arg_check(name: str) -> Any:
    def check(input: Aval, dim: Any, keepdim: bool) -> None:
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        need_nonempty(name, input, dim, text)
        for bad, kind in ((input.dtype.is_complex, "complex"), (input.dtype is dt.bool_, "bool")):
            if bad:
                raise RuntimeError(f"{name}(): does not support {kind} input")

    return check


def _arg_aval(input: Aval, dim: Any, keepdim: bool) -> Aval:
    return aval(reduce_shape(input.shape, dim, keepdim), dt.int64, input.device)


def _arg_all_or_dim(input: Any, dim: Any, keepdim: bool, reduce: Any) -> Any:
    if not input.ndim:
        return jnp.zeros((), jnp.int64)
    if dim is None:
        flat = input.reshape(-1)
        out = _first(flat, reduce(flat, (0,)), 0)
        return out.reshape((1,) * input.ndim) if keepdim else out
    dims = reduce_dims(dim, input.ndim)
    return finish(_first(input, reduce(input, dims), dims[0]), dims, keepdim)


@op(check=_arg_check("argmax"), shape=_arg_aval, differentiable=False)
def argmax(input: T, dim=None, keepdim=False):
    """The index of the largest element along `dim`, or in the flattened tensor; the first of equal ones."""
    return _arg_all_or_dim(input, dim, keepdim, _largest)


@op(check=_arg_check("argmin"), shape=_arg_aval, differentiable=False)
def argmin(input: T, dim=None, keepdim=False):
    """The index of the smallest element along `dim`, or in the flattened tensor; the first of equal ones."""
    return _arg_all_or_dim(input, dim, keepdim, _smallest)


# -- variance and standard deviation ---------------------------------------------------------------------------


def _moment_args(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    """(dim, correction) from the three ways to call var: var(unbiased), var(dim, unbiased), var(dim, correction=)."""
    if isinstance(dim, bool):
        return None, float(dim)
    if unbiased is not None:
        return dim, float(unbiased)
    return dim, 1.0 if correction is None else float(correction)


def _moment_check(text: str) -> Any:
    def check(input: Aval, unbiased: Any, correction: Any, **_: Any) -> None:
        if unbiased is not None and correction is not None:
            raise TypeError("received both 'unbiased' and 'correction': give one of them")
        if not (input.dtype.is_floating_point or input.dtype.is_complex):
            raise RuntimeError(f"{text} only support floating point and complex dtypes")

    return check


def _moment_aval(input: Aval, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Aval:
    dim = _moment_args(dim, unbiased, correction)[0]
    return aval(reduce_shape(input.shape, dim, keepdim), input.dtype.to_real(), input.device)


def _moments_aval(input: Aval, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> tuple[Aval, Aval]:
    first = _moment_aval(input, dim, unbiased, keepdim, correction)
    return first, first.with_dtype(input.dtype)


def _moments(input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> tuple:
    """(variance, mean) in the wide dtype."""
    dim, correction = _moment_args(dim, unbiased, correction)
    x = widen(input)
    dims = reduce_dims(dim, x.ndim)
    count = count_along(x.shape, dim)
    mean = finish(add_up(x, dims) / np.asarray(count, x.dtype), dims, True)
    centred = x - mean
    square = lax.square(lax.real(centred)) + lax.square(lax.imag(centred)) if x.dtype.kind == "c" else centred * centred
    variance = add_up(square, dims) / np.asarray(max(count - correction, 0.0), square.dtype)
    return finish(variance, dims, keepdim), mean if keepdim or not dims else lax.squeeze(mean, dims)


def _var_pull_from(g: Any, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    dim, correction = _moment_args(dim, unbiased, correction)
    x = widen(input)
    dims = reduce_dims(dim, x.ndim)
    count = count_along(x.shape, dim)
    centred = x - finish(add_up(x, dims) / np.asarray(count, x.dtype), dims, True)
    free = count - correction
    scale = 2.0 / free if free else np.inf
    return (
        keep(widen(g), x.ndim, dim, keepdim)
        * np.asarray(scale, g.dtype if g.dtype.name not in HALF else "f4")
        * centred
    )


def _var_pull(g, input, dim, unbiased, keepdim, correction):
    return _var_pull_from(g, input, dim, unbiased, keepdim, correction)


def _std_to_var(g: Any, out: Any) -> Any:
    return jnp.where(out == 0, 0, g / (2 * out))


def _std_pull(g, input, out, dim, unbiased, keepdim, correction):
    return _var_pull_from(_std_to_var(g, out), input, dim, unbiased, keepdim, correction)


def _mean_part(g: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    dim = None if isinstance(dim, bool) else dim
    return keep(g, input.ndim, dim, keepdim) / np.asarray(count_along(input.shape, dim), g.dtype)


def _var_mean_pull(g0, g1, input, dim, unbiased, keepdim, correction):
    return _var_pull_from(g0, input, dim, unbiased, keepdim, correction) + _mean_part(g1, input, dim, keepdim)


def _std_mean_pull(g0, g1, input, out0, dim, unbiased, keepdim, correction):
    g0 = _std_to_var(g0, out0)
    return _var_pull_from(g0, input, dim, unbiased, keepdim, correction) + _mean_part(g1, input, dim, keepdim)


def _real_like(x: Any, input: Any) -> Any:
    return x.astype(input.dtype) if input.dtype.kind != "c" else x


@op(check=_moment_check("std and var"), shape=_moment_aval, vjp={"input": _var_pull})
def var(input: T, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The variance over `dim`, divided by N - correction (1 unless given; `unbiased` is the older spelling)."""
    return _real_like(_moments(input, dim, unbiased, keepdim, correction)[0], input)


@op(check=_moment_check("std and var"), shape=_moment_aval, vjp={"input": _std_pull})
def std(input: T, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """The standard deviation over `dim`; see `var`."""
    return _real_like(jnp.sqrt(_moments(input, dim, unbiased, keepdim, correction)[0]), input)


@op(
    check=_moment_check("var_mean"),
    shape=_moments_aval,
    vjp={"input": _var_mean_pull},
    method=False,
    out=False,
    outputs=("var", "mean"),
)
def var_mean(input: T, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(variance, mean) over `dim`; see `var`."""
    variance, mean = _moments(input, dim, unbiased, keepdim, correction)
    return _real_like(variance, input), mean.astype(input.dtype)


@op(
    check=_moment_check("std_mean"),
    shape=_moments_aval,
    vjp={"input": _std_mean_pull},
    method=False,
    out=False,
    outputs=("std", "mean"),
)
def std_mean(input: T, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(standard deviation, mean) over `dim`; see `var`."""
    variance, mean = _moments(input, dim, unbiased, keepdim, correction)
    return _real_like(jnp.sqrt(variance), input), mean.astype(input.dtype)


# -- logsumexp -------------------------------------------------------------------------------------------------


def _exp_dtype(given: dt.dtype) -> dt.dtype:
    return given if given.is_floating_point or given.is_complex else dt.default_dtype()


def _logsumexp_aval(input: Aval, dim: Any, keepdim: bool) -> Aval:
    return aval(reduce_shape(input.shape, dim, keepdim), _exp_dtype(input.dtype), input.device)


def _logsumexp_pull(g: Any, input: Any, out: Any, dim: Any, keepdim: bool) -> Any:
    return keep(g, input.ndim, dim, keepdim) * jnp.conj(jnp.exp(input - keep(out, input.ndim, dim, keepdim)))


@op(shape=_logsumexp_aval, vjp={"input": _logsumexp_pull}, namespaces=("torch", "torch.special"), autocast="float32")
def logsumexp(input: T, dim, keepdim=False):
    """log(sum(exp(input))) over `dim`, without overflow."""
    result = _exp_dtype(dt.from_numpy(input.dtype)).np
    x = widen(cast(input, result))
    dims = reduce_dims(dim, x.ndim)
    if not x.size:
        return finish(jnp.log(add_up(jnp.exp(x), dims)), dims, keepdim).astype(result)
    top = _largest(lax.real(x) if x.dtype.kind == "c" else x, dims)
    top = finish(jnp.where(jnp.isfinite(top), top, 0), dims, True)
    if np.dtype(result).itemsize == 2:  # PyTorch rounds each step
        total = add_up(widen(jnp.exp(x - top).astype(result)), dims).astype(result)
        out = jnp.log(widen(total)).astype(result) + (lax.squeeze(top, dims) if dims else top).astype(result)
        return finish(out, dims, keepdim)
    out = jnp.log(add_up(jnp.exp(x - top), dims)) + (lax.squeeze(top, dims) if dims else top)
    return finish(out.astype(result), dims, keepdim)
