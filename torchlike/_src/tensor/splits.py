"""Several views of one tensor: split, chunk, unbind. They are the results of one node, which joins their gradients."""

import operator
from collections.abc import Sequence
from typing import Any

from torchlike._src.autograd.grad_mode import MODE, Anomaly
from torchlike._src.autograd.tape import OpNode, OutEdge, grad_plan, note_stack
from torchlike._src.core.errors import canonical_dim
from torchlike._src.engine.record import kernel_of
from torchlike._src.ops.views import SPLIT, UNBIND
from torchlike._src.tensor.call import record_taped
from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike._src.tensor.views import select_view, slice_view


def joined(t: Tensor, op: Any, static: tuple, parts: list, label: str) -> tuple[Tensor, ...]:
    """Views that one call made of `t`, as the results of one node: their gradients are put together once."""
    if MODE.enabled and t._rg:
        plan = grad_plan(kernel_of(op, static, (t._aval,)), (True,), label)
        if plan is not None:
            gf = t._gf
            edge = t._edge() if t._view is not None else (t if gf is None else gf)
            node = OpNode(plan, (edge,), ())
            for k, part in enumerate(parts):
                part._gf = OutEdge(node, k) if k else node
            if Anomaly.enabled:
                note_stack(node)
            record_taped()
    return tuple(parts)


def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts of one dimension, of a given size or of given sizes."""
    if isinstance(split_size_or_sections, (list, tuple)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    if isinstance(split_size_or_sections, TensorBase) and split_size_or_sections._aval.ndim:
        return split_with_sizes(tensor, split_size_or_sections.tolist(), dim)
    size = operator.index(split_size_or_sections)
    shape = tensor._aval.shape
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    d = canonical_dim(dim, len(shape))
    n = shape[d]
    if size == 0 and n != 0:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    starts = range(0, n, size) if n else [0]
    return _cut(tensor, d, [min(size, n - k) for k in starts], "SplitBackward0")


def _cut(t: Tensor, d: int, lengths: list[int], label: str) -> tuple[Tensor, ...]:
    """Consecutive parts of dimension d."""
    parts, start = [], 0
    for n in lengths:
        parts.append(slice_view(t, d, start, n, 1, multi=True))
        start += n
    return joined(t, SPLIT, (("dim", d), ("sizes", tuple(lengths))), parts, label)


def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive parts of one dimension, of the given sizes."""
    shape = input._aval.shape
    if not shape:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    d = canonical_dim(dim, len(shape))
    parts = [operator.index(n) for n in split_sizes]
    for n in parts:
        if n < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={parts}"
            )
    if sum(parts) != shape[d]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {shape[d]} (input tensor's size at dimension "
            f"{d}), but got split_sizes={parts}"
        )
    return _cut(input, d, parts, "SplitWithSizesBackward0")


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of one dimension, of equal size but for the last."""
    shape = input._aval.shape
    if not shape:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    d = canonical_dim(dim, len(shape))
    size = -(-shape[d] // chunks)
    if size == 0:
        return split_with_sizes(input, [0] * chunks, d)
    return split(input, size, d)


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of one dimension: as equal as possible, or cut at the given indices."""
    shape = input._aval.shape
    if not shape:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = canonical_dim(dim, len(shape))
    n = shape[d]
    if isinstance(indices_or_sections, TensorBase):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        small, extra = divmod(n, sections)
        bounds = [0]
        for k in range(sections):
            bounds.append(bounds[-1] + small + (k < extra))
    else:
        cuts = [slice(None, k).indices(n)[1] for k in indices_or_sections]
        bounds = [0, *cuts, n]
    return tuple(slice_view(input, d, a, max(b - a, 0), 1) for a, b in zip(bounds, bounds[1:], strict=False))


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along one dimension."""
    shape = input._aval.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = canonical_dim(dim, len(shape))
    parts = [select_view(input, d, k, multi=True) for k in range(shape[d])]
    return joined(input, UNBIND, (("dim", d),), parts, "UnbindBackward0")
