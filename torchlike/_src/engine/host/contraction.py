"""dot_general and conv_general_dilated, both by matrix products of BLAS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.engine.host.elementwise import FLOAT32, is_low
from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, Shape, aval_of, is_key, rule
from torchlike._src.engine.host.shape import reshape, transpose

# A convolution's patches are unfolded in slices of the batch that take about this much memory.
PATCH_BYTES = 1 << 27


def compute_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype products and sums are taken in."""
    return FLOAT32 if is_low(dtype) else dtype


def batched_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """matmul that never falls off BLAS because neither of an operand's last two strides is the item size."""
    if a.strides[-1] != a.itemsize and a.strides[-2] != a.itemsize:
        a = np.ascontiguousarray(a)
    if b.strides[-1] != b.itemsize and b.strides[-2] != b.itemsize:
        b = np.ascontiguousarray(b)
    return np.matmul(a, b)


@rule("dot_general", lazy=True)
def _dot_general(em: Emitter, eqn: Any, lhs: Ref, rhs: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    lc, rc, lb, rb = (tuple(int(d) for d in t) for t in (lc, rc, lb, rb))
    if is_key(lhs.dtype) or lhs.dtype.name.startswith(("int4", "uint4")):
        raise HostUnsupported("dot_general", str(lhs.dtype))
    work = compute_dtype(np.result_type(lhs.dtype, rhs.dtype) if lhs.dtype.kind != "V" else lhs.dtype)
    if dtype.kind != "V" and not is_low(dtype) and dtype.itemsize > work.itemsize:
        work = dtype  # preferred_element_type: the sums are taken in it
    lhs, rhs = em.full(em.cast(lhs, work)), em.full(em.cast(rhs, work))
    lf = tuple(d for d in range(len(lhs.shape)) if d not in lc and d not in lb)
    rf = tuple(d for d in range(len(rhs.shape)) if d not in rc and d not in rb)
    if lhs.size == 0 or rhs.size == 0:
        return em.full_const(0, shape, dtype)
    batch = tuple(lhs.shape[d] for d in lb)
    m = math.prod(lhs.shape[d] for d in lf)
    n = math.prod(rhs.shape[d] for d in rf)
    k = math.prod(lhs.shape[d] for d in lc)
    if not lc or k == 1:
        # An outer product is elementwise.
        a = reshape(em, transpose(em, lhs, lb + lf + lc), batch + tuple(lhs.shape[d] for d in lf) + (1,) * len(rf))
        b = reshape(em, transpose(em, rhs, rb + rf + rc), batch + (1,) * len(lf) + tuple(rhs.shape[d] for d in rf))
        return em.cast(em.full(em.ufunc(np.multiply, (a, b), shape, work)), dtype)
    count = math.prod(batch)
    if not batch:
        a = reshape(em, transpose(em, lhs, lf + lc), (m, k) if lf else (k,))
        b = reshape(em, transpose(em, rhs, rc + rf), (k, n) if rf else (k,))
        held = ((m,) if lf else ()) + ((n,) if rf else ())
        out = em.call(np.dot, (a, b), held, work)
    else:
        inner = batch if len(batch) == 1 else (count,)
        a = reshape(em, transpose(em, lhs, lb + lf + lc), inner + (m, k))
        b = reshape(em, transpose(em, rhs, rb + rc + rf), inner + (k, n))
        out = em.call(batched_matmul, (a, b), inner + (m, n), work)
    return em.cast(reshape(em, out, shape), dtype)


# -- convolution -------------------------------------------------------------------------------------------------


def _dilate(x: np.ndarray, axes_from: int, dilation: Shape) -> np.ndarray:
    """Zeros between elements along the trailing dimensions."""
    shape = x.shape[:axes_from] + tuple((n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[axes_from:], dilation))
    out = np.zeros(shape, x.dtype)
    out[(slice(None),) * axes_from + tuple(slice(None, None, d) for d in dilation)] = x
    return out


def pad_trailing(x: np.ndarray, axes_from: int, padding: Sequence[tuple[int, int]], value: Any = 0) -> np.ndarray:
    """Pad (or, where negative, crop) the trailing dimensions."""
    crop = tuple(slice(max(0, -lo), n - max(0, -hi)) for n, (lo, hi) in zip(x.shape[axes_from:], padding))
    x = x[(slice(None),) * axes_from + crop]
    grow = [(max(0, lo), max(0, hi)) for lo, hi in padding]
    if not any(lo or hi for lo, hi in grow):
        return x
    shape = x.shape[:axes_from] + tuple(n + lo + hi for n, (lo, hi) in zip(x.shape[axes_from:], grow))
    out = np.full(shape, value, x.dtype) if value else np.zeros(shape, x.dtype)
    out[(slice(None),) * axes_from + tuple(slice(lo, lo + n) for n, (lo, _) in zip(x.shape[axes_from:], grow))] = x
    return out


def windows_of(x: np.ndarray, kernel: Shape, out: Shape, strides: Shape, dilation: Shape) -> np.ndarray:
    """All windows over the trailing dimensions, as a view: ``(..., *kernel, *out)``."""
    x = np.ascontiguousarray(x)
    lead = x.ndim - len(kernel)
    steps = x.strides[lead:]
    shape = x.shape[:lead] + kernel + out
    layout = (
        x.strides[:lead] + tuple(s * d for s, d in zip(steps, dilation)) + tuple(s * d for s, d in zip(steps, strides))
    )
    return np.ndarray(shape, x.dtype, x, 0, layout)


@rule("conv_general_dilated")
def _conv(em: Emitter, eqn: Any, lhs: Ref, rhs: Ref) -> Ref:
    params = eqn.params
    shape, dtype = aval_of(eqn.outvars[0])
    numbers = params["dimension_numbers"]
    work = compute_dtype(lhs.dtype)
    if dtype.itemsize > work.itemsize and not is_low(dtype):
        work = dtype
    lhs, rhs = em.cast(lhs, work), em.cast(rhs, work)
    lhs = transpose(em, lhs, tuple(numbers.lhs_spec))
    rhs = transpose(em, rhs, tuple(numbers.rhs_spec))
    out_spec = tuple(numbers.out_spec)
    planned = tuple(shape[d] for d in out_spec)
    if 0 in planned or lhs.size == 0 or rhs.size == 0:
        return em.full_const(0, shape, dtype)

    strides = tuple(int(s) for s in params["window_strides"])
    padding = [(int(lo), int(hi)) for lo, hi in params["padding"]]
    lhs_dilation = tuple(int(d) for d in params["lhs_dilation"])
    rhs_dilation = tuple(int(d) for d in params["rhs_dilation"])
    groups, batch_groups = int(params["feature_group_count"]), int(params["batch_group_count"])
    kernel, spatial = rhs.shape[2:], planned[2:]
    if batch_groups > 1:
        # Groups of the batch become groups of features: (G·N, C, …) -> (N, G·C, …).
        n, c = lhs.shape[:2]
        apart = reshape(em, lhs, (batch_groups, n // batch_groups, c) + lhs.shape[2:])
        order = (1, 0) + tuple(range(2, len(apart.shape)))
        lhs = reshape(em, transpose(em, apart, order), (n // batch_groups, batch_groups * c) + lhs.shape[2:])
        groups = batch_groups
    n, c = lhs.shape[:2]
    o = rhs.shape[0]
    per, taps, places = c // groups, math.prod(kernel), math.prod(spatial)
    dense = any(d > 1 for d in lhs_dilation)
    padded = any(lo or hi for lo, hi in padding)
    pointwise = taps == 1 and strides == (1,) * len(strides)
    # The gradient of a kernel is a convolution with a large window and few places; one product does it.
    wide = taps > places and groups == 1
    item = work.itemsize
    chunk = max(1, PATCH_BYTES // max(1, c * taps * places * item))
    lead = len(kernel)
    to_rows = (0, *range(2 + lead, 2 + 2 * lead), *range(1, 2 + lead))

    def convolve(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        count = len(x)
        if pointwise:
            columns = x.reshape(count, groups, per, places)
        else:
            view = windows_of(x, kernel, spatial, strides, rhs_dilation)
            if wide:
                rows = view.transpose(to_rows).reshape(count * places, per * taps)
                out = np.dot(rows, w.reshape(o, per * taps).T)
                return out.reshape((count, places, o)).transpose(0, 2, 1).reshape((count, o) + spatial)
            columns = view.reshape(count, groups, per * taps, places)
        out = np.matmul(w.reshape(groups, o // groups, per * taps), columns)
        return out.reshape((count, o) + spatial)

    def conv(x: Any, w: Any) -> np.ndarray:
        if dense:
            x = _dilate(x, 2, lhs_dilation)
        if padded:
            x = pad_trailing(x, 2, padding)
        w = np.ascontiguousarray(w)
        if n <= chunk:
            return convolve(x, w)
        return np.concatenate([convolve(x[i : i + chunk], w) for i in range(0, n, chunk)])

    out = em.call(conv, (lhs, rhs), planned, work)
    out = em.cast(out, dtype)
    inverse = tuple(int(i) for i in np.argsort(out_spec))
    return transpose(em, out, inverse)
