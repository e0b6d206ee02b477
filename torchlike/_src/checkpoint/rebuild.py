"""Storages and tensors from what a file says of them. Nothing in it is believed before it is checked."""

import math
import pickle
import threading
from typing import Any

import numpy as np

from torchlike._src.core.aval import aval
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.dtype import require_numpy
from torchlike._src.core.layout import layout as Layout
from torchlike._src.storage.storage import contiguous_strides
from torchlike._src.tensor import views
from torchlike._src.tensor.creation import as_subclass, from_array, from_value
from torchlike._src.tensor.misc import TypedStorage, UntypedStorage
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import NEW, Tensor, TensorBase, share

MAX = (1 << 63) - 1
MAX_DIMS = 64
OWN_FIELDS = frozenset(
    "_grad _base_tensor _vb _vv _vversion _hooks _accumulator _accumulate_hooks _post_accumulate_hooks _retains "
    "_silent _is_inference _name _s _view _aval _rg _gf __dict__ __weakref__ __class__".split()
)
"""Bookkeeping of the engine in a tensor; everything else in its __dict__ was put there by the user."""
META, CPU = Device("meta"), Device("cpu")


class Loading(threading.local):
    """What the load that this thread is in wants, for functions that a pickle calls."""

    map_location: Any = None
    skip_data: bool = False


LOADING = Loading()


class Bytes:
    """A storage from a file: its bytes, and the tensor that was made of them first, of which others are views.

    content: uint8, or None on the meta device. shared: whether writes go to `content`'s memory (a mapped file)."""

    def __init__(self, content: np.ndarray | None, count: int, device: Any, shared: bool = False) -> None:
        self.content = content
        self.count = count
        self.device = device
        self.shared = shared
        self.tensor: Any = None

    def base(self, dtype: Any, shape: tuple | None = None) -> Any:
        """The tensor of all elements; the first time it may get a shape."""
        if self.tensor is None:
            kind = require_numpy(dtype)
            count = self.count // dtype.itemsize
            shape = (count,) if shape is None else shape
            if self.content is None:
                self.tensor = from_value(aval(shape, dtype, META), None)  # type: ignore[arg-type]
            else:
                array = self.content[: count * dtype.itemsize].view(kind).reshape(shape)
                self.tensor = from_array(array, dtype, self.device)
                if self.shared:
                    share(self.tensor, array)
        if self.tensor.dtype is dtype:
            return self.tensor
        return views.view_dtype(views.reshape(self.tensor, (-1,)), dtype)


class LoadedStorage(TypedStorage):
    """A storage with the dtype that the file gives it; a tensor is made of it when someone asks."""

    def __init__(self, loaded: Bytes, dtype: Any) -> None:
        self.loaded = loaded
        self.dtype = dtype

    @property
    def _storage(self) -> Any:  # type: ignore[override]
        return self.loaded.base(self.dtype)._s


LoadedStorage.__name__ = LoadedStorage.__qualname__ = "TypedStorage"
LoadedStorage.__module__ = "torch.storage"


class LoadedBytes(UntypedStorage):
    """A storage as the user's `map_location` gets it."""

    def __init__(self, loaded: Bytes, dtype: Any) -> None:
        self.loaded = loaded
        self.dtype_in_file = dtype

    @property
    def _storage(self) -> Any:  # type: ignore[override]
        return self.loaded.base(self.dtype_in_file)._s

    def nbytes(self) -> int:
        """Bytes."""
        return self.loaded.count

    @property
    def device(self) -> Any:
        return self.loaded.device


LoadedBytes.__name__ = LoadedBytes.__qualname__ = "UntypedStorage"
LoadedBytes.__module__ = "torch.storage"


def taken_over(storage: Any) -> Bytes:
    """A storage that the user's `map_location` returned."""
    if isinstance(storage, LoadedBytes):
        return storage.loaded
    if not isinstance(storage, UntypedStorage):
        raise TypeError(
            "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
            " * (*, torch.device device, torch.dtype dtype)\n"
            " * (int size, *, torch.device device, torch.dtype dtype)\n"
            " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
            " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
            f"Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}"
        )
    cell = storage._storage
    a = cell.value.aval
    loaded = Bytes(None, a.numel * a.dtype.itemsize, a.device)
    if a.device.type != "meta":
        t: Any = NEW(Tensor)
        t._s, t._view, t._aval, t._gf, t._rg = cell, None, a, None, False
        loaded.tensor = t
    return loaded


def check_geometry(count: int, itemsize: int, offset: Any, size: Any, stride: Any) -> int:
    """The number of elements of a tensor over a storage of `count` bytes. RuntimeError if it does not fit."""
    for what in (size, stride):
        if not isinstance(what, (tuple, list)) or not all(type(n) is int for n in what):
            raise TypeError("set_(): a tensor's size and stride must be tuples of ints")
    if type(offset) is not int:
        raise TypeError(f"set_(): argument 'storage_offset' must be int, not {type(offset).__name__}")
    if not all(-MAX <= n <= MAX for n in (offset, *size, *stride)):
        raise RuntimeError("Overflow when unpacking long: a size, stride or offset has more than 64 bits")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if len(size) > MAX_DIMS:
        raise RuntimeError(f"a tensor of {len(size)} dimensions: more than {MAX_DIMS} are not supported")
    numel = math.prod(size)
    # Also the sizes beside one of 0: no array can have them.
    if any(n < 0 for n in size) or math.prod(n for n in size if n) * itemsize > MAX:
        raise RuntimeError(f"numel: integer multiplication overflow (sizes {list(size)})")
    if not numel:
        return 0
    if any(s < 0 for s in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    needed = (offset + 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))) * itemsize
    if needed > count:
        raise RuntimeError(
            f"Trying to resize storage that is not resizable (sizes {list(size)}, strides {list(stride)} and offset "
            f"{offset} need {needed} bytes, the storage has {count})"
        )
    return numel


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage."""
    if not isinstance(dtype, DType) or not isinstance(requires_grad, bool):
        raise TypeError("a tensor's dtype and requires_grad must be a torch.dtype and a bool")
    if backward_hooks:
        raise NotImplementedError("torchlike: torch.load of a tensor with backward hooks")
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"a tensor is made of a storage, not of {type(storage).__name__}")
    require_numpy(dtype)
    loaded = storage.loaded if isinstance(storage, LoadedStorage) else taken_over(storage)
    numel = check_geometry(loaded.count, dtype.itemsize, storage_offset, size, stride)
    size, stride = tuple(size), tuple(stride)
    plain = storage_offset == 0 and stride == contiguous_strides(size)
    if plain and loaded.tensor is None and numel * dtype.itemsize == loaded.count:
        t = loaded.base(dtype, size)
    elif plain and not numel:
        t = torch.empty(size, dtype=dtype, device=loaded.device)
    else:
        t = views.as_strided(loaded.base(dtype), size, stride, storage_offset).detach()
    if metadata:
        if not isinstance(metadata, dict) or not set(metadata) <= {"conj", "neg"}:
            raise NotImplementedError("torchlike: torch.load of a tensor with unknown metadata")
        if metadata.get("conj"):
            t = torch.conj(t)
        if metadata.get("neg"):
            t = torch.neg(t)
    return t.requires_grad_() if requires_grad else t


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage of its dtype."""
    dtype = getattr(storage, "dtype", None)
    return _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata)


def _rebuild_tensor(storage: Any, storage_offset: int, size: tuple, stride: tuple) -> Tensor:
    """A tensor over a storage of its dtype, as PyTorch 0.3 wrote it."""
    return _rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    """A tensor without data."""
    if not isinstance(dtype, DType) or not isinstance(requires_grad, bool):
        raise TypeError("a tensor's dtype and requires_grad must be a torch.dtype and a bool")
    numel = check_geometry(MAX << 8, dtype.itemsize, 0, size, stride)
    if tuple(stride) == contiguous_strides(tuple(size)):
        return torch.empty(tuple(size), dtype=dtype, device="meta", requires_grad=requires_grad)
    last = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if numel else 0
    base = torch.empty((last + 1,), dtype=dtype, device="meta")
    t = views.as_strided(base, tuple(size), tuple(stride), 0).detach()
    return t.requires_grad_() if requires_grad else t


def _rebuild_from_type_v2(func: Any, new_type: Any, args: tuple, state: Any) -> Any:
    """A tensor of a subclass, or with attributes that its user has set."""
    if func not in FUNCTIONS:
        raise pickle.UnpicklingError("only PyTorch's own functions rebuild tensors")
    t: Any = func(*args)
    if not isinstance(t, TensorBase) or not isinstance(new_type, type) or not issubclass(new_type, TensorBase):
        raise pickle.UnpicklingError("only tensors can become tensors of another type")
    if type(t) is not new_type:
        t = as_subclass(t, new_type)  # type: ignore[arg-type]
    own = getattr(new_type, "__setstate__", None)
    if own is not None and own is not vars(Tensor)["__setstate__"]:
        t.__setstate__(state)
    else:
        set_attributes(t, state)
    return t


def set_attributes(t: Any, state: Any) -> None:
    """The user's attributes of a tensor: a dict, or a dict and one for slots."""
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError("Invalid serialized state: a tuple that is no pair")
        state, slots = state
    for part in (state, slots):
        if part and not isinstance(part, dict):
            raise RuntimeError(f"Invalid serialized state: {type(part).__name__}")
        for name in part or ():
            if not isinstance(name, str) or name in OWN_FIELDS:
                raise pickle.UnpicklingError("a file may not set what belongs to the engine")
    t.__dict__.update(state or {})
    for name, value in (slots or {}).items():
        setattr(t, name, value)


def _get_layout(name: str) -> Any:
    """The layout that a file names."""
    found = getattr(torch, str(name).removeprefix("torch."), None)
    if not isinstance(found, Layout):
        raise pickle.UnpicklingError(f"unknown layout {str(name)[:50]}")
    return found


def _restored_device(device: Any) -> Any:
    wanted = LOADING.map_location
    if isinstance(wanted, dict):
        wanted = wanted.get(str(device), device)
    return device if wanted is None or callable(wanted) else wanted


def _rebuild_device_tensor_from_cpu_tensor(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A tensor of a device whose storages are not in files (XLA)."""
    t = data.to(dtype=dtype, device=_restored_device(device))
    return t.requires_grad_(requires_grad)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """The same, from NumPy."""
    return _rebuild_device_tensor_from_cpu_tensor(torch.from_numpy(data), dtype, device, requires_grad)


def _rebuild_sparse_tensor(layout: Any, data: tuple) -> Any:
    """NotImplementedError: sparse layouts."""
    raise NotImplementedError(f"torchlike: torch.load of a tensor with layout {layout}; save it after to_dense()")


def _rebuild_qtensor(*args: Any) -> Any:
    """NotImplementedError: quantised tensors."""
    raise NotImplementedError("torchlike: torch.load of a quantized tensor; save it after dequantize()")


def _rebuild_nested_tensor(*args: Any) -> Any:
    """NotImplementedError: nested tensors."""
    raise NotImplementedError("torchlike: torch.load of a nested tensor; save its parts, from unbind()")


def _rebuild_wrapper_subclass(*args: Any) -> Any:
    """NotImplementedError: wrapper subclasses."""
    raise NotImplementedError("torchlike: torch.load of a tensor that wraps others (_make_wrapper_subclass)")


FUNCTIONS = (
    _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_meta_tensor_no_storage, _rebuild_sparse_tensor,
    _rebuild_qtensor, _rebuild_nested_tensor, _rebuild_wrapper_subclass, _rebuild_device_tensor_from_numpy,
    _rebuild_device_tensor_from_cpu_tensor,
)  # fmt: skip


def user_state(t: Any) -> Any:
    """The attributes that the user has set on a tensor: None, a dict, or a pair of a dict and one of slots."""
    attributes = {k: v for k, v in t.__dict__.items() if k not in OWN_FIELDS}
    slots = {
        name: getattr(t, name)
        for cls in type(t).__mro__
        if "__slots__" in cls.__dict__ and cls.__module__.split(".")[0] not in ("torch", "torchlike")
        for name in (
            [cls.__dict__["__slots__"]] if isinstance(cls.__dict__["__slots__"], str) else cls.__dict__["__slots__"]
        )
        if name not in ("__dict__", "__weakref__") and hasattr(t, name)
    }
    return (attributes, slots) if slots else attributes
