"""Primitives that move or make elements without computing: broadcasting, reshaping, slicing, joining, padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.engine.host.emit import (
    FOLD_LIMIT,
    KEY_SHAPE,
    Emitter,
    HostUnsupported,
    Ref,
    Shape,
    aval_of,
    is_key,
    key_to_words,
    rule,
    words_to_key,
)


@rule(
    "copy",
    "copy_p",
    "stop_gradient",
    "optimization_barrier",
    "name",
    "sharding_constraint",
    "layout_constraint",
    "pvary",
    "pbroadcast",
    "mesh_cast",
    "reshard",
    "device_put",
    "tie",
    lazy=True,
)
def _same(em: Emitter, eqn: Any, *refs: Ref) -> Sequence[Ref]:
    """Nothing happens to the value. ``tie`` gives the last operand of two."""
    return refs[-len(eqn.outvars) :]


@rule("broadcast_in_dim", lazy=True)
def _broadcast_in_dim(em: Emitter, eqn: Any, x: Ref, *dynamic: Ref) -> Ref:
    if dynamic:
        raise HostUnsupported("broadcast_in_dim", "dynamic shapes")
    shape, _ = aval_of(eqn.outvars[0])
    if math.prod(x.phys) == 1:
        return _single(em, x, shape)
    phys = [1] * len(shape)
    for n, d in zip(x.padded(), eqn.params["broadcast_dimensions"]):
        phys[d] = n
    return em.reshaped(x, _strip(phys), shape)


def _single(em: Emitter, x: Ref, shape: Shape) -> Ref:
    """An array of one element in memory as a lazy broadcast to any shape."""
    if len(x.phys) <= len(shape):
        return x.with_shape(shape)
    return em.reshaped(x, (), shape)


def _strip(phys: Sequence[int]) -> Shape:
    """Without leading ones, which broadcasting supplies."""
    phys = tuple(phys)
    while phys and phys[0] == 1:
        phys = phys[1:]
    return phys


@rule("reshape", lazy=True)
def _reshape(em: Emitter, eqn: Any, x: Ref) -> Ref:
    dimensions = eqn.params.get("dimensions")
    if dimensions is not None:
        x = transpose(em, x, tuple(int(d) for d in dimensions))
    return reshape(em, x, aval_of(eqn.outvars[0])[0])


@rule("squeeze", "expand_dims", lazy=True)
def _squeeze(em: Emitter, eqn: Any, x: Ref) -> Ref:
    return reshape(em, x, aval_of(eqn.outvars[0])[0])


def reshape(em: Emitter, x: Ref, shape: Shape) -> Ref:
    """``x`` in another shape, still lazily broadcast where only dimensions of 1 come or go."""
    if is_key(x.dtype):
        return words_to_key(reshape(em, key_to_words(x), shape + KEY_SHAPE), x.dtype)
    if x.shape == shape:
        return x
    if x.phys == x.shape:
        return em.reshaped(x, shape, shape)
    if math.prod(x.phys) == 1 and x.size:
        return _single(em, x, shape)
    if [n for n in x.shape if n != 1] == [n for n in shape if n != 1]:
        held = iter([p for p, n in zip(x.padded(), x.shape) if n != 1])
        return em.reshaped(x, _strip([1 if n == 1 else next(held) for n in shape]), shape)
    return em.reshaped(em.full(x), shape, shape)


@rule("transpose", lazy=True)
def _transpose(em: Emitter, eqn: Any, x: Ref) -> Ref:
    return transpose(em, x, tuple(int(p) for p in eqn.params["permutation"]))


def transpose(em: Emitter, x: Ref, permutation: Shape) -> Ref:
    """A view of ``x`` with its dimensions permuted."""
    shape = tuple(x.shape[p] for p in permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    if math.prod(x.phys) == 1:
        return _single(em, x, shape)
    padded = x.padded()
    moved = tuple(padded[p] for p in permutation)
    kept = [p for p in permutation if padded[p] != 1]
    if kept == sorted(kept):
        # Only dimensions of 1 change places.
        return em.reshaped(x, _strip(moved) if x.phys != x.shape else shape, shape)
    x = em.reshaped(x, padded, x.shape)
    base, first = em.views.get(x.name, (None, None))
    if base is not None and first is not None and base.phys == base.shape:
        return transpose(em, base, tuple(first[p] for p in permutation))  # a transpose of a transpose
    text = ".T" if permutation == tuple(reversed(range(len(permutation)))) else f".transpose({permutation})"
    out = em.put(f"{x.name}{text}", shape, x.dtype, moved, alias=x)
    if x.phys == x.shape:
        em.views[out.name] = (x, permutation)
    return out


def subscript(parts: Sequence[str]) -> str:
    """The text of an index, without the trailing full slices."""
    parts = list(parts)
    while parts and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def take_slices(em: Emitter, x: Ref, ranges: Sequence[tuple[int, int, int]], shape: Shape) -> Ref:
    """A view: ``(start, stop, step)`` for each dimension."""
    if is_key(x.dtype):
        words = take_slices(em, key_to_words(x), [*ranges, (0, 2, 1)], shape + KEY_SHAPE)
        return words_to_key(words, x.dtype)
    padded = x.padded()
    parts, phys = [], []
    for n, held, (start, stop, step), m in zip(x.shape, padded, ranges, shape):
        if (start, stop, step) == (0, n, 1) or (held == 1 and n > 1 and m >= 1):
            parts.append(":")
            phys.append(held)
        else:
            parts.append(f"{start}:{stop}" + (f":{step}" if step != 1 else ""))
            phys.append(m)
    missing = len(x.shape) - len(x.phys)
    if any(m == 0 for m in shape):
        return (
            em.full_const(0, shape, x.dtype) if x.const is None else em.const(np.empty(shape, x.dtype), shape, x.dtype)
        )
    index = subscript(parts[missing:])
    if not index:
        return x.with_shape(shape)
    return em.put(f"{x.name}[{index}]", shape, x.dtype, tuple(phys[missing:]), alias=x)


@rule("slice", lazy=True)
def _slice(em: Emitter, eqn: Any, x: Ref) -> Ref:
    params = eqn.params
    strides = params["strides"] or (1,) * len(x.shape)
    ranges = [(int(a), int(b), int(s)) for a, b, s in zip(params["start_indices"], params["limit_indices"], strides)]
    return take_slices(em, x, ranges, aval_of(eqn.outvars[0])[0])


@rule("rev", lazy=True)
def _rev(em: Emitter, eqn: Any, x: Ref) -> Ref:
    padded = x.padded()
    missing = len(x.shape) - len(x.phys)
    parts = ["::-1" if d in eqn.params["dimensions"] and padded[d] != 1 else ":" for d in range(len(x.shape))]
    index = subscript(parts[missing:])
    return em.put(f"{x.name}[{index}]", x.shape, x.dtype, x.phys, alias=x) if index else x


@rule("concatenate")
def _concatenate(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    if len(refs) == 1:
        return refs[0]
    return join(em, refs, int(eqn.params["dimension"]), *aval_of(eqn.outvars[0]))


def join(em: Emitter, refs: Sequence[Ref], axis: int, shape: Shape, dtype: np.dtype) -> Ref:
    """Concatenation of full arrays."""
    return em.put(f"{em.fn(np.concatenate)}(({', '.join(r.name for r in refs)},), {axis})", shape, dtype)


@rule("stack")
def _stack(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    axis = int(eqn.params["axis"]) % len(shape)
    single = shape[:axis] + (1,) + shape[axis + 1 :]
    return join(em, [em.reshaped(r, single, single) for r in refs], axis, shape, dtype)


@rule("unstack", lazy=True)
def _unstack(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    axis = int(eqn.params["axis"]) % len(x.shape)
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    outs = []
    for i in range(x.shape[axis]):
        ranges = [(i, i + 1, 1) if d == axis else (0, n, 1) for d, n in enumerate(x.shape)]
        part = take_slices(em, x, ranges, x.shape[:axis] + (1,) + x.shape[axis + 1 :])
        outs.append(reshape(em, part, shape))
    return outs


@rule("split", lazy=True)
def _split(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    axis, start, outs = int(eqn.params["axis"]), 0, []
    for size in eqn.params["sizes"]:
        ranges = [(start, start + int(size), 1) if d == axis else (0, n, 1) for d, n in enumerate(x.shape)]
        outs.append(take_slices(em, x, ranges, x.shape[:axis] + (int(size),) + x.shape[axis + 1 :]))
        start += int(size)
    return outs


@rule("tile", lazy=True)
def _tile(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, _ = aval_of(eqn.outvars[0])
    reps = tuple(int(r) for r in eqn.params["reps"])
    if math.prod(x.phys) == 1:
        return _single(em, x, shape)
    x = em.full(x)
    apart = tuple(n for pair in zip(reps, x.shape) for n in pair)
    held = tuple(n for m in x.shape for n in (1, m))
    return em.reshaped(em.full(em.reshaped(x, held, apart)), shape, shape)


@rule("iota", lazy=True)
def _iota(em: Emitter, eqn: Any) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    axis = int(eqn.params["dimension"])
    phys = (shape[axis],) + (1,) * (len(shape) - axis - 1)
    if shape[axis] <= FOLD_LIMIT:
        return em.const(np.arange(shape[axis]).astype(dtype).reshape(phys), shape, dtype)
    line = em.put(f"{em.fn(np.arange)}({shape[axis]}).astype({em.dtype(dtype)})", phys, dtype)
    return em.reshaped(Ref(line.name, (shape[axis],), dtype, (shape[axis],)), phys, shape)


@rule("empty", "empty2", lazy=True)
def _empty(em: Emitter, eqn: Any) -> Ref:
    return em.full_const(0, *aval_of(eqn.outvars[0]))


def _pad_plan(n: int, low: int, high: int, interior: int) -> tuple[int, slice, slice]:
    """Output length, which elements of a dimension land inside it, and where."""
    step = interior + 1
    length = low + high + (n + (n - 1) * interior if n else 0)
    first = max(0, -(low // step)) if low < 0 else 0
    last = min(n, max(0, -(-(length - low) // step)))
    count = max(0, last - first)
    start = low + first * step
    return length, slice(first, first + count), slice(start, start + (count - 1) * step + 1 if count else start, step)


@rule("pad", lazy=True)
def _pad(em: Emitter, eqn: Any, x: Ref, value: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    config = [tuple(int(c) for c in dim) for dim in eqn.params["padding_config"]]
    if all(c == (0, 0, 0) for c in config):
        return x
    if all(low <= 0 and high <= 0 and not interior for low, high, interior in config):
        ranges = [(-low, n + high, 1) for n, (low, high, _) in zip(x.shape, config)]
        return take_slices(em, x, ranges, shape)
    x = em.full(x)
    plans = [_pad_plan(n, *c) for n, c in zip(x.shape, config)]
    source = None if all(s == slice(0, n) for n, (_, s, _) in zip(x.shape, plans)) else tuple(p[1] for p in plans)
    target = tuple(p[2] for p in plans)
    zero = value.scalar_const() == 0

    def pad(x: Any, value: Any) -> np.ndarray:
        if zero:
            out = np.zeros(shape, dtype)
        else:
            out = np.empty(shape, dtype)
            out[...] = value
        out[target] = x if source is None else x[source]
        return out

    return em.call(pad, (x, value), shape, dtype)


@rule("bitcast_convert_type")
def _bitcast(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if x.dtype == dtype:
        return x
    if "4" in (x.dtype.name[-1], dtype.name[-1]) and x.dtype.name in ("int4", "uint4"):
        raise HostUnsupported("bitcast_convert_type", x.dtype.name)
    if x.dtype.itemsize == dtype.itemsize:
        return em.put(f"{x.name}.view({em.dtype(dtype)})", shape, dtype, alias=x)
    narrower = dtype.itemsize < x.dtype.itemsize

    def bitcast(x: Any) -> np.ndarray:
        x = np.ascontiguousarray(x)
        if narrower:
            return x.reshape(*shape[:-1], 1).view(dtype)
        return x.view(dtype).reshape(shape)

    return em.call(bitcast, (x,), shape, dtype, alias=x)


# -- slices whose place is data ------------------------------------------------------------------------------------


def _bounds(em: Emitter, starts: Sequence[Ref], dims: Shape, sizes: Shape) -> list[tuple[str, str] | None]:
    """The text of each dimension's start and stop, clamped as XLA clamps them; None for a whole dimension."""
    parts: list[tuple[str, str] | None] = []
    for start, n, size in zip(starts, dims, sizes):
        room = n - size
        if room == 0:
            parts.append(None)
        elif start.const is not None:
            i = min(max(int(start.const), 0), room)
            parts.append((f"{i}", f"{i + size}"))
        else:
            name = em.put(f"min(max(int({start.name}), 0), {room})", (), np.dtype(np.int64)).name
            parts.append((name, f"{name} + {size}"))
    return parts


@rule("dynamic_slice")
def _dynamic_slice(em: Emitter, eqn: Any, x: Ref, *starts: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    sizes = tuple(int(n) for n in eqn.params["slice_sizes"])
    bounds = _bounds(em, starts[: len(sizes)], x.shape, sizes)
    index = subscript([":".join(b) if b else ":" for b in bounds])
    return em.put(f"{x.name}[{index}]", shape, dtype, alias=x) if index else x


def write_slice(x: Any, update: Any, index: tuple[slice, ...]) -> np.ndarray:
    """A copy of ``x`` with ``update`` at ``index``."""
    out = np.array(x)
    out[index] = update
    return out


@rule("dynamic_update_slice")
def _dynamic_update_slice(em: Emitter, eqn: Any, x: Ref, update: Ref, *starts: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if update.shape == shape:
        return update
    bounds = _bounds(em, starts, shape, update.shape)
    index = "".join(f"slice({', '.join(b) if b else 'None'}), " for b in bounds)
    return em.call(write_slice, (x, update), shape, dtype, f"({index})")
