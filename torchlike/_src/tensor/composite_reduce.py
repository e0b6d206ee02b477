"""Reductions, rearrangements and padding with several forms, or made of several operators."""

import warnings
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.errors import canonical_dims
from torchlike._src.ops.declare import OPS
from torchlike._src.ops.reduction import count_along, reduce_dims
from torchlike._src.tensor import data_shapes
from torchlike._src.tensor.arguments import whole_tuple
from torchlike._src.tensor.call import apply, write_out
from torchlike._src.tensor.composite import NN, internal, public
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.publish import PUBLIC, inplace_method
from torchlike._src.tensor.tensor import Tensor, TensorBase

# -- softmax and its kin, with the dim that old scripts leave out ----------------------------------------------


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


@public(NN)
def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) / sum(exp(input)) along `dim`; `dtype` casts first."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return PUBLIC["softmax"](input, dim, dtype)


@public(NN)
def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(input)) along `dim`, without overflow; `dtype` casts first."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return PUBLIC["log_softmax"](input, dim, dtype)


@public(NN)
def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input) along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return PUBLIC["softmax"](-input, dim, dtype)


@public("torch.special", name="softmax")
def _special_softmax(input, dim, *, dtype=None):
    """See torch.softmax."""
    return PUBLIC["softmax"](input, dim, dtype)


@public("torch.special", name="log_softmax")
def _special_log_softmax(input, dim, *, dtype=None):
    """See torch.log_softmax."""
    return PUBLIC["log_softmax"](input, dim, dtype)


# -- variance and standard deviation: var(unbiased), var(dim, unbiased, keepdim), var(dim, correction=) --------


def _moment(name: str, many: bool) -> Any:
    def function(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
        if isinstance(dim, bool):
            if unbiased is not None or correction is not None:
                raise TypeError(
                    f"{name}() received an invalid combination of arguments - got (bool, {type(unbiased).__name__})"
                )
            dim, unbiased = None, dim
        if unbiased is not None:
            if correction is not None:
                raise TypeError(f"{name}() received an invalid combination of arguments: correction and unbiased")
            correction = int(unbiased)
        shape = tuple(input.shape)
        listed = tuple(dim) if isinstance(dim, list) else dim
        free = count_along(shape, reduce_dims(listed, len(shape))) - (1 if correction is None else correction)
        if free <= 0:
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel).",
                stacklevel=2,
            )
        if many:
            return tuple(PUBLIC[name](input, listed, None, keepdim, correction=correction))
        return PUBLIC[name](input, listed, None, keepdim, correction=correction, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPS[name].doc
    function.__module__ = "torch"
    return function


for _name in ("var", "std"):
    _function = public("torch")(_moment(_name, False))
    setattr(Tensor, _name, _function)
for _name in ("var_mean", "std_mean"):
    public("torch")(_moment(_name, True))


# -- quantiles: a number's range is known here ------------------------------------------------------------------


def _quantile(name: str) -> Any:
    def function(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
        if isinstance(q, (int, float)) and not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        q = q if isinstance(q, TensorBase) else float(q)
        return PUBLIC[name](input, q, dim, keepdim, interpolation=interpolation, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPS[name].doc
    function.__module__ = "torch"
    return function


for _name in ("quantile", "nanquantile"):
    setattr(Tensor, _name, public("torch")(_quantile(_name)))


# -- scatter: src may be a tensor or a number, called src or value ---------------------------------------------


@public("torch")
def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """`input` with `src` (a tensor) or `value` (a number) written at `index` along `dim`; see `reduce` ("add")."""
    if (src is None) == (value is None):
        raise TypeError("scatter() takes one of src and value")
    result = PUBLIC["scatter"](input, dim, index, value if src is None else src, reduce=reduce, out=out)
    return result


Tensor.scatter = scatter
Tensor.scatter_ = inplace_method(scatter, "scatter_")


# -- masks ------------------------------------------------------------------------------------------------------


@public("torch")
def masked_scatter(input, mask, source):
    """`input` with consecutive elements of `source` where `mask` is True. Reads the mask only if source could be too
    short: RuntimeError then."""
    if mask.dtype is dt.bool_ and source.numel() < np.prod(np.broadcast_shapes(input.shape, mask.shape), dtype=int):
        wanted = int(torch.broadcast_to(mask, np.broadcast_shapes(input.shape, mask.shape)).sum())
        if source.numel() < wanted:
            raise RuntimeError("Number of elements of source < number of ones in mask")
    return PUBLIC["masked_scatter"](input, mask, source)


Tensor.masked_scatter = masked_scatter
Tensor.masked_scatter_ = inplace_method(masked_scatter, "masked_scatter_")
Tensor.masked_fill = public("torch", name="masked_fill")(PUBLIC["masked_fill"])
Tensor.masked_fill_ = inplace_method(PUBLIC["masked_fill"], "masked_fill_")


# -- repeat_interleave: a count known here needs no gather -----------------------------------------------------


@public("torch")
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice along `dim`) repeated in a row: an int for all, or a tensor with a count for each.

    With one tensor argument, the indices that such a repetition takes. A tensor of counts is read."""
    if isinstance(repeats, int) and not isinstance(repeats, bool):
        return PUBLIC["_repeat_interleave"](input, repeats, dim)
    return data_shapes.repeat_interleave(input, repeats, dim, output_size=output_size)


Tensor.repeat_interleave = repeat_interleave


# -- methods that take their dims one by one -------------------------------------------------------------------


def _spread_method(name: str) -> Any:
    function = PUBLIC[name]

    def method(self, *args, **kwargs):
        return function(self, whole_tuple(name, args, kwargs))

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = function.__doc__
    return method


Tensor.flip = _spread_method("flip")
Tensor.repeat = _spread_method("repeat")
Tensor.tile = _spread_method("tile")


# -- padding ---------------------------------------------------------------------------------------------------


@public(NN)
def pad(input, pad, mode="constant", value=None):
    """`input` padded by (left, right, top, bottom, …) counted from the last dim; negative sizes crop.

    Modes: constant (any dims, with `value`), reflect, replicate, circular (the last 1 to 3 dims of an input with one
    or two dims more). Raises RuntimeError for sizes that do not fit, NotImplementedError for other dims and modes."""
    pad = tuple(int(p) for p in pad)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if mode == "constant":
        return internal.pad_constant(input, 0 if value is None else value, pad=pad)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return getattr(internal, "pad_" + mode)(input, pad=pad)


@public("torch")
def constant_pad_nd(input, pad, value=0):
    """`input` padded with one number; see torch.nn.functional.pad."""
    return internal.pad_constant(input, value, pad=tuple(int(p) for p in pad))


# -- index grids -----------------------------------------------------------------------------------------------


def _triangle_indices(name: str, choose: Any) -> Any:
    def function(row, col, offset=0, *, dtype=None, device=None, layout=None, pin_memory=None):
        for what, n in (("row", row), ("col", col)):
            if n < 0:
                raise RuntimeError(f"{what} must be non-negative, got{n}")
        dtype = dtype or dt.int64
        if dtype.is_floating_point or dtype.is_complex or dtype is dt.bool_:
            raise NotImplementedError(f"\"{name}\" not implemented for '{dtype.scalar_name}'")
        places = np.stack(choose(row, offset, col))
        result = from_array(places.astype(dtype.np))
        return result if device is None else result.to(device)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"(2, n): rows and columns of the elements that torch.{name[:4]} keeps of a (row, col) matrix."
    function.__module__ = "torch"
    return public("torch")(function)


tril_indices = _triangle_indices("tril_indices", np.tril_indices)
triu_indices = _triangle_indices("triu_indices", np.triu_indices)


@public("torch")
def unravel_index(indices, shape):
    """The coordinates, one tensor per dim of `shape`, of flat `indices` (which wrap around)."""
    shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    out = []
    indices = indices.to(torch.int64)
    for n in reversed(shape):
        out.append(torch.remainder(indices, n))
        indices = torch.div(indices, n, rounding_mode="floor")
    return tuple(reversed(out))


@public("torch")
def diagflat(input, offset=0):
    """The square matrix with the flattened `input` on a diagonal."""
    return torch.diag(input.reshape(-1), offset)


Tensor.diagflat = diagflat


@public("torch")
def nonzero_static(input, *, size, fill_value=-1):
    """(size, ndim): the first `size` indices of elements that are not zero, filled up with `fill_value`. Reads data."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = torch.nonzero(input)
    count = found.shape[0]
    if count >= size:
        return found[:size]
    fill = torch.full((size - count, input.dim()), fill_value, dtype=torch.int64)
    return torch.cat([found, fill])


Tensor.nonzero_static = nonzero_static


# -- torch.gradient --------------------------------------------------------------------------------------------


@public("torch")
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """A tuple with, for each dim, the derivative by second-order differences inside and of `edge_order` at the ends.

    `spacing` is one number, one per dim, or one tensor of coordinates per dim."""
    ndim = input.dim()
    dims = tuple(range(ndim)) if dim is None else canonical_dims(tuple(dim) if isinstance(dim, list) else dim, ndim)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if spacing is None:
        spacing = 1
    if isinstance(spacing, TensorBase):
        spacing = [spacing]
    given = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(given) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
            f"same length, but got a spacing argument of length {len(given)} and a dim argument of length {len(dims)}."
        )
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_gradient(input, d, s, edge_order) for d, s in zip(dims, given, strict=True))


def _gradient(input: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    if isinstance(spacing, TensorBase):
        return internal.gradient(input, [spacing], dim=dim, edge_order=edge_order)
    return internal.gradient(input, [], dim=dim, spacing=float(spacing), edge_order=edge_order)


# -- linalg forms of functions here ----------------------------------------------------------------------------


@public("torch.linalg", name="cross")
def _linalg_cross(input, other, *, dim=-1, out=None):
    """The cross product along `dim`; other dims broadcast."""
    result = apply(OPS["_linalg_cross"], (dim,), (input, other))
    if out is None:
        return result
    return write_out(out, result, "linalg_cross", (input, other))


@public("torch")
def norm_except_dim(v, pow=2, dim=0):
    """The norm of each slice along `dim`, with the other dims kept as size 1; of all of v if dim is -1."""
    if dim == -1:
        return v.norm(pow)
    others = [k for k in range(v.dim()) if k != dim % v.dim()]
    return PUBLIC["_vector_norm"](v, pow, tuple(others), True) if others else v.abs()
