"""Embedding lookups, one-hot vectors and sampling over tensors."""

import warnings
from typing import Any

from torchlike._src.core import dtype as dt
from torchlike._src.tensor.composite import NN, internal, public
from torchlike._src.tensor.functions import known
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import TensorBase


def _padding(padding_idx: int | None, rows: int) -> int:
    if padding_idx is None:
        return -1
    if padding_idx > 0 and padding_idx >= rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if padding_idx < 0:
        if padding_idx < -rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        return rows + padding_idx
    return padding_idx


def _refuse_sparse(name: str, weight: Any, sparse: bool) -> None:
    """`sparse` is about the gradient alone."""
    if sparse and weight.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError(
            f"torchlike: {name} with sparse=True makes a sparse gradient, and there are no sparse tensors. With "
            "sparse=False the gradient is dense and has the same values; optimizers such as SparseAdam, which update "
            "only the rows that were looked up, are not available"
        )


def _renorm(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are looked up to at most max_norm, in place."""
    with torch.no_grad():
        rows = torch.unique(indices.reshape(-1))  # reads the indices
        outside = [i for i in indices.reshape(-1).tolist() if not -len(weight) <= i < len(weight)]
        if outside:
            raise IndexError(
                f"select(): index {outside[0]} out of range for tensor of size {list(weight.shape)} at dimension 0"
            )
        picked = weight.detach().index_select(0, rows)
        weight.index_put_((rows,), torch.renorm(picked, norm_type, 0, max_norm))


@public(NN)
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """Rows of `weight` (n, d) at integer indices (*) -> (*, d). IndexError for an index out of range."""
    if not isinstance(input, TensorBase):
        raise TypeError(f"embedding(): argument 'indices' (position 2) must be Tensor, not {type(input).__name__}")
    if not weight.dim():
        raise RuntimeError("'weight' must be 2-D")
    padding = _padding(padding_idx, weight.shape[0])
    if max_norm is not None:
        if weight.dim() != 2:
            raise RuntimeError(
                f"Expected 2-dimensional tensor, but got {weight.dim()}-dimensional tensor for argument #1 'self' "
                "(while checking arguments for embedding_renorm_)"
            )
        _renorm(weight, input, max_norm, norm_type)
    _refuse_sparse("embedding", weight, sparse)
    return PUBLIC["embedding"](weight, input, padding, scale_grad_by_freq, False)


@public("torch", name="embedding")
def torch_embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    """torch.embedding(weight, indices)."""
    _refuse_sparse("embedding", weight, sparse)
    return PUBLIC["embedding"](weight, indices, padding_idx, scale_grad_by_freq, False)


@public(NN)
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Integer classes (*) -> (*, num_classes) of zeros and ones. Reads the data where num_classes is -1.
    RuntimeError for classes below 0 or from num_classes on."""
    if tensor.dtype is not dt.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    values = tensor._host() if num_classes == -1 and tensor.device.type != "meta" else known(tensor)
    if values is not None and values.size:
        if values.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = int(values.max()) + 1
        elif values.max() >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    return internal.one_hot(tensor, num_classes)


@public(NN)
def gumbel_softmax(logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """A differentiable sample of a categorical distribution; `hard` rounds it to a one-hot vector in forward."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    rounded = torch.zeros_like(logits).scatter_(dim, index, 1.0)
    return rounded - soft.detach() + soft


@public(NN)
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """Sums, means or maxima of bags of embeddings, without the embeddings themselves."""
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    modes = {"sum": 0, "mean": 1, "max": 2}
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        _renorm(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    _refuse_sparse("embedding_bag", weight, sparse)
    padding = _padding(padding_idx, weight.shape[0])
    out = internal.embedding_bag(
        weight, input, offsets, per_sample_weights, mode=modes[mode], scale_grad_by_freq=scale_grad_by_freq,
        sparse=False, include_last_offset=include_last_offset, padding_idx=padding,
    )  # fmt: skip
    return out[0] if isinstance(out, (tuple, list)) else out
