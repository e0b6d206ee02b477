"""cat and stack."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim, shape_text
from torchlike._src.core.promotion import Promote, promote
from torchlike._src.ops.declare import TL, op


def _joined_dtype(tensors: tuple) -> Any:
    return promote(Promote.NO_OPMATH, [(t.dtype, t.ndim) for t in tensors])[1]


def _skipped(shape: tuple) -> bool:
    return shape == (0,)  # PyTorch's legacy: an empty vector joins with anything


def _cat_check(tensors: tuple, dim: int) -> None:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for k, t in enumerate(tensors):
        if t.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    given = [(k, t) for k, t in enumerate(tensors) if not _skipped(t.shape)]
    if not given:
        return
    first = given[0][1]
    dim = canonical_dim(dim, first.ndim)
    for k, t in given[1:]:
        if t.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {t.ndim}")
        for d, (a, b) in enumerate(zip(first.shape, t.shape, strict=True)):
            if d != dim and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} "
                    f"for tensor number {k} in the list."
                )


def _cat_aval(tensors: tuple, dim: int) -> Aval:
    given = [t for t in tensors if not _skipped(t.shape)] or [tensors[0]]
    dim = dim if given[0].shape == (0,) and dim not in (0, -1) else canonical_dim(dim, given[0].ndim)
    shape = given[0].shape
    if len(given) > 1:
        shape = (*shape[:dim], sum(t.shape[dim] for t in given), *shape[dim + 1 :])
    return aval(shape, _joined_dtype(tensors), tensors[0].device)


def _cat_pull(g: Any, tensors_aval: tuple, dim: int) -> tuple:
    pieces, start = [], 0
    for t in tensors_aval:
        if _skipped(t.shape):
            pieces.append(jnp.zeros(t.shape, g.dtype))
            continue
        axis = dim % t.ndim
        pieces.append(lax.slice_in_dim(g, start, start + t.shape[axis], axis=axis))
        start += t.shape[axis]
    return tuple(pieces)


@op(
    promote=Promote.NO_OPMATH,
    check=_cat_check,
    shape=_cat_aval,
    vjp={"tensors": _cat_pull},
    method=False,
    aliases=("concat", "concatenate"),
    autocast="promote",
)
def cat(tensors: TL, dim=0):
    """The tensors one after the other along `dim`. They agree in every other dim; their dtypes promote."""
    given = [t for t in tensors if not _skipped(t.shape)] or [tensors[0]]
    return given[0] if len(given) == 1 else lax.concatenate(given, dim % given[0].ndim)


def _stack_check(tensors: tuple, dim: int) -> None:
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    canonical_dim(dim, tensors[0].ndim + 1)
    for k, t in enumerate(tensors):
        if t.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {shape_text(tensors[0].shape)} at entry 0 and "
                f"{shape_text(t.shape)} at entry {k}"
            )


def _stack_aval(tensors: tuple, dim: int) -> Aval:
    shape = tensors[0].shape
    dim = canonical_dim(dim, len(shape) + 1)
    return aval((*shape[:dim], len(tensors), *shape[dim:]), _joined_dtype(tensors), tensors[0].device)


def _stack_pull(g: Any, tensors_aval: tuple, dim: int) -> tuple:
    dim %= g.ndim
    return tuple(lax.index_in_dim(g, k, dim, keepdims=False) for k in range(len(tensors_aval)))


@op(
    promote=Promote.NO_OPMATH,
    check=_stack_check,
    shape=_stack_aval,
    vjp={"tensors": _stack_pull},
    method=False,
    autocast="promote",
)
def stack(tensors: TL, dim=0):
    """Tensors of one shape along a new `dim`. Their dtypes promote."""
    dim %= tensors[0].ndim + 1
    return lax.concatenate([lax.expand_dims(t, (dim,)) for t in tensors], dim)
