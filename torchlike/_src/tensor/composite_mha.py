"""Multi-head attention: projections, masks and heads around `scaled_dot_product_attention`."""

import math
import warnings
from typing import Any

from torchlike._src.tensor.composite import NN, public
from torchlike._src.tensor.namespace import F, torch


@public(NN)
def _none_or_dtype(input):
    """The dtype of a tensor, None for None."""
    if input is None:
        return None
    if isinstance(input, torch.Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


@public(NN)
def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """A mask as what is added to scores: a bool one becomes -inf where True, a float one stays.

    AssertionError: neither bool nor floating point."""
    if mask is None:
        return None
    if mask.dtype is not torch.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    if mask.is_floating_point():
        return mask
    return torch.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _check_dims(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Whether the operands are batched; AssertionError if they do not agree on that."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    n = query.dim()
    kind = f"For {'batched' if n == 3 else 'unbatched'} ({n}-D) `query`, expected"
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"{kind} `key` and `value` to be {n}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"{kind} `key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if n == 2 and attn_mask.dim() == 3 and attn_mask.shape != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return n == 3


def _project_packed(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> tuple:
    """Query, key and value by the three parts of one weight, with as few products as the operands allow."""
    size = query.size(-1)
    if key is value and query is key:
        return tuple(F.linear(query, weight, bias).chunk(3, -1))
    if key is value:
        w_q, w_kv = weight.split([size, 2 * size])
        b_q, b_kv = (None, None) if bias is None else bias.split([size, 2 * size])
        return (F.linear(query, w_q, b_q), *F.linear(key, w_kv, b_kv).chunk(2, -1))
    weights = weight.chunk(3)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))


def _project_separately(operands: tuple, weights: tuple, in_proj_bias: Any) -> tuple:
    size = operands[0].size(-1)
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    for name, x, w, b in zip(("query", "key", "value"), operands, weights, biases, strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
        expected = (size, x.size(-1))
        if w.shape != expected:
            raise AssertionError(f"expecting {name} weights shape of {expected}, but got {w.shape}")
        if b is not None and b.shape != (size,):
            raise AssertionError(f"expecting {name} bias shape of {(size,)}, but got {b.shape}")
    return tuple(F.linear(x, w, b) for x, w, b in zip(operands, weights, biases, strict=True))


def _split_heads(x: Any, static: Any, name: str, batch: int, heads: int, width: int) -> Any:
    """(T, B, E), or the static (B · H, T, D) -> (B, H, T, D)"""
    if static is None:
        if x.shape[1] != batch:
            shape = [x.shape[0], batch * heads, width]
            raise RuntimeError(f"shape '{shape}' is invalid for input of size {x.numel()}")
        return x.reshape(x.shape[0], batch, heads, width).permute(1, 2, 0, 3)
    if static.size(0) != batch * heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * heads}, but got {static.size(0)}")
    if static.size(2) != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {static.size(2)}")
    return static.reshape(batch, heads, static.size(1), width)


def _with_zero(x: Any) -> Any:
    """One more key or value, of zeros."""
    zero = torch.zeros((*x.shape[:2], 1, x.shape[3]), dtype=x.dtype, device=x.device)
    return torch.cat([x, zero], 2)


def _one_more(mask: Any) -> Any:
    return None if mask is None else F.pad(mask, (0, 1))


def _per_head(attn_mask: Any, tgt_len: int, src_len: int, batch: int, heads: int) -> Any:
    """(L, S) or (B · H, L, S) -> (1 or B, 1 or H, L, S). RuntimeError: another shape."""
    if attn_mask is None:
        return None
    if attn_mask.dim() == 2:
        if attn_mask.shape != (tgt_len, src_len):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(tgt_len, src_len)}."
            )
        return attn_mask.unsqueeze(0).unsqueeze(0)
    if attn_mask.dim() != 3:
        raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")
    expected = (batch * heads, tgt_len, src_len)
    if attn_mask.shape != expected:
        raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}.")
    return attn_mask.reshape(batch, heads, tgt_len, src_len)


@public(NN)
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """(L, B, E), (S, B, Ek), (S, B, Ev) -> (L, B, E), and the attention weights (B, L, S) or (B, heads, L, S), or None.

    All may lack the batch. key_padding_mask (B, S) and attn_mask (L, S) or (B · heads, L, S) are bool (True: not to be
    seen) or added to the scores. is_causal: a hint that attn_mask is the causal one.

    AssertionError, RuntimeError: shapes that do not fit."""
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = query is key and key is value
        query, same_key = query.unsqueeze(1), key is value
        key = query if same else key.unsqueeze(1)
        value = key if same_key else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    tgt_len, batch, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        is_causal = False
    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    width = embed_dim // num_heads
    if width * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_separately((query, key, value), weights, in_proj_bias)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)

    mask = _per_head(attn_mask, tgt_len, src_len, batch, num_heads)
    if (bias_k is None) != (bias_v is None):
        present, absent = ("bias_v", "bias_k") if bias_k is None else ("bias_k", "bias_v")
        raise AssertionError(f"{present} is set but {absent} is None")
    if bias_k is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
        k = torch.cat([k, bias_k.expand(1, batch, -1)])
        v = torch.cat([v, bias_v.expand(1, batch, -1)])
        mask, key_padding_mask = _one_more(mask), _one_more(key_padding_mask)
    q = _split_heads(q, None, "", batch, num_heads, width)
    k = _split_heads(k, static_k, "static_k", batch, num_heads, width)
    v = _split_heads(v, static_v, "static_v", batch, num_heads, width)
    if add_zero_attn:
        k, v = _with_zero(k), _with_zero(v)
        mask, key_padding_mask = _one_more(mask), _one_more(key_padding_mask)
    src_len = k.size(2)
    if key_padding_mask is not None:
        for position, expected in enumerate((batch, src_len)):
            got = key_padding_mask.shape[position]
            if got != expected:
                raise AssertionError(f"Expected key_padded_mask.shape[{position}] to be {expected}, but got {got}")
        padding = key_padding_mask.reshape(batch, 1, 1, src_len)
        mask = padding if mask is None else mask + padding
    if not training:
        dropout_p = 0.0

    if need_weights:
        scores = torch.matmul(q * math.sqrt(1.0 / float(width)), k.transpose(-2, -1))
        if mask is not None:
            scores = scores + mask
        weights = torch.softmax(scores, -1)
        if dropout_p > 0.0:
            weights = F.dropout(weights, p=dropout_p)
        out = torch.matmul(weights, v)
    else:
        weights = None
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    out = F.linear(out.permute(2, 0, 1, 3).reshape(tgt_len, batch, embed_dim), out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(dim=1)
    if not batched:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights
