"""torch.*_copy: view functions whose result has memory of its own. And writing into a strided part of a copy."""

from collections.abc import Callable
from typing import Any

from torchlike._src.tensor import functions, splits, views
from torchlike._src.tensor.call import write_out
from torchlike._src.tensor.composite import public
from torchlike._src.tensor.conversion import clone
from torchlike._src.tensor.publish import tensor_argument
from torchlike._src.tensor.tensor import Tensor


def _copied(view: Tensor, out: Any, name: str, input: Tensor) -> Tensor:
    new = clone(view)
    return new if out is None else write_out(out, new, name, (input,))


def _copy(name: str, view: Callable, doc: str) -> Callable:
    """The copying form of a view function with one result."""

    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Tensor:
        tensor_argument(input, name, "self", 1)
        return _copied(view(input, *args, **kwargs), out, name, input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public("torch")(function)


def _copies(name: str, view: Callable, doc: str) -> None:
    """The copying form of a view function with a tuple of results; `out=` is filled and None comes back."""

    def function(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        tensor_argument(input, name, "self", 1)
        parts = [clone(v) for v in view(input, *args, **kwargs)]
        if out is None:
            return tuple(parts)
        for o, p in zip(out, parts, strict=True):
            write_out(o, p, name, (input,))
        return None

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    public("torch")(function)


def _expand(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return views.expand(input, size, implicit=implicit)


def _slice(input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    if step < 1:
        raise RuntimeError("slice step must be positive")
    from torchlike._src.core.errors import canonical_dim

    d = canonical_dim(dim, input._aval.ndim)
    return input[(*[slice(None)] * d, slice(start, end, step))]


def _view(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    return views.view(input, dtype=dtype) if dtype is not None else views.view(input, size)


def _unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    return views.unfold(input, dimension, size, step)


_copy("alias_copy", lambda input: input, "A copy of `input`.")
_copy("detach_copy", lambda input: input.detach(), "A copy of `input` without its history.")
_copy("as_strided_copy", views.as_strided, "A copy of as_strided(input, size, stride, storage_offset).")
_copy("diagonal_copy", views.diagonal, "A copy of diagonal(input, offset, dim1, dim2).")
_copy("expand_copy", _expand, "A copy of input.expand(size).")
_copy("permute_copy", views.permute, "A copy of permute(input, dims).")
_copy("select_copy", views.select, "A copy of select(input, dim, index).")
_copy("slice_copy", _slice, "A copy of the elements start, start + step, … before `end` of one dim.")
_copy("squeeze_copy", views.squeeze, "A copy of squeeze(input, dim).")
_copy("t_copy", views.t, "A copy of t(input).")
_copy("transpose_copy", views.transpose, "A copy of transpose(input, dim0, dim1).")
_copy("unfold_copy", _unfold, "A copy of input.unfold(dimension, size, step).")
_copy("unsqueeze_copy", views.unsqueeze, "A copy of unsqueeze(input, dim).")
_copy("view_as_complex_copy", views.view_as_complex, "A copy of view_as_complex(input).")
_copy("view_as_real_copy", views.view_as_real, "A copy of view_as_real(input).")
_copy("view_copy", _view, "A copy of input.view(size) or input.view(dtype).")
Tensor.narrow_copy = _copy("narrow_copy", views.narrow, "A copy of narrow(input, dim, start, length).")
_copies("split_copy", splits.split, "Copies of split(input, split_size, dim).")
_copies("split_with_sizes_copy", splits.split_with_sizes, "Copies of split_with_sizes(input, split_sizes, dim).")
_copies("unbind_copy", splits.unbind, "Copies of unbind(input, dim).")
public("torch")(splits.split_with_sizes)


@public("torch")
def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """split_with_sizes, without the in-place check on its views."""
    return splits.split_with_sizes(input, split_sizes, dim)


@public("torch")
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """`input` with the part that as_strided(size, stride, storage_offset) names replaced by `src`."""
    out = clone(tensor_argument(input, "as_strided_scatter", "self", 1))
    part = views.as_strided(out, size, stride, storage_offset)
    if src._aval.shape != part._aval.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src._aval.shape)}, slice size = "
            f"{list(part._aval.shape)}"
        )
    part.copy_(src)
    return out


Tensor.as_strided_scatter = as_strided_scatter
Tensor.unsafe_split_with_sizes = unsafe_split_with_sizes
Tensor.as_strided_ = functions._inplace_view(views.as_strided, "as_strided_")
public("torch", name="as_strided_")(Tensor.as_strided_)
