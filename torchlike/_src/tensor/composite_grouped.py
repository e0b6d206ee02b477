"""Products of groups of matrices, and functions of nn.functional that differ from torch's in their signature alone."""

import enum
from typing import Any

from torchlike._src.core.dtype import by_name
from torchlike._src.tensor.composite import NN, public
from torchlike._src.tensor.namespace import names, torch

bfloat16 = by_name("bfloat16")

# -- groups ---------------------------------------------------------------------------------------------------


def _member(size: int, offs: Any) -> Any:
    """(groups, size): which of `size` positions belong to which group; group k ends before offs[k]."""
    at = torch.arange(size, device=offs.device).unsqueeze(0)
    ends = offs.unsqueeze(1).long()
    starts = torch.cat([torch.zeros_like(ends[:1]), ends[:-1]])
    return (at >= starts) & (at < ends)


@public(NN)
def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Several products at once. (G, M, K) x (G, K, N) -> (G, M, N); otherwise `offs` (G,) holds where each group ends
    along the dim that a 2-d operand shares with the result or the other operand:

    (M, K) x (G, K, N) -> (M, N) with groups of rows; (G, M, K) x (K, N) -> (M, N) with groups of columns;
    (M, K) x (K, N) -> (G, M, N) with groups of K."""
    if bias is not None:
        raise NotImplementedError("torchlike: grouped_mm(bias=...)")
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError("mat_a and mat_b have to be 2 or 3 dimensional")
    if (offs is None) != (mat_a.dim() == 3 and mat_b.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.dim() == 3 and mat_b.dim() == 3:
        out = torch.bmm(mat_a, mat_b)
    elif mat_a.dim() == 2 and mat_b.dim() == 3:
        member = _member(mat_a.shape[0], offs).to(mat_a.dtype)
        out = torch.bmm(mat_a * member.unsqueeze(2), mat_b).sum(0)
    elif mat_a.dim() == 3:
        member = _member(mat_b.shape[1], offs).to(mat_b.dtype)
        out = torch.bmm(mat_a, mat_b * member.unsqueeze(1)).sum(0)
    else:
        member = _member(mat_a.shape[1], offs).to(mat_a.dtype)
        out = torch.matmul(mat_a * member.unsqueeze(1), mat_b)
    return out if out_dtype is None else out.to(out_dtype)


class ScalingType(enum.IntEnum):
    """How an eight-bit operand of scaled_mm is scaled."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """How the scales of scaled_mm lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


names(NN).update(ScalingType=ScalingType, SwizzleType=SwizzleType)


@public(NN)
def scaled_mm(
    mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None,
    output_dtype=bfloat16, contraction_dim=(), use_fast_accum=False,
):  # fmt: skip
    """Not implemented."""
    raise NotImplementedError("torchlike: torch.nn.functional.scaled_mm (products of eight-bit floats)")


@public(NN)
def scaled_grouped_mm(
    mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None, bias=None,
    offs=None, output_dtype=bfloat16, contraction_dim=(), use_fast_accum=False,
):  # fmt: skip
    """Not implemented."""
    raise NotImplementedError("torchlike: torch.nn.functional.scaled_grouped_mm (products of eight-bit floats)")


# -- the same function under another signature ----------------------------------------------------------------


@public(NN)
def sigmoid(input):
    """1 / (1 + exp(-input)), elementwise."""
    return input.sigmoid()


@public(NN)
def tanh(input):
    """The hyperbolic tangent, elementwise."""
    return input.tanh()


@public(NN)
def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError with `message` about `arg_name` unless `arg` is an int or has two elements."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))
