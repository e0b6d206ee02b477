"""torch.masked: reductions and normalisations that leave out elements by a mask (True keeps an element).

Where the mask keeps nothing, a result is what the reduction of nothing gives, or undefined."""

import math
from typing import Any

from torchlike._src.core import dtype as _dt
from torchlike._src.tensor.namespace import linalg as _linalg
from torchlike._src.tensor.namespace import torch as _torch

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip


def _keep(input: Any, mask: Any) -> Any:
    """The mask in the input's shape, or None."""
    if mask is None:
        return None
    if mask.dtype is not _dt.bool_:
        mask = mask != 0
    return mask.expand(input.shape) if mask.dim() <= input.dim() else mask


def _filled(input: Any, mask: Any, value: Any) -> Any:
    keep = _keep(input, mask)
    return (
        input
        if keep is None
        else _torch.where(keep, input, _torch.full((), value, dtype=input.dtype, device=input.device))
    )


def _dims(input: Any, dim: Any) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(input.dim()))
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


def _cast(input: Any, dtype: Any) -> Any:
    return input if dtype is None else input.to(dtype)


def _accumulating(input: Any, dtype: Any) -> Any:
    """As sums and products do it: integers and bool become int64."""
    d = input.dtype
    if dtype is None and not (d.is_floating_point or d.is_complex):
        dtype = _dt.int64
    return _cast(input, dtype)


def _lowest(d: Any) -> Any:
    return -math.inf if d.is_floating_point else (False if d is _dt.bool_ else _torch.iinfo(d).min)


def _highest(d: Any) -> Any:
    return math.inf if d.is_floating_point else (True if d is _dt.bool_ else _torch.iinfo(d).max)


def _over(function: Any, x: Any, dims: tuple, keepdim: bool) -> Any:
    """A reduction of one dim at a time, over several."""
    n = x.dim()
    for d in sorted((k % n if n else 0 for k in dims), reverse=True) if n else dims:
        x = function(x, d, keepdim)
    return x


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The sum of the elements that the mask keeps."""
    x = _filled(_accumulating(input, dtype), mask, 0)
    return x.sum(_dims(x, dim), keepdim)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The product of the elements that the mask keeps."""
    x = _filled(_accumulating(input, dtype), mask, 1)
    if not x.dim():
        return x.prod() if dim is None or dim == () else x.prod(0, keepdim)
    return _over(_torch.prod, x, _dims(x, dim), keepdim)


def cumsum(input, dim, *, dtype=None, mask=None):
    """The running sum, as if the other elements were 0."""
    return _filled(_cast(input, dtype), mask, 0).cumsum(dim, dtype=dtype or input.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """The running product, as if the other elements were 1."""
    return _filled(_cast(input, dtype), mask, 1).cumprod(dim, dtype=dtype or input.dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The largest of the elements that the mask keeps."""
    x = _cast(input, dtype)
    return _filled(x, mask, _lowest(x.dtype)).amax(_dims(x, dim), keepdim)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The smallest of the elements that the mask keeps."""
    x = _cast(input, dtype)
    return _filled(x, mask, _highest(x.dtype)).amin(_dims(x, dim), keepdim)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the largest of the elements that the mask keeps is."""
    x = _cast(input, dtype)
    return _torch.argmax(_filled(x, mask, _lowest(x.dtype)), dim, keepdim).to(x.dtype)  # PyTorch's odd dtype


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Where the smallest of the elements that the mask keeps is."""
    x = _cast(input, dtype)
    return _torch.argmin(_filled(x, mask, _highest(x.dtype)), dim, keepdim).to(x.dtype)  # PyTorch's odd dtype


def _count(x: Any, dims: tuple, mask: Any, keepdim: bool) -> Any:
    ones = _torch.ones(x.shape, dtype=_dt.int64, device=x.device) if mask is None else _keep(x, mask).to(_dt.int64)
    return ones.sum(dims, keepdim)


def _floating(input: Any, dtype: Any) -> Any:
    d = input.dtype
    if dtype is None and not (d.is_floating_point or d.is_complex):
        dtype = _dt.default_dtype()
    return _cast(input, dtype)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The mean of the elements that the mask keeps."""
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise ValueError(
            "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{input.dtype}"
        )
    x = _cast(input, dtype)
    dims = _dims(x, dim)
    if mask is None:
        return x.mean(dims, keepdim=keepdim)
    return _filled(x, mask, 0).sum(dims, keepdim) / _count(x, dims, mask, keepdim)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """The median of the elements that the mask keeps (the lower of two)."""
    x = _floating(input, dtype)
    if mask is None:
        return _torch.median(x, dim, keepdim).values
    return _torch.nanmedian(_filled(x, mask, math.nan), dim, keepdim).values


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """log(sum(exp(input))) of the elements that the mask keeps."""
    x = _floating(input, dtype)
    return _torch.logsumexp(_filled(x, mask, -math.inf), _dims(x, dim), keepdim).to(dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)), of the elements that each mask keeps."""
    a, b = _cast(input, dtype), _cast(other, dtype)
    return _torch.logaddexp(_filled(a, input_mask, -math.inf), _filled(b, other_mask, -math.inf))


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """The vector norm of the elements that the mask keeps."""
    x = _cast(input, dtype)
    value = math.inf if ord < 0 else 0
    return _linalg.vector_norm(_filled(x, mask, value), ord, _dims(x, dim), keepdim).to(x.dtype)


def _variance(
    input: Any, dim: Any, unbiased: Any, correction: Any, keepdim: bool, dtype: Any, mask: Any, root: bool
) -> Any:
    if unbiased is not None and correction is not None:
        raise RuntimeError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = int(True if unbiased is None else unbiased)
    x = _floating(input, dtype)
    dims = _dims(x, dim)
    count = _count(x, dims, mask, True)
    kept = _filled(x, mask, 0)
    centred = _filled(x - kept.sum(dims, True) / count, mask, 0)
    total = (centred * centred.conj()).sum(dims, keepdim)
    if total.dtype.is_complex:
        total = total.real
    count = count if keepdim else _count(x, dims, mask, False)
    found = total / _torch.clamp(count - correction, min=0)
    found = (found.sqrt() if root else found).to(x.dtype)
    return found


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The variance of the elements that the mask keeps."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, False)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """The standard deviation of the elements that the mask keeps."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask, True)


def softmax(input, dim, *, dtype=None, mask=None):
    """softmax over the elements that the mask keeps."""
    return _torch.softmax(_filled(_floating(input, dtype), mask, -math.inf), dim)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """log_softmax over the elements that the mask keeps."""
    return _torch.log_softmax(_filled(_floating(input, dtype), mask, -math.inf), dim)


def softmin(input, dim, *, dtype=None, mask=None):
    """softmax of -input over the elements that the mask keeps."""
    return _torch.softmax(-_filled(_floating(input, dtype), mask, math.inf), dim)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """input / max(norm, eps), with the norm of the elements that the mask keeps."""
    x = _floating(input, dtype)
    size = _linalg.vector_norm(_filled(x, mask, math.inf if ord < 0 else 0), ord, dim, True)
    return _filled(x, mask, 0) / _torch.maximum(size, _torch.full_like(size.detach(), eps))


class MaskedTensor:
    """A tensor with a mask as one object: not supported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.masked.MaskedTensor; use the functions of torch.masked with mask=")


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor: not supported."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A MaskedTensor: not supported."""
    return MaskedTensor(data, mask)


def is_masked_tensor(obj):
    """False: there are none."""
    return False
