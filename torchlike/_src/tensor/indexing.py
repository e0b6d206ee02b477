"""x[...] and x[...] = y: basic indexing as views, advanced indexing as gathers and scatters, with PyTorch's rules.

Integers and slice starts are data: a loop over x[i] compiles nothing new."""

import operator
import warnings
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.ops.declare import OPS
from torchlike._src.ops.indexing import check_index_values
from torchlike._src.tensor.call import apply, check_writable, write
from torchlike._src.tensor.conversion import copy_, fill_
from torchlike._src.tensor.creation import array_from, check_number, from_array
from torchlike._src.tensor.tensor import HOST_VIEW, SharedStorage, Tensor, TensorBase
from torchlike._src.tensor.views import expand, geometry, make_view, ops, reshape, select_view, slice_view, unsqueeze

INDEX: Any = OPS["_index"]
INDEX_PUT: Any = OPS["_index_put"]

BAD_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {kind})"
)


def getitem(self: Tensor, index: Any) -> Tensor:
    """x[index]. HOT for an int, a slice and a tuple of these."""
    if type(index) is int:
        return _select(self, 0, index)
    view, tensors = basic(self, index)
    if tensors is None:
        return view
    return gather(view, tensors)


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """x[index] = value."""
    if not isinstance(value, TensorBase):
        value = _number(self, value)
    if type(index) is int:
        view, tensors = _select(self, 0, index), None
    else:
        if type(index) is slice:
            index = (index,)
        if _masked_put(self, index, value):
            return
        view, tensors = basic(self, index, alias=False)
    if tensors is None:
        assign(view, value)
        return
    put(view, tensors, value)


def _number(self: Tensor, value: Any) -> Any:
    """A Python number to be assigned; PyTorch takes NumPy's integers, but no other sequences and scalars."""
    if isinstance(value, (bool, int, float, complex)):
        if isinstance(value, complex) and not self._aval.dtype.is_complex:
            check_number(value, self._aval.dtype)
        return value
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"can't assign a {_type_name(value)} to a {self.type()}")


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


MASKED_FILL = OPS["masked_fill"]


def _masked_put(self: Tensor, index: Any, value: Any) -> bool:
    """x[mask] = one number, or x[..., mask, ...]: a select, so that the mask need not be read. False if it is not
    that."""
    if isinstance(value, TensorBase) and value._aval.numel != 1:
        return False
    parts = index if type(index) is tuple else (index,)
    at = None
    consumed = 0
    for k, i in enumerate(parts):
        kind = type(i)
        if isinstance(i, TensorBase) and i._aval.dtype in MASKS and i._aval.ndim:
            if at is not None:
                return False
            at = k
            consumed += i._aval.ndim
        elif kind is int or kind is slice:
            consumed += 1
        elif i is not None and i is not Ellipsis:
            return False
    if at is None or consumed > self._aval.ndim:
        return False
    mask = parts[at]
    n = mask._aval.ndim
    dim = 0
    for i in parts[:at]:
        if i is Ellipsis:
            dim += self._aval.ndim - consumed
        elif type(i) is not int:
            dim += 1
    view, _ = basic(self, (*parts[:at], *[slice(None)] * n, *parts[at + 1 :]), alias=False)
    shape = view._aval.shape
    if mask._aval.shape != shape[dim : dim + n] or mask._aval.device != view._aval.device:
        return False
    a = view._aval
    if isinstance(value, Tensor):
        if value._aval.dtype.is_complex and not a.dtype.is_complex:
            check_number(value.item(), a.dtype)
        value = reshape(value, ()).to(a.device, a.dtype)
    elif a.dtype.category == dt.INT:
        value = int(value)
    elif a.dtype is dt.bool_:
        value = bool(value)
    check_writable(view, isinstance(value, TensorBase) and value._rg)
    if mask._aval.dtype is not dt.bool_:
        _warn_of_uint8()
        mask = mask.to(dt.bool_)
    mask = reshape(mask, (*mask._aval.shape, *[1] * (len(shape) - dim - n)))
    new = apply(MASKED_FILL, (), (view, mask, value))
    if new._gf is not None:
        new._gf.relabel("IndexPutBackward0")
    write(view, new, fit=False)
    return True


def _warn_of_uint8() -> None:
    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", stacklevel=4
    )


def _select(t: Tensor, d: int, k: int) -> Tensor:
    shape = t._aval.shape
    if not shape:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    n = shape[d]
    if not -n <= k < n:
        raise IndexError(f"index {k} is out of bounds for dimension {d} with size {n}")
    return select_view(t, d, k + n if k < 0 else k)


def _is_sequence_of_indices(index: Any) -> bool:
    """Whether a list is short-hand for a tuple, as old NumPy had it (a short list holding slices, sequences,
    tensors)."""
    if len(index) >= 32:
        return False
    kinds = (slice, type(Ellipsis), type(None), list, tuple, range, str, np.ndarray, TensorBase)
    return any(isinstance(i, kinds) for i in index)


def basic(self: Tensor, index: Any, alias: bool = True) -> tuple[Tensor, list | None]:
    """Apply the basic part of an index. (view, None), or (view, one entry per leading dim: index tensor or None).

    alias: whether the result must be a new tensor (it may be `self`, to be written to, otherwise)."""
    if type(index) is not tuple:
        if type(index) is slice and self._aval.shape:
            return _slice(self, 0, index, whole=True), None
        if isinstance(index, list) and _is_sequence_of_indices(index):
            index = tuple(index)
        else:
            index = (index,)
    consumed = 0
    for i in index:
        if i is None or i is Ellipsis or isinstance(i, bool):
            continue
        if isinstance(i, TensorBase) and i._aval.dtype in MASKS:
            consumed += i._aval.ndim
        elif isinstance(i, np.ndarray) and i.dtype in (np.bool_, np.uint8):
            consumed += i.ndim
        else:
            consumed += 1
    ndim = self._aval.ndim
    if consumed > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    t = self
    d = 0
    original = 0  # the dimension as error messages name it: new ones count
    tensors: list = []
    advanced = False
    for i in index:
        kind = type(i)
        if kind is int:
            n = t._aval.shape[d]
            if not -n <= i < n:
                raise IndexError(f"index {i} is out of bounds for dimension {original} with size {n}")
            t = select_view(t, d, i + n if i < 0 else i)
            original += 1
        elif kind is slice:
            t = _slice(t, d, i)
            d += 1
            original += 1
            tensors.append(None)
        elif i is None:
            t = unsqueeze(t, d)
            d += 1
            original += 1
            tensors.append(None)
        elif i is Ellipsis:
            skip = ndim - consumed
            d += skip
            original += skip
            tensors.extend([None] * skip)
        elif kind is bool:
            t = unsqueeze(t, d)
            tensors.append(from_array(np.zeros(1 if i else 0, np.int64)))
            advanced = True
            d += 1
            original += 1
        elif isinstance(i, Tensor):
            a = i._aval
            if a.dtype in MASKS:
                for m in mask_indices(i, t._aval.shape, d):
                    tensors.append(m)
                    d += 1
                original += a.ndim
                advanced = True
                if a.ndim == 0:
                    t = unsqueeze(t, d)
                    tensors.append(from_array(np.zeros(int(bool(i)), np.int64)))
                    d += 1
            elif a.dtype.category != dt.INT or (a.ndim and a.dtype not in WIDE):
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
            elif a.ndim == 0 and (advanced or _concrete(i) or not _last(index, i)):
                # A pending index alone is not read: it is an index tensor, of the same result.
                n = t._aval.shape[d]
                k = int(i._host())
                if not -n <= k < n:
                    raise IndexError(f"index {k} is out of bounds for dimension {original} with size {n}")
                t = select_view(t, d, k + n if k < 0 else k)
                original += 1
            else:
                tensors.append(i)
                advanced = True
                d += 1
                original += 1
        else:
            try:
                k = operator.index(i)
            except TypeError:
                pass
            else:
                t = _select_checked(t, d, k, original)
                original += 1
                continue
            i = sequence_index(i)
            if i._aval.dtype in MASKS:
                for m in mask_indices(i, t._aval.shape, d):
                    tensors.append(m)
                    d += 1
                original += i._aval.ndim
            else:
                tensors.append(i)
                d += 1
                original += 1
            advanced = True
    if not advanced:
        if t is self and alias:
            t = make_view(
                self, ops.RESHAPE, (("shape", self._aval.shape),), (), *geometry(self), label="AliasBackward0"
            )
        return t, None
    return t, tensors


MASKS = {dt.bool_, dt.uint8}
WIDE = {dt.int64, dt.int32}


def _last(index: tuple, i: Tensor) -> bool:
    """Whether no tensor or sequence comes after `i`."""
    rest = index[[j is i for j in index].index(True) + 1 :]
    return all(j is None or j is Ellipsis or type(j) in (int, slice) for j in rest)


def _concrete(i: Tensor) -> bool:
    """Whether reading an index tensor costs nothing: it lies in host memory."""
    return i._view is None and type(i._s.value.array) is np.ndarray


def _select_checked(t: Tensor, d: int, k: int, original: int) -> Tensor:
    n = t._aval.shape[d]
    if not -n <= k < n:
        raise IndexError(f"index {k} is out of bounds for dimension {original} with size {n}")
    return select_view(t, d, k + n if k < 0 else k)


def _bound(x: Any) -> Any:
    if x is None or type(x) is int:
        return x
    try:
        return operator.index(x)
    except TypeError:
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _slice(t: Tensor, d: int, i: slice, whole: bool = False) -> Tensor:
    """One slice; `whole`: a view even if it takes everything."""
    step = 1 if i.step is None else _bound(i.step)
    if step <= 0:
        raise ValueError("step must be greater than zero" if step else "slice step cannot be zero")
    n = t._aval.shape[d]
    start, stop, _ = slice(_bound(i.start), _bound(i.stop), step).indices(n)
    length = max(0, -(-(stop - start) // step))
    if length == n and step == 1 and not whole:
        return t
    return slice_view(t, d, start, length, step)


def sequence_index(i: Any) -> Tensor:
    """A list, NumPy array or range as an index tensor."""
    if isinstance(i, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(i).__name__}'")
    if isinstance(i, np.ndarray):
        if i.dtype.kind not in "iubf":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        array = i
    else:
        try:
            if not hasattr(i, "__getitem__") or isinstance(i, dict) or isinstance(i, np.generic):
                raise TypeError
            items = list(i) if not isinstance(i, (list, tuple)) else i
        except TypeError:
            raise IndexError(BAD_INDEX.format(kind=_type_name(i))) from None
        if not len(items):
            return from_array(np.zeros(0, np.int64))
        if all(type(k) is int for k in items):
            return from_array(np.array(items, np.int64))
        if any(isinstance(k, TensorBase) for k in items):
            array = np.array([k.tolist() if isinstance(k, TensorBase) else k for k in items])
        else:
            array = array_from(items, None)
            if array.dtype.kind == "c":
                raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if array.dtype == np.bool_ or array.dtype == np.uint8:
        return from_array(np.array(array))
    return from_array(array.astype(np.int64))


def mask_indices(mask: Tensor, shape: tuple, d: int) -> list[Tensor]:
    """A boolean mask as index tensors, one for each of its dimensions. Reads the mask: its count is a shape."""
    a = mask._aval
    for k, n in enumerate(a.shape):
        have = shape[d + k] if d + k < len(shape) else None
        if n != have:
            raise IndexError(
                f"The shape of the mask {list(a.shape)} at index {k} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {d + k}"
            )
    if a.dtype is dt.uint8:
        _warn_of_uint8()
    if a.device.type == "meta":
        raise NotImplementedError("torchlike: indexing with a mask on the meta device has no known shape")
    if a.ndim == 0:
        return []
    return [from_array(np.ascontiguousarray(k), device=a.device) for k in np.nonzero(mask._host())]


def _prepare(view: Tensor, tensors: list) -> tuple[list[Tensor], tuple[bool, ...]]:
    layout = tuple([i is not None for i in tensors])
    found = [i for i in tensors if i is not None]
    while layout and not layout[-1]:
        layout = layout[:-1]
    indices = []
    for i in found:
        if i._aval.dtype is not dt.int64 and i._aval.dtype is not dt.int32:
            i = i.to(dt.int64)
        if i._aval.device != view._aval.device and i._aval.device.type == "cpu":
            i = i.to(view._aval.device)
        indices.append(i)
    return indices, layout


def known_values(tensors: list) -> list:
    """The index tensors' values where they lie in host memory (None elsewhere): what can be checked now."""
    out = []
    for i in tensors:
        value = i._read() if i._view is None or i._vb is not None else None
        array = None if value is None else value.array
        if array is not None and type(array) is not np.ndarray:
            array = np.asarray(array) if getattr(array, "is_ready", None) and array.is_ready() else None
        out.append(array)
    return out


def check_empty(a: Any, layout: tuple[bool, ...], indices: list[Tensor]) -> bool:
    """Whether the indexed tensor is empty, so that no index is looked at; IndexError if one has nothing to pick
    from."""
    if a.numel:
        return False
    if any(a.shape[d] == 0 for d, here in enumerate(layout) if here) and all(i._aval.numel for i in indices):
        raise IndexError("index is out of bounds for dimension with size 0")
    return True


def gather(view: Tensor, tensors: list) -> Tensor:
    """Advanced indexing of a tensor."""
    indices, layout = _prepare(view, tensors)
    arrays = known_values(indices)
    a = view._aval
    INDEX.check(input=a, indices=tuple(i._aval for i in indices), layout=layout)
    if not check_empty(a, layout, indices):
        check_index_values("_index", {"input": a, "indices": tuple(i._aval for i in indices), "layout": layout}, arrays)
    if (
        not view._rg
        and view._view is None
        and a.numel >= HOST_VIEW
        and None not in arrays_known(arrays)
        and a.device.type == "cpu"
    ):
        base = view._s.shared if type(view._s) is SharedStorage else view._s.value.array
        if type(base) is np.ndarray:
            # A batch out of a data set in host memory: gather it here rather than pass the data set to a program.
            source = iter(arrays)
            picked = base[tuple(next(source) if here else slice(None) for here in layout)]
            if picked.size * 2 <= a.numel:
                return from_array(np.ascontiguousarray(picked).reshape(picked.shape), a.dtype)
    return apply(INDEX, (layout, (-1, len(indices))), (view, *indices))


def arrays_known(arrays: list) -> list:
    return [None if a is None else True for a in arrays]


def assign(view: Tensor, value: Any) -> None:
    """view[...] = value for a basic index."""
    if isinstance(value, Tensor):
        a, b = view._aval, value._aval
        if b.shape != a.shape:
            value = _fit_value(value, a.shape)
        copy_(view, value)
    else:
        fill_(view, value)


def _fit_value(value: Tensor, shape: tuple) -> Tensor:
    given = value._aval.shape
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    if given != value._aval.shape:
        value = reshape(value, given)
    lead = len(shape) - len(given)
    if lead < 0 or any(a not in (1, b) for a, b in zip(given, shape[lead:], strict=True)):
        return expand(value, shape)  # raises PyTorch's message
    return value


def put(view: Tensor, tensors: list, value: Any, accumulate: bool = False) -> None:
    """view[tensors] = value for an advanced index."""
    indices, layout = _prepare(view, tensors)
    a = view._aval
    if not isinstance(value, TensorBase):
        value = from_array(array_from(value, a.dtype), a.dtype, a.device)
    if value._aval.device != a.device and value._aval.ndim == 0:
        value = value.to(a.device)
    check_writable(view, value._rg)
    avals = tuple(i._aval for i in indices)
    INDEX_PUT.check(input=a, indices=avals, values=value._aval, accumulate=accumulate, layout=layout)
    if not check_empty(a, layout, indices):
        known = {"input": a, "indices": avals, "values": value._aval, "accumulate": accumulate, "layout": layout}
        check_index_values("_index_put", known, known_values(indices))
    new = apply(INDEX_PUT, (accumulate, layout, (-1, len(indices), -1)), (view, *indices, value))
    write(view, new, fit=False)


def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """self[indices] = values (added where accumulate)."""
    tensors = _put_indices(self, indices)
    put(self, tensors, values, accumulate)
    return self


def _put_indices(self: Tensor, indices: Any) -> list:
    tensors: list = []
    d = 0
    for i in indices:
        if i is None:
            tensors.append(None)
            d += 1
        elif i._aval.dtype in MASKS:
            found = mask_indices(i, self._aval.shape, d)
            tensors += found
            d += len(found)
        else:
            tensors.append(i)
            d += 1
    return tensors


def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with values at `indices`."""
    out = input.clone()
    return index_put_(out, indices, values, accumulate)
