"""Advanced indexing (`x[i, :, j]` and its assignment), embedding tables, one_hot, bounds of all index operands."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim, shape_text
from torchlike._src.ops.declare import TL, TO, T, op
from torchlike._src.ops.gather_scatter import INDEX_TYPES, put_rows, take_rows
from torchlike._src.ops.reduction import widen

# -- advanced indexing -----------------------------------------------------------------------------------------


def _place(indices: tuple, layout: tuple) -> tuple:
    """The index expression: `layout[d]` says whether dim d is indexed by the next tensor or kept whole."""
    following = iter(indices)
    return tuple(next(following) if indexed else slice(None) for indexed in layout)


def _broadcast(shapes: list) -> tuple:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = ", ".join(shape_text(s) for s in shapes)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        ) from None


def indexed_shape(shape: tuple, index_shapes: list, layout: tuple) -> tuple:
    """The shape of `x[...]`: the indices' common shape stands where the indexed dims were if those are adjacent,
    in front otherwise."""
    common = _broadcast(index_shapes)
    places = [d for d, indexed in enumerate(layout) if indexed]
    rest = [n for d, n in enumerate(shape) if d >= len(layout) or not layout[d]]
    front = places[0] if places[-1] - places[0] == len(places) - 1 else 0
    return (*rest[:front], *common, *rest[front:])


def _index_check(input: Aval, indices: tuple, layout: tuple, **_: Any) -> None:
    if len(layout) > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
    for index in indices:
        if index.dtype not in INDEX_TYPES:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def _index_aval(input: Aval, indices: tuple, layout: tuple) -> Aval:
    return input.with_shape(indexed_shape(input.shape, [i.shape for i in indices], layout))


def _read(x: Any, indices: tuple, layout: tuple) -> Any:
    if not x.size:
        shape = indexed_shape(x.shape, [i.shape for i in indices], layout)
        return jnp.zeros(shape, x.dtype)
    return x.at[_place(indices, layout)].get(mode="fill")


def _index_pull(g: Any, input_aval: Aval, indices: tuple, layout: tuple) -> Any:
    zeros = jnp.zeros(input_aval.shape, g.dtype)
    return zeros.at[_place(indices, layout)].add(g, mode="drop") if g.size and zeros.size else zeros


@op(check=_index_check, shape=_index_aval, vjp={"input": _index_pull}, namespaces=(), grad_name="IndexBackward0")
def _index(input: T, indices: TL, *, layout):
    """`input[indices]`. `layout` has one bool per leading dim: indexed by the next of `indices`, or kept whole.

    Indices are int32 or int64 and may be negative; masks have become indices already. Index shapes broadcast."""
    return _read(input, indices, layout)


def _put_check(input: Aval, indices: tuple, values: Aval, accumulate: bool, layout: tuple) -> None:
    if len(layout) > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim} (got {len(layout)})")
    _index_check(input, indices, layout)
    if input.dtype is not values.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{input.dtype.scalar_name} for the destination and {values.dtype.scalar_name} for the source."
        )
    target = indexed_shape(input.shape, [i.shape for i in indices], layout)
    given = values.shape
    while len(given) > len(target) and given[0] == 1:
        given = given[1:]
    fits = len(given) <= len(target) and all(
        a in (1, b) for a, b in zip(reversed(given), reversed(target), strict=False)
    )
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {shape_text(values.shape)} cannot be broadcast to indexing result "
            f"of shape {shape_text(target)}"
        )


def _put_input_pull(g: Any, indices: tuple, accumulate: bool, layout: tuple) -> Any:
    return g if accumulate or not g.size else g.at[_place(indices, layout)].set(0, mode="drop")


def _put_values_pull(g: Any, indices: tuple, values_aval: Aval, layout: tuple) -> Any:
    d = _read(g, indices, layout)
    extra = values_aval.ndim - d.ndim
    return lax.expand_dims(d, tuple(range(extra))) if extra > 0 else d


@op(
    check=_put_check,
    shape=lambda input, **_: input,
    vjp={"input": _put_input_pull, "values": _put_values_pull},
    namespaces=(),
    grad_name="IndexPutBackward0",
)
def _index_put(input: T, indices: TL, values: T, *, accumulate, layout):
    """`input` with `values` written (or added) at `indices`; see `_index`. Values broadcast to the indexed shape."""
    target = indexed_shape(input.shape, [i.shape for i in indices], layout)
    if not math.prod(target) or not input.size:
        return input
    values = values.reshape(values.shape[max(values.ndim - len(target), 0) :])
    if accumulate and input.dtype == bool:
        return input.at[_place(indices, layout)].max(values, mode="drop")
    spot = input.at[_place(indices, layout)]
    return spot.add(values, mode="drop") if accumulate else spot.set(values, mode="drop")


# -- embedding -------------------------------------------------------------------------------------------------


def _table_check(name: str, weight: Aval, indices: Aval) -> None:
    if weight.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in INDEX_TYPES:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.dtype.type_name} instead (while checking arguments for {name})"
        )


def _embedding_check(weight: Aval, indices: Aval, padding_idx: int, scale_grad_by_freq: bool, sparse: bool) -> None:
    _table_check("embedding", weight, indices)
    if sparse:
        raise NotImplementedError("embedding with sparse=True: sparse gradients are not supported; use sparse=False")


def _embedding_pull(g: Any, weight_aval: Aval, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    """g added up by row. The padding row is sent out of range, where a scatter drops it."""
    rows = indices.reshape(-1)
    updates = widen(g).reshape(rows.shape[0], weight_aval.shape[1])
    if padding_idx >= 0:
        rows = jnp.where(rows == padding_idx, np.asarray(weight_aval.shape[0], rows.dtype), rows)
    if scale_grad_by_freq:
        counts = put_rows(
            jnp.zeros(weight_aval.shape[:1], updates.dtype), 0, rows, jnp.ones(rows.shape, updates.dtype), "add"
        )
        updates = updates / take_rows(counts, 0, rows)[:, None]
    return put_rows(jnp.zeros(weight_aval.shape, updates.dtype), 0, rows, updates, "add")


@op(
    check=_embedding_check,
    shape=lambda weight, indices, **_: weight.with_shape((*indices.shape, weight.shape[1])),
    vjp={"weight": _embedding_pull},
    method=False,
)
def embedding(weight: T, indices: T, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """(n, d), (*) -> (*, d): the rows of `weight` at `indices`. The row `padding_idx` gets no gradient (-1: none)."""
    return take_rows(weight, 0, indices.reshape(-1)).reshape((*indices.shape, weight.shape[1]))


def _bag_check(
    weight: Aval, indices: Aval, offsets: Aval, per_sample_weights: Any, mode: int, sparse: bool, **_: Any
) -> None:
    _table_check("embedding_bag", weight, indices)
    if sparse:
        raise NotImplementedError("embedding_bag with sparse=True: sparse gradients are not supported")
    if indices.ndim != 1 or offsets.ndim != 1:
        raise RuntimeError("embedding_bag: indices and offsets must be 1-D here")


def _bags(indices: Any, offsets: Any, include_last_offset: bool) -> tuple[Any, int]:
    """(the bag of each index, the number of bags)."""
    count = offsets.shape[0] - (1 if include_last_offset else 0)
    starts = offsets[:count].astype(jnp.int64)
    positions = lax.broadcasted_iota(jnp.int64, (indices.shape[0], 1), 0)
    return (positions >= starts[None, :]).astype(jnp.int64).sum(1) - 1, count


def _bag_parts(
    weight: Any, indices: Any, offsets: Any, per_sample_weights: Any, include_last_offset: bool, padding_idx: int
) -> tuple:
    """(rows, bag of each, valid mask, bag count)."""
    bag, count = _bags(indices, offsets, include_last_offset)
    if padding_idx >= 0:
        bag = jnp.where(indices == padding_idx, np.int64(count), bag)
    rows = widen(take_rows(weight, 0, indices))
    if per_sample_weights is not None:
        rows = rows * widen(per_sample_weights)[:, None]
    return rows, bag, count


def _bag_sizes(bag: Any, count: int, dtype: Any) -> Any:
    sizes = put_rows(jnp.zeros((count,), dtype), 0, bag, jnp.ones(bag.shape, dtype), "add")
    return jnp.maximum(sizes, jnp.ones((), dtype))


def _bag_max(rows: Any, bag: Any, count: int) -> tuple[Any, Any]:
    """(largest per bag and column, which row gave it: the first; zeros and no row for an empty bag)."""
    total = rows.shape[0]
    top = put_rows(jnp.full((count, rows.shape[1]), -np.inf, rows.dtype), 0, bag, rows, "max")
    order = lax.broadcasted_iota(jnp.int64, rows.shape, 0)
    candidates = jnp.where(rows == take_rows(top, 0, bag), order, np.int64(total))
    first = put_rows(jnp.full((count, rows.shape[1]), total, jnp.int64), 0, bag, candidates, "min")
    return jnp.where(first == total, jnp.zeros((), rows.dtype), top), first


def _bag_row_grads(
    g: Any,
    weight: Any,
    indices: Any,
    offsets: Any,
    per_sample_weights: Any,
    mode: int,
    include_last_offset: bool,
    padding_idx: int,
) -> Any:
    """The gradient of each looked-up row, before per-sample weights."""
    rows, bag, count = _bag_parts(weight, indices, offsets, per_sample_weights, include_last_offset, padding_idx)
    g = widen(g)
    if mode == 1:
        g = g / _bag_sizes(bag, count, g.dtype)[:, None]
    spread = jnp.where((bag < count)[:, None], take_rows(g, 0, jnp.minimum(bag, count - 1)), 0)
    if mode == 2:
        first = take_rows(_bag_max(rows, bag, count)[1], 0, jnp.minimum(bag, count - 1))
        spread = jnp.where(first == lax.broadcasted_iota(jnp.int64, rows.shape, 0), spread, 0)
    return spread


def _bag_weight_pull(
    g, weight, indices, offsets, per_sample_weights, mode, include_last_offset, padding_idx, scale_grad_by_freq
):
    d = _bag_row_grads(g, weight, indices, offsets, per_sample_weights, mode, include_last_offset, padding_idx)
    if per_sample_weights is not None:
        d = d * widen(per_sample_weights)[:, None]
    if scale_grad_by_freq:
        counts = put_rows(jnp.zeros(weight.shape[:1], d.dtype), 0, indices, jnp.ones(indices.shape, d.dtype), "add")
        d = d / take_rows(counts, 0, indices)[:, None]
    return put_rows(jnp.zeros(weight.shape, d.dtype), 0, indices, d, "add")


def _bag_samples_pull(g, weight, indices, offsets, mode, include_last_offset, padding_idx):
    d = _bag_row_grads(g, weight, indices, offsets, None, mode, include_last_offset, padding_idx)
    return (d * widen(take_rows(weight, 0, indices))).sum(1)


def _bag_aval(weight: Aval, offsets: Aval, include_last_offset: bool, **_: Any) -> Aval:
    return weight.with_shape((offsets.numel - (1 if include_last_offset else 0), weight.shape[1]))


@op(
    check=_bag_check,
    shape=_bag_aval,
    vjp={"weight": _bag_weight_pull, "per_sample_weights": _bag_samples_pull},
    namespaces=(),
)
def _embedding_bag(
    weight: T,
    indices: T,
    offsets: T,
    per_sample_weights: TO = None,
    *,
    mode=0,
    scale_grad_by_freq=False,
    sparse=False,
    include_last_offset=False,
    padding_idx=-1,
):
    """(n, d), (k), (bags) -> (bags, d): rows summed (mode 0), averaged (1) or maximised (2) per bag."""
    rows, bag, count = _bag_parts(weight, indices, offsets, per_sample_weights, include_last_offset, padding_idx)
    if mode == 2:
        return _bag_max(rows, bag, count)[0].astype(weight.dtype)
    total = put_rows(jnp.zeros((count, weight.shape[1]), rows.dtype), 0, bag, rows, "add")
    if mode == 1:
        total = total / _bag_sizes(bag, count, total.dtype)[:, None]
    return total.astype(weight.dtype)


# -- one_hot ---------------------------------------------------------------------------------------------------


def _one_hot_check(tensor: Aval, num_classes: int) -> None:
    if tensor.dtype is not dt.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes < 0:
        raise NotImplementedError(
            "one_hot without num_classes depends on the data: the caller must read the largest class"
        )


@op(
    check=_one_hot_check,
    shape=lambda tensor, num_classes: aval((*tensor.shape, num_classes), dt.int64, tensor.device),
    differentiable=False,
    namespaces=(),
)
def _one_hot(tensor: T, num_classes):
    """(*) -> (*, num_classes): 1 at each class, 0 elsewhere, as int64."""
    classes = lax.broadcasted_iota(jnp.int64, (1,) * tensor.ndim + (num_classes,), tensor.ndim)
    return (tensor[..., None] == classes).astype(jnp.int64)


# -- bounds of index operands ----------------------------------------------------------------------------------


class IndexCheck(NamedTuple):
    """What PyTorch says about an index operand whose values are out of range.

    `operand` names the parameter (a tensor, or a list of tensors); `bounds(**arguments)` takes what `check` takes
    and gives, for each index tensor, (size, dim to show); `wraps` says whether -size..-1 are allowed; `text` may use
    {index}, {dim} and {size}."""

    operand: str
    bounds: Callable[..., list[tuple[int, int]]]
    wraps: bool
    error: type[Exception]
    text: str


OUT_OF_BOUNDS = "index {index} is out of bounds for dimension {dim} with size {size}"
IN_SELF = "index out of range in self"
FLAT = "out of range: tried to access index {index} on a tensor of {size} elements."


def _along(input: Aval, dim: int, **_: Any) -> list[tuple[int, int]]:
    dim = canonical_dim(dim, input.ndim)
    return [(input.shape[dim] if input.ndim else 1, dim)]


def _flat(input: Aval, **_: Any) -> list[tuple[int, int]]:
    return [(input.numel, 0)]


def _table(weight: Aval, **_: Any) -> list[tuple[int, int]]:
    return [(weight.shape[0], 0)]


def _take_along(input: Aval, dim: Any, **_: Any) -> list[tuple[int, int]]:
    return [(input.numel, 0)] if dim is None else [(2**62, 0)]  # along a dim, indices count modulo its size


def _laid_out(input: Aval, layout: tuple, **_: Any) -> list[tuple[int, int]]:
    # PyTorch shows the dim among the dims that are left of x when only the indexed ones are moved in front
    return [(input.shape[d], k) for k, d in enumerate(d for d, indexed in enumerate(layout) if indexed)]


INDEX_CHECKS: dict[str, IndexCheck] = {
    "gather": IndexCheck("index", _along, False, RuntimeError, OUT_OF_BOUNDS),
    "scatter": IndexCheck("index", _along, False, RuntimeError, OUT_OF_BOUNDS),
    "scatter_add": IndexCheck("index", _along, False, RuntimeError, OUT_OF_BOUNDS),
    "scatter_reduce": IndexCheck("index", _along, False, RuntimeError, OUT_OF_BOUNDS),
    "take_along_dim": IndexCheck("indices", _take_along, True, RuntimeError, OUT_OF_BOUNDS),
    "index_select": IndexCheck("index", _along, False, IndexError, IN_SELF),
    "index_add": IndexCheck("index", _along, False, RuntimeError, OUT_OF_BOUNDS),
    "index_copy": IndexCheck("index", _along, False, IndexError, "index_copy_(): " + OUT_OF_BOUNDS),
    "index_fill": IndexCheck("index", _along, True, IndexError, OUT_OF_BOUNDS),
    "index_reduce": IndexCheck("index", _along, False, IndexError, IN_SELF),
    "take": IndexCheck("index", _flat, True, IndexError, FLAT),
    "put": IndexCheck("index", _flat, True, IndexError, FLAT),
    "embedding": IndexCheck("indices", _table, False, IndexError, IN_SELF),
    "_index": IndexCheck("indices", _laid_out, True, IndexError, OUT_OF_BOUNDS),
    "_index_put": IndexCheck("indices", _laid_out, True, IndexError, OUT_OF_BOUNDS),
}


def check_index_values(name: str, arguments: dict[str, Any], values: list[np.ndarray | None]) -> None:
    """Raise PyTorch's error if an index is out of range. `arguments` is what the op's `check` gets; `values` are the
    index tensors' values on the host (None where unknown), in order."""
    spec = INDEX_CHECKS[name]
    check_bounds(spec, spec.bounds(**arguments), values)


def check_bounds(spec: IndexCheck, bounds: list[tuple[int, int]], values: list[np.ndarray | None]) -> None:
    """The same for known bounds. HOT."""
    for (size, dim), array in zip(bounds, values, strict=True):
        if array is None or not array.size or array.dtype.kind not in "iu":  # other types: the op's own error
            continue
        least = -size if spec.wraps else 0
        if array.min() >= least and array.max() < size:
            continue
        bad = array[(array < least) | (array >= size)].flat[0]
        raise spec.error(spec.text.format(index=int(bad), dim=dim, size=size))
