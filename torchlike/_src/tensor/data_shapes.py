"""Functions whose result's shape depends on values: they read their input."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.errors import broadcast_shapes, canonical_dim
from torchlike._src.tensor import views
from torchlike._src.tensor.call import write_out
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import Tensor, TensorBase


def stored(result: Any, out: Any, name: str, operands: Sequence) -> Any:
    return result if out is None else write_out(out, result, name, operands)


def nonzero(input: Tensor, *, out: Any = None, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero: (n, ndim), or with as_tuple one vector per dim. Reads the data."""
    found = np.nonzero(np.atleast_1d(input._host())) if input._aval.ndim == 0 else np.nonzero(input._host())
    if as_tuple:
        return tuple(from_array(np.ascontiguousarray(k), device=input._aval.device) for k in found)
    if input._aval.ndim == 0:
        return from_array(np.zeros((len(found[0]), 0), np.int64))
    result = from_array(
        np.stack(found, axis=-1).reshape(-1, input._aval.ndim).astype(np.int64), device=input._aval.device
    )
    return stored(result, out, "nonzero", (input,))


def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, (n, ndim)."""
    return nonzero(input)


def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """The elements where `mask` is true, as a vector. Reads the mask."""
    if mask._aval.dtype is not dt.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = broadcast_shapes(input._aval.shape, mask._aval.shape)
    x, m = views.expand(input, shape), views.expand(mask, shape)
    where_true = np.flatnonzero(m._host().reshape(-1))
    result = PUBLIC["index_select"](views.reshape(x, (-1,)), 0, from_array(where_true.astype(np.int64)))
    return stored(result, out, "masked_select", (input,))


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements where `mask` is true replaced by consecutive elements of `source`. Reads the mask."""
    if mask._aval.dtype is not dt.bool_:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype " + mask._aval.dtype.scalar_name
        )
    if input._aval.dtype is not source._aval.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {input._aval.dtype.scalar_name} and "
            f"{source._aval.dtype.scalar_name}"
        )
    shape = broadcast_shapes(input._aval.shape, mask._aval.shape)
    x, m = views.expand(input, shape), views.expand(mask, shape)
    flat = np.flatnonzero(m._host().reshape(-1)).astype(np.int64)
    if source._aval.numel < len(flat):
        raise RuntimeError("Number of elements of source < number of ones in mask")
    values = views.reshape(source, (-1,))[: len(flat)]
    out = views.reshape(x, (-1,)).index_put((from_array(flat),), values)
    return views.reshape(out, shape)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or slices along `dim`), sorted. Reads the data."""
    array = input._host()
    values, inverse, counts = np.unique(array, return_inverse=True, return_counts=True, axis=dim)
    inverse = inverse.reshape(array.shape if dim is None else (-1,))
    out = [from_array(values)]
    if return_inverse:
        out.append(from_array(inverse.astype(np.int64)))
    if return_counts:
        out.append(from_array(counts.astype(np.int64)))
    return out[0] if len(out) == 1 else tuple(out)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Runs of equal elements (or slices along `dim`) reduced to one. Reads the data."""
    array = input._host()
    rows = array.reshape(-1) if dim is None else np.moveaxis(array, dim, 0)
    n = rows.shape[0]
    flat = rows.reshape(n, rows.size // n if n else 0)
    starts = np.ones(n, bool)
    if n:
        starts[1:] = (flat[1:] != flat[:-1]).any(axis=1)
    where_new = np.flatnonzero(starts)
    values = rows[where_new]
    out = [from_array(np.ascontiguousarray(values if dim is None else np.moveaxis(values, 0, dim)))]
    if return_inverse:
        inverse = np.cumsum(starts) - 1
        out.append(from_array((inverse.reshape(array.shape) if dim is None else inverse).astype(np.int64)))
    if return_counts:
        out.append(from_array(np.diff(np.append(where_new, n)).astype(np.int64)))
    return out[0] if len(out) == 1 else tuple(out)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each value of a vector of non-negative integers occurs. Reads the data."""
    a = input._aval
    if a.ndim != 1 or a.dtype.category != dt.INT:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    array = input._host()
    if array.size and array.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return from_array(np.bincount(array, minlength=minlength).astype(np.int64))
    w = weights._host()
    kind = np.float32 if w.dtype == np.float32 else np.float64
    return from_array(np.bincount(array, w, minlength).astype(kind))


def repeat_interleave(
    input: Any, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element (of `dim`, or of the flattened input) repeated. Reads `repeats` if it is a tensor."""
    if repeats is None:
        counts = input._host()
        return from_array(np.repeat(np.arange(len(counts), dtype=np.int64), counts))
    x = input
    if dim is None:
        x, dim = views.reshape(input, (-1,)), 0
    d = canonical_dim(dim, x._aval.ndim)
    n = x._aval.shape[d]
    if isinstance(repeats, TensorBase):
        counts = repeats._host().reshape(-1)
        if len(counts) == 1:
            counts = np.repeat(counts, n)
        if len(counts) != n:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {len(counts)} and "
                f"input.size({d}) = {n}"
            )
        if (counts < 0).any():
            raise RuntimeError("repeats can not be negative")
    else:
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        counts = np.full(n, repeats)
    return PUBLIC["index_select"](x, d, from_array(np.repeat(np.arange(n, dtype=np.int64), counts)))


def check_finite_range(values: Any, dim: int) -> None:
    """RuntimeError if a histogram cannot take its range from these values."""
    if values.size and not np.isfinite(values).all():
        low, high = values.min(), values.max()
        raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not finite")


def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> Any:
    """Counts of elements in bins. Reads the data."""
    edges = bins._host() if isinstance(bins, TensorBase) else bins
    if range is None and not isinstance(bins, TensorBase):
        check_finite_range(input._host(), 0)
    counts, borders = np.histogram(input._host(), edges, range, density, None if weight is None else weight._host())
    from torchlike._src.tensor.publish import return_type

    kind = input._host().dtype
    return return_type("histogram", ("hist", "bin_edges"))(
        [from_array(counts.astype(kind)), from_array(borders.astype(kind))]
    )
