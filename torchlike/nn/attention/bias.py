"""torch.nn.attention.bias: causal masks for queries and keys of different number, as `attn_mask`.

A CausalBias is the bool mask itself, made where it is asked for; XLA fuses it into the attention."""

import enum
from typing import Any

import torchlike as torch

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The corner that the triangle of kept positions begins in."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(torch.Tensor):
    """A (seq_len_q, seq_len_kv) bool mask: True where the key may be seen."""

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Any:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = torch.ones(seq_len_q, seq_len_kv, dtype=torch.bool).tril(shift)
        return mask.as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant is CausalVariant.LOWER_RIGHT:
            import warnings

            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device: Any = None) -> Any:
        """The mask as a plain tensor."""
        mask = self.as_subclass(torch.Tensor)
        return mask if device is None else mask.to(device)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask that keeps key j for query i where j <= i."""
    if len(size) != 2:
        raise AssertionError(f"causal_upper_left only supports 2D tensors, got {len(size)}D")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask that keeps key j for query i where j <= i + keys - queries."""
    if len(size) != 2:
        raise AssertionError(f"causal_lower_right only supports 2D tensors, got {len(size)}D")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
