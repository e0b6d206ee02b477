"""gather and the scatter family, planned once per equation.

Both address a *table*: the operand with the dimensions that indices choose from brought to the front. A window that
covers a whole dimension stays a dimension of the table; a window that covers part of one becomes an index array too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._src.engine.host.elementwise import is_low
from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, Shape, aval_of, rule
from torchlike._src.engine.host.reduction import body_name


class _Plan:
    """Which operand dimensions are indexed, and how index arrays for them are made from the index operand."""

    def __init__(
        self,
        dims: Shape,
        windows: Shape,
        gone: Shape,
        batching: Shape,
        start_map: Shape,
        index_shape: Shape,
        index_batching: Shape,
        clip: bool,
    ) -> None:
        self.batch = index_shape[:-1]
        self.clip = clip
        self.start_map = start_map
        rank = len(self.batch)
        self.indexed = tuple(d for d in range(len(dims)) if d in batching or windows[d] != dims[d] or d in gone)
        self.whole = tuple(d for d in range(len(dims)) if d not in self.indexed)
        # Dimensions of the window among the indexed ones, in the order they get in index arrays (after the batch).
        self.windowed = tuple(d for d in self.indexed if d not in gone and d not in batching)
        self.window_shape = tuple(windows[d] for d in self.windowed)
        self.limits = [dims[d] - windows[d] for d in start_map]
        extra = len(self.windowed)
        self.parts: list[tuple[int | None, np.ndarray | None]] = []
        for d in self.indexed:
            column = start_map.index(d) if d in start_map else None
            if d in batching:
                position = index_batching[batching.index(d)]
                shape = [1] * (rank + extra)
                shape[position] = dims[d]
                self.parts.append((None, np.arange(dims[d]).reshape(shape)))
            elif d in self.windowed and windows[d] > 1:
                shape = [1] * (rank + extra)
                shape[rank + self.windowed.index(d)] = windows[d]
                self.parts.append((column, np.arange(windows[d]).reshape(shape)))
            else:
                self.parts.append((column, None))
        self.table_dims = tuple(dims[d] for d in self.indexed)
        self.whole_shape = tuple(dims[d] for d in self.whole)
        self.permutation = self.indexed + self.whole
        self.identity = self.permutation == tuple(range(len(dims)))
        self.spread = (slice(None),) * rank + (None,) * extra if extra else None

    def starts(self, indices: Any) -> tuple[list[np.ndarray], np.ndarray | None]:
        """The start along each mapped dimension, in bounds, and a mask of the good entries (None if all are)."""
        indices = np.asarray(indices).astype(np.intp)
        columns = [indices[..., i] for i in range(len(self.limits))]
        bad = None
        for i, limit in enumerate(self.limits):
            column = columns[i]
            if column.size and (np.minimum.reduce(column, None) < 0 or np.maximum.reduce(column, None) > limit):
                columns[i] = np.minimum(np.maximum(column, 0), limit)
                if not self.clip:
                    outside = (column < 0) | (column > limit)
                    bad = outside if bad is None else bad | outside
        return columns, None if bad is None else ~bad

    def index(self, columns: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """One index array per indexed dimension; together they broadcast to batch + window shape."""
        arrays: list[Any] = []
        for column, offset in self.parts:
            if column is None:
                arrays.append(offset if offset is not None else np.intp(0))
                continue
            start = columns[column]
            if self.spread is not None:
                start = start[self.spread]
            arrays.append(start if offset is None else start + offset)
        return tuple(arrays)


def _is_clip(mode: Any) -> bool:
    """Whether indices outside are moved inside; otherwise they read a fill value or drop the update."""
    name = getattr(mode, "name", str(mode))
    if name in ("CLIP", "PROMISE_IN_BOUNDS"):
        return True
    if name == "FILL_OR_DROP":
        return False
    raise HostUnsupported("gather/scatter", f"mode {name}")


def _fill_value(eqn: Any, dtype: np.dtype) -> Any:
    value = eqn.params.get("fill_value")
    if value is not None:
        return value
    if dtype.kind in "fcV":
        return np.nan
    if dtype.kind == "b":
        return True
    info = np.iinfo(dtype)
    return info.min if dtype.kind == "i" else info.max


@rule("gather")
def _gather(em: Emitter, eqn: Any, x: Ref, indices: Ref) -> Ref:
    params = eqn.params
    numbers = params["dimension_numbers"]
    shape, dtype = aval_of(eqn.outvars[0])
    clip = _is_clip(params["mode"])
    windows = tuple(int(n) for n in params["slice_sizes"])
    batching = tuple(numbers.operand_batching_dims)
    plan = _Plan(
        x.shape,
        windows,
        tuple(numbers.collapsed_slice_dims),
        batching,
        tuple(numbers.start_index_map),
        indices.shape,
        tuple(numbers.start_indices_batching_dims),
        clip,
    )
    fill = None if clip else np.asarray(_fill_value(eqn, dtype)).astype(dtype)
    # Where the result's dimensions come from: the batch, then the window dimensions in the operand's order.
    window_dims = [d for d in range(len(x.shape)) if d not in numbers.collapsed_slice_dims and d not in batching]
    offset_dims = tuple(numbers.offset_dims)
    batch_positions = [i for i in range(len(shape)) if i not in offset_dims]
    if 0 in shape or x.size == 0:
        if x.size == 0 and 0 not in shape and fill is None:
            raise HostUnsupported("gather", "from an empty array")
        return em.full_const(0 if fill is None else fill, shape, dtype)

    axis = plan.indexed[0] if len(plan.indexed) == 1 else -1
    simple = plan.start_map == (axis,) and not batching and not plan.windowed
    if not plan.batch:
        return em.call(_slice_once(plan, x.shape, windows, shape, fill), (x, indices), shape, dtype, alias=x)
    if simple and batch_positions == list(range(axis, axis + len(plan.batch))):
        return em.call(_take_axis(plan, axis, fill), (x, indices), shape, dtype)

    produced = [("batch", i) for i in range(len(plan.batch))]
    produced += [("window", d) for d in plan.windowed] + [("window", d) for d in plan.whole]
    wanted: list[Any] = [None] * len(shape)
    for i, position in enumerate(batch_positions):
        wanted[position] = ("batch", i)
    for d, position in zip(window_dims, offset_dims):
        wanted[position] = ("window", d)
    places = tuple(produced.index(w) for w in wanted)
    order = None if places == tuple(range(len(shape))) else places
    bad_shape = tuple(n if i in batch_positions else 1 for i, n in enumerate(shape))

    def gather(x: Any, indices: Any) -> np.ndarray:
        columns, good = plan.starts(indices)
        table = x if plan.identity else x.transpose(plan.permutation)
        out = table[plan.index(columns)]
        if order is not None:
            out = out.transpose(order)
        if good is not None:
            out = np.where(good.reshape(bad_shape), out, fill)
        return out

    return em.call(gather, (x, indices), shape, dtype)


def _slice_once(plan: _Plan, dims: Shape, windows: Shape, shape: Shape, fill: Any) -> Callable[..., np.ndarray]:
    """gather of one window: a basic slice."""
    template = [slice(0, n) for n in windows]

    def gather_one(x: Any, indices: Any) -> np.ndarray:
        parts = list(template)
        for d, start in zip(plan.start_map, np.asarray(indices).tolist()):
            room = dims[d] - windows[d]
            if fill is not None and not 0 <= start <= room:
                return np.full(shape, fill)
            start = min(max(start, 0), room)
            parts[d] = slice(start, start + windows[d])
        return x[tuple(parts)].reshape(shape)

    return gather_one


def _take_axis(plan: _Plan, axis: int, fill: Any) -> Callable[..., np.ndarray]:
    """gather of whole slices along one dimension, as embedding and index_select do."""
    limit = plan.limits[0]
    spread = (slice(None),) * len(plan.batch) + (None,) * len([d for d in plan.whole if d > axis])

    def take(x: Any, indices: Any) -> np.ndarray:
        index = indices[..., 0]
        # mode="clip" skips the buffering that NumPy's own bounds check costs.
        out = x.take(index, axis, None, "clip")
        if fill is not None and np.asarray(index).size:
            if np.minimum.reduce(index, None) < 0 or np.maximum.reduce(index, None) > limit:
                good = (index >= 0) & (index <= limit)
                out = np.where(good[spread], out, fill)
        return out

    return take


# -- scatter -----------------------------------------------------------------------------------------------------

_SCATTERS: dict[str, Any] = {
    "scatter": None,
    "scatter-add": np.add,
    "scatter_add": np.add,
    "scatter-sub": np.subtract,
    "scatter_sub": np.subtract,
    "scatter-mul": np.multiply,
    "scatter_mul": np.multiply,
    "scatter-min": np.minimum,
    "scatter_min": np.minimum,
    "scatter-max": np.maximum,
    "scatter_max": np.maximum,
}


@rule(*_SCATTERS)
def _scatter(em: Emitter, eqn: Any, x: Ref, indices: Ref, updates: Ref) -> Ref:
    params = eqn.params
    numbers = params["dimension_numbers"]
    name = eqn.primitive.name
    combine = _SCATTERS[name]
    shape, dtype = aval_of(eqn.outvars[0])
    if combine is None and params.get("update_jaxpr") is not None:
        body = params["update_jaxpr"]
        if len(body.eqns) or body.outvars[0] is not body.invars[1]:
            kind = body_name(body)
            if kind not in ("sum", "prod", "max", "min"):
                raise HostUnsupported(name, "a body that is not one simple operation")
            combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    gone = tuple(numbers.inserted_window_dims)
    batching = tuple(numbers.operand_batching_dims)
    window_dims = [d for d in range(len(shape)) if d not in gone and d not in batching]
    update_window = tuple(numbers.update_window_dims)
    windows = [1] * len(shape)
    for d, position in zip(window_dims, update_window):
        windows[d] = updates.shape[position]
    plan = _Plan(
        shape,
        tuple(windows),
        gone,
        batching,
        tuple(numbers.scatter_dims_to_operand_dims),
        indices.shape,
        tuple(numbers.scatter_indices_batching_dims),
        _is_clip(params["mode"]) and params["mode"].name == "CLIP",
    )
    if 0 in shape or updates.size == 0:
        return x
    batch_positions = [i for i in range(len(updates.shape)) if i not in update_window]
    if not plan.batch:
        return em.call(_write_once(plan, shape, tuple(windows), combine), (x, indices, updates), shape, dtype)

    by_dim = dict(zip(window_dims, update_window))
    places = (*batch_positions, *[by_dim[d] for d in plan.windowed], *[by_dim[d] for d in plan.whole])
    order = None if places == tuple(range(len(places))) else places
    rows, columns_count = math.prod(plan.table_dims), math.prod(plan.whole_shape)
    entries = math.prod(plan.batch) * math.prod(plan.window_shape)
    inverse = None if plan.identity else tuple(int(i) for i in np.argsort(plan.permutation))
    moved = tuple(shape[d] for d in plan.permutation)
    put = _combiner(combine, bool(params["unique_indices"]), dtype, columns_count)

    def scatter(x: Any, indices: Any, updates: Any) -> np.ndarray:
        columns, good = plan.starts(indices)
        table = np.array(x if plan.identity else x.transpose(plan.permutation), order="C").reshape(rows, columns_count)
        if order is not None:
            updates = updates.transpose(order)
        flat: Any = 0
        for part, n in zip(plan.index(columns), plan.table_dims):
            flat = flat * n + part
        whole = plan.batch + plan.window_shape
        flat = np.broadcast_to(flat, whole).reshape(entries)
        updates = updates.reshape(entries, columns_count)
        if good is not None:
            kept = np.broadcast_to(good.reshape(plan.batch + (1,) * len(plan.window_shape)), whole).reshape(entries)
            flat, updates = flat[kept], updates[kept]
        if flat.size:
            table = put(table, flat, updates)
        out = table.reshape(moved)
        return out if inverse is None else out.transpose(inverse)

    return em.call(scatter, (x, indices, updates), shape, dtype)


def _write_once(plan: _Plan, dims: Shape, windows: Shape, combine: Any) -> Callable[..., np.ndarray]:
    """scatter of one window: a basic slice of a copy."""
    template = [slice(0, n) for n in windows]

    def scatter_one(x: Any, indices: Any, updates: Any) -> np.ndarray:
        out = np.array(x)
        parts = list(template)
        for d, start in zip(plan.start_map, np.asarray(indices).tolist()):
            room = dims[d] - windows[d]
            if plan.clip:
                start = min(max(start, 0), room)
            elif not 0 <= start <= room:
                return out
            parts[d] = slice(start, start + windows[d])
        target = out[tuple(parts)]
        update = np.asarray(updates).reshape(windows)
        if combine is None:
            target[...] = update
        else:
            combine(target, update, target)
        return out

    return scatter_one


def _combiner(combine: Any, unique: bool, dtype: np.dtype, width: int) -> Callable[..., np.ndarray]:
    """How rows ``updates`` go into rows ``flat`` of ``table`` (which may be overwritten)."""
    if combine is None:

        def assign(table: np.ndarray, flat: np.ndarray, updates: np.ndarray) -> np.ndarray:
            table[flat] = updates
            return table

        return assign

    wide = np.float32 if is_low(dtype) else None
    columns, rows = np.arange(width), max(1, (1 << 20) // max(width, 1))

    def accumulate(table: np.ndarray, flat: np.ndarray, updates: np.ndarray) -> np.ndarray:
        if wide is not None:
            return accumulate_in(table.astype(wide), flat, updates.astype(wide)).astype(dtype)
        return accumulate_in(table, flat, updates)

    def accumulate_in(table: np.ndarray, flat: np.ndarray, updates: np.ndarray) -> np.ndarray:
        if unique or flat.size == 1:
            table[flat] = combine(table[flat], updates)
        elif width == 1:
            combine.at(table[:, 0], flat, updates[:, 0])  # fast in NumPy for one-dimensional arrays only
        else:
            # Element by element, in order: NumPy is fast at that in one dimension only.
            table = np.ascontiguousarray(table)
            line = table.reshape(-1)
            for i in range(0, flat.size, rows):
                at = flat[i : i + rows, None] * width + columns
                combine.at(line, at.reshape(-1), updates[i : i + rows].reshape(-1))
        return table

    return accumulate
