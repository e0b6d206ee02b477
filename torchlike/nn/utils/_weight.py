"""What weight and spectral normalization compute, in both of their public forms."""

from typing import Any

from torchlike._src.tensor.namespace import linalg, torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The 2-norm over all dimensions but `dim` (kept with size 1 each), or over all with dim == -1 (a 0-d tensor)."""
    if dim == -1:
        return linalg.vector_norm(v)
    return linalg.vector_norm(v, 2, [d for d in range(v.dim()) if d != dim], True)


def weight_normalized(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """v scaled so that its norms are g."""
    return v * (g / norm_except_dim(v, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with `dim` as rows and all else as columns."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.size(0), -1)


def unit(x: Tensor, eps: float) -> Tensor:
    """x divided by its norm."""
    return F.normalize(x, dim=0, eps=eps)


def random_unit(like: Tensor, size: int, eps: float) -> Tensor:
    """A random direction."""
    return unit(torch.empty(size, dtype=like.dtype, device=like.device).normal_(0, 1), eps)


def default_dim(module: Any) -> int:
    """The dimension of a layer's outputs in its weight."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
