"""F.multi_head_attention_forward: projections, masks and attention in (length, batch, features) layout."""

import math
from typing import Any

from torchlike._src.tensor.composite import NN, public
from torchlike._src.tensor.namespace import F, torch


def _check_shapes(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """Whether the input is batched; AssertionError where the dims of the operands do not go together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    word, dims = ("batched", 3) if batched else ("unbatched", 2)
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {word} ({dims}-D) `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {word} ({dims}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        expected = (num_heads, query.shape[0], key.shape[0])
        if not batched and attn_mask.dim() == 3 and tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _additive(mask: Any, name: str, dtype: Any, other: Any = None, other_name: str = "") -> Any:
    """A mask to add to the scores: -inf where a bool mask is True."""
    if mask is None:
        return None
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and mask.dtype != other.dtype:
        import warnings

        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if mask.dtype.is_floating_point:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, float("-inf"))


def _packed_projection(q: Any, k: Any, v: Any, weight: Any, bias: Any) -> tuple:
    size = q.shape[-1]
    if k is v:
        if q is k:
            return F.linear(q, weight, bias).unflatten(-1, (3, size)).unbind(-2)
        parts = (weight[:size], weight[size:])
        biases: tuple = (None, None) if bias is None else (bias[:size], bias[size:])
        left = F.linear(q, parts[0], biases[0])
        return (left, *F.linear(k, parts[1], biases[1]).unflatten(-1, (2, size)).unbind(-2))
    weights = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(F.linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True))


def _separate_projection(q: Any, k: Any, v: Any, weights: tuple, bias: Any) -> tuple:
    size = (q.shape[-1], k.shape[-1], v.shape[-1])
    for x, w, name in zip(size, weights, "qkv", strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        if tuple(w.shape) != (size[0], x):
            raise AssertionError(
                f"expecting {'query key value'.split()['qkv'.index(name)]} weights shape of {(size[0], x)}, but got "
                f"{w.shape}"
            )
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(F.linear(x, w, b) for x, w, b in zip((q, k, v), weights, biases, strict=True))


def _mask_dims(mask: Any, length: int, source: int, heads: int) -> Any:
    """An attention mask as (1 or batch * heads, L, S)."""
    if mask is None:
        return None
    for dim, expected in ((2, (length, source)), (3, (heads, length, source))):
        if mask.dim() == dim:
            if tuple(mask.shape) != expected:
                raise RuntimeError(f"The shape of the {dim}D attn_mask is {mask.shape}, but should be {expected}.")
            return mask.unsqueeze(0) if dim == 2 else mask
    raise RuntimeError(f"attn_mask's dimension {mask.dim()} is not supported")


def _split_heads(x: Any, heads: int, size: int) -> Any:
    """(S, N, E) -> (N * heads, S, E / heads)."""
    return x.reshape(x.shape[0], heads, size).transpose(0, 1)


def _static(x: Any, name: str, heads: int, size: int) -> Any:
    for dim, expected in ((0, heads), (2, size)):
        if x.shape[dim] != expected:
            raise AssertionError(f"expecting {name}.size({dim}) of {expected}, but got {x.shape[dim]}")
    return x


@public(NN)
def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
    dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None,
    static_v=None, average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """(L, N, E), (S, N, E), (S, N, E), or without N -> (output (L, N, E), weights or None).

    Weights are (N, L, S), or per head (N, heads, L, S) with average_attn_weights=False. See nn.MultiheadAttention."""
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same_kv, same_qk = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_qk else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, size = query.shape
    source = key.shape[0]
    key_padding_mask = _additive(key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask")
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the fused kernel masks by itself
    else:
        attn_mask = _additive(attn_mask, "attn_mask", query.dtype)
        is_causal = is_causal and key_padding_mask is None
    if size != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}")
    head = size // num_heads
    if head * num_heads != size:
        raise AssertionError(f"embed_dim {size} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        q, k, v = _separate_projection(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _packed_projection(query, key, value, in_proj_weight, in_proj_bias)
    heads = batch * num_heads
    attn_mask = _mask_dims(attn_mask, length, source, heads)
    extra = 0
    if (bias_k is None) != (bias_v is None):
        raise AssertionError(
            "bias_k is set but bias_v is None" if bias_v is None else "bias_v is set but bias_k is None"
        )
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError(f"bias cannot be added to static {'key' if static_k is not None else 'value'}.")
        k = torch.cat([k, bias_k.expand(1, batch, -1)])
        v = torch.cat([v, bias_v.expand(1, batch, -1)])
        extra += 1
    q = _split_heads(q, heads, head)
    k = _split_heads(k, heads, head) if static_k is None else _static(static_k, "static_k", heads, head)
    v = _split_heads(v, heads, head) if static_v is None else _static(static_v, "static_v", heads, head)
    if add_zero_attn:
        zeros = torch.zeros((heads, 1, head), dtype=k.dtype, device=k.device)
        k, v = torch.cat([k, zeros], 1), torch.cat([v, zeros], 1)
        extra += 1
    if extra:
        attn_mask = None if attn_mask is None else F.pad(attn_mask, (0, extra))
        key_padding_mask = None if key_padding_mask is None else F.pad(key_padding_mask, (0, extra))
    source = k.shape[1]
    if key_padding_mask is not None:
        for dim, expected in enumerate((batch, source)):
            if key_padding_mask.shape[dim] != expected:
                raise AssertionError(
                    f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got {key_padding_mask.shape[dim]}"
                )
        padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(heads, 1, source)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    dropout = dropout_p if training else 0.0
    if need_weights:
        out, weights = _with_weights(q, k, v, attn_mask, dropout)
        out = out.transpose(0, 1).reshape(length * batch, size)
        out = F.linear(out, out_proj_weight, out_proj_bias).view(length, batch, -1)
        weights = weights.view(batch, num_heads, length, source)
        weights = weights.mean(1) if average_attn_weights else weights
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))
    if attn_mask is not None:
        whole = attn_mask.shape[0] == 1 and attn_mask.dim() == 3
        attn_mask = attn_mask.unsqueeze(0) if whole else attn_mask.view(batch, num_heads, -1, source)
    q = q.view(batch, num_heads, length, head)
    k, v = k.view(batch, num_heads, source, head), v.view(batch, num_heads, source, head)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask, dropout, is_causal)
    out = out.permute(2, 0, 1, 3).reshape(batch * length, size)
    out = F.linear(out, out_proj_weight, out_proj_bias).view(length, batch, -1)
    return (out if batched else out.squeeze(1)), None


def _with_weights(q: Any, k: Any, v: Any, mask: Any, dropout: float) -> tuple[Any, Any]:
    q = q * math.sqrt(1.0 / q.shape[-1])
    kt = k.transpose(-2, -1)
    scores = torch.bmm(q, kt) if mask is None else torch.baddbmm(mask, q, kt)
    weights = F.softmax(scores, dim=-1)
    if dropout > 0.0:
        weights = F.dropout(weights, p=dropout)
    return torch.bmm(weights, v), weights
