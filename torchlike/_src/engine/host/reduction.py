"""Reductions, arg-reductions, running reductions, sorting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlike._src.engine.host.elementwise import FLOAT32, is_low
from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, Shape, aval_of, rule

_REDUCERS: dict[str, Any] = {
    "reduce_sum": np.add,
    "reduce_prod": np.multiply,
    "reduce_max": np.maximum,
    "reduce_min": np.minimum,
    "reduce_and": np.bitwise_and,
    "reduce_or": np.bitwise_or,
    "reduce_xor": np.bitwise_xor,
}
# One bound method per ufunc: `ufunc.reduce` makes a new object each time.
_REDUCE = {ufunc: ufunc.reduce for ufunc in _REDUCERS.values()}
_BODIES = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}


def identity_of(ufunc: Any, dtype: np.dtype) -> Any:
    """The value a reduction starts from."""
    if ufunc in (np.add, np.bitwise_or, np.bitwise_xor):
        return 0
    if ufunc is np.multiply:
        return 1
    if ufunc is np.bitwise_and:
        return True if dtype.kind == "b" else -1 if dtype.kind == "i" else np.iinfo(dtype).max
    lowest = ufunc is np.maximum
    if dtype.kind == "b":
        return not lowest
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max
    return -np.inf if lowest else np.inf


def body_name(jaxpr: Any) -> str | None:
    """Which of the simple reductions a two-argument body is (``sum``, ``max``, …), or None."""
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2:
        return None
    eqn = jaxpr.eqns[0]
    if list(eqn.outvars) != list(jaxpr.outvars) or {id(v) for v in eqn.invars} != {id(v) for v in jaxpr.invars}:
        return None
    return _BODIES.get(eqn.primitive.name)


@rule(*_REDUCERS, lazy=True)
def _reduce(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    axes = tuple(int(a) for a in eqn.params["axes"])
    return reduce(em, _REDUCERS[eqn.primitive.name], x, axes, shape, dtype)


def reduce(em: Emitter, ufunc: Any, x: Ref, axes: Shape, shape: Shape, dtype: np.dtype) -> Ref:
    """Reduce ``axes`` by a ufunc, without expanding what is lazily broadcast."""
    if not axes:
        return x
    if x.size == 0:
        return em.full_const(identity_of(ufunc, dtype), shape, dtype)
    repeat = 1
    if ufunc in (np.multiply, np.bitwise_xor) or (ufunc is np.add and dtype.kind == "b"):
        x = em.full(x)
    elif x.phys != x.shape:
        padded = x.padded()
        repeat = math.prod(x.shape[a] for a in axes if padded[a] == 1) if ufunc is np.add else 1
    missing = len(x.shape) - len(x.phys)
    held = tuple(a - missing for a in axes if a >= missing)
    phys = tuple(n for a, n in enumerate(x.phys) if a not in held)
    if held and all(x.phys[a] == 1 for a in held):
        x, held = em.reshaped(x, phys, x.shape), ()
    if held:
        summed = ufunc in (np.add, np.multiply)
        low = summed and is_low(dtype)
        # Reducing all dimensions of a contiguous array as one is faster, and None says so.
        axis = "None" if len(held) == len(x.phys) else str(held[0]) if len(held) == 1 else str(held)
        kind = f", {em.dtype(FLOAT32 if low else dtype)}" if summed and (low or dtype.kind in "biu") else ""
        name = f"{x.name}.astype({em.dtype(FLOAT32)})" if low else x.name
        result = em.put(f"{em.fn(_REDUCE[ufunc])}({name}, {axis}{kind})", shape, FLOAT32 if low else dtype, phys)
        if repeat != 1:
            factor = em.full_const(repeat, (), result.dtype)
            result = em.ufunc(np.multiply, (result, factor), shape, result.dtype)
        return em.cast(result, dtype)
    result = Ref(x.name, shape, dtype, phys, x.const)
    if repeat != 1:
        result = em.ufunc(np.multiply, (result, em.full_const(repeat, (), dtype)), shape, dtype)
    return result


@rule("reduce")
def _general_reduce(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    jaxpr = eqn.params["jaxpr"]
    kind = body_name(jaxpr.jaxpr)
    if len(refs) != 2 or kind is None:
        raise HostUnsupported("reduce", "a body that is not one simple operation")
    x, start = refs
    shape, dtype = aval_of(eqn.outvars[0])
    ufunc = _REDUCERS[f"reduce_{kind}"]
    result = reduce(em, ufunc, x, tuple(int(a) for a in eqn.params["dimensions"]), shape, dtype)
    return em.ufunc(ufunc, (result, start), shape, dtype)


@rule("argmax", "argmin")
def _arg_reduce(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    axes = eqn.params["axes"]
    if len(axes) != 1 or x.dtype.kind == "c":
        raise HostUnsupported(eqn.primitive.name, "several axes or complex numbers")
    if x.dtype.kind == "V":
        x = em.cast(x, FLOAT32)
    name = eqn.primitive.name
    return em.put(f"{x.name}.{name}({int(axes[0])}).astype({em.dtype(dtype)})", shape, dtype)


_RUNNING: dict[str, Any] = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "cumlogsumexp": np.logaddexp,
}


@rule(*_RUNNING)
def _running(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    name, axis = eqn.primitive.name, int(eqn.params["axis"])
    if dtype.kind == "c" and name not in ("cumsum", "cumprod"):
        raise HostUnsupported(name, "complex numbers")
    low = is_low(dtype)
    if low:
        x = em.cast(x, FLOAT32)
    flip = "[" + ", ".join([":"] * axis + ["::-1"]) + "]" if eqn.params["reverse"] else ""
    text = f"{em.fn(_RUNNING[name].accumulate)}({x.name}{flip}, {axis}, {em.dtype(x.dtype)}){flip}"
    result = em.put(text, shape, x.dtype)
    return em.cast(result, dtype) if low else result


# -- sorting -----------------------------------------------------------------------------------------------------


def _sortable(x: np.ndarray) -> np.ndarray:
    """Keys NumPy sorts as XLA does (NaN last): ml_dtypes' types go through float32."""
    return x.astype(np.float32) if x.dtype.kind == "V" else x


@rule("sort")
def _sort(em: Emitter, eqn: Any, *refs: Ref) -> list[Ref]:
    axis, keys = int(eqn.params["dimension"]), int(eqn.params["num_keys"])
    outs = [aval_of(v) for v in eqn.outvars]
    if len(refs) == 1:
        x = refs[0]

        def sort_one(x: Any) -> np.ndarray:
            return np.sort(_sortable(x), axis, kind="stable").astype(x.dtype, copy=False)

        return [em.call(sort_one, (x,), *outs[0])]

    def sort(*arrays: Any) -> list[np.ndarray]:
        if keys == 1:
            order = np.argsort(_sortable(arrays[0]), axis, kind="stable")
        else:
            order = np.lexsort([_sortable(a) for a in arrays[keys - 1 :: -1]], axis)
        return [np.take_along_axis(a, order, axis) for a in arrays]

    return em.put_many(f"{em.fn(sort)}({', '.join(r.name for r in refs)})", outs)


@rule("top_k", "approx_top_k")
def _top_k(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    params = eqn.params
    outs = [aval_of(v) for v in eqn.outvars]
    k = int(params["k"])
    axis = int(params.get("axis", params.get("reduction_dimension", -1))) % len(x.shape)
    largest = bool(params.get("is_max_k", True))
    if x.dtype.kind == "c" or outs[0][0][axis] != k:
        raise HostUnsupported(eqn.primitive.name, "complex numbers or aggregation")
    n = x.shape[axis]
    flip = (slice(None),) * axis + (slice(None, None, -1),)
    head = (slice(None),) * axis + (slice(0, k),)
    index_dtype = outs[1][1]

    def top_k_of_many(x: Any) -> tuple[np.ndarray, np.ndarray]:
        # Only what reaches the k-th largest value is sorted. NaN, which no comparison finds, takes the other way.
        lines = np.moveaxis(_sortable(x), axis, -1).reshape(-1, n)
        order = np.empty((len(lines), k), np.intp)
        for line, out in zip(lines, order):
            bound = np.partition(line, n - k)[n - k :]
            if np.isnan(bound).any():
                return top_k(x)
            chosen = np.flatnonzero(line >= bound[0])[::-1]
            out[:] = chosen[np.argsort(line[chosen], kind="stable")[: -k - 1 : -1]]
        lead = x.shape[:axis] + x.shape[axis + 1 :]
        order = np.moveaxis(order.reshape(lead + (k,)), -1, axis)
        return np.take_along_axis(x, order, axis), order.astype(index_dtype)

    def top_k(x: Any) -> tuple[np.ndarray, np.ndarray]:
        # Stable on the flipped array and flipped back: descending, the first of equal values first, NaN in front.
        if largest:
            order = (n - 1 - np.argsort(_sortable(x)[flip], axis, kind="stable"))[flip][head]
        else:
            order = np.argsort(_sortable(x), axis, kind="stable")[head]
        return np.take_along_axis(x, order, axis), order.astype(index_dtype)

    function = top_k_of_many if largest and n > 1000 and 8 * k < n else top_k
    return em.put_many(f"{em.fn(function)}({x.name})", outs)
