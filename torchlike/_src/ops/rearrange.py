"""Rearranging elements into a new tensor: triangles, rolls, flips, repeats, diagonals, a view's place written."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import canonical_dim, canonical_dims, shape_text
from torchlike._src.ops.declare import T, cast, op

# -- triangles -------------------------------------------------------------------------------------------------


def _triangle_check(name: str) -> Any:
    def check(input: Aval, diagonal: int) -> None:
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")

    return check


def _below(shape: tuple, diagonal: int) -> Any:
    """True on and below a diagonal of the last two dims."""
    rows = lax.broadcasted_iota(jnp.int32, shape[-2:], 0)
    columns = lax.broadcasted_iota(jnp.int32, shape[-2:], 1)
    return rows + np.int32(diagonal) >= columns


def _lower(x: Any, diagonal: int) -> Any:
    return jnp.where(_below(x.shape, diagonal), x, jnp.zeros((), x.dtype))


def _upper(x: Any, diagonal: int) -> Any:
    return jnp.where(_below(x.shape, diagonal - 1), jnp.zeros((), x.dtype), x)


@op(
    check=_triangle_check("tril"),
    shape=lambda input, diagonal: input,
    inplace=True,
    vjp={"input": lambda g, diagonal: _lower(g, diagonal)},
)
def tril(input: T, diagonal=0):
    """The lower triangle of the last two dims, zeros above."""
    return _lower(input, diagonal)


@op(
    check=_triangle_check("triu"),
    shape=lambda input, diagonal: input,
    inplace=True,
    vjp={"input": lambda g, diagonal: _upper(g, diagonal)},
)
def triu(input: T, diagonal=0):
    """The upper triangle of the last two dims, zeros below."""
    return _upper(input, diagonal)


# -- roll, flip, rot90 -----------------------------------------------------------------------------------------


def _tuple(value: Any) -> tuple:
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _roll_check(input: Aval, shifts: Any, dims: Any) -> None:
    shifts, dims = _tuple(shifts), _tuple(dims)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for d in dims:
        if not input.ndim:
            raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
        canonical_dim(d, input.ndim)


def _rolled(x: Any, shift: int, dim: int) -> Any:
    size = x.shape[dim]
    shift = shift % size if size else 0
    if not shift:
        return x
    cut = size - shift
    parts = [lax.slice_in_dim(x, cut, size, axis=dim), lax.slice_in_dim(x, 0, cut, axis=dim)]
    return lax.concatenate(parts, dim)


def _roll(x: Any, shifts: Any, dims: Any, sign: int = 1) -> Any:
    shifts, dims = _tuple(shifts), _tuple(dims)
    if not dims:
        return _rolled(x.reshape(-1), sign * shifts[0], 0).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        x = _rolled(x, sign * shift, dim % x.ndim)
    return x


@op(
    check=_roll_check,
    shape=lambda input, **_: input,
    vjp={"input": lambda g, shifts, dims: _roll(g, shifts, dims, -1)},
    out=False,
)
def roll(input: T, shifts, dims=()):
    """`input` shifted along `dims`, what falls off the end coming back at the front; flattened without `dims`."""
    return _roll(input, shifts, dims)


def _flip(x: Any, dims: Any) -> Any:
    dims = canonical_dims(_tuple(dims), x.ndim)
    return lax.rev(x, dims) if dims and x.ndim else x


def _flip_check(input: Aval, dims: Any) -> None:
    canonical_dims(_tuple(dims), input.ndim)


@op(
    check=_flip_check,
    shape=lambda input, dims: input,
    vjp={"input": lambda g, dims: _flip(g, dims)},
    out=False,
)
def flip(input: T, dims):
    """`input` with the order along `dims` reversed."""
    return _flip(input, dims)


def _least_dims(least: int) -> Any:
    def check(input: Aval) -> None:
        if input.ndim < least:
            raise RuntimeError(f"Input must be >= {least}-d.")

    return check


@op(
    check=_least_dims(2),
    shape=lambda input: input,
    vjp={"input": lambda g: lax.rev(g, (1,))},
    out=False,
    grad_name="FlipBackward0",
)
def fliplr(input: T):
    """`input` reversed along dim 1."""
    return lax.rev(input, (1,))


@op(
    check=_least_dims(1),
    shape=lambda input: input,
    vjp={"input": lambda g: lax.rev(g, (0,))},
    out=False,
    grad_name="FlipBackward0",
)
def flipud(input: T):
    """`input` reversed along dim 0."""
    return lax.rev(input, (0,))


def _rot90_check(input: Aval, k: int, dims: tuple) -> None:
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == input.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    for d in dims:
        canonical_dim(d, input.ndim)


def _rot90(x: Any, k: int, dims: tuple) -> Any:
    a, b = (d % x.ndim for d in dims)
    k %= 4
    if k == 2:
        return lax.rev(x, (a, b))
    if k == 0:
        return x
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return lax.transpose(lax.rev(x, (b,)), order) if k == 1 else lax.rev(lax.transpose(x, order), (b,))


@op(
    check=_rot90_check,
    vjp={"input": lambda g, k, dims: _rot90(g, -k, dims)},
    out=False,
)
def rot90(input: T, k=1, dims=(0, 1)):
    """`input` turned by k quarter turns, from `dims[0]` towards `dims[1]`."""
    return _rot90(input, k, dims)


# -- repeats ---------------------------------------------------------------------------------------------------


def _repeat_check(input: Aval, repeats: Any) -> None:
    repeats = _tuple(repeats)
    if len(repeats) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = _repeat_shape(input.shape, repeats)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {shape_text(shape)}")


def _repeat_shape(shape: tuple, repeats: tuple) -> tuple:
    full = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    return tuple(n * r for n, r in zip(full, repeats, strict=True))


def _repeat_pull(g: Any, input_aval: Aval, repeats: Any) -> Any:
    repeats = _tuple(repeats)
    full = (1,) * (len(repeats) - input_aval.ndim) + input_aval.shape
    if 0 in repeats:
        return jnp.zeros(input_aval.shape, g.dtype)
    split = g.reshape([n for pair in zip(repeats, full, strict=True) for n in pair])
    return lax.reduce_sum(split, tuple(range(0, split.ndim, 2))).reshape(input_aval.shape)


def _repeated(x: Any, repeats: tuple) -> Any:
    full = (1,) * (len(repeats) - x.ndim) + x.shape
    wide = [n for pair in zip(repeats, full, strict=True) for n in pair]
    spread = lax.broadcast_in_dim(x.reshape(full), wide, tuple(range(1, 2 * len(full), 2)))
    return spread.reshape(_repeat_shape(x.shape, repeats))


@op(
    check=_repeat_check,
    shape=lambda input, repeats: input.with_shape(_repeat_shape(input.shape, _tuple(repeats))),
    vjp={"input": _repeat_pull},
    namespaces=(),
)
def repeat(input: T, repeats):
    """`input` laid out `repeats[d]` times along each dim (Tensor.repeat; new dims come in front)."""
    return _repeated(input, _tuple(repeats))


def _tile_repeats(ndim: int, dims: Any) -> tuple:
    dims = _tuple(dims)
    return (1,) * (ndim - len(dims)) + dims


@op(
    check=lambda input, dims: _repeat_check(input, _tile_repeats(input.ndim, dims)),
    shape=lambda input, dims: input.with_shape(_repeat_shape(input.shape, _tile_repeats(input.ndim, dims))),
    vjp={"input": lambda g, input_aval, dims: _repeat_pull(g, input_aval, _tile_repeats(input_aval.ndim, dims))},
    grad_name="RepeatBackward0",
    out=False,
)
def tile(input: T, dims):
    """`input` repeated `dims` times along its last dims."""
    return _repeated(input, _tile_repeats(input.ndim, dims))


def _interleave_check(input: Aval, repeats: int, dim: Any) -> None:
    if dim is not None:
        canonical_dim(dim, input.ndim)
        if not input.ndim:
            canonical_dim(1, 0)  # PyTorch looks at the dim after it
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")


def _interleave_aval(input: Aval, repeats: int, dim: Any) -> Aval:
    if dim is None or not input.ndim:
        return input.with_shape((input.numel * repeats,))
    dim = canonical_dim(dim, input.ndim)
    return input.with_shape((*input.shape[:dim], input.shape[dim] * repeats, *input.shape[dim + 1 :]))


def _interleave_pull(g: Any, input_aval: Aval, repeats: int, dim: Any) -> Any:
    shape = input_aval.shape if dim is not None and input_aval.ndim else (input_aval.numel,)
    axis = dim % len(shape) if dim is not None else 0
    split = g.reshape((*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return lax.reduce_sum(split, (axis + 1,)).reshape(input_aval.shape)


@op(
    check=_interleave_check,
    shape=_interleave_aval,
    vjp={"input": _interleave_pull},
    namespaces=(),
    grad_name="ViewBackward0",
)
def _repeat_interleave(input: T, repeats, dim=None):
    """Each element (of the flattened input without `dim`) `repeats` times in a row, an int."""
    x = input if dim is not None and input.ndim else input.reshape(-1)
    axis = dim % x.ndim if dim is not None else 0
    wide = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    places = tuple(k for k in range(len(wide)) if k != axis + 1)
    spread = lax.broadcast_in_dim(x, wide, places)
    return spread.reshape((*x.shape[:axis], x.shape[axis] * repeats, *x.shape[axis + 1 :]))


# -- diagonals -------------------------------------------------------------------------------------------------


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    return max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)


def _diagonal(x: Any, offset: int) -> Any:
    """(*, n, m) -> (*, k): a diagonal of the last two dims, read from the flattened matrix with a stride."""
    rows, columns = x.shape[-2:]
    count = diagonal_length(rows, columns, offset)
    lead = x.shape[:-2]
    if not count:
        return jnp.zeros((*lead, 0), x.dtype)
    start = max(-offset, 0) * columns + max(offset, 0)
    flat = x.reshape((*lead, rows * columns))
    stop = start + (count - 1) * (columns + 1) + 1
    axis = len(lead)
    return lax.slice_in_dim(flat, start, stop, columns + 1, axis)


def _undiagonal(d: Any, rows: int, columns: int, offset: int) -> Any:
    """(*, k) -> (*, n, m): d on a diagonal, zeros elsewhere, by padding with a stride."""
    lead, count = d.shape[:-1], d.shape[-1]
    if not count:
        return jnp.zeros((*lead, rows, columns), d.dtype)
    start = max(-offset, 0) * columns + max(offset, 0)
    stop = start + (count - 1) * (columns + 1) + 1
    pads = [(0, 0, 0)] * len(lead) + [(start, rows * columns - stop, columns)]
    return lax.pad(d, np.zeros((), d.dtype), pads).reshape((*lead, rows, columns))


def _diag_check(input: Aval, diagonal: int) -> None:
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


def _diag_aval(input: Aval, diagonal: int) -> Aval:
    if input.ndim == 2:
        rows, columns = input.shape
        return input.with_shape((diagonal_length(rows, columns, diagonal),))
    side = input.numel + abs(diagonal)
    return input.with_shape((side, side))


def _diag_pull(g: Any, input_aval: Aval, diagonal: int) -> Any:
    if input_aval.ndim != 2:
        return _diagonal(g, diagonal)
    rows, columns = input_aval.shape
    return _undiagonal(g, rows, columns, diagonal)


@op(
    check=_diag_check,
    shape=_diag_aval,
    vjp={"input": _diag_pull},
    grad_name=lambda input, diagonal: "DiagonalBackward0_copy" if input.ndim == 2 else "DiagEmbedBackward0",
)
def diag(input: T, diagonal=0):
    """(n, m) -> its diagonal; (n,) -> the square matrix with that diagonal."""
    if input.ndim == 2:
        return _diagonal(input, diagonal)
    side = input.shape[0] + abs(diagonal)
    return _undiagonal(input, side, side, diagonal)


def _embed_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    first, second = canonical_dim(dim1, ndim + 1), canonical_dim(dim2, ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def _embed_aval(input: Aval, offset: int, dim1: int, dim2: int) -> Aval:
    first, second = _embed_dims(input.ndim, dim1, dim2)
    side = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for d in sorted((first, second)):
        shape.insert(d, side)
    return input.with_shape(tuple(shape))


def _embed_pull(g: Any, offset: int, dim1: int, dim2: int) -> Any:
    first, second = dim1 % g.ndim, dim2 % g.ndim
    return _diagonal(jnp.moveaxis(g, (first, second), (-2, -1)), offset)


@op(
    check=lambda input, offset, dim1, dim2: _embed_dims(input.ndim, dim1, dim2),
    shape=_embed_aval,
    vjp={"input": _embed_pull},
    out=False,
)
def diag_embed(input: T, offset=0, dim1=-2, dim2=-1):
    """(*, n) -> (*, m, m): each last-dim vector on a diagonal of the new dims `dim1` and `dim2`."""
    first, second = _embed_dims(input.ndim, dim1, dim2)
    side = input.shape[-1] + abs(offset)
    return jnp.moveaxis(_undiagonal(input, side, side, offset), (-2, -1), (first, second))


# -- a view's place written in a copy --------------------------------------------------------------------------


def _same_size(src: Aval, shape: tuple) -> None:
    if src.shape != shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {shape_text(src.shape)}, "
            f"slice size = {shape_text(shape)}"
        )


def _diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    first, second = canonical_dim(dim1, ndim), canonical_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


def _diagonal_scatter_check(input: Aval, src: Aval, offset: int, dim1: int, dim2: int) -> None:
    first, second = _diagonal_dims(input.ndim, dim1, dim2)
    lead = tuple(n for k, n in enumerate(input.shape) if k not in (first, second))
    _same_size(src, (*lead, diagonal_length(input.shape[first], input.shape[second], offset)))


def _on_diagonal(shape: tuple, offset: int, dim1: int, dim2: int) -> Any:
    first, second = dim1 % len(shape), dim2 % len(shape)
    return lax.broadcasted_iota(jnp.int32, shape, second) - lax.broadcasted_iota(jnp.int32, shape, first) == offset


def _diagonal_src_pull(g: Any, offset: int, dim1: int, dim2: int) -> Any:
    return _diagonal(jnp.moveaxis(g, (dim1 % g.ndim, dim2 % g.ndim), (-2, -1)), offset)


@op(
    check=_diagonal_scatter_check,
    shape=lambda input, **_: input,
    vjp={
        "input": lambda g, offset, dim1, dim2: jnp.where(_on_diagonal(g.shape, offset, dim1, dim2), 0, g),
        "src": _diagonal_src_pull,
    },
)
def diagonal_scatter(input: T, src: T, offset=0, dim1=0, dim2=1):
    """`input` with `src` on the diagonal of `dim1` and `dim2`."""
    first, second = _diagonal_dims(input.ndim, dim1, dim2)
    rows, columns = input.shape[first], input.shape[second]
    placed = jnp.moveaxis(_undiagonal(cast(src, input.dtype), rows, columns, offset), (-2, -1), (first, second))
    return jnp.where(_on_diagonal(input.shape, offset, first, second), placed, input)


def _select_index(input: Aval, dim: int, index: int) -> tuple[int, int]:
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {shape_text(input.shape)} at dimension {dim}"
        )
    return dim, index % size


def _select_scatter_check(input: Aval, src: Aval, dim: int, index: int) -> None:
    dim, _ = _select_index(input, dim, index)
    _same_size(src, input.shape[:dim] + input.shape[dim + 1 :])


def _slab(shape: tuple, dim: int, start: int, stop: int, step: int = 1) -> Any:
    """Whether an element lies in `start:stop:step` along `dim`; broadcasts against `shape`."""
    inside = np.zeros(shape[dim], bool)
    inside[start:stop:step] = True
    return inside.reshape(tuple(-1 if k == dim else 1 for k in range(len(shape))))


@op(
    check=_select_scatter_check,
    shape=lambda input, **_: input,
    vjp={
        "input": lambda g, dim, index: jnp.where(
            _slab(g.shape, dim % g.ndim, index % g.shape[dim], index % g.shape[dim] + 1), 0, g
        ),
        "src": lambda g, dim, index: lax.index_in_dim(g, index % g.shape[dim], dim % g.ndim, keepdims=False),
    },
)
def select_scatter(input: T, src: T, dim, index):
    """`input` with `src` at `index` along `dim`."""
    dim, index = dim % input.ndim, index % input.shape[dim]
    placed = lax.expand_dims(cast(src, input.dtype), (dim,))
    return jnp.where(_slab(input.shape, dim, index, index + 1), placed, input)


def _slice_bounds(size: int, start: Any, end: Any, step: int) -> tuple[int, int]:
    """PyTorch's clamping of a slice's bounds."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start = 0 if start is None else start
    end = size if end is None else end
    start = min(max(start + size if start < 0 else start, 0), size)
    end = min(max(end + size if end < 0 else end, start), size)
    return start, end


def _slice_scatter_check(input: Aval, src: Aval, dim: int, start: Any, end: Any, step: int) -> None:
    dim = canonical_dim(dim, input.ndim)
    if not input.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    start, end = _slice_bounds(input.shape[dim], start, end, step)
    count = math.ceil((end - start) / step)
    _same_size(src, (*input.shape[:dim], count, *input.shape[dim + 1 :]))


def _slice_input_pull(g: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    dim %= g.ndim
    start, end = _slice_bounds(g.shape[dim], start, end, step)
    return jnp.where(_slab(g.shape, dim, start, end, step), 0, g)


def _slice_src_pull(g: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    dim %= g.ndim
    start, end = _slice_bounds(g.shape[dim], start, end, step)
    return lax.slice_in_dim(g, start, end, step, dim)


@op(
    check=_slice_scatter_check,
    shape=lambda input, **_: input,
    vjp={"input": _slice_input_pull, "src": _slice_src_pull},
)
def slice_scatter(input: T, src: T, dim=0, start=None, end=None, step=1):
    """`input` with `src` at `start:end:step` along `dim`."""
    dim %= input.ndim
    start, end = _slice_bounds(input.shape[dim], start, end, step)
    src = cast(src, input.dtype)
    if not src.size:
        return input
    size, count = input.shape[dim], src.shape[dim]
    after = size - start - ((count - 1) * step + 1)
    pads = [(start, after, step - 1) if k == dim else (0, 0, 0) for k in range(input.ndim)]
    placed = lax.pad(src, np.zeros((), src.dtype), pads)
    return jnp.where(_slab(input.shape, dim, start, end, step), placed, input)
