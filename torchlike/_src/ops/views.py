"""View operators: how a view is read from its base, and how the base looks after a write through the view.

Each is a linear kernel `read(base, *numbers)` with a companion `write(base, new, *numbers)`, itself linear in base and
new, so gradients of both are their transposes. Starts and indices are numbers: data, not code."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.ops.declare import RawOp

__all__ = [
    "AS_STRIDED", "AS_STRIDED_OF_VIEW", "BITCAST", "CHAIN", "DIAGONAL", "EXPAND", "PERMUTE", "RESHAPE", "SELECT",
    "SLICE", "SPLIT", "UNBIND", "UNFOLD", "VIEW_AS_COMPLEX", "VIEW_AS_REAL", "ViewOp",
]  # fmt: skip


class ViewOp(RawOp):
    """A view operator: `fn` reads, `write` is the kernel that writes through it."""

    view = True
    strided = True
    """Whether it is a matter of strides, or of elements (real and complex)."""

    def __init__(
        self, name: str, read: Callable, write: Callable | None, shape: Callable | None = None, **options: Any
    ) -> None:
        super().__init__(read, name, linear=True, **options)
        self.shape_rule = shape
        self.write = RawOp(
            write or _write_by_index(self), name + "_write", linear=True, grad_name="torch::autograd::CopySlices"
        )
        self.write.infer = _like_first  # type: ignore[method-assign]

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        if self.shape_rule is None:
            return super().infer(static, specs)
        shape = self.shape_rule(specs[0].shape, **dict(static))
        return (aval(shape, specs[0].dtype, specs[0].device),)


def _like_first(static: tuple, specs: tuple) -> tuple[Aval, ...]:
    return (specs[0],)


def _write_by_index(op: ViewOp) -> Callable:
    """Write through any view that only selects elements: find out which, by viewing the element numbers."""

    def write(base: Array, new: Array, *numbers: Array, **static: Any) -> Array:
        where = op.fn(jnp.arange(base.size, dtype=jnp.int32).reshape(base.shape), *numbers, **static)
        # The transpose needs to know that no element is written twice: views with repeated elements are not written to.
        flat = (
            base.reshape(-1).at[where.reshape(-1)].set(new.reshape(-1), unique_indices=True, mode="promise_in_bounds")
        )
        return flat.reshape(base.shape)

    write.__name__ = write.__qualname__ = op.name + "_write"
    return write


# -- reshape, permute, expand ------------------------------------------------------------------------------------------


def _reshape(base: Array, *, shape: tuple) -> Array:
    return base.reshape(shape)


def _reshape_write(base: Array, new: Array, *, shape: tuple) -> Array:
    return new.reshape(base.shape)


RESHAPE = ViewOp("view", _reshape, _reshape_write, lambda s, shape: shape, grad_name="ViewBackward0")


def _permute(base: Array, *, dims: tuple) -> Array:
    return lax.transpose(base, dims)


def _permute_write(base: Array, new: Array, *, dims: tuple) -> Array:
    return lax.transpose(new, tuple(int(k) for k in np.argsort(dims)))


PERMUTE = ViewOp(
    "permute", _permute, _permute_write, lambda s, dims: tuple(s[d] for d in dims), grad_name="PermuteBackward0"
)


def _expand(base: Array, *, shape: tuple) -> Array:
    return jnp.broadcast_to(base, shape)


def _expand_write(base: Array, new: Array, *, shape: tuple) -> Array:
    # A fill may write through repeated elements: they are all alike, so the first of each will do.
    lead = new.ndim - base.ndim
    new = new[(0,) * lead]
    return new[tuple(slice(0, n) for n in base.shape)]


EXPAND = ViewOp("expand", _expand, _expand_write, lambda s, shape: shape, grad_name="ExpandBackward0")


def _chain(base: Array, *numbers: Array, steps: tuple) -> Array:
    given = iter(numbers)
    for op, static, count in steps:
        base = op.fn(base, *[next(given) for _ in range(count)], **dict(static))
    return base


CHAIN = ViewOp("chain", _chain, None, grad_name="AsStridedBackward0")
"""Several view steps as one. Needed to write through a part of an expanded tensor, whose other copies are stale."""


def fused(steps: tuple) -> tuple:
    """The steps, those from an expand on as one if more follow it."""
    for k, step in enumerate(steps[:-1]):
        if step[0] is EXPAND:
            tail = steps[k:]
            if not all(step[0].strided and step[0] is not BITCAST for step in tail):
                raise NotImplementedError("torchlike: writing through an expanded tensor seen as another dtype")
            static = (("steps", tuple((op, s, len(numbers)) for op, s, numbers in tail)),)
            return (*steps[:k], (CHAIN, static, tuple(n for step in tail for n in step[2])))
    return steps


# -- slices ------------------------------------------------------------------------------------------------------------


def _select(base: Array, index: Array, *, dim: int) -> Array:
    return lax.dynamic_index_in_dim(base, index.astype(jnp.int32), dim, keepdims=False)


def _select_write(base: Array, new: Array, index: Array, *, dim: int) -> Array:
    return lax.dynamic_update_index_in_dim(base, new, index.astype(jnp.int32), dim)


SELECT = ViewOp("select", _select, _select_write, lambda s, dim: s[:dim] + s[dim + 1 :], grad_name="SelectBackward0")


def _slice(base: Array, start: Array, *, dim: int, length: int, step: int) -> Array:
    if length == base.shape[dim]:
        return base
    start = start.astype(jnp.int32)
    span = (length - 1) * step + 1 if length else 0
    part = lax.dynamic_slice_in_dim(base, start, span, dim)
    return part if step == 1 else lax.slice_in_dim(part, 0, span, step, dim)


def _slice_write(base: Array, new: Array, start: Array, *, dim: int, length: int, step: int) -> Array:
    if length == base.shape[dim]:
        return new
    start = start.astype(jnp.int32)
    if step == 1:
        return lax.dynamic_update_slice_in_dim(base, new, start, dim)
    index: list = [slice(None)] * base.ndim
    index[dim] = start + step * jnp.arange(length, dtype=jnp.int32)
    return base.at[tuple(index)].set(new, unique_indices=True, mode="promise_in_bounds")


SLICE = ViewOp(
    "slice",
    _slice,
    _slice_write,
    lambda s, dim, length, step: (*s[:dim], length, *s[dim + 1 :]),
    grad_name="SliceBackward0",
)


# -- several views of one tensor, as the graph has them: the gradient is one concatenation -----------------------------


def _split(base: Array, *, dim: int, sizes: tuple) -> tuple[Array, ...]:
    return tuple(lax.split(base, sizes, dim))


SPLIT = RawOp(_split, "split", linear=True, grad_name="SplitBackward0")


def _unbind(base: Array, *, dim: int) -> tuple[Array, ...]:
    return tuple(jnp.squeeze(x, dim) for x in lax.split(base, (1,) * base.shape[dim], dim))


UNBIND = RawOp(_unbind, "unbind", linear=True, grad_name="UnbindBackward0")
SPLIT.view = UNBIND.view = True  # type: ignore[attr-defined]


def _split_avals(static: tuple, specs: tuple) -> tuple[Aval, ...]:
    given, s = dict(static), specs[0].shape
    dim = given["dim"]
    return tuple(specs[0].with_shape((*s[:dim], n, *s[dim + 1 :])) for n in given["sizes"])


def _unbind_avals(static: tuple, specs: tuple) -> tuple[Aval, ...]:
    s, dim = specs[0].shape, dict(static)["dim"]
    return (specs[0].with_shape((*s[:dim], *s[dim + 1 :])),) * s[dim]


SPLIT.infer, UNBIND.infer = _split_avals, _unbind_avals  # type: ignore[method-assign]


# -- views that pick elements by rule ----------------------------------------------------------------------------------


def _diagonal(base: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    return jnp.diagonal(base, offset, dim1, dim2)


DIAGONAL = ViewOp("diagonal", _diagonal, None, grad_name="DiagonalBackward0")


def _unfold(base: Array, *, dim: int, size: int, step: int) -> Array:
    count = (base.shape[dim] - size) // step + 1
    where = step * np.arange(count)[:, None] + np.arange(size)[None, :]
    out = jnp.take(base, jnp.asarray(where.reshape(-1), jnp.int32), axis=dim, mode="clip")
    out = out.reshape(*base.shape[:dim], count, size, *base.shape[dim + 1 :])
    return jnp.moveaxis(out, dim + 1, -1)


UNFOLD = ViewOp("unfold", _unfold, None, grad_name="UnfoldBackward0")


def _as_strided(base: Array, *, size: tuple, stride: tuple, offset: int) -> Array:
    where = np.asarray(offset)
    for n, s in zip(size, stride, strict=True):
        where = where[..., None] + s * np.arange(n)
    return base.reshape(-1)[jnp.asarray(where.reshape(-1), jnp.int32)].reshape(size)


AS_STRIDED = ViewOp(
    "as_strided", _as_strided, None, lambda s, size, stride, offset: size, grad_name="AsStridedBackward0"
)


def _places(size: tuple, stride: tuple, offset: int) -> np.ndarray:
    where = np.full(size, offset, np.int64)
    for d, (n, s) in enumerate(zip(size, stride, strict=True)):
        where += (np.arange(n) * s).reshape([-1 if k == d else 1 for k in range(len(size))])
    return where.reshape(-1)


def _as_strided_of_view(view: Array, *, seen: tuple, size: tuple, stride: tuple, offset: int, room: int) -> Array:
    """The geometry of a storage of `room` elements of which only those of a view, at `seen`, are known."""
    storage = jnp.zeros(room, view.dtype).at[_places(*seen)].add(view.reshape(-1))
    return storage[_places(size, stride, offset)].reshape(size)


AS_STRIDED_OF_VIEW = RawOp(_as_strided_of_view, "as_strided_of_view", linear=True, grad_name="AsStridedBackward0")
AS_STRIDED_OF_VIEW.view = AS_STRIDED_OF_VIEW.strided = True  # type: ignore[attr-defined]
"""`as_strided` of a view as the graph has it: the gradient goes to that view."""


# -- views of another dtype --------------------------------------------------------------------------------------------


def _view_as_real(base: Array) -> Array:
    return jnp.stack([jnp.real(base), jnp.imag(base)], axis=-1)


def _view_as_real_write(base: Array, new: Array) -> Array:
    return lax.complex(new[..., 0], new[..., 1])


VIEW_AS_REAL = ViewOp("view_as_real", _view_as_real, _view_as_real_write, grad_name="ViewAsRealBackward0")


VIEW_AS_REAL.strided = False


def _view_as_complex(base: Array) -> Array:
    return lax.complex(base[..., 0], base[..., 1])


def _view_as_complex_write(base: Array, new: Array) -> Array:
    return _view_as_real(new)


VIEW_AS_COMPLEX = ViewOp(
    "view_as_complex", _view_as_complex, _view_as_complex_write, grad_name="ViewAsComplexBackward0"
)


VIEW_AS_COMPLEX.strided = False


def _bitcast(base: Array, *, dtype: Any) -> Array:
    """The same bytes as another dtype; the last dimension grows or shrinks with the item size."""
    return bitcast(base, dtype.np)


def _bitcast_write(base: Array, new: Array, *, dtype: Any) -> Array:
    return bitcast(new, base.dtype)


def bitcast(a: Array, target: Any) -> Array:
    """(…, n) -> (…, n * a.itemsize / target.itemsize), reinterpreted little-endian."""
    target = np.dtype(target)
    if a.dtype == target:
        return a
    if a.dtype == np.bool_ or target == np.bool_:
        if a.dtype.itemsize == 1 and target == np.bool_:
            return a != 0
        a = a.astype(np.uint8)
        if target == np.uint8:
            return a
    if a.dtype.kind == "c":
        a = _view_as_real(a).reshape(*a.shape[:-1], -1) if a.ndim else _view_as_real(a)
    if target.kind == "c":
        part = np.dtype(np.float32 if target.itemsize == 8 else np.float64)
        b = bitcast(a, part)
        return _view_as_complex(b.reshape(*b.shape[:-1], -1, 2))
    ratio = target.itemsize / a.dtype.itemsize
    if ratio == 1:
        return lax.bitcast_convert_type(a, target)
    if ratio > 1:
        return lax.bitcast_convert_type(a.reshape(*a.shape[:-1], -1, int(ratio)), target)
    out = lax.bitcast_convert_type(a, target)
    return out.reshape(*a.shape[:-1], -1)


BITCAST = ViewOp("view_dtype", _bitcast, _bitcast_write)
BITCAST.differentiable = False
