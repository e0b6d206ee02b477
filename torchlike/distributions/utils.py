"""What the distributions share: broadcasting of arguments, probs and logits, lazy attributes, triangular vectors."""

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

import torchlike as torch
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.engine.record import PLAIN
from torchlike._src.tensor.tensor import TensorBase
from torchlike.nn import functional as F
from torchlike.types import _device, _dtype

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

Number = (int, float, bool)
euler_constant = 0.57721566490153286060


def readable(value: Any) -> bool:
    """Whether the data of a tensor can be looked at without cutting a training step in two: it has been computed, or
    it is pending beside operations none of which a gradient will need."""
    if not isinstance(value, TensorBase):
        return True
    pending = value._s.value
    if pending.array is None:
        epoch = pending.epoch
        return epoch is None or epoch.trace.epoch is not epoch or not epoch.trace.taped
    return type(pending.array) in PLAIN


def to_host(value: Any) -> Any:
    """A tensor as a NumPy array (not to be written to); a number as it is."""
    return value._host() if isinstance(value, TensorBase) else value


def broadcast_all(*values: Any) -> tuple:
    """Tensors and numbers broadcast to one shape. Numbers take dtype and device of the first tensor, or the default
    dtype.

    ValueError for anything else."""
    if not all(isinstance(v, (TensorBase, *Number)) or hasattr(v, "__torch_function__") for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    options: dict = {"dtype": torch.get_default_dtype()}
    for v in values:
        if isinstance(v, TensorBase):
            options = {"dtype": v.dtype, "device": v.device}
            break
    tensors = [torch.tensor(v, **options) if isinstance(v, Number) else v for v in values]
    shapes = [t.shape for t in tensors]
    if all(s == shapes[0] for s in shapes):
        return tuple(tensors)
    shape = broadcast_shapes(*shapes)  # what has the shape already stays the tensor that it is
    return tuple(t if s == shape else t.expand(shape) for t, s in zip(tensors, shapes, strict=True))


def batch_of(param: Any, *given: Any) -> Any:
    """The batch shape of arguments broadcast into `param`: () if all that was given are numbers."""
    return torch.Size() if all(isinstance(g, Number) for g in given) else param.size()


def empty_like_param(shape: Sequence, param: Any) -> Any:
    """An uninitialised tensor of `shape`, of param's dtype and device, to be filled with draws."""
    return torch.empty(shape, dtype=param.dtype, device=param.device)


def uniform_like_param(shape: Sequence, param: Any) -> Any:
    """Uniform draws in [0, 1) of `shape`, of param's dtype and device."""
    return torch.rand(shape, dtype=param.dtype, device=param.device)


def _standard_normal(shape: Sequence, dtype: _dtype, device: _device) -> Any:
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Sum out the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities: the sigmoid of binary logits, the softmax over the last dimension of others."""
    return torch.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities kept eps away from 0 and 1, eps being that of the dtype."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """log p - log(1 - p) of binary probabilities, log p of others, both of clamped p."""
    clamped = clamp_probs(probs)
    if is_binary:
        return torch.log(clamped) - torch.log1p(-clamped)
    return torch.log(clamped)


class lazy_property:
    """An attribute computed on first use, with gradients recorded, and then stored on the instance."""

    def __init__(self, wrapped: Callable) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a lazy property is when asked for on the class."""

    def __init__(self, wrapped: Callable) -> None:
        property.__init__(self, wrapped)


def _tril_indices(n: int, diag: int) -> tuple:
    rows, columns = np.tril_indices(n, diag)
    return torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(columns.astype(np.int64))


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The lower triangle of (..., D, D), row by row, as (..., N). `diag`: the last diagonal taken."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = _tril_indices(n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """The inverse of `tril_matrix_to_vec`: (..., N) -> (..., D, D), zero above the diagonal `diag`."""
    length = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + torch.Size((n, n)))
    rows, columns = _tril_indices(n, diag)
    mat[..., rows, columns] = vec
    return mat
