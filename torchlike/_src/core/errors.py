"""Checks of dims and shapes that every operator shares, with PyTorch's error types and texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from torchlike._src.core.size import Size


def canonical_dim(dim: int, ndim: int) -> int:
    """``dim`` counted from the front. A 0-dim tensor takes 0 and -1 and gives 0.

    Raises:
        IndexError: ``dim`` is not in [-ndim, ndim).
    """
    if 0 <= dim < ndim:
        return dim
    span = ndim or 1
    if not -span <= dim < span:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-span}, {span - 1}], but got {dim})")
    return dim + span if dim < 0 else dim


def canonical_dims(dims: int | Iterable[int], ndim: int) -> tuple[int, ...]:
    """Each of ``dims`` counted from the front, in the order given.

    Raises:
        IndexError: one is out of range.
        RuntimeError: one comes twice.
    """
    if isinstance(dims, int):
        return (canonical_dim(dims, ndim),)
    seen: list[int] = []
    for dim in dims:
        dim = canonical_dim(dim, ndim)
        if dim in seen:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        seen.append(dim)
    return tuple(seen)


def shape_text(shape: Iterable[int]) -> str:
    """``[2, 3]``: a shape as PyTorch's messages write it."""
    return f"[{', '.join(map(str, shape))}]"


def _broadcast_two(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    if a == b:
        return tuple(a)
    ndim = max(len(a), len(b))
    out = [1] * ndim
    for back in range(1, ndim + 1):
        size_a = a[-back] if back <= len(a) else 1
        size_b = b[-back] if back <= len(b) else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            raise RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) "
                f"at non-singleton dimension {ndim - back}"
            )
        out[-back] = size_b if size_a == 1 else size_a
    return tuple(out)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape of an operator's operands.

    Raises:
        RuntimeError: they do not broadcast (the text that operators give).
    """
    if not shapes:
        return ()
    out = tuple(shapes[0])
    for shape in shapes[1:]:
        if shape != out:
            out = _broadcast_two(out, shape)
    return out


def public_broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """``torch.broadcast_shapes``: as `broadcast_shapes`, also for plain ints, with that function's own texts.

    Raises:
        RuntimeError: the shapes do not broadcast.
        ValueError: a length is negative.
    """
    given = [(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]
    ndim = max(map(len, given), default=0)
    out = [1] * ndim
    for position, shape in enumerate(given):
        for back in range(1, len(shape) + 1):
            length = shape[-back]
            if length < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if length in (1, out[-back]):
                continue
            if out[-back] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {length} at {-back}! "
                    f"Mismatching argument at index {position} had {shape}; but expected shape "
                    f"should be broadcastable to {out}"
                )
            out[-back] = length
    return Size(out)


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """``shape`` with its -1, if any, replaced so that it holds ``numel`` elements: view's and reshape's rule.

    Raises:
        RuntimeError: two -1, another negative size, a count that does not fit, or a -1 that could be anything.
    """
    inferred = -1
    known = 1
    for position, size in enumerate(shape):
        if size == -1:
            if inferred >= 0:
                raise RuntimeError("only one dimension can be inferred")
            inferred = position
        elif size >= 0:
            known *= size
        else:
            raise RuntimeError(f"invalid shape dimension {size} at index {position} of shape {shape_text(shape)}")
    if numel == known or (inferred >= 0 and known > 0 and numel % known == 0):
        if inferred < 0:
            return tuple(shape)
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {shape_text(shape)} because the unspecified "
                "dimension size -1 can be any value and is ambiguous"
            )
        return (*shape[:inferred], numel // known, *shape[inferred + 1 :])
    raise RuntimeError(f"shape '{shape_text(shape)}' is invalid for input of size {numel}")


def expand_shape(sizes: Sequence[int], shape: Sequence[int], type_name: str = "torch.FloatTensor") -> tuple[int, ...]:
    """The shape that ``expand(sizes)`` gives a tensor of ``shape``; ``type_name`` is for the message.

    Raises:
        RuntimeError: too few sizes, a -1 in a new leading dimension, or a size that does not fit.
    """
    new = len(sizes) - len(shape)
    if new < 0:
        raise RuntimeError(
            f"expand({type_name}{{{shape_text(shape)}}}, size={shape_text(sizes)}): the number of sizes provided "
            f"({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    out = list(sizes)
    for position in reversed(range(len(sizes))):
        target = sizes[position]
        if position < new:
            if target < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({target}) isn't allowed in a leading, "
                    f"non-existing dimension {position}"
                )
            continue
        existing = shape[position - new]
        if target == -1:
            out[position] = existing
        elif target != existing and existing != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({target}) must match the existing size ({existing}) at "
                f"non-singleton dimension {position}.  Target sizes: {shape_text(sizes)}.  "
                f"Tensor sizes: {shape_text(shape)}"
            )
    return tuple(out)


def numel(shape: Iterable[int]) -> int:
    """The number of elements of a tensor of this shape."""
    return math.prod(shape)


class LinAlgError(RuntimeError):
    """What PyTorch raises for matrices that cannot be factorised."""


LinAlgError.__module__ = "torch._C"
LinAlgError.__qualname__ = LinAlgError.__name__ = "_LinAlgError"
