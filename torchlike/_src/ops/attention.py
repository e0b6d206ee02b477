"""Scaled dot-product attention as one operator that keeps the probabilities for backward.

Backward is four batched products and one row sum. `out1` (the probabilities before dropout) is an output that only
backward reads. A row whose keys are all masked gives zeros, as PyTorch's does.

On the CPU the batch is worked on in pieces: XLA computes a batched product on few cores, and independent chains of
products and softmax side by side. Causal attention goes by blocks of rows, each with the keys up to its last row.
"""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.build_target import on_cpu
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.ops.declare import TO, T, op
from torchlike._src.ops.products import HALF


def check_attention(
    query: Aval,
    key: Aval,
    value: Aval,
    attn_mask: Aval | None,
    keep: Aval | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> None:
    q, k, v = query, key, value
    if not q.dtype is k.dtype is v.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {q.dtype.cpp_name} "
            f"key.dtype: {k.dtype.cpp_name} and value.dtype: {v.dtype.cpp_name} instead."
        )
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {q.ndim} key.dim: "
            f"{k.ndim} and value.dim: {v.ndim} instead."
        )
    if attn_mask is not None and attn_mask.dtype.name != "bool" and attn_mask.dtype is not q.dtype:
        if not (attn_mask.dtype.name == "float32" and q.dtype.name in HALF):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{attn_mask.dtype.cpp_name} and  query.dtype: {q.dtype.cpp_name} instead."
            )
    if not (q.dtype.is_floating_point or q.dtype.is_complex):
        raise RuntimeError(f"expected scalar type Float but found {q.dtype.scalar_name}")
    if enable_gqa:
        if q.ndim < 3 or q.shape[-3] % max(k.shape[-3], 1) or q.shape[-3] % max(v.shape[-3], 1):
            raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
        batch = broadcast_shapes(q.shape[:-3], k.shape[:-3])
    else:
        batch = broadcast_shapes(q.shape[:-2], k.shape[:-2])
    count = math.prod(batch) * (q.shape[-3] if enable_gqa else 1)
    if q.shape[-1] != k.shape[-1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {q.shape[-1]}] but got: [{count}, {k.shape[-1]}]."
        )
    if k.shape[-2] != v.shape[-2]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {k.shape[-2]}] but got: [{count}, {v.shape[-2]}]."
        )
    if attn_mask is not None and is_causal and not _flash(q, k, v, keep):
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None:
        scores = (*batch, *([q.shape[-3]] if enable_gqa else []), q.shape[-2], k.shape[-2])
        broadcast_shapes(scores, attn_mask.shape)


def attention_shape(
    query: Aval,
    key: Aval,
    value: Aval,
    attn_mask: Aval | None,
    keep: Aval | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Aval, Aval]:
    if enable_gqa:
        batch: tuple = (*broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3]), query.shape[-3])
    else:
        batch = broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if attn_mask is not None:
        batch = broadcast_shapes(batch, attn_mask.shape[:-2])
    length, keys = query.shape[-2], key.shape[-2]
    return (
        aval((*batch, length, value.shape[-1]), query.dtype, query.device),
        aval((*batch, length, keys), query.dtype, query.device),
    )


def attention_name(query: Aval, key: Aval, value: Aval, attn_mask: Aval | None, keep: Aval | None, **_: Any) -> str:
    if _flash(query, key, value, keep):
        return "ScaledDotProductFlashAttentionForCpuBackward0"
    if query.dtype.name in HALF:
        return "ToCopyBackward0"
    return "MmBackward0" if query.ndim == key.ndim == value.ndim == 2 else "UnsafeViewBackward0"


def _flash(query: Aval, key: Aval, value: Aval, keep: Aval | None) -> bool:
    """Whether PyTorch would take its fused CPU kernel, as far as the shapes say."""
    return query.ndim == 4 and keep is None and key.shape[-1] == value.shape[-1]


def _batch_dot(a: Any, b: Any, over_a: int, over_b: int, wide: bool = False) -> Any:
    """Batched product contracting dim `over_a` of a's last two with `over_b` of b's; half types add up in float32
    (and stay there with `wide`)."""
    batch = tuple(range(a.ndim - 2))
    numbers = (((a.ndim - 2 + over_a,), (b.ndim - 2 + over_b,)), (batch, batch))
    if a.dtype.name in HALF:
        y = lax.dot_general(a, b, numbers, preferred_element_type=jnp.float32)
        return y if wide else y.astype(a.dtype)
    return lax.dot_general(a, b, numbers)


def _factor(query: Any, scale: float | None) -> float:
    return 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale


def _heads(x: Any, batch: tuple, enable_gqa: bool) -> Any:
    """x with the scores' batch dims; grouped queries share each key and value head."""
    if enable_gqa and x.shape[-3] != batch[-1]:
        times = batch[-1] // x.shape[-3]
        x = jnp.repeat(x, times, axis=x.ndim - 3)
    return x if x.shape[:-2] == batch else jnp.broadcast_to(x, (*batch, *x.shape[-2:]))


def _ungroup(d: Any, spec: Aval, enable_gqa: bool) -> Any:
    """The gradient of `_heads`' repetition (broadcast dims are summed by the caller)."""
    if enable_gqa and spec.shape[-3] != d.shape[-3]:
        heads = spec.shape[-3]
        d = d.reshape(*d.shape[:-3], heads, d.shape[-3] // heads, *d.shape[-2:]).sum(-3)
    return d


def _causal(scores: Any, first: int) -> Any:
    """Keys after a row's own place masked; the first row's place is `first`."""
    row = lax.broadcasted_iota(jnp.int32, scores.shape[-2:], 0) + first
    column = lax.broadcasted_iota(jnp.int32, scores.shape[-2:], 1)
    return jnp.where(column <= row, scores, jnp.asarray(-jnp.inf, scores.dtype))


CHAINS = 4
SMALL_SCORES = 1 << 16
"""Scores below which the batch stays whole."""
BLOCK = 64
MAX_BLOCKS = 4


def _in_pieces(function: Callable, shape: tuple, is_causal: bool, grouped: bool, *arrays: Any) -> tuple:
    """`function(batch, *arrays)` for pieces of one of the batch dims of probabilities of this shape, along which the
    arrays are cut unless they are broadcast there; the results put together. The last batch dim of grouped queries
    (their heads) stays whole."""
    batch = shape[:-2]
    long = [k for k, n in enumerate(batch[:-1] if grouped else batch) if n > 1]
    if not long or math.prod(shape) < SMALL_SCORES or not on_cpu():
        return function(batch, *arrays)
    count = max(2, CHAINS // len(_blocks(shape[-2], shape[-1], is_causal)))
    dim = next((k for k in long if batch[k] >= count), long[0])
    back, size = len(batch) + 2 - dim, batch[dim]
    count = min(count, size)

    parts = []
    for k in range(count):
        first, end = k * size // count, (k + 1) * size // count
        own = [
            x if x is None or x.ndim < back or x.shape[-back] != size else lax.slice_in_dim(x, first, end, 1, -back)
            for x in arrays
        ]
        parts.append(function((*batch[:dim], end - first, *batch[dim + 1 :]), *own))
    return tuple(lax.concatenate(p, p[0].ndim - back) for p in zip(*parts, strict=True))


def _blocks(length: int, keys: int, is_causal: bool) -> list[tuple[int, int, int]]:
    """(first row, end, number of keys) of blocks of rows that are computed one by one."""
    count = max(1, min(MAX_BLOCKS, length // BLOCK)) if is_causal and on_cpu() else 1
    ends = [(k + 1) * length // count for k in range(count)]
    return [(k * length // count, end, min(keys, end) if count > 1 else keys) for k, end in enumerate(ends)]


def _part(x: Any, rows: tuple[int, int], columns: int | None = None) -> Any:
    """Rows of the dim before the last, and columns up to `columns`; dims of 1 are broadcast."""
    if x is None:
        return None
    if x.ndim > 1 and x.shape[-2] > 1 and x.shape[-2] != rows[1] - rows[0]:
        x = lax.slice_in_dim(x, *rows, axis=-2)
    if columns is not None and x.shape[-1] > 1 and x.shape[-1] != columns:
        x = lax.slice_in_dim(x, 0, columns, axis=-1)
    return x


def _wide(x: Any, rows: int, columns: int) -> Any:
    """Zeros below and to the right, up to (..., rows, columns)."""
    if x.shape[-2:] == (rows, columns):
        return x
    grow = [(0, 0, 0)] * (x.ndim - 2) + [(0, rows - x.shape[-2], 0), (0, columns - x.shape[-1], 0)]
    return lax.pad(x, jnp.zeros((), x.dtype), grow)


def _dropped(p: Any, keep: Any, dropout_p: float) -> Any:
    if keep is None:
        return p
    factor = 0.0 if dropout_p == 1.0 else 1.0 / (1.0 - dropout_p)
    return p * (keep.astype(p.dtype) * jnp.asarray(factor, p.dtype))


def _score_gradient(g0: Any, out1: Any, value: Any, keep: Any, dropout_p: float, enable_gqa: bool) -> Any:
    """d loss / d scores, from the probabilities: p * (dp - sum(dp * p)); float32 for half types."""
    batch = out1.shape[:-2]
    dp = _batch_dot(g0, _heads(value, batch, enable_gqa), 1, 1, wide=True)
    dp = _dropped(dp, keep, dropout_p)
    p = out1.astype(dp.dtype)
    return p * (dp - (dp * p).sum(-1, keepdims=True))


def _in_blocks(out1: Any, is_causal: bool) -> list[tuple[tuple[int, int], int]]:
    return [((first, end), keys) for first, end, keys in _blocks(out1.shape[-2], out1.shape[-1], is_causal)]


def grad_query(g0, key, value, keep, out1, scale, dropout_p, is_causal, enable_gqa):
    def piece(batch: tuple, g0: Any, key: Any, value: Any, keep: Any, out1: Any) -> tuple:
        found = []
        for rows, keys in _in_blocks(out1, is_causal):
            k, v = _part(key, (0, keys)), _part(value, (0, keys))
            p, kept = _part(out1, rows, keys), _part(keep, rows, keys)
            ds = _score_gradient(_part(g0, rows), p, v, kept, dropout_p, enable_gqa)
            ds = (ds * jnp.asarray(_factor(key, scale), ds.dtype)).astype(key.dtype)
            found.append(_batch_dot(ds, _heads(k, ds.shape[:-2], enable_gqa), 1, 0))
        return (lax.concatenate(found, found[0].ndim - 2),)

    return _in_pieces(piece, out1.shape, is_causal, enable_gqa, g0, key, value, keep, out1)[0]


def grad_key(g0, query, key_aval, value, keep, out1, scale, dropout_p, is_causal, enable_gqa):
    def piece(batch: tuple, g0: Any, query: Any, value: Any, keep: Any, out1: Any) -> tuple:
        found = []
        for rows, keys in _in_blocks(out1, is_causal):
            p, kept = _part(out1, rows, keys), _part(keep, rows, keys)
            ds = _score_gradient(_part(g0, rows), p, _part(value, (0, keys)), kept, dropout_p, enable_gqa)
            ds = (ds * jnp.asarray(_factor(query, scale), ds.dtype)).astype(query.dtype)
            q = _part(_heads(query, ds.shape[:-2], False), rows)
            found.append(_wide(_batch_dot(ds, q, 0, 0, wide=True), out1.shape[-1], q.shape[-1]))
        return (_ungroup(sum(found[1:], found[0]).astype(query.dtype), key_aval, enable_gqa),)

    return _in_pieces(piece, out1.shape, is_causal, enable_gqa, g0, query, value, keep, out1)[0]


def grad_value(g0, value_aval, keep, out1, dropout_p, is_causal, enable_gqa):
    def piece(batch: tuple, g0: Any, keep: Any, out1: Any) -> tuple:
        found = []
        for rows, keys in _in_blocks(out1, is_causal):
            p = _dropped(_part(out1, rows, keys), _part(keep, rows, keys), dropout_p)
            found.append(_wide(_batch_dot(p, _part(g0, rows), 0, 0, wide=True), out1.shape[-1], g0.shape[-1]))
        return (_ungroup(sum(found[1:], found[0]).astype(g0.dtype), value_aval, enable_gqa),)

    return _in_pieces(piece, out1.shape, is_causal, enable_gqa, g0, keep, out1)[0]


def grad_mask(g0, value, keep, out1, dropout_p, enable_gqa):
    return _score_gradient(g0, out1, value, keep, dropout_p, enable_gqa)


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "probabilities"),
    check=check_attention,
    shape=attention_shape,
    autocast="lower",
    grad_name=attention_name,
    vjp={"query": grad_query, "key": grad_key, "value": grad_value, "attn_mask": grad_mask},
)
def _attention(
    query: T,
    key: T,
    value: T,
    attn_mask: TO,
    keep: TO,
    *,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
):
    """(..., L, E), (..., S, E), (..., S, Ev) -> ((..., L, Ev), probabilities (..., L, S)).

    A bool mask keeps where True, a float mask is added; `keep` is the bool dropout mask of the probabilities."""
    if enable_gqa:
        batch: tuple = (*jnp.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3]), query.shape[-3])
    else:
        batch = jnp.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if attn_mask is not None:
        batch = jnp.broadcast_shapes(batch, attn_mask.shape[:-2])

    def piece(batch: tuple, query: Any, key: Any, value: Any, attn_mask: Any, keep: Any) -> tuple:
        q, k, v = (_heads(x, batch, enable_gqa) for x in (query, key, value))
        outs, probabilities = [], []
        for first, end, keys in _blocks(q.shape[-2], k.shape[-2], is_causal):
            rows = (first, end)
            out, p = _attend(
                _part(q, rows), _part(k, (0, keys)), _part(v, (0, keys)), _part(attn_mask, rows, keys),
                _part(keep, rows, keys), dropout_p, first if is_causal else None, _factor(query, scale)
            )  # fmt: skip
            outs.append(out)
            probabilities.append(_wide(p, p.shape[-2], k.shape[-2]))
        return lax.concatenate(outs, q.ndim - 2), lax.concatenate(probabilities, q.ndim - 2)

    shape = (*batch, query.shape[-2], key.shape[-2])
    return _in_pieces(piece, shape, is_causal, enable_gqa, query, key, value, attn_mask, keep)


def _attend(
    q: Any, k: Any, v: Any, attn_mask: Any, keep: Any, dropout_p: float, first: int | None, factor: float
) -> tuple[Any, Any]:
    """(result, probabilities) of operands with the same batch dims; causal from place `first` on unless it is None."""
    dtype = q.dtype
    scores = _batch_dot(q, k, 1, 1, wide=True)
    scores = scores * jnp.asarray(factor, scores.dtype)
    if first is not None:
        scores = _causal(scores, first)
    if attn_mask is not None:
        if attn_mask.dtype == jnp.bool_:
            scores = jnp.where(attn_mask, scores, jnp.asarray(-jnp.inf, scores.dtype))
        else:
            scores = scores + attn_mask.astype(scores.dtype)
    e, total = _softmax_parts(scores, masked=first is not None or attn_mask is not None)
    p = (e / total).astype(dtype)
    if keep is None and dtype.name in HALF:  # as PyTorch's flash kernel: weights are rounded before the division
        return (_batch_dot(e.astype(dtype), v, 1, 0, wide=True) / total).astype(dtype), p
    return _batch_dot(_dropped(p, keep, dropout_p), v, 1, 0), p


def _softmax_parts(scores: Any, masked: bool) -> tuple[Any, Any]:
    """(exponentials, their sums): numerator and denominator of the softmax over the last dim."""
    top = scores.max(-1, keepdims=True)
    if masked:  # a row of nothing but -inf: exp(-inf - 0) / max(0, tiny) = 0
        top = jnp.where(jnp.isfinite(top) | (top != top), top, jnp.zeros((), top.dtype))
    e = jnp.exp(scores - top)
    total = e.sum(-1, keepdims=True)
    if masked:
        total = jnp.where(total == 0, jnp.ones((), total.dtype), total)
    return e, total
