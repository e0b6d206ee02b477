"""Making tensors from Python and NumPy data, and what every way of making one stands on."""

import functools
import math
import os
import warnings
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.device import default_device
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import default_dtype, require_numpy
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.promotion import promote_types
from torchlike._src.engine import META_ARRAY, Value, record
from torchlike._src.engine.record import current
from torchlike._src.ops.kernels import FILL
from torchlike._src.storage import Storage
from torchlike._src.tensor.call import cast_to
from torchlike._src.tensor.tensor import Tensor, TensorBase, share, wrap
from torchlike._src.tensor.views import sizes

HOST_FILL = 1 << 16
"""Filled tensors up to this size are made in host memory at once; larger ones by the program that uses them."""


def resolve_device(device: Any) -> Device:
    """The device meant by an argument; RuntimeError/AssertionError for one that this machine lacks."""
    if device is None:
        return default_device()
    d = Device(device)
    if d.type == "cpu":
        return d if d.index is None else Device("cpu")
    if d.type == "meta":
        return d if d.index is None else Device("meta")
    from torchlike._src.tensor.devices import check_device

    return check_device(d)


def check_layout(layout: Any) -> None:
    if layout is not None and "strided" not in repr(layout):
        raise NotImplementedError(f"torchlike has no tensors of layout {layout}; only torch.strided")


def from_array(
    array: np.ndarray, dtype: DType | None = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor that owns `array` (which nobody else may write to)."""
    a = aval(array.shape, dt.from_numpy(array.dtype) if dtype is None else dtype, resolve_device(device))
    return finish(from_value(a, array), requires_grad)


def from_value(a: Any, array: np.ndarray) -> Tensor:
    if a.device.type == "meta":
        t = wrap(Value(a, META_ARRAY))
    elif a.device.type == "cpu":
        t = wrap(Value(a, array))
    else:
        from torchlike._src.tensor.devices import place

        t = wrap(Value(a, place(array, a.device)))
    if MODE.inference:
        t._is_inference = True
    return t


def finish(t: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        dtype = t._aval.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t._rg = True
    return t


# -- from data ---------------------------------------------------------------------------------------------------------


def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new leaf tensor with a copy of `data`: a number, nested sequences, a NumPy array or a tensor."""
    if isinstance(data, TensorBase):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        out = wrap(data.detach().clone()._read()) if dtype is None else wrap(cast_to(data.detach(), dtype)._read())
        if device is not None and resolve_device(device) != out._aval.device:
            out = out.to(device)
        return finish(out, requires_grad)
    array = array_from(data, dtype)
    return from_array(array, dtype, device, requires_grad)


def array_from(data: Any, dtype: DType | None) -> np.ndarray:
    """A new NumPy array in the dtype that torch.tensor would choose."""
    target = None if dtype is None else require_numpy(dtype)
    kind = type(data)
    if kind is float:
        if target is not None and target.kind in "iu":
            check_element(data, target)
        return np.array(data).astype(target or default_dtype().np)
    if kind is bool:
        return np.array(data, target or np.bool_)
    if kind is int:
        if target is not None:
            return integer_array(data, target)
        return integer_array(data, np.dtype(np.int64))
    if kind is complex:
        if target is not None and target.kind not in "cb":
            raise TypeError(NOT_COMPLEX[target.kind in "iu"])
        return np.array(data, target or dt.default_complex_dtype().np)
    if isinstance(data, np.ndarray):
        array = data
        if target is None:
            dt.from_numpy(array.dtype)  # TypeError for strings, objects, …
        return cast_host(np.array(array, copy=True), target)
    if isinstance(data, np.generic):
        return cast_host(np.array(data), target)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, dict) or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        if hasattr(data, "__array__"):
            return cast_host(np.array(data), target)
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    return sequence_array(data, target)


def integer_array(data: int, target: np.dtype) -> np.ndarray:
    if not -(1 << 63) <= data < 1 << 64 or (data >= 1 << 63 and target.kind != "u"):
        if target.kind in "fc":
            return np.array(float(data), target)
        raise ValueError("Overflow when unpacking long long")
    if target.kind in "iu" and target.itemsize < 8:
        check_element(data, target)
    return np.array(data).astype(target)


NOT_COMPLEX = ("must be real number, not complex", "'complex' object cannot be interpreted as an integer")


def check_element(data: Any, target: np.dtype) -> None:
    """RuntimeError if a number does not fit in an integer dtype; negative whole numbers wrap in unsigned ones."""
    limits = np.iinfo(target)
    low = limits.min if limits.min or isinstance(data, float) else -limits.max
    if not low <= data <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")


def cast_host(array: np.ndarray, target: np.dtype | None) -> np.ndarray:
    """`array` in another dtype, with C's conversions; big-endian and odd types normalised."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if target is None or array.dtype == target:
        return array
    if array.dtype.kind == "c" and target.kind != "c":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(target)


def sequence_array(data: Any, target: np.dtype | None) -> np.ndarray:
    """Nested sequences of numbers (or of tensors, or of arrays) as one array."""
    leaf = first_leaf(data)
    if leaf is EMPTY:
        shape = sequence_shape(data)
        return np.zeros(shape, target or default_dtype().np)
    if isinstance(leaf, TensorBase):
        return cast_host(tensor_sequence(data), target)
    if isinstance(leaf, str):
        raise ValueError("too many dimensions 'str'")
    if isinstance(data, (list, tuple)) and any(isinstance(item, str) for item in data):
        raise TypeError("new(): invalid data type 'str'")
    try:
        array = np.array(data)
    except (ValueError, TypeError):
        array = None
    if array is None or array.dtype == object:
        check_sequence(data, sequence_shape(data), 0)
        array = np.array(data)
        if array.dtype == object:
            return object_array(array, target)
    if array.dtype.kind in "US":
        raise ValueError("too many dimensions 'str'")
    if target is not None:
        if target.kind in "iu" and array.dtype.kind in "iuf" and array.size and not isinstance(leaf, np.generic):
            for extreme in (array.min(), array.max()):
                check_element(extreme.item(), target)
        if array.dtype.kind == "c" and target.kind not in "cb":
            raise TypeError(NOT_COMPLEX[target.kind in "iu"])
        return cast_host(array, target)
    if isinstance(leaf, np.generic) and not isinstance(leaf, (float, complex)):
        return cast_host(
            tensor_sequence(data), dt.from_numpy(leaf.dtype).np if array.dtype.kind == leaf.dtype.kind else None
        )
    if isinstance(leaf, (np.generic, np.ndarray)):
        return cast_host(array, dt.from_numpy(array.dtype).np)
    kind = array.dtype.kind
    if kind == "f":
        return cast_host(array, default_dtype().np)
    if kind == "c":
        return cast_host(array, dt.default_complex_dtype().np)
    if kind in "iu":
        return cast_host(array, np.dtype(np.int64))
    return array


_warned: list[bool] = []


def warn_of_scalar(t: TensorBase) -> None:
    """PyTorch's warning, once in a process, where float(t), complex(t) or a list of tensors leaves the graph."""
    if t._rg and MODE.enabled and not _warned:
        _warned.append(True)
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first.",
            UserWarning,
            stacklevel=3,
        )


def object_array(array: np.ndarray, target: np.dtype | None) -> np.ndarray:
    flat = array.reshape(-1).tolist()
    for item in flat:
        if isinstance(item, TensorBase):
            warn_of_scalar(item)
            item = item.item()
        if not isinstance(item, (int, float, complex)):
            raise RuntimeError(f"Could not infer dtype of {type(item).__name__}")
    if any(isinstance(item, int) and not -(1 << 63) <= item < 1 << 63 for item in flat):
        raise ValueError("Overflow when unpacking long long")
    return cast_host(np.array([getattr(i, "item", lambda i=i: i)() for i in flat]).reshape(array.shape), target)


class _Empty:
    pass


EMPTY = _Empty()


def first_leaf(data: Any) -> Any:
    while True:
        if isinstance(data, (TensorBase, np.generic, str, int, float, complex)) or data is None:
            return data
        if isinstance(data, np.ndarray):
            return data
        try:
            if len(data) == 0:
                return EMPTY
            data = data[0]
        except TypeError:
            return data


def sequence_shape(data: Any) -> tuple[int, ...]:
    shape = []
    while not isinstance(data, (TensorBase, np.generic, str, int, float, complex)) and hasattr(data, "__len__"):
        shape.append(len(data))
        if len(data) == 0:
            break
        data = data[0]
    return tuple(shape)


def check_sequence(data: Any, shape: tuple[int, ...], depth: int) -> None:
    """PyTorch's ValueErrors for ragged sequences."""
    if depth == len(shape):
        if hasattr(data, "__len__") and not isinstance(data, (str, TensorBase)):
            raise TypeError("not a sequence")
        if not isinstance(data, (int, float, complex, np.generic, TensorBase)):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        return
    if not hasattr(data, "__len__") or isinstance(data, str):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        check_sequence(item, shape, depth + 1)


def tensor_sequence(data: Any) -> np.ndarray:
    if isinstance(data, TensorBase):
        if data._aval.numel != 1 and data._aval.ndim:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.detach()._host().reshape(())
    if isinstance(data, (int, float, complex, np.generic, np.ndarray)):
        return np.asarray(array_from(data, None))
    parts = [tensor_sequence(d) for d in data]
    # The highest dtype among the elements, not NumPy's common one (int64 and float32 make float32 here).
    dtypes = {p.dtype for p in parts}
    if len(dtypes) > 1:
        common = dt.from_numpy(parts[0].dtype)
        for p in parts[1:]:
            common = promote_types(common, dt.from_numpy(p.dtype))
        parts = [p.astype(common.np) for p in parts]
    return np.stack(parts)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, sharing memory with a tensor or NumPy array where dtype and device allow."""
    if isinstance(data, Tensor):
        out = data
        if device is not None and resolve_device(device) != out._aval.device:
            out = out.to(device)
        return cast_to(out, dtype) if dtype is not None else out
    if (
        isinstance(data, np.ndarray)
        and (dtype is None or dtype.np == data.dtype)
        and resolve_device(device).type == "cpu"
    ):
        return from_numpy(data)
    return from_array(array_from(data, dtype), dtype, device)


def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """`obj` as a tensor; copy=True always copies, copy=False never (ValueError if it must). The bytes of a storage are
    seen as `dtype`."""
    if isinstance(getattr(obj, "_storage", None), Storage):
        obj = _over_storage(obj._storage).view(dtype or default_dtype())
    if copy:
        out = (
            tensor(obj, dtype=dtype, device=device)
            if not isinstance(obj, TensorBase)
            else cast_to(obj.detach().clone(), dtype or obj.dtype)
        )
    else:
        if copy is False and not isinstance(obj, (TensorBase, np.ndarray)):
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        out = as_tensor(obj, dtype, device)
        if copy is False and isinstance(obj, TensorBase) and out is not obj:
            raise ValueError("can't alias tensor with different dtype or device; set copy=None or copy=True")
    return finish(out.detach() if out._gf is not None else out, requires_grad) if requires_grad else out


def _over_storage(storage: Any) -> Any:
    """A tensor of one dimension over all bytes of a storage."""
    t = from_array(np.zeros(0, np.uint8))
    t._s, t._aval = storage, storage.value.aval
    return t.reshape(-1).view(dt.uint8)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor over the array's own memory: each sees what the other writes."""
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if ndarray.dtype.byteorder == ">":
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )
    a = aval(ndarray.shape, dt.from_numpy(ndarray.dtype), Device("cpu"))
    if not ndarray.flags.writeable:
        import warnings

        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program.",
            stacklevel=2,
        )
    if not ndarray.flags.c_contiguous and ndarray.size:
        return _strided_numpy(ndarray, a)
    t = wrap(Value(a, ndarray))
    share(t, ndarray)
    return t


def _strided_numpy(ndarray: np.ndarray, a: Any) -> Tensor:
    """from_numpy of an array that is not row-major: a view, with its strides, of the memory that it spans."""
    from torchlike._src.tensor.views import as_strided

    item = ndarray.itemsize
    if any(s % item for s in ndarray.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )
    strides = tuple([s // item for s in ndarray.strides])
    span = 1 + sum((n - 1) * s for n, s in zip(ndarray.shape, strides, strict=True))
    memory = np.lib.stride_tricks.as_strided(ndarray, (span,), (item,), writeable=ndarray.flags.writeable)
    flat = wrap(Value(aval((span,), a.dtype, a.device), memory))
    share(flat, memory)
    return as_strided(flat, ndarray.shape, strides, 0).detach()


def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-dim tensor over the memory of an object with the buffer protocol."""
    if not len(buffer) or not count:
        raise ValueError(f"both buffer length ({len(buffer)}) and count ({count}) must not be 0")
    array = np.frombuffer(buffer, require_numpy(dtype), count, offset)
    return finish(from_numpy(array), requires_grad)


# -- filled ------------------------------------------------------------------------------------------------------------


def check_bytes(a: Aval) -> None:
    """RuntimeError for a tensor that no memory holds."""
    size = a.numel * a.dtype.itemsize
    if size >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(a.shape)}")
    if size > physical_memory() and a.device.type == "cpu":
        raise RuntimeError(
            f"[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
            f"allocate {size} bytes. Error code 12 (Cannot allocate memory)"
        )


@functools.cache
def physical_memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def filled(shape: tuple[int, ...], number: Any, dtype: DType, device: Any, requires_grad: bool) -> Tensor:
    """A tensor of one number."""
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    if type(dtype) is not DType:
        dtype = as_dtype(dtype, "zeros")
    a = aval(shape, dtype, resolve_device(device))
    if a.numel > HOST_FILL:
        check_bytes(a)
    if a.device.type == "meta":
        return finish(wrap(Value(a, META_ARRAY)), requires_grad)
    if a.numel <= HOST_FILL and not current().taped:
        target = require_numpy(dtype)
        if number == 0:
            array = np.zeros(shape, target)
        else:
            with np.errstate(all="ignore"):
                array = np.full(shape, fill_number(number, target), target)
        return finish(from_value(a, array), requires_grad)
    require_numpy(dtype)
    t = wrap(record(FILL, (("aval", a),), (number,))[0])
    if MODE.inference:
        t._is_inference = True
    return finish(t, requires_grad)


CPP_NAMES = {
    dt.int64: "int64_t", dt.int32: "int", dt.int16: "int16_t", dt.int8: "int8_t", dt.uint8: "uint8_t",
    dt.float16: "c10::Half", dt.bfloat16: "c10::BFloat16", dt.float32: "float", dt.float64: "double",
    dt.uint16: "uint16_t", dt.uint32: "uint32_t", dt.uint64: "uint64_t",
}  # fmt: skip


def check_number(number: Any, dtype: DType, name: str | None = None) -> None:
    """RuntimeError if a Python number cannot be an element of `dtype`. Negative ones wrap in unsigned types, as in
    C."""
    if dtype.is_complex or dtype is dt.bool_ or isinstance(number, bool):
        return
    if isinstance(number, complex):
        fits = not number.imag
        number = number.real
    else:
        fits = True
    if fits and dtype.is_floating_point:
        # Narrower ones become infinite.
        fits = dtype is not dt.float32 or number != number or math.isinf(number) or abs(number) <= FLOAT32_MAX
    elif fits:
        limits = np.iinfo(dtype.np)
        low = limits.min if limits.min else -limits.max
        fits = number == number and low <= number <= limits.max
    if not fits:
        raise RuntimeError(
            f"value cannot be converted to type {name or CPP_NAMES.get(dtype, dtype.name)} without overflow"
        )


FLOAT32_MAX = float(np.finfo(np.float32).max)


def as_dtype(dtype: Any, function: str) -> DType:
    """A dtype argument; Python's number types mean dtypes too."""
    if isinstance(dtype, DType):
        return dtype
    found = (
        {bool: dt.bool_, int: dt.int64, float: dt.float64, complex: dt.complex128}.get(dtype)
        if isinstance(dtype, type)
        else None
    )
    if found is None:
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return found


def fill_number(number: Any, target: np.dtype) -> Any:
    """A number as an element of `target`, wrapping integers as C does."""
    if target.kind in "iu" and isinstance(number, int):
        bits = target.itemsize * 8
        number &= (1 << bits) - 1
        if target.kind == "i" and number >= 1 << (bits - 1):
            number -= 1 << bits
        return number
    return np.array(number).astype(target)


def number_dtype(number: Any) -> DType:
    """The dtype of a tensor made from one Python number."""
    if isinstance(number, (bool, np.bool_)):
        return dt.bool_
    if isinstance(number, (int, np.integer)):
        return dt.int64
    if isinstance(number, (complex, np.complexfloating)):
        return dt.default_complex_dtype()
    return default_dtype()


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor from `data`, of this tensor's dtype and device."""
    a = self._aval
    return tensor(
        data, dtype=dtype or a.dtype, device=a.device if device is None else device, requires_grad=requires_grad
    )


def legacy_tensor(cls: type, *args: Any, **kwargs: Any) -> Tensor:
    """torch.Tensor(...): uninitialised of a size, or from a sequence, in the default dtype."""
    device = kwargs.pop("device", None)
    if kwargs and set(kwargs) != {"data"}:
        raise TypeError(f"new() received an invalid keyword argument {next(iter(kwargs))!r}")
    if "data" in kwargs:
        args = (kwargs["data"],)
    if not args:
        out = filled((0,), 0, default_dtype(), device, False)
    elif len(args) == 1 and isinstance(args[0], TensorBase):
        source = args[0]
        out = source.detach()
    elif len(args) == 1 and not isinstance(args[0], (int, np.integer)) and not type(args[0]).__name__ == "Size":
        if isinstance(args[0], (float, bool)):
            raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")
        out = from_array(array_from(args[0], default_dtype()), default_dtype(), device)
    else:
        out = filled(sizes(args), 0, default_dtype(), device, False)
    if cls is not Tensor:
        return as_subclass(out, cls)
    return out


def as_subclass(t: Tensor, cls: type) -> Any:
    """The same tensor data as an instance of a Tensor subclass."""
    out: Any = object.__new__(cls)
    for name in ("_s", "_view", "_aval", "_rg", "_gf"):
        setattr(out, name, getattr(t, name))
    for name, v in t.__dict__.items():
        out.__dict__[name] = v
    return out
