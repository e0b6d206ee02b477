"""Reading and writing by index tensors along one dim or in the flattened tensor: gather, scatter, index_*, take, put.

Elements are addressed by their position in the flattened tensor: a gather or scatter of scalars from a vector is the
form that XLA and NumPy both do well. JAX clamps an index that is out of range; here it reads NaN (the smallest integer)
and is dropped when written. PyTorch raises: INDEX_CHECKS in ops/indexing.py says what, for whoever has the values.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import broadcast_shapes, canonical_dim, shape_text
from torchlike._src.ops.declare import TS, S, T, cast, op
from torchlike._src.ops.reduction import one_hot_pull

FILL = lax.GatherScatterMode.FILL_OR_DROP


# -- the four kernels: elements and rows, read and written -----------------------------------------------------


def take_flat(x: Any, positions: Any) -> Any:
    """x.reshape(-1)[positions], NaN (or the least integer) where out of range."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    if not x.size:
        return jnp.zeros(positions.shape, x.dtype)
    return lax.gather(x.reshape(-1), positions[..., None], numbers, (1,), mode=FILL)


def put_flat(x: Any, positions: Any, values: Any, how: str = "set") -> Any:
    """x with `values` set, added, multiplied, … at flat `positions`; those out of range are dropped."""
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    if not positions.size or not x.size:
        return x
    if x.dtype == bool and how != "set":
        how = {"add": "max", "mul": "min"}.get(how, how)
        return put_flat(x.astype(jnp.uint8), positions, values.astype(jnp.uint8), how).astype(bool)
    out = SCATTERS[how](x.reshape(-1), positions[..., None], values, numbers, mode=FILL)
    return out.reshape(x.shape)


SCATTERS = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def _index_type(size: int) -> Any:
    return jnp.int32 if size < 2**31 else jnp.int64  # int32 is half the memory traffic


def positions_along(index: Any, dim: int, shape: tuple) -> Any:
    """Where `index` along `dim` points in the flattened array of `shape`; past its end where out of range."""
    if not shape:
        shape, dim = (1,), 0
    size = math.prod(shape)
    kind = _index_type(size)
    inside = (index >= 0) & (index < shape[dim])
    index = index.astype(kind)
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    place = index * np.asarray(strides[dim], kind) if strides[dim] != 1 else index
    for k, stride in enumerate(strides):
        if k != dim and shape[k] > 1 and index.ndim:
            place = place + lax.broadcasted_iota(kind, index.shape, k) * np.asarray(stride, kind)
    return jnp.where(inside, place, np.asarray(size, kind))


def gather_along(x: Any, dim: int, index: Any) -> Any:
    """out[i][j] = x[index[i][j]][j] for dim 0, and so on: torch.gather."""
    if not index.size:
        return jnp.zeros(index.shape, x.dtype)
    return take_flat(x, positions_along(index, dim % max(x.ndim, 1), x.shape))


def scatter_along(x: Any, dim: int, index: Any, values: Any, how: str = "set") -> Any:
    """The reverse of gather_along: `values`, of index's shape, written into x."""
    if index.size == 0:
        return x
    if how == "add" and _is_pick(index.shape, x.shape, dim % max(x.ndim, 1)):
        return x + one_hot_pull(values, index, x.shape, dim, True)
    return put_flat(x, positions_along(index, dim % max(x.ndim, 1), x.shape), values, how)


def _is_pick(index: tuple, shape: tuple, dim: int) -> bool:
    """Whether one element is addressed per row, when comparing with the positions beats a serial scatter."""
    return bool(shape) and index == tuple(1 if k == dim else n for k, n in enumerate(shape))


def take_rows(x: Any, dim: int, index: Any) -> Any:
    """x.index_select(dim, index) for a vector `index`."""
    if x.ndim == 0:
        return take_flat(x, index.reshape(-1)).reshape(x.shape)
    dim %= x.ndim
    others = tuple(k for k in range(x.ndim) if k != dim)
    numbers = lax.GatherDimensionNumbers(offset_dims=others, collapsed_slice_dims=(dim,), start_index_map=(dim,))
    sizes = tuple(1 if k == dim else n for k, n in enumerate(x.shape))
    if not x.size:
        return jnp.zeros((*x.shape[:dim], index.size, *x.shape[dim + 1 :]), x.dtype)
    return lax.gather(x, index.reshape(-1, 1), numbers, sizes, mode=FILL)


def put_rows(x: Any, dim: int, index: Any, values: Any, how: str = "set") -> Any:
    """x with the slices `values` (x's shape, but index's length along `dim`) written at `index`."""
    if x.ndim == 0:
        return put_flat(x, index.reshape(-1), values.reshape(-1), how)
    dim %= x.ndim
    if not values.size:
        return x
    if x.dtype == bool and how != "set":
        return put_rows(x.astype(jnp.uint8), dim, index, values.astype(jnp.uint8), "max").astype(bool)
    others = tuple(k for k in range(x.ndim) if k != dim)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=others, inserted_window_dims=(dim,), scatter_dims_to_operand_dims=(dim,)
    )
    return SCATTERS[how](x, index.reshape(-1, 1), values, numbers, mode=FILL)


# -- gather and scatter ----------------------------------------------------------------------------------------


INDEX_TYPES = (dt.int32, dt.int64)


def _rank(shape: tuple) -> int:
    return max(len(shape), 1)


def _gather_check(input: Aval, dim: int, index: Aval, sparse_grad: bool) -> None:
    dim = canonical_dim(dim, input.ndim)
    if sparse_grad:
        raise NotImplementedError("gather with sparse_grad=True: sparse tensors are not supported")
    if index.numel == 0:
        return
    if index.dtype not in INDEX_TYPES:
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if _rank(index.shape) != _rank(input.shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for k, (a, b) in enumerate(zip(index.shape, input.shape, strict=False)):
        if k != dim and a > b:
            raise RuntimeError(
                f"Size does not match at dimension {k} expected index {shape_text(index.shape)} to be no larger than "
                f"self {shape_text(input.shape)} apart from dimension {dim}"
            )


def _gather_pull(g: Any, input_aval: Aval, dim: int, index: Any) -> Any:
    return scatter_along(jnp.zeros(input_aval.shape, g.dtype), dim, index, g, "add")


@op(
    check=_gather_check,
    shape=lambda input, dim, index, sparse_grad: input.with_shape(index.shape),
    vjp={"input": _gather_pull},
)
def gather(input: T, dim, index: T, *, sparse_grad=False):
    """The elements of `input` at `index` along `dim`, in index's shape."""
    return gather_along(input, dim, index)


def scatter_shapes(input: Aval, dim: int, index: Aval, src: Any) -> None:
    """PyTorch's shape errors of the scatter family; `src` is an Aval, or a type for a number."""
    dim = canonical_dim(dim, input.ndim)
    if index.numel == 0:
        return
    if _rank(index.shape) != _rank(input.shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    plain = type(src) is type
    if not plain and _rank(src.shape) != _rank(index.shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    too_large = any(k != dim and a > b for k, (a, b) in enumerate(zip(index.shape, input.shape, strict=False)))
    if not plain:
        too_large |= any(a > b for a, b in zip(index.shape, src.shape, strict=False))
    if too_large:
        text = (
            f"Expected index {shape_text(index.shape)} to be no larger than self {shape_text(input.shape)} "
            f"apart from dimension {dim}"
        )
        raise RuntimeError(text if plain else f"{text} and to be no larger size than src {shape_text(src.shape)}")


def scatter_types(input: Aval, index: Aval, src: Any, name: str = "scatter") -> None:
    if index.dtype not in INDEX_TYPES:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if type(src) is not type and src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")


def fits_number(input: Aval, value: Any) -> None:
    """PyTorch's error for a complex number that goes into a real tensor."""
    if value is complex and not input.dtype.is_complex and input.dtype is not dt.bool_:
        raise RuntimeError(
            f"value cannot be converted to type {NUMBER_NAMES.get(input.dtype, input.dtype.cpp_name)} without overflow"
        )


NUMBER_NAMES = {dt.int64: "int64_t", dt.uint8: "uint8_t", dt.int8: "int8_t", dt.int32: "int", dt.int16: "int16_t"}


def _scatter_check(input: Aval, dim: int, index: Aval, src: Any, reduce: Any) -> None:
    scatter_shapes(input, dim, index, src)
    scatter_types(input, index, src)
    fits_number(input, src)
    if reduce is not None and reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")


def _no_reduce(reduce: Any) -> None:
    if reduce is not None:
        raise RuntimeError("derivative for aten::scatter is not implemented with reduce=; use scatter_reduce")


def crop(src: Any, shape: tuple) -> Any:
    """The leading part of src that has index's shape."""
    return src if src.shape == shape else lax.slice(src, (0,) * src.ndim, shape)


def uncrop(d: Any, shape: tuple) -> Any:
    """The gradient of `crop`."""
    if d.shape == shape or len(d.shape) != len(shape):
        return d
    return lax.pad(d, np.zeros((), d.dtype), [(0, n - m, 0) for n, m in zip(shape, d.shape, strict=True)])


def _scatter_input_pull(g: Any, dim: int, index: Any, reduce: Any) -> Any:
    _no_reduce(reduce)
    return scatter_along(g, dim, index, jnp.zeros(index.shape, g.dtype))


def _scatter_src_pull(g: Any, dim: int, index: Any, src_aval: Aval, reduce: Any) -> Any:
    _no_reduce(reduce)
    return uncrop(gather_along(g, dim, index), src_aval.shape)


@op(
    check=_scatter_check,
    shape=lambda input, **_: input,
    inplace=True,
    vjp={"input": _scatter_input_pull, "src": _scatter_src_pull},
    grad_name=lambda src, **_: "ScatterBackward1" if type(src) is type else "ScatterBackward0",
)
def scatter(input: T, dim, index: T, src: TS, *, reduce=None):
    """`input` with `src` (a tensor no smaller than index, or a number) written at `index` along `dim`."""
    src = cast(src, input.dtype)
    src = crop(src, index.shape) if src.ndim or not index.ndim else jnp.broadcast_to(src, index.shape)
    return scatter_along(input, dim, index, src, {None: "set", "add": "add", "multiply": "mul"}[reduce])


def _scatter_add_check(input: Aval, dim: int, index: Aval, src: Aval) -> None:
    scatter_shapes(input, dim, index, src)
    scatter_types(input, index, src)


@op(
    check=_scatter_add_check,
    shape=lambda input, **_: input,
    inplace=True,
    vjp={
        "input": lambda g: g,
        "src": lambda g, dim, index, src_aval: uncrop(gather_along(g, dim, index), src_aval.shape),
    },
)
def scatter_add(input: T, dim, index: T, src: T):
    """`input` with `src` added at `index` along `dim`."""
    return scatter_along(input, dim, index, crop(src, index.shape), "add")


# -- scatter_reduce and index_reduce ---------------------------------------------------------------------------


def _identity(reduce: str, dtype: Any) -> Any:
    if reduce in ("sum", "mean"):
        return np.zeros((), dtype)
    if reduce == "prod":
        return np.ones((), dtype)
    sign = -1 if reduce == "amax" else 1
    if jnp.issubdtype(dtype, jnp.inexact):
        return np.asarray(sign * np.inf, dtype)
    if np.dtype(dtype).kind == "b":
        return np.asarray(reduce == "amin")
    info = jnp.iinfo(dtype)
    return np.asarray(info.min if reduce == "amax" else info.max, dtype)


WRITES = {"sum": "add", "mean": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _counts(x: Any, dim: int, index: Any, include_self: bool, dtype: Any) -> Any:
    """How many values meet in each element, at least 1."""
    start = (jnp.ones if include_self else jnp.zeros)(x.shape, dtype)
    counts = scatter_along(start, dim, index, jnp.ones(index.shape, dtype), "add")
    return counts if include_self else jnp.maximum(counts, jnp.ones((), dtype))


def reduce_along(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """torch.scatter_reduce on arrays; src has index's shape."""
    start = x
    if not include_self:
        fresh = jnp.broadcast_to(_identity(reduce, x.dtype), index.shape)
        start = scatter_along(x, dim, index, fresh)
    out = scatter_along(start, dim, index, src, WRITES[reduce])
    if reduce == "mean":
        counts = _counts(x, dim, index, include_self, x.dtype)
        return jnp.floor_divide(out, counts) if x.dtype.kind in "iu" else out / counts
    return out


def _reduce_pull_input(
    g: Any, input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, out: Any
) -> Any:
    if reduce == "sum":
        d = g
    elif reduce == "mean":
        d = g / _counts(input, dim, index, include_self, g.dtype)
    elif reduce == "prod":
        ones = jnp.where(input == 0, jnp.ones((), input.dtype), input)
        d = g * reduce_along(ones, dim, index, crop(src, index.shape), reduce, include_self) / ones
    else:
        d = (input == out) * _shares(g, input, dim, index, src, out)
    return d if include_self else scatter_along(d, dim, index, jnp.zeros(index.shape, d.dtype))


def _shares(g: Any, input: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
    """The output's gradient over the number of values that are the extreme."""
    hits = (crop(src, index.shape) == gather_along(out, dim, index)).astype(g.dtype)
    return g / scatter_along((input == out).astype(g.dtype), dim, index, hits, "add")


def _reduce_pull_src(
    g: Any, input: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, out: Any
) -> Any:
    shape = src.shape
    src = crop(src, index.shape)
    if reduce == "sum":
        d = gather_along(g, dim, index)
    elif reduce == "mean":
        d = gather_along(g / _counts(input, dim, index, include_self, g.dtype), dim, index)
    elif reduce == "prod":
        zero = src == 0
        zeros = scatter_along(jnp.zeros(input.shape, g.dtype), dim, index, zero.astype(g.dtype), "add")
        lone = zero & (gather_along(zeros, dim, index) == 1)
        others = reduce_along(input, dim, index, jnp.where(lone, jnp.ones((), src.dtype), src), reduce, include_self)
        whole = gather_along(g * out, dim, index) / jnp.where(zero, jnp.ones((), src.dtype), src)
        d = jnp.where(lone, gather_along(g * others, dim, index), whole)
    else:
        d = (src == gather_along(out, dim, index)) * gather_along(_shares(g, input, dim, index, src, out), dim, index)
    return uncrop(d, shape)


REDUCES = ("sum", "prod", "mean", "amax", "amin")


def _scatter_reduce_check(input: Aval, dim: int, index: Aval, src: Aval, reduce: str, include_self: bool) -> None:
    if reduce not in REDUCES:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    scatter_shapes(input, dim, index, src)
    scatter_types(input, index, src)


@op(
    check=_scatter_reduce_check,
    shape=lambda input, **_: input,
    inplace=True,
    vjp={"input": _reduce_pull_input, "src": _reduce_pull_src},
)
def scatter_reduce(input: T, dim, index: T, src: T, reduce, *, include_self=True):
    """`input` with `src` reduced into it at `index` along `dim` by sum, prod, mean, amax or amin."""
    return reduce_along(input, dim, index, crop(src, index.shape), reduce, include_self)


def _spread_index(index: Any, dim: int, shape: tuple) -> Any:
    """A vector index as the index that scatter takes for rows of `shape`."""
    if not shape:
        return index.reshape(())
    dim %= len(shape)
    return jnp.broadcast_to(index.reshape(tuple(-1 if k == dim else 1 for k in range(len(shape)))), shape)


def _index_reduce_check(input: Aval, dim: int, index: Aval, source: Aval, reduce: str, include_self: bool) -> None:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    _rows_check("index_reduce", input, dim, index, source)


def _index_reduce_input(g, input, dim, index, source, reduce, include_self, out):
    return _reduce_pull_input(g, input, dim, _spread_index(index, dim, source.shape), source, reduce, include_self, out)


def _index_reduce_source(g, input, dim, index, source, reduce, include_self, out):
    return _reduce_pull_src(g, input, dim, _spread_index(index, dim, source.shape), source, reduce, include_self, out)


@op(
    check=lambda **a: _index_reduce_check(**a),
    shape=lambda input, **_: input,
    inplace=True,
    vjp={"input": _index_reduce_input, "source": _index_reduce_source},
)
def index_reduce(input: T, dim, index: T, source: T, reduce, *, include_self=True):
    """`input` with the slices of `source` reduced into it at `index` along `dim` by prod, mean, amax or amin."""
    return reduce_along(input, dim, _spread_index(index, dim, source.shape), source, reduce, include_self)


# -- index_select, index_add, index_copy, index_fill -----------------------------------------------------------


def _select_check(input: Aval, dim: int, index: Aval) -> None:
    dim = canonical_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INDEX_TYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim and index.numel != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.numel} value(s)")
    if input.ndim and input.shape[dim] == 0 and index.numel:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")


def _select_aval(input: Aval, dim: int, index: Aval) -> Aval:
    if not input.ndim:
        return input
    dim = canonical_dim(dim, input.ndim)
    return input.with_shape((*input.shape[:dim], index.numel, *input.shape[dim + 1 :]))


def _select_pull(g: Any, input_aval: Aval, dim: int, index: Any) -> Any:
    return put_rows(jnp.zeros(input_aval.shape, g.dtype), dim, index, g, "add")


@op(check=_select_check, shape=_select_aval, vjp={"input": _select_pull})
def index_select(input: T, dim, index: T):
    """The slices of `input` at `index` (a vector) along `dim`."""
    return take_rows(input, dim, index)


def _rows_check(name: str, input: Aval, dim: int, index: Aval, source: Aval) -> None:
    dim = canonical_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{index.dtype.scalar_name} and size: {shape_text(index.shape)}"
        )
    if index.dtype not in INDEX_TYPES:
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}")
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}_(): self ({input.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the same "
            "scalar type"
        )
    length = source.shape[dim] if dim < source.ndim else 1
    if index.numel != length:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.numel}) should be equal to source.size(dim): ({length}), "
            f"for dim: {dim}"
        )
    rest = [tuple(n for k, n in enumerate(a.shape) if k != dim) for a in (input, source)]
    if rest[0] != rest[1]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{shape_text(input.shape)} source.shape = {shape_text(source.shape)}"
        )


@op(
    check=lambda input, dim, index, source, alpha: _rows_check("index_add", input, dim, index, source),
    shape=lambda input, **_: input,
    inplace=True,
    vjp={
        "input": lambda g: g,
        "source": lambda g, dim, index, alpha: take_rows(g, dim, index) * jnp.conj(cast(alpha, g.dtype)),
    },
)
def index_add(input: T, dim, index: T, source: T, *, alpha: S = 1):
    """`input` with alpha times the slices of `source` added at `index` along `dim`."""
    alpha = cast(alpha, input.dtype)
    scaled = source & alpha if input.dtype == bool else source * alpha
    return put_rows(input, dim, index, scaled, "add")


def _copy_check(input: Aval, dim: int, index: Aval, source: Aval) -> None:
    dim = canonical_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if index.dtype is not dt.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if input.dtype is not source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.scalar_name} and (source) {source.dtype.scalar_name}"
        )
    if source.ndim != input.ndim and source.ndim and input.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({input.ndim})"
        )
    if not source.ndim and index.numel != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.numel})")
    if source.ndim and input.ndim:
        rest = [tuple(n for k, n in enumerate(a.shape) if k != dim) for a in (input, source)]
        if rest[0] != rest[1]:
            shown = [" ".join(map(str, r)) for r in rest]
            raise RuntimeError(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
                f"{shown[0]} at dimension {dim} and source slice shape: {shown[1]} at dimension {dim}."
            )
        if source.shape[dim] != index.numel:
            raise IndexError(
                f"index_copy_(): Number of indices ({index.numel}) should be equal to source.size(dim) "
                f"({source.shape[dim]})"
            )


def _zero_rows(g: Any, dim: int, index: Any) -> Any:
    """g with zeros in the slices at `index`."""
    return put_rows(g, dim, index, jnp.zeros(_rows_shape(g.shape, dim, index.size), g.dtype))


def _rows_shape(shape: tuple, dim: int, count: int) -> tuple:
    dim %= max(len(shape), 1)
    return (*shape[:dim], count, *shape[dim + 1 :])


@op(
    check=_copy_check,
    shape=lambda input, **_: input,
    inplace=True,
    vjp={
        "input": _zero_rows,
        "source": lambda g, dim, index, source_aval: take_rows(g, dim, index).reshape(source_aval.shape),
    },
)
def index_copy(input: T, dim, index: T, source: T):
    """`input` with the slices of `source` copied to `index` along `dim`."""
    return put_rows(input, dim, index, source.reshape(_rows_shape(input.shape, dim, index.size)))


def zero_dim_value(name: str, input: Aval, value: Any) -> None:
    if type(value) is not type and value.ndim:
        raise RuntimeError(
            f"{name}_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )


def _fill_check(input: Aval, dim: int, index: Aval, value: Any) -> None:
    canonical_dim(dim, input.ndim)
    zero_dim_value("index_fill", input, value)
    if index.dtype is not dt.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if value is complex and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")


def _wrap(index: Any, size: int) -> Any:
    return jnp.where(index < 0, index + np.asarray(size, index.dtype), index)


@op(
    check=_fill_check,
    shape=lambda input, **_: input,
    inplace=True,
    vjp={
        "input": lambda g, dim, index: _zero_rows(g, dim, _wrap(index, g.shape[dim] if g.ndim else 1)),
        # Once for each element that was filled, however often the index names it.
        "value": lambda g, dim, index: (g - _zero_rows(g, dim, _wrap(index, g.shape[dim] if g.ndim else 1))).sum(),
    },
    grad_name=lambda value, **_: "IndexFillBackward0" if type(value) is type else "IndexFillBackward1",
)
def index_fill(input: T, dim, index: T, value: TS):
    """`input` with `value` (a number or a 0-dim tensor) in the slices at `index` along `dim`."""
    index = _wrap(index, input.shape[dim] if input.ndim else 1)
    fill = jnp.broadcast_to(cast(value, input.dtype), _rows_shape(input.shape, dim, index.size))
    return put_rows(input, dim, index, fill)


# -- masks -----------------------------------------------------------------------------------------------------


def _masked_fill_check(input: Aval, mask: Aval, value: Any) -> None:
    if mask.dtype is not dt.bool_:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{MASK_NAMES.get(mask.dtype, mask.dtype.cpp_name)}"
        )
    zero_dim_value("masked_fill", input, value)
    fits_number(input, value)


MASK_NAMES = {dt.float16: "c10::Half", dt.bfloat16: "c10::BFloat16"}


@op(
    check=_masked_fill_check,
    shape=lambda input, mask, value: input.with_shape(broadcast_shapes(mask.shape, input.shape)),
    inplace=True,
    vjp={
        "input": lambda g, mask: jnp.where(mask, jnp.zeros((), g.dtype), g),
        "value": lambda g, mask: jnp.where(mask, g, jnp.zeros((), g.dtype)).sum(),
    },
    grad_name=lambda value, **_: "MaskedFillBackward0" if type(value) is type else "MaskedFillBackward1",
)
def masked_fill(input: T, mask: T, value: TS):
    """`input` with `value` (a number or a 0-dim tensor) where `mask` is True."""
    return jnp.where(mask, cast(value, input.dtype), input)


def _masked_scatter_check(input: Aval, mask: Aval, source: Aval) -> None:
    if mask.dtype is not dt.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{input.dtype.scalar_name} and "
            f"{source.dtype.scalar_name}"
        )


def _masked_positions(mask: Any, shape: tuple) -> Any:
    """For each element, which element of the source it takes where the mask is True."""
    flat = jnp.broadcast_to(mask, shape).reshape(-1)
    return lax.cumsum(flat.astype(jnp.int32), 0).reshape(shape) - 1


def _masked_scatter_source(g: Any, mask: Any, source_aval: Aval) -> Any:
    places = _masked_positions(mask, g.shape)
    places = jnp.where(mask, places, source_aval.numel)
    return put_flat(jnp.zeros(source_aval.shape, g.dtype), places, g, "add")


@op(
    check=_masked_scatter_check,
    shape=lambda input, mask, source: input.with_shape(broadcast_shapes(input.shape, mask.shape)),
    inplace=True,
    vjp={
        "input": lambda g, mask: jnp.where(mask, jnp.zeros((), g.dtype), g),
        "source": _masked_scatter_source,
    },
)
def masked_scatter(input: T, mask: T, source: T):
    """`input` with the elements of `source`, in order, where `mask` is True. Source must have enough of them."""
    shape = jnp.broadcast_shapes(input.shape, mask.shape)
    return jnp.where(mask, take_flat(source, _masked_positions(mask, shape)), input)


# -- take, put, take_along_dim ---------------------------------------------------------------------------------


def _take_check(input: Aval, index: Aval) -> None:
    if index.dtype is not dt.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.scalar_name}")


def _flat_positions(index: Any, size: int) -> Any:
    index = _wrap(index, size)
    return jnp.where(index < 0, np.asarray(size, index.dtype), index)


@op(
    check=_take_check,
    shape=lambda input, index: input.with_shape(index.shape),
    vjp={
        "input": lambda g, input_aval, index: put_flat(
            jnp.zeros(input_aval.shape, g.dtype), _flat_positions(index, input_aval.numel), g, "add"
        )
    },
)
def take(input: T, index: T):
    """The elements at `index` of the flattened `input`, in index's shape."""
    return take_flat(input, _flat_positions(index, input.size))


def _put_check(input: Aval, index: Aval, source: Aval, accumulate: bool) -> None:
    if index.dtype is not dt.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if input.dtype is not source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.scalar_name} and source.dtype = {source.dtype.scalar_name}"
        )
    if index.numel != source.numel:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel}, index.numel() = {index.numel}"
        )


def _put_input_pull(g: Any, index: Any, accumulate: bool) -> Any:
    return g if accumulate else put_flat(g, _flat_positions(index, g.size), jnp.zeros(index.shape, g.dtype))


@op(
    check=_put_check,
    shape=lambda input, **_: input,
    inplace=True,
    vjp={
        "input": _put_input_pull,
        "source": lambda g, index, source_aval: take_flat(g, _flat_positions(index, g.size)).reshape(source_aval.shape),
    },
)
def put(input: T, index: T, source: T, accumulate=False):
    """`input` with `source` written (or added) at `index` of the flattened tensor."""
    how = "add" if accumulate else "set"
    return put_flat(input, _flat_positions(index, input.size), source.reshape(index.shape), how)


def _take_along_check(input: Aval, indices: Aval, dim: Any) -> None:
    if indices.dtype is not dt.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    canonical_dim(dim, input.ndim)


def _along_shapes(input: tuple, indices: tuple, dim: int) -> tuple[tuple, tuple]:
    """Both broadcast in every dim but `dim`."""
    common = broadcast_shapes(
        tuple(1 if k == dim else n for k, n in enumerate(input)),
        tuple(1 if k == dim else n for k, n in enumerate(indices)),
    )
    return tuple(tuple(shape[k] if k == dim else n for k, n in enumerate(common)) for shape in (input, indices))  # type: ignore[return-value]


def _take_along_aval(input: Aval, indices: Aval, dim: Any) -> Aval:
    if dim is None:
        return input.with_shape((indices.numel,))
    return input.with_shape(_along_shapes(input.shape, indices.shape, canonical_dim(dim, input.ndim))[1])


def _take_along_index(input: tuple, indices: Any, dim: Any) -> tuple[tuple, int, Any]:
    """(the input's broadcast shape, dim, the index within it); indices count modulo the size, as PyTorch's do."""
    if dim is None:
        return (math.prod(input),), 0, indices.reshape(-1)
    dim = canonical_dim(dim, len(input))
    shapes = _along_shapes(input, indices.shape, dim)
    size = input[dim] if input else 1
    return shapes[0], dim, jnp.remainder(jnp.broadcast_to(indices, shapes[1]), max(size, 1))


def _take_along_pull(g: Any, input_aval: Aval, indices: Any, dim: Any) -> Any:
    shape, axis, index = _take_along_index(input_aval.shape, indices, dim)
    d = scatter_along(jnp.zeros(shape, g.dtype), axis, index, g, "add")
    return d.reshape(input_aval.shape) if dim is None else d


@op(check=_take_along_check, shape=_take_along_aval, vjp={"input": _take_along_pull}, grad_name="GatherBackward0")
def take_along_dim(input: T, indices: T, dim=None):
    """The elements at `indices` along `dim`, other dims broadcast; without `dim`, of the flattened input."""
    shape, axis, index = _take_along_index(input.shape, indices, dim)
    x = input.reshape(-1) if dim is None else jnp.broadcast_to(input, shape)
    return gather_along(x, axis, index)
