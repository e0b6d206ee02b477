"""Functions that choose between operators, or put several together. Everything else is generated from declarations."""

import inspect
import math
import re
from typing import Any

import numpy as np

from torchlike._src.autograd.dual import dual_of
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.core import dtype as dt
from torchlike._src.core import info, promotion
from torchlike._src.core.errors import broadcast_shapes, public_broadcast_shapes
from torchlike._src.engine.record import SLOW
from torchlike._src.ops.declare import OPS
from torchlike._src.storage.storage import contiguous_strides
from torchlike._src.tensor import data_shapes, splits, views
from torchlike._src.tensor.addresses import address
from torchlike._src.tensor.arguments import whole_tuple
from torchlike._src.tensor.call import check_history, check_writable, count_write, write, write_out
from torchlike._src.tensor.creation import from_array, tensor
from torchlike._src.tensor.data_shapes import nonzero
from torchlike._src.tensor.data_shapes import stored as _out
from torchlike._src.tensor.publish import PUBLIC, add_operator, inplace_method, python_number, tensor_argument
from torchlike._src.tensor.tensor import Tensor, TensorBase

FIXED_EXPONENTS = {2, 3, 0.5, -0.5, -1, -2, 1, 0, 4, 1.5}
"""Exponents that become part of the program (x ** 2 is a product); others are data."""


def known(t: Tensor) -> Any:
    """The tensor's values if they are at hand: in host memory, or in an array that is ready. None otherwise: values
    still to be computed are not waited for."""
    array = t._s.value.array if t._view is None else (t._vv.array if t._vv is not None else None)
    if array is None or t._aval.device.type != "cpu":
        return None
    if type(array) is not np.ndarray:
        if getattr(array, "is_ready", None) is None or not array.is_ready():
            return None
        array = np.asarray(array)
    return array if array.shape == t._aval.shape else None


# -- arithmetic --------------------------------------------------------------------------------------------------------


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input + alpha * other, broadcast and promoted."""
    if type(alpha) is int and alpha == 1:
        return PUBLIC["add"](input, other, out=out)
    return _out(PUBLIC["_add_alpha"](input, other, alpha=alpha), out, "add", (input, other))


def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input - alpha * other, broadcast and promoted."""
    if type(alpha) is int and alpha == 1:
        return PUBLIC["sub"](input, other, out=out)
    return _out(PUBLIC["_sub_alpha"](input, other, alpha=alpha), out, "sub", (input, other))


def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """input / other; rounding_mode "trunc" or "floor" rounds the quotient."""
    if rounding_mode is None:
        return PUBLIC["div"](input, other, out=out)
    check_divisor(input, other)
    if rounding_mode == "trunc":
        result = PUBLIC["_div_trunc"](input, other)
    elif rounding_mode == "floor":
        result = PUBLIC["_div_floor"](input, other)
    else:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return _out(result, out, "div", (input, other))


def check_divisor(input: Any, other: Any) -> None:
    """PyTorch's error for an integer division by zero, where the divisor's values are at hand."""
    if isinstance(input, TensorBase):
        a = input._aval
        if a.dtype.is_floating_point or a.dtype.is_complex or not a.numel or a.device.type != "cpu":
            return
    elif isinstance(input, (float, complex)):
        return
    if not isinstance(other, Tensor):
        if type(other) in (int, bool) and other == 0:
            raise RuntimeError("ZeroDivisionError")
        return
    b = other._aval
    if b.dtype.is_floating_point or b.dtype.is_complex or not b.numel:
        return
    array = known(other)
    if array is not None and not array.all():
        raise RuntimeError("ZeroDivisionError")


def _integer_division(name: str) -> Any:
    def function(input: Any, other: Any, *, out: Any = None) -> Tensor:
        check_divisor(input, other)
        return PUBLIC[name](input, other, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPS[name].doc
    return function


floor_divide, remainder, fmod = (_integer_division(n) for n in ("floor_divide", "remainder", "fmod"))


def pow(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """input ** exponent. Small exponents that PyTorch treats apart (2, 3, 0.5, -1, …) compile to products."""
    if type(exponent) in (int, float) and exponent in FIXED_EXPONENTS and isinstance(input, TensorBase):
        return _out(PUBLIC["_pow_static"](input, exponent=exponent), out, "pow", (input,))
    return PUBLIC["pow"](input, exponent, out=out)


def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """input ** exponent in float64 or complex128."""
    return _out(PUBLIC["_float_power"](input, exponent), out, "float_power", (input, exponent))


def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Elements below `min` become `min`, those above `max` become `max` (numbers or tensors)."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if (isinstance(min, TensorBase) and max is not None and not isinstance(max, TensorBase)) or (
        isinstance(max, TensorBase) and min is not None and not isinstance(min, TensorBase)
    ):
        raise TypeError("clamp(): 'min' and 'max' must both be numbers or both be tensors")
    if max is None:
        result = PUBLIC["_clamp_above"](input, min)
    elif min is None:
        result = PUBLIC["_clamp_below"](input, max)
    else:
        result = PUBLIC["_clamp"](input, min, max)
    return _out(result, out, "clamp", (input,))


def clip(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Alias of clamp."""
    return clamp(input, min, max, out=out)


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where condition, else other; with one argument the indices of true elements."""
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not isinstance(condition, TensorBase):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition._aval.dtype is dt.uint8:
        condition = condition.bool()
    if not isinstance(input, TensorBase) and not isinstance(other, TensorBase):
        input = tensor(input)
    return (
        PUBLIC["where"](condition, input, other)
        if out is None
        else write_out(out, PUBLIC["where"](condition, input, other), "where", ())
    )


# -- reductions with several forms -------------------------------------------------------------------------------------


def _extremum(name: str) -> Any:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, out: Any = None) -> Any:
        if other is not None or isinstance(dim, TensorBase):
            return _out(PUBLIC[name + "imum"](input, dim if other is None else other), out, name, (input,))
        if dim is None:
            return _out(PUBLIC[f"_{name}_all"](input), out, name, (input,))
        result = PUBLIC[f"_{name}_dim"](input, dim, keepdim)
        if out is None:
            return result
        return type(result)(*(write_out(o, r, name, (input,)) for o, r in zip(out, result, strict=True)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{name}(input): the {name}imum; {name}(input, dim): (values, indices); {name}(input, other): elementwise."
    )
    return function


max = _extremum("max")
min = _extremum("min")


def _median(name: str) -> Any:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            return PUBLIC[f"_{name}_all"](input)
        return PUBLIC[f"_{name}_dim"](input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input), or (values, indices) along a dim."
    return function


median = _median("median")
nanmedian = _median("nanmedian")


def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """The vector norm of order p over `dim` (all by default); "fro" and "nuc" are matrix norms."""
    if isinstance(p, str) and p == "nuc":
        from torchlike._src.tensor.namespace import linalg

        return linalg.matrix_norm(input, "nuc", dim if dim is not None else (-2, -1), keepdim, dtype=dtype)
    order = 2 if p is None or p == "fro" else p
    if not (input._aval.dtype.is_floating_point or input._aval.dtype.is_complex) and dtype is None:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input._aval.dtype.scalar_name}"
        )
    from torchlike._src.tensor.namespace import linalg

    dims = dim if dim is None or isinstance(dim, int) or dim else None
    return _out(linalg.vector_norm(input, order, dims, keepdim, dtype=dtype), out, "norm", (input,))


def norm_method(self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """See torch.norm."""
    return norm(self, p, dim, keepdim, dtype=dtype)


# -- joining, composites -----------------------------------------------------------------------------------------------


def _at_least(n: int, name: str) -> Any:
    def one(t: Tensor) -> Tensor:
        d = t._aval.ndim
        if d >= n:
            return t
        if n == 1:
            return views.reshape(t, (1,))
        if n == 2:
            return views.reshape(t, (1, 1)) if d == 0 else views.unsqueeze(t, 0)
        if d == 0:
            return views.reshape(t, (1, 1, 1))
        return views.unsqueeze(views.unsqueeze(t, 0), -1) if d == 1 else views.unsqueeze(t, -1)

    def function(*tensors: Any) -> Any:
        if len(tensors) == 1:
            return one(tensors[0]) if isinstance(tensors[0], Tensor) else tuple(one(t) for t in tensors[0])
        return tuple(one(t) for t in tensors)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Tensors with at least {n} dimension(s)."
    return function


atleast_1d, atleast_2d, atleast_3d = _at_least(1, "atleast_1d"), _at_least(2, "atleast_2d"), _at_least(3, "atleast_3d")


def _some(name: str, tensors: Any) -> list:
    items = list(tensors)
    if not items:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return items


def hstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors joined along their second dimension (vectors along their only one)."""
    items = atleast_1d(_some("hstack", tensors))
    return _out(PUBLIC["cat"](items, 0 if items[0]._aval.ndim == 1 else 1), out, "hstack", items)


def vstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors joined along their first dimension, at least 2-d."""
    return _out(PUBLIC["cat"](atleast_2d(_some("vstack", tensors)), 0), out, "vstack", ())


def dstack(tensors: Any, *, out: Any = None) -> Tensor:
    """Tensors joined along their third dimension, at least 3-d."""
    return _out(PUBLIC["cat"](atleast_3d(_some("dstack", tensors)), 2), out, "dstack", ())


def column_stack(tensors: Any, *, out: Any = None) -> Tensor:
    """Vectors as columns, matrices as they are, joined along the second dimension."""
    items = [views.reshape(t, (t._aval.numel, 1)) if t._aval.ndim <= 1 else t for t in _some("column_stack", tensors)]
    return _out(PUBLIC["cat"](items, 1), out, "column_stack", ())


def _splitter(name: str, dim: Any, least: int) -> Any:
    def function(input: Tensor, indices_or_sections: Any) -> tuple:
        n = input._aval.ndim
        if n < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a "
                f"tensor with {n} dimensions!"
            )
        d = dim(n)
        if isinstance(indices_or_sections, int) and (
            not indices_or_sections or input._aval.shape[d] % indices_or_sections
        ):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension "
                f"{input._aval.shape[d]} is not divisible by the split_size {indices_or_sections}!"
            )
        return splits.tensor_split(input, indices_or_sections, d)

    function.__name__ = function.__qualname__ = name
    return function


hsplit = _splitter("hsplit", lambda n: 0 if n == 1 else 1, 1)
vsplit = _splitter("vsplit", lambda n: 0, 2)
dsplit = _splitter("dsplit", lambda n: 2, 3)


def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple:
    """chunk, without the in-place check on its views."""
    return splits.chunk(input, chunks, dim)


def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple:
    """split, without the in-place check on its views."""
    return splits.split(input, split_size, dim)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids of vectors."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing is None:
        import warnings

        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=2
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    items = list(tensors)
    swap = indexing == "xy" and len(items) >= 2
    if swap:
        items[0], items[1] = items[1], items[0]
    shape = tuple(t._aval.numel for t in items)
    grids = []
    for k, t in enumerate(items):
        grids.append(views.expand(views.reshape(t, (*[1] * k, -1, *[1] * (len(items) - k - 1))), shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shapes(*[t._aval.shape for t in tensors])
    return tuple(t if t._aval.shape == shape else views.expand(t, shape) for t in tensors)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of elements of vectors, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    return PUBLIC["stack"]([views.reshape(g, (-1,)) for g in meshgrid(*tensors, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All r-element combinations of a vector's elements, one a row."""
    import itertools

    if input._aval.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._aval.shape)}")
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(pick(range(input._aval.numel), r)), np.int64).reshape(-1, r)
    return input[from_array(rows)]


def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the tensors as blocks on its diagonal."""
    items = [atleast_2d(t if isinstance(t, TensorBase) else tensor(t)) for t in tensors]
    width = sum(t._aval.shape[1] for t in items)
    rows, left = [], 0
    from torchlike._src.tensor.namespace import F

    for t in items:
        n = t._aval.shape[1]
        rows.append(F.pad(t, (left, width - left - n)))
        left += n
    return PUBLIC["cat"](rows, 0)


# -- comparison of whole tensors ---------------------------------------------------------------------------------------


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size and elements."""
    if input._aval.shape != other._aval.shape:
        return False
    return bool(np.array_equal(input._host(), other._host()))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """|input - other| <= atol + rtol * |other|, elementwise."""
    tensor_argument(input, "isclose", "self", 1)
    tensor_argument(other, "isclose", "other", 2)
    if input._aval.dtype is not other._aval.dtype:
        raise RuntimeError(f"{input._aval.dtype.scalar_name} did not match {other._aval.dtype.scalar_name}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance:g}")
    a, b = input.detach()._host(), other.detach()._host()
    if a.dtype.kind not in "biufc":
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        close = a == b
        if equal_nan and a.dtype.kind in "fc":
            close |= np.isnan(a) & np.isnan(b)
        if a.dtype.kind == "b":
            return from_array(np.asarray(close))
        wide = a.astype(np.float64) if a.dtype.kind in "iu" else a
        allowed = atol + np.abs(rtol * b)
        error = np.abs(wide - b)
        close |= np.isfinite(error) & (error <= allowed)
    return from_array(np.asarray(close))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close; see isclose."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._host().all())


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return input._aval.shape == other._aval.shape


# -- queries -----------------------------------------------------------------------------------------------------------


def is_tensor(obj: Any) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, TensorBase)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return input._aval.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input._aval.dtype.is_complex


def is_nonzero(input: Tensor) -> bool:
    """Whether a one-element tensor is not zero."""
    return bool(input)


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative values."""
    return input._aval.dtype.is_signed


def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode."""
    return input._is_inference


def is_conj(input: Tensor) -> bool:
    """Whether the conjugate bit is set: never here, conjugation is computed."""
    return False


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input._aval.numel


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """The dtype that an operation on both would have."""
    parts = [
        (x._aval.dtype, x._aval.ndim) if isinstance(x, TensorBase) else type(python_number(x))
        for x in (tensor1, tensor2)
    ]
    return promotion.result_type(parts)


def element_size(self: Tensor) -> int:
    """Bytes per element."""
    return self._aval.dtype.itemsize


def data_ptr(self: Tensor) -> int:
    """The address of the first element: equal for tensors that start at the same element of one storage.

    On the CPU it can be read from; what is written there does not reach the tensor, unless its memory is that of a
    NumPy array in use elsewhere. Asking again after a write gives the same address, with the new contents."""
    if not self._aval.numel or self._aval.device.type == "meta":
        return 0
    return address(self._s) + self.storage_offset() * self._aval.dtype.itemsize


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same view of the same memory."""
    return self._s is tensor._s and views.geometry(self) == views.geometry(tensor)


# -- in-place and copies -----------------------------------------------------------------------------------------------


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Take the memory of another tensor or of a storage (with another geometry), or none at all."""
    if source is None:
        new = from_array(np.zeros(0, self._aval.dtype.np), self._aval.dtype)
    elif isinstance(source, Tensor):
        new = source
    elif hasattr(source, "_storage"):
        new = from_array(np.zeros(0, self._aval.dtype.np), self._aval.dtype)
        new._s, new._aval = source._storage, source._storage.value.aval
        if size is None:
            new = views.reshape(new, (-1,))
    else:
        raise TypeError(f"set_(): argument 'source' must be a tensor or a storage, not {type(source).__name__}")
    if new._aval.dtype is not self._aval.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {new._aval.dtype.cpp_name} to a tensor of type {self._aval.dtype.cpp_name}"
        )
    if size is not None:
        shape = views.sizes((size,))
        new = views.as_strided(
            new.detach(), shape, contiguous_strides(shape) if stride is None else stride, storage_offset
        )
    elif storage_offset:
        raise NotImplementedError("torchlike: Tensor.set_ with an offset and no size")
    self.data = new.detach()
    return self


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Another size, keeping the first elements (new ones are zero)."""
    shape = whole_tuple("resize_", sizes)
    if shape == self._aval.shape:
        return self
    if self._rg:
        raise RuntimeError("cannot resize variables that require grad")
    old = self._host().reshape(-1)
    new = np.zeros(math.prod(shape), old.dtype)
    n = len(old) if len(old) < len(new) else len(new)
    new[:n] = old[:n]
    self.data = from_array(new.reshape(shape), self._aval.dtype)
    return self


def resize_as_(self: Tensor, tensor: Tensor, memory_format: Any = None) -> Tensor:
    """resize_ to the size of another tensor."""
    return resize_(self, tensor._aval.shape)


def _inplace_view(function: Any, name: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self._rg:
            check_history(self)
        new = function(self, *args, **kwargs)
        self._view, self._aval = new._view, new._aval
        self._vb = self._vv = None
        if new._gf is not None:
            node = new._gf
            node.relabel(re.sub(r"\d$", lambda m: str(int(m[0]) + (3 if name == "squeeze_" else 1)), node.name()))
            self._gf = node
        count_write(self)
        self._vversion = self._s.version
        return self

    method.__name__ = name
    method.__doc__ = (
        f"{name.removesuffix('_')}, changing this tensor's own geometry; other tensors of its memory keep theirs."
    )
    return method


def apply_(self: Tensor, callable: Any) -> Tensor:
    """Apply a Python function to each element, in place. Slow; for CPU tensors."""
    a = self._host()
    flat = np.array([callable(x) for x in a.reshape(-1).tolist()]).reshape(a.shape)
    check_writable(self, False)
    return write(self, from_array(flat.astype(a.dtype), self._aval.dtype))


def map_(self: Tensor, tensor: Tensor, callable: Any) -> Tensor:
    """Apply a Python function to each pair of elements, in place. Slow."""
    a, b = np.broadcast_arrays(self._host(), tensor._host())
    flat = np.array([callable(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True)])
    check_writable(self, False)
    return write(self, from_array(flat.reshape(a.shape).astype(a.dtype), self._aval.dtype))


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value` where `mask` is true."""
    if isinstance(value, TensorBase) and value._aval.ndim:
        raise RuntimeError(
            f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value._aval.ndim} "
            "dimension(s)."
        )
    return PUBLIC["masked_fill"](input, mask, value)


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like `input` of one number."""
    from torchlike._src.tensor.factories import full_like

    if isinstance(value, TensorBase):
        if value._aval.ndim:
            raise RuntimeError(
                f"fill only supports 0-dimension value tensor but got tensor with {value._aval.ndim} dimensions."
            )
        if (value._rg and MODE.enabled) or (SLOW and dual_of(value._read()) is not None):
            return PUBLIC["where"](full_like(input.detach(), 1, dtype=dt.bool_), value.to(input._aval.dtype), input)
        value = value.detach()
        return views.expand(value.to(input._aval.dtype), input._aval.shape).clone()
    if input._rg and MODE.enabled:
        return PUBLIC["masked_fill"](input, full_like(input.detach(), 1, dtype=dt.bool_), value)
    return full_like(input, value)


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products of operands' elements, by the Einstein convention: einsum("ij,jk->ik", a, b)."""
    if not isinstance(equation, str):
        # Sublist form: operand, its dims, operand, its dims, …, output dims.
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        items = [equation, *operands]

        def text(dims: Any) -> str:
            return "".join("..." if d is Ellipsis else letters[d] for d in dims)

        tensors = items[0::2] if len(items) % 2 == 0 else items[:-1:2]
        terms = [text(d) for d in items[1::2]]
        equation = ",".join(terms) + ("->" + text(items[-1]) if len(items) % 2 else "")
        operands = tuple(tensors)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return PUBLIC["_einsum"](equation, operands)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Any = None) -> Tensor:
    """Contract dimensions of a with dimensions of b: dims is how many, or a pair of lists."""
    if isinstance(dims, TensorBase):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > a._aval.ndim or dims > b._aval.ndim:
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        da: Any = range(-dims, 0)
        db: Any = range(dims)
    else:
        da, db = ([d] if isinstance(d, int) else d for d in dims)
    return _out(PUBLIC["_tensordot"](a, b, tuple(da), tuple(db)), out, "tensordot", (a, b))


def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """The product of several matrices."""
    from torchlike._src.tensor.namespace import linalg

    return _out(linalg.multi_dot(list(matrices)), out, "chain_matmul", ())


TORCH_FUNCTIONS = (
    "add", "sub", "div", "floor_divide", "remainder", "fmod", "pow", "float_power", "clamp", "clip", "where", "max",
    "min", "median", "nanmedian", "norm", "nonzero", "argwhere", "masked_select", "masked_scatter", "unique",
    "unique_consecutive", "bincount", "repeat_interleave", "histogram", "atleast_1d", "atleast_2d", "atleast_3d",
    "hstack", "vstack", "dstack", "column_stack", "hsplit", "vsplit", "dsplit", "unsafe_chunk", "unsafe_split",
    "meshgrid", "broadcast_tensors", "cartesian_prod", "combinations", "block_diag", "equal", "isclose", "allclose",
    "is_same_size", "is_tensor", "is_floating_point", "is_complex", "is_nonzero", "is_signed", "is_inference",
    "is_conj", "numel", "result_type", "masked_fill", "fill", "einsum", "tensordot", "chain_matmul",
)  # fmt: skip
METHODS = (
    "add", "sub", "div", "floor_divide", "remainder", "fmod", "pow", "float_power", "clamp", "clip", "max", "min",
    "median", "nanmedian", "nonzero", "argwhere", "masked_select", "masked_scatter", "unique", "unique_consecutive",
    "bincount", "repeat_interleave", "histogram", "hsplit", "vsplit", "dsplit", "equal", "isclose", "allclose",
    "is_same_size", "is_floating_point", "is_complex", "is_nonzero", "is_signed", "is_inference", "is_conj",
    "masked_fill", "element_size", "data_ptr", "is_set_to", "set_", "resize_", "resize_as_", "apply_", "map_",
    "unsafe_chunk", "unsafe_split",
)  # fmt: skip
INPLACE = (
    "add",
    "sub",
    "div",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "float_power",
    "clamp",
    "clip",
    "masked_fill",
    "masked_scatter",
)
ALIASES = {
    "subtract": "sub", "divide": "div", "true_divide": "div", "concat": "cat", "concatenate": "cat",
    "row_stack": "vstack",
}  # fmt: skip
SPECIAL_ALIASES = {
    "expit": "sigmoid", "psi": "digamma", "gammaln": "lgamma", "multigammaln": "mvlgamma", "gammainc": "igamma",
    "gammaincc": "igammac",
}  # fmt: skip
INPLACE_VIEWS = {
    "t_": views.t, "transpose_": views.transpose, "swapaxes_": views.transpose, "swapdims_": views.transpose,
    "squeeze_": views.squeeze, "unsqueeze_": views.unsqueeze,
}  # fmt: skip


def _activation(name: str) -> Any:
    """An activation with `inplace=`, which the declared operator does not have."""
    function = PUBLIC[name]
    signature = inspect.signature(function)
    names = [n for n in signature.parameters if n != "out"]
    defaults = ", ".join(
        n if signature.parameters[n].default is inspect.Parameter.empty else f"{n}={signature.parameters[n].default!r}"
        for n in names
    )
    source = (
        f"def {name}({defaults}, inplace=False):\n"
        f"    if not inplace: return _function({', '.join(names)})\n"
        f"    return _store(input, _function({', '.join(names)}))\n"
    )
    scope: dict[str, Any] = {"_function": function, "_store": _store_activation}
    exec(compile(source, f"<torchlike {name}>", "exec"), scope)
    out = scope[name]
    out.__doc__ = function.__doc__
    out.__module__ = "torch.nn.functional"
    return out


def _store_activation(input: Tensor, new: Tensor) -> Tensor:
    check_writable(input, new._rg)
    return write(input, new)


ACTIVATIONS = (
    "threshold", "relu", "relu6", "hardtanh", "hardswish", "hardsigmoid", "elu", "selu", "celu", "leaky_relu", "silu",
    "mish",
)  # fmt: skip


def install_after(torch: dict[str, Any], functional: dict[str, Any], special: dict[str, Any]) -> None:
    """What wraps or renames generated functions: runs after they are published."""
    for name in ACTIVATIONS:
        if name in PUBLIC:
            functional[name] = _activation(name)
    for name, original in SPECIAL_ALIASES.items():
        if original in PUBLIC:
            special.setdefault(name, PUBLIC[original])
    for name in ("sigmoid", "tanh", "pad", "one_hot", "softmax", "log_softmax", "softmin"):
        if name in PUBLIC:
            functional.setdefault(name, PUBLIC[name])
    for name in ("ldexp_", "gcd_", "lcm_", "xlogy_"):
        if hasattr(Tensor, name):
            torch.setdefault(name, getattr(Tensor, name))
    Tensor.polygamma = lambda self, n: PUBLIC["polygamma"](n, self)
    Tensor.polygamma_ = inplace_method(Tensor.polygamma, "polygamma_")
    torch.setdefault("row_stack", vstack)


def install(torch: dict[str, Any]) -> None:
    """Put this page's functions and methods into the namespace and Tensor, before the generated ones."""
    here = {**vars(data_shapes), **globals()}
    for name in TORCH_FUNCTIONS:
        torch[name] = here[name]
        here[name].__module__ = "torch"
    for name in METHODS:
        setattr(Tensor, name, here[name])
    Tensor.norm = norm_method
    for name in INPLACE:
        setattr(Tensor, name + "_", inplace_method(here[name], name + "_"))
        if name in ("clamp", "clip"):
            torch[name + "_"] = getattr(Tensor, name + "_")
    for name in ("subtract", "divide", "true_divide"):
        source = ALIASES[name]
        torch[name] = here[source]
        setattr(Tensor, name, here[source])
        setattr(Tensor, name + "_", getattr(Tensor, source + "_"))
    for name, function in (("floordiv", floor_divide), ("mod", remainder)):
        add_operator(f"__{name}__", function)
        add_operator(f"__r{name}__", function)
    for name, function in INPLACE_VIEWS.items():
        setattr(Tensor, name, _inplace_view(function, name))
    Tensor.where = lambda self, condition, other: where(condition, self, other)
    torch["broadcast_shapes"] = public_broadcast_shapes
    torch["promote_types"] = promotion.promote_types
    torch["can_cast"] = promotion.can_cast
    torch["finfo"], torch["iinfo"] = info.finfo, info.iinfo
