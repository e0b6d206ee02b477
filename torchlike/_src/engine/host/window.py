"""Window reductions (pooling) and their gradients."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from torchlike._src.engine.host.contraction import pad_trailing, windows_of
from torchlike._src.engine.host.elementwise import FLOAT32, is_low
from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, Shape, aval_of, rule
from torchlike._src.engine.host.reduction import body_name, identity_of

_KINDS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
_KINDS |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
# A loop over this many offsets of a window dimension is still faster than a reduction of a strided view.
LOOP_LIMIT = 64


class _Windows:
    """The parameters of a window primitive."""

    def __init__(self, params: Any, rank: int) -> None:
        ones = (1,) * rank
        self.size = tuple(int(n) for n in params["window_dimensions"])
        self.strides = tuple(int(n) for n in params.get("window_strides") or ones)
        self.padding = [(int(lo), int(hi)) for lo, hi in params["padding"]]
        self.base_dilation = tuple(int(n) for n in params.get("base_dilation") or ones)
        self.dilation = tuple(int(n) for n in params.get("window_dilation") or ones)
        self.padded = any(lo or hi for lo, hi in self.padding)

    def prepare(self, x: np.ndarray, value: Any) -> np.ndarray:
        """``x`` with dilation holes and padding filled by ``value``."""
        if any(d > 1 for d in self.base_dilation):
            shape = tuple((n - 1) * d + 1 if n else 0 for n, d in zip(x.shape, self.base_dilation))
            holes = np.full(shape, value, x.dtype)
            holes[tuple(slice(None, None, d) for d in self.base_dilation)] = x
            x = holes
        return pad_trailing(x, 0, self.padding, value) if self.padded else x

    def offsets(self, out: Shape) -> list[tuple[slice, ...]]:
        """For each offset in the window, in row-major order, where all windows' element lies."""
        ranges = [range(n) for n in self.size]
        return [
            tuple(
                slice(o * d, o * d + (m - 1) * s + 1, s) for o, d, s, m in zip(offset, self.dilation, self.strides, out)
            )
            for offset in itertools.product(*ranges)
        ]


def _reduce_windows(em: Emitter, ufunc: Any, params: Any, x: Ref, shape: Shape, dtype: np.dtype) -> Ref:
    """Windows are boxes and the operations associative, so each dimension is reduced by itself."""
    w = _Windows(params, len(x.shape))
    start = identity_of(ufunc, dtype)
    if 0 in shape:
        return em.full_const(0, shape, dtype)
    work = FLOAT32 if ufunc in (np.add, np.multiply) and is_low(dtype) else dtype
    x = em.cast(x, work)
    value = np.asarray(start).astype(work)
    steps = [d for d in range(len(shape)) if w.size[d] != 1 or w.strides[d] != 1]
    # The dimensions that shrink most first.
    steps.sort(key=lambda d: -w.strides[d])

    def reduce_window(x: np.ndarray) -> np.ndarray:
        x = w.prepare(x, value)
        for d in steps:
            lead, n = (slice(None),) * d, w.size[d]
            span = (shape[d] - 1) * w.strides[d] + 1
            if shape[d] == 1 and w.dilation[d] == 1:
                x = ufunc.reduce(x[lead + (slice(0, n),)], d, work, None, True)
            elif n > LOOP_LIMIT:
                view = windows_of(np.moveaxis(x, d, -1), (n,), (shape[d],), (w.strides[d],), (w.dilation[d],))
                x = np.moveaxis(ufunc.reduce(view, -2, work), -1, d)
            else:
                out: Any = None
                for i in range(0, n * w.dilation[d], w.dilation[d]):
                    part = x[lead + (slice(i, i + span, w.strides[d]),)]
                    out = ufunc(out, part, out=out) if i and out is not None else part.copy()
                x = out
        return x

    alias = x if not steps else None
    return em.cast(em.call(reduce_window, (x,), shape, work, alias=alias), dtype)


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window_kind(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    return _reduce_windows(em, _KINDS[eqn.primitive.name.rsplit("_", 1)[1]], eqn.params, x, shape, dtype)


@rule("reduce_window")
def _reduce_window(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    params = eqn.params
    jaxpr = params["jaxpr"]
    kind = body_name(getattr(jaxpr, "jaxpr", jaxpr))
    if len(refs) != 2 or kind is None:
        raise HostUnsupported("reduce_window", "a body that is not one simple operation")
    x, start = refs
    shape, dtype = aval_of(eqn.outvars[0])
    ufunc = _KINDS[kind]
    if start.scalar_const() != identity_of(ufunc, dtype):
        raise HostUnsupported("reduce_window", "a start that is not the operation's identity")
    return _reduce_windows(em, ufunc, params, x, shape, dtype)


def _select(eqn: Any) -> Any:
    name = getattr(eqn.params["select_prim"], "name", str(eqn.params["select_prim"]))
    if name not in ("ge", "le"):
        raise HostUnsupported(eqn.primitive.name, f"selection by {name}")
    return np.greater_equal if name == "ge" else np.less_equal


def _winners(x: np.ndarray, places: list[tuple[slice, ...]], better: Any) -> np.ndarray:
    """Which offset of its window wins: the first of equal ones; XLA's comparison leaves a NaN as soon as it can."""
    best = x[places[0]].copy()
    winner = np.zeros(best.shape, np.int32)
    for i, place in enumerate(places[1:], 1):
        candidate = x[place]
        lost = ~better(best, candidate)
        np.copyto(best, candidate, where=lost)
        winner[lost] = i
    return winner


@rule("select_and_scatter_add")
def _select_and_scatter_add(em: Emitter, eqn: Any, source: Ref, operand: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    better = _select(eqn)
    w = _Windows(eqn.params, len(shape))
    places = w.offsets(source.shape)
    worst = identity_of(np.maximum if better is np.greater_equal else np.minimum, operand.dtype)
    back = [(-lo, -hi) for lo, hi in w.padding]
    work = FLOAT32 if is_low(dtype) else dtype
    if 0 in shape or source.size == 0:
        return em.full_const(0, shape, dtype)

    def scatter_windows(source: np.ndarray, operand: np.ndarray) -> np.ndarray:
        x = w.prepare(operand, worst)
        winner = _winners(x, places, better)
        source = source.astype(work, copy=False)
        out = np.zeros(x.shape, work)
        for i, place in enumerate(places):
            target = out[place]
            np.add(target, source, target, where=winner == i)
        if w.padded:
            out = pad_trailing(out, 0, back)
        return out.astype(dtype, copy=False)

    return em.call(scatter_windows, (source, operand), shape, dtype)


@rule("select_and_gather_add")
def _select_and_gather_add(em: Emitter, eqn: Any, tangents: Ref, operand: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    better = _select(eqn)
    w = _Windows(eqn.params, len(operand.shape))
    places = w.offsets(shape)
    worst = identity_of(np.maximum if better is np.greater_equal else np.minimum, operand.dtype)
    if 0 in shape:
        return em.full_const(0, shape, dtype)

    def gather_windows(tangents: np.ndarray, operand: np.ndarray) -> np.ndarray:
        winner = _winners(w.prepare(operand, worst), places, better)
        held = w.prepare(tangents, 0)
        out = np.empty(shape, dtype)
        for i, place in enumerate(places):
            np.copyto(out, held[place], where=winner == i)
        return out

    return em.call(gather_windows, (tangents, operand), shape, dtype)
