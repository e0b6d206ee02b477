"""Sorting and what follows from order: topk, medians, quantiles, mode, binary search.

Sorts are stable, NaN counts as larger than any number, and indices are int64."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim, shape_text
from torchlike._src.ops.declare import TO, TS, T, cast, op
from torchlike._src.ops.gather_scatter import scatter_along, take_flat
from torchlike._src.ops.reduction import (
    _pick_pull,
    _share_all,
    _with_indices,
    add_up,
    finish,
    is_nan,
    not_for,
    reduce_dims,
    widen,
)

# -- sort ------------------------------------------------------------------------------------------------------


def _positions(shape: tuple, dim: int) -> Any:
    return lax.broadcasted_iota(jnp.int64 if shape[dim] >= 2**31 else jnp.int32, shape, dim)


def sorted_pair(x: Any, dim: int, descending: bool = False) -> tuple[Any, Any]:
    """(values, indices) of a stable sort along `dim` (counted from the front) of an array with dims."""
    where = _positions(x.shape, dim)
    if descending:  # reversed, sorted up, reversed: equal elements keep their order, NaN comes first
        x, where = lax.rev(x, (dim,)), lax.rev(where, (dim,))
    values, indices = lax.sort((x, where), dimension=dim, is_stable=True, num_keys=1)
    if descending:
        values, indices = lax.rev(values, (dim,)), lax.rev(indices, (dim,))
    return values, indices.astype(jnp.int64)


def _sort_check(input: Aval, dim: int = -1, **_: Any) -> None:
    canonical_dim(dim, input.ndim)
    if input.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")


def _pair_aval(input: Aval, **_: Any) -> tuple[Aval, Aval]:
    return input, aval(input.shape, dt.int64, input.device)


def _place_pull(g0: Any, out1: Any, input_aval: Aval, dim: int) -> Any:
    """g back at the places that the values came from (each at most once)."""
    return scatter_along(jnp.zeros(input_aval.shape, g0.dtype), dim, out1, g0)


@op(
    check=_sort_check,
    shape=_pair_aval,
    vjp={"input": _place_pull},
    outputs=("values", "indices"),
    grad_name=lambda stable, **_: "SortBackward0" if stable is None else "SortBackward1",
)
def sort(input: T, dim=-1, descending=False, *, stable=None):
    """(values, indices) along `dim`; always stable."""
    if not input.ndim:
        return input, jnp.zeros((), jnp.int64)
    return sorted_pair(input, dim % input.ndim, bool(descending))


@op(check=_sort_check, shape=lambda input, **_: _pair_aval(input)[1], differentiable=False, out=False)
def argsort(input: T, dim=-1, descending=False, *, stable=False):
    """The indices that sort `input` along `dim`; always stable."""
    if not input.ndim:
        return jnp.zeros((), jnp.int64)
    return sorted_pair(input, dim % input.ndim, bool(descending))[1]


def _msort_pull(g: Any, input: Any) -> Any:
    return scatter_along(jnp.zeros(input.shape, g.dtype), 0, sorted_pair(input, 0)[1], g) if input.ndim else g


@op(
    check=lambda input: _sort_check(input, 0),
    shape=lambda input: input,
    vjp={"input": _msort_pull},
    grad_name="SortBackward0",
)
def msort(input: T):
    """`input` sorted along its first dim."""
    return sorted_pair(input, 0)[0] if input.ndim else input


def _topk_check(input: Aval, k: int, dim: int, largest: bool, sorted: bool) -> None:
    dim = canonical_dim(dim, input.ndim)
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if input.dtype.is_complex:
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if input.dtype is dt.bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")


def _topk_aval(input: Aval, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Aval, Aval]:
    shape = input.shape
    if shape:
        dim = canonical_dim(dim, len(shape))
        shape = (*shape[:dim], k, *shape[dim + 1 :])
    return input.with_shape(shape), aval(shape, dt.int64, input.device)


@op(check=_topk_check, shape=_topk_aval, vjp={"input": _place_pull}, outputs=("values", "indices"))
def topk(input: T, k, dim=-1, largest=True, sorted=True):
    """(values, indices) of the k largest (or smallest) along `dim`, in order; of equal ones the first."""
    if not input.ndim:
        return input, jnp.zeros((), jnp.int64)
    dim %= input.ndim
    if largest and k and input.dtype in (jnp.float32, jnp.float64):
        x = jnp.moveaxis(input, dim, -1)
        values, indices = lax.top_k(x, k)
        return jnp.moveaxis(values, -1, dim), jnp.moveaxis(indices, -1, dim).astype(jnp.int64)
    values, indices = sorted_pair(input, dim, descending=largest)
    return lax.slice_in_dim(values, 0, k, axis=dim), lax.slice_in_dim(indices, 0, k, axis=dim)


# -- k-th value, median, mode ----------------------------------------------------------------------------------


def _nonempty(name: str, input: Aval, dim: int) -> int:
    dim = canonical_dim(dim, input.ndim)
    if input.ndim and input.shape[dim] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
    return dim


def _kth(input: Any, rank: Any, dim: int, keepdim: bool) -> tuple:
    """(value, index) at a sorted rank along `dim`: an int, or an array with `dim` kept as size 1."""
    values, indices = sorted_pair(input, dim)
    if isinstance(rank, int):
        values = lax.index_in_dim(values, rank, dim)
        indices = lax.index_in_dim(indices, rank, dim)
    else:
        hit = _positions(values.shape, dim) == rank.astype(jnp.int32)
        indices = add_up(jnp.where(hit, indices, 0), (dim,))
        values = add_up(jnp.where(hit, values, jnp.zeros((), values.dtype)), (dim,)).astype(values.dtype)
        return finish(values, (dim,), keepdim), finish(indices, (dim,), keepdim)
    return (values, indices) if keepdim else (lax.squeeze(values, (dim,)), lax.squeeze(indices, (dim,)))


def _kth_check(input: Aval, k: int, dim: int, keepdim: bool) -> None:
    dim = _nonempty("kthvalue", input, dim)
    if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if input.dtype is dt.bool_ or input.dtype.is_complex:
        raise not_for("kthvalue_cpu", input.dtype)


@op(
    check=_kth_check,
    shape=lambda input, k, dim, keepdim: _with_indices(input, dim, keepdim),
    vjp={"input": _pick_pull},
    outputs=("values", "indices"),
)
def kthvalue(input: T, k, dim=-1, keepdim=False):
    """(values, indices) of the k-th smallest along `dim`, counted from 1."""
    if not input.ndim:
        return input, jnp.zeros((), jnp.int64)
    return _kth(input, k - 1, dim % input.ndim, keepdim)


def _median_check(kernel: str, name: str) -> Any:
    def check(input: Aval, dim: Any = None, keepdim: bool = False) -> None:
        if dim is not None:
            _nonempty(name, input, dim)
        if input.dtype is dt.bool_ or input.dtype.is_complex:
            raise not_for(kernel, input.dtype)

    return check


def _median_rank(x: Any, dim: int, ignore_nan: bool) -> Any:
    """Where the median is in sorted order: the lower middle; the first NaN, which sorts last, if NaN counts."""
    size = x.shape[dim]
    if x.dtype.kind in "iu":
        return (size - 1) // 2
    nans = finish(add_up(is_nan(x).astype(jnp.int32), (dim,)), (dim,), True)
    count = np.int32(size) - nans
    if ignore_nan:
        return lax.div(jnp.maximum(count - 1, 0), np.int32(2))
    return jnp.where(nans > 0, count, np.int32((size - 1) // 2))


def _median(x: Any, dim: int, keepdim: bool, ignore_nan: bool) -> tuple:
    rank = _median_rank(x, dim, ignore_nan)
    if isinstance(rank, int):
        return _kth(x, rank, dim, keepdim)
    values, indices = sorted_pair(x, dim)
    hit = _positions(x.shape, dim) == rank
    index = add_up(jnp.where(hit, indices, 0), (dim,))
    value = add_up(jnp.where(hit, widen(values), 0), (dim,)).astype(x.dtype)
    return finish(value, (dim,), keepdim), finish(index, (dim,), keepdim)


def _median_all_values(input: Any, ignore_nan: bool) -> Any:
    if not input.size:
        fill = np.nan if input.dtype.kind not in "iu" else np.iinfo(input.dtype).min
        return jnp.full((), fill, input.dtype)
    return _median(input.reshape(-1), 0, False, ignore_nan)[0]


_ALL = {"shape": lambda input: input.with_shape(()), "vjp": {"input": _share_all}, "namespaces": ()}
_DIM = {
    "shape": _with_indices,
    "vjp": {"input": _pick_pull},
    "namespaces": (),
    "outputs": ("values", "indices"),
}


@op(check=_median_check("median_cpu", "median"), grad_name="MedianBackward0", **_ALL)
def _median_all(input: T):
    """The lower median of all elements; NaN if there is one. Ties share the gradient."""
    return _median_all_values(input, False)


@op(check=_median_check("median_cpu", "median"), grad_name="NanmedianBackward0", **_ALL)
def _nanmedian_all(input: T):
    """The lower median of the elements that are not NaN. Ties share the gradient."""
    return _median_all_values(input, True)


@op(check=_median_check("median_out", "median"), grad_name="MedianBackward1", **_DIM)
def _median_dim(input: T, dim, keepdim=False):
    """(values, indices) of the lower median along `dim`."""
    return _median(input, dim % input.ndim, keepdim, False) if input.ndim else (input, jnp.zeros((), jnp.int64))


@op(check=_median_check("median_out", "median"), grad_name="NanmedianBackward1", **_DIM)
def _nanmedian_dim(input: T, dim, keepdim=False):
    """(values, indices) of the lower median along `dim` of what is not NaN."""
    return _median(input, dim % input.ndim, keepdim, True) if input.ndim else (input, jnp.zeros((), jnp.int64))


def _mode_check(input: Aval, dim: int, keepdim: bool) -> None:
    _nonempty("mode", input, dim)
    if input.dtype.is_complex:
        raise not_for("mode_cpu", input.dtype)


@op(check=_mode_check, shape=_with_indices, vjp={"input": _pick_pull}, outputs=("values", "indices"))
def mode(input: T, dim=-1, keepdim=False):
    """(values, indices) of the most frequent element along `dim`: the smallest of those, at its last place."""
    if not input.ndim:
        return input, jnp.zeros((), jnp.int64)
    dim %= input.ndim
    values, indices = sorted_pair(input, dim)
    where = _positions(values.shape, dim)
    before = lax.slice_in_dim(values, 0, values.shape[dim] - 1, axis=dim)
    after = lax.slice_in_dim(values, 1, values.shape[dim], axis=dim)
    first = jnp.ones((*values.shape[:dim], 1, *values.shape[dim + 1 :]), bool)
    starts = lax.concatenate([first, before != after], dim)
    # The length of the run that ends at each place; the first longest one holds the smallest value.
    run = where - lax.cummax(jnp.where(starts, where, 0), axis=dim)
    best = lax.expand_dims(lax.argmax(run, dim, jnp.int32), (dim,))
    hit = where == best
    value = add_up(jnp.where(hit, widen(values.astype(jnp.uint8) if values.dtype == bool else values), 0), (dim,))
    index = add_up(jnp.where(hit, indices, 0), (dim,))
    return finish(value.astype(input.dtype), (dim,), keepdim), finish(index, (dim,), keepdim)


# -- quantiles -------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile_check(name: str = "quantile") -> Any:
    def check(input: Aval, q: Any, dim: Any, keepdim: bool, interpolation: str) -> None:
        plain = type(q) is type
        if not input.numel:
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        if not plain and q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if input.dtype not in (dt.float32, dt.float64):
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        if not plain and q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if interpolation not in INTERPOLATIONS:
            raise RuntimeError(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
                f"{interpolation}"
            )
        if dim is not None:
            canonical_dim(dim, input.ndim)

    return check


def _quantile_aval(input: Aval, q: Any, dim: Any, keepdim: bool, interpolation: str) -> Aval:
    dims = reduce_dims(dim, input.ndim)
    rest = [1 if k in dims else n for k, n in enumerate(input.shape) if keepdim or k not in dims]
    return input.with_shape((*(() if type(q) is type else q.shape), *rest))


def _quantiles(input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool) -> Any:
    x = input.reshape(-1) if dim is None else jnp.moveaxis(input, dim, -1) if input.ndim else input.reshape(1)
    size = x.shape[-1]
    ordered = sorted_values(x)
    nans = is_nan(x)
    if ignore_nan:
        last = (np.int32(size - 1) - nans.astype(jnp.int32).sum(-1, keepdims=True)).astype(x.dtype)
        rank = q.reshape(-1) * jnp.maximum(last, 0)  # (…, q)
    else:
        rank = jnp.broadcast_to(q.reshape(-1) * np.asarray(size - 1, x.dtype), (*x.shape[:-1], q.size))
        rank = jnp.where(nans.any(-1, keepdims=True), np.asarray(size - 1, x.dtype), rank)  # NaN sorts last
    low, high, weight = _between(rank, interpolation)
    below, above = (_pick_last(ordered, k) for k in (low, high))
    out = below if interpolation in ("lower", "nearest", "higher") else _lerp(below, above, weight)
    out = jnp.moveaxis(out, -1, 0)
    if keepdim and input.ndim:
        axes = range(1, input.ndim + 1) if dim is None else (dim % input.ndim + 1,)
        out = lax.expand_dims(out, tuple(axes))
    return out.reshape(q.shape + out.shape[1:])


def sorted_values(x: Any) -> Any:
    return lax.sort(x, dimension=x.ndim - 1, is_stable=False)


def _between(rank: Any, interpolation: str) -> tuple:
    if interpolation == "nearest":
        rank = jnp.round(rank)
    elif interpolation == "higher":
        rank = jnp.ceil(rank)
    low = jnp.floor(rank)
    weight = jnp.full_like(rank, 0.5) if interpolation == "midpoint" else rank - low
    return low.astype(jnp.int32), jnp.ceil(rank).astype(jnp.int32), weight


def _pick_last(x: Any, places: Any) -> Any:
    """x[…, places] for places of shape (…, q)."""
    width = x.shape[-1]
    rows = np.arange(math.prod(x.shape[:-1]), dtype=np.int32).reshape((*x.shape[:-1], 1)) * np.int32(width)
    return take_flat(x, places + rows)


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    return jnp.where(weight < 0.5, a + weight * (b - a), b - (b - a) * (1 - weight))


@op(check=_quantile_check(), shape=_quantile_aval, grad_name=lambda keepdim, **_: "SqueezeBackward4")
def quantile(input: T, q: TS, dim=None, keepdim=False, *, interpolation="linear"):
    """The q-th quantiles along `dim` (or of all elements); a 1-D q adds a leading dim."""
    return _quantiles(input, cast(q, input.dtype), dim, keepdim, interpolation, False)


@op(check=_quantile_check(), shape=_quantile_aval, grad_name=lambda keepdim, **_: "SqueezeBackward4")
def nanquantile(input: T, q: TS, dim=None, keepdim=False, *, interpolation="linear"):
    """As `quantile`, of what is not NaN."""
    return _quantiles(input, cast(q, input.dtype), dim, keepdim, interpolation, True)


# -- binary search ---------------------------------------------------------------------------------------------


def _find(boundaries: Any, values: Any, right: bool, nan_last: bool = False) -> Any:
    """How many of the sorted boundaries (along the last dim) come before each value.

    A binary search unrolled over its log2(n) steps: plain gathers and comparisons, no loop."""
    count = boundaries.shape[-1]
    common = jnp.promote_types(boundaries.dtype, values.dtype)
    boundaries, values = boundaries.astype(common), values.astype(common)
    if boundaries.ndim > 1:
        rows = np.arange(math.prod(boundaries.shape[:-1]), dtype=np.int64).reshape((*boundaries.shape[:-1], 1)) * count
    else:
        rows = np.int64(0)
    low = jnp.zeros(values.shape, jnp.int64)
    high = jnp.full(values.shape, count, jnp.int64)
    for _ in range(count.bit_length()):
        middle = lax.shift_right_logical(low + high, jnp.ones_like(low))
        at = take_flat(boundaries, jnp.minimum(middle, max(count - 1, 0)) + rows)
        before = lax.bitwise_not(at > values if right else at >= values)  # NaN on either side: before
        if nan_last and at.dtype.kind not in "biu":
            before &= lax.bitwise_not(is_nan(at))
        before &= middle < high
        low, high = jnp.where(before, middle + 1, low), jnp.where(before, high, jnp.minimum(middle, high))
    return low


def _search_check(sorted_sequence: Aval, input: Any, right: bool, side: Any, sorter: Any, **_: Any) -> None:
    name = "torch.searchsorted(): "
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"{name}side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{name}side and right can't be set to opposites, got side of left while right was True")
    if not sorted_sequence.ndim:
        raise RuntimeError(f"{name}boundaries tensor should have positive dimension, but got 0 dimension")
    if type(input) is type or not input.ndim:
        if sorted_sequence.ndim != 1:
            raise RuntimeError(
                f"{name}input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
                f"tensor dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)"
            )
    elif sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != input.shape[:-1]:
        raise RuntimeError(
            f"{name}boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
            f"value tensor must match, but we got boundaries tensor {shape_text(sorted_sequence.shape)} and "
            f"input value tensor {shape_text(input.shape)}"
        )
    if sorter is not None:
        if sorter.shape != sorted_sequence.shape:
            raise RuntimeError(
                f"{name}boundary and sorter must have the same size, but got boundary tensor "
                f"{shape_text(sorted_sequence.shape)}and got sorter tensor {shape_text(sorter.shape)}"
            )
        if sorter.dtype is not dt.int64:
            raise RuntimeError(f"{name}sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}")


def _found_aval(input: Any, out_int32: bool, device: Any) -> Aval:
    return aval(() if type(input) is type else input.shape, dt.int32 if out_int32 else dt.int64, device)


@op(
    check=_search_check,
    shape=lambda sorted_sequence, input, out_int32, **_: _found_aval(input, out_int32, sorted_sequence.device),
    differentiable=False,
    method=False,
)
def searchsorted(sorted_sequence: T, input: TS, *, out_int32=False, right=False, side=None, sorter: TO = None):
    """Where each of `input` would be inserted into the sorted last dim of `sorted_sequence`."""
    if sorter is not None:
        width = sorted_sequence.shape[-1]
        rows = np.arange(math.prod(sorted_sequence.shape[:-1]), dtype=np.int64).reshape(
            (*sorted_sequence.shape[:-1], 1)
        )
        sorted_sequence = take_flat(sorted_sequence, sorter + rows * width)
    out = _find(sorted_sequence, input, right or side == "right")
    return out.astype(jnp.int32) if out_int32 else out


def _bucketize_check(boundaries: Aval, **_: Any) -> None:
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")


@op(
    check=_bucketize_check,
    shape=lambda input, boundaries, out_int32, right: _found_aval(input, out_int32, boundaries.device),
    differentiable=False,
    method=False,
)
def bucketize(input: TS, boundaries: T, *, out_int32=False, right=False):
    """The index of the bucket of each element: boundaries[i-1] < x <= boundaries[i] (`right`: the other way)."""
    out = _find(boundaries, input, right)
    return out.astype(jnp.int32) if out_int32 else out


def _isin_check(elements: Any, test_elements: Any, **_: Any) -> None:
    for operand in (elements, test_elements):
        given = getattr(operand, "dtype", None)
        if given is dt.bool_ or (given is not None and given.is_complex):
            raise RuntimeError(f"Unsupported input type encountered for isin(): {given.scalar_name}")


@op(
    check=_isin_check,
    shape=lambda elements, test_elements, **_: aval(
        () if type(elements) is type else elements.shape,
        dt.bool_,
        test_elements.device if type(elements) is type else elements.device,
    ),
    differentiable=False,
    method=False,
)
def isin(elements: TS, test_elements: TS, *, assume_unique=False, invert=False):
    """Whether each of `elements` is among `test_elements`."""
    common = jnp.promote_types(elements.dtype, test_elements.dtype)
    ordered = sorted_values(test_elements.astype(common).reshape(-1))
    if not ordered.size:
        found = jnp.zeros(elements.shape, bool)
    else:
        wanted = elements.astype(common)
        place = jnp.minimum(_find(ordered, wanted, False, nan_last=True), ordered.size - 1)
        found = take_flat(ordered, place) == wanted
    return lax.bitwise_not(found) if invert else found


# -- histograms ------------------------------------------------------------------------------------------------


def _histc_check(input: Aval, bins: int, min: Any, max: Any) -> None:
    if max < min:
        raise RuntimeError("torch.histc: max must be larger than min")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if not input.dtype.is_floating_point:
        raise not_for("histogram_cpu", input.dtype)


@op(check=_histc_check, shape=lambda input, bins, **_: input.with_shape((bins,)), vjp={})
def histc(input: T, bins=100, min=0, max=0):
    """(bins,): how many elements fall in each of `bins` equal parts of [min, max] (of the data's range if equal)."""
    x = widen(input.reshape(-1))
    low: Any = np.asarray(min, x.dtype)
    high: Any = np.asarray(max, x.dtype)
    if min == max and x.size:
        low, high = x.min(), x.max()
        low, high = jnp.where(low == high, low - 1, low), jnp.where(low == high, high + 1, high)
    inside = (x >= low) & (x <= high)
    place = jnp.floor((x - low) / (high - low) * bins)
    place = jnp.minimum(jnp.where(inside, place, 0), bins - 1).astype(jnp.int32)
    hits = (place[:, None] == np.arange(bins, dtype=np.int32)) & inside[:, None]
    return hits.astype(x.dtype).sum(0).astype(input.dtype)
