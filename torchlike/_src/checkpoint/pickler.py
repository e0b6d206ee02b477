"""Objects as PyTorch pickles them: tensors by its functions, storages by reference, the library's own by its names."""

import pickle
import sys
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlike._src.checkpoint import rebuild
from torchlike._src.checkpoint.location import tag_of
from torchlike._src.checkpoint.names import STORAGE_CLASSES, public_name
from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.layout import layout as Layout
from torchlike._src.core.layout import memory_format, qscheme
from torchlike._src.core.size import Size
from torchlike._src.engine import host_array
from torchlike._src.tensor.generators import Generator
from torchlike._src.tensor.misc import TypedStorage, UntypedStorage
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import SharedStorage, Tensor, TensorBase


class Name:
    """A name to be written into a pickle as it is. Callable, because what pickles call must be."""

    def __init__(self, module: str, name: str, stands_for: Any = None) -> None:
        self.module = module
        self.name = name
        self.stands_for = stands_for

    def __call__(self, *args: Any) -> Any:
        raise TypeError("only a name")


class StorageRef:
    """A storage as a pickle refers to it."""

    def __init__(self, pid: tuple) -> None:
        self.pid = pid


def _name(full: str, stands_for: Any = None) -> Name:
    module, _, name = full.rpartition(".")
    return Name(module, name, stands_for)


TENSOR_V2 = _name("torch._utils._rebuild_tensor_v2", rebuild._rebuild_tensor_v2)
TENSOR_V3 = _name("torch._utils._rebuild_tensor_v3", rebuild._rebuild_tensor_v3)
META_TENSOR = _name("torch._utils._rebuild_meta_tensor_no_storage", rebuild._rebuild_meta_tensor_no_storage)
FROM_TYPE = _name("torch._tensor._rebuild_from_type_v2", rebuild._rebuild_from_type_v2)
LAYOUT = _name("torch.serialization._get_layout", rebuild._get_layout)
PARAMETER = _name("torch._utils._rebuild_parameter")
PARAMETER_WITH_STATE = _name("torch._utils._rebuild_parameter_with_state")
SIZE, DEVICE = _name("torch.Size", Size), _name("torch.device", Device)
GENERATOR = _name("torch._C.Generator", Generator)
STORAGES = {d: _name(f"torch.{s}") for d, s in STORAGE_CLASSES.items()}
UNTYPED = _name("torch.storage.UntypedStorage", UntypedStorage)


class Parameters:
    """Parameters come from above: their class, and how they are reduced otherwise."""

    cls: Any = ()
    reductions: tuple = ()


class Storages:
    """The storages of one file, each once."""

    def __init__(self, legacy: bool = False) -> None:
        self.legacy = legacy
        self.known: dict[int, tuple] = {}

    def reference(self, storage: Any, dtype: Any, typed: bool = True) -> StorageRef:
        """How a pickle refers to it. typed: by a class that has an element type, where there is one."""
        device = storage.value.aval.device if type(storage) is not SharedStorage else Device("cpu")
        typed = typed and dtype.name in STORAGES
        if not typed:
            dtype = dt.uint8
        known = self.known.get(id(storage))
        if known is None:
            known = self.known[id(storage)] = (str(len(self.known)), content_of(storage), dtype, storage)
        key, content, before, _ = known
        if before is not dtype and len(content):
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        name = STORAGES[dtype.name] if typed else UNTYPED
        pid: tuple = ("storage", name, key, tag_of(storage, device), len(content) // dtype.itemsize)
        return StorageRef((*pid, None) if self.legacy else pid)


def content_of(storage: Any) -> np.ndarray:
    """The bytes of a storage."""
    if type(storage) is SharedStorage:
        array = storage.shared
    else:
        if storage.value.aval.device.type == "meta":
            raise NotImplementedError("torchlike: torch.save of a storage on the meta device")
        array = host_array(storage.value)
    array = np.ascontiguousarray(array)
    return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn that the backward hooks of a tensor that is being saved will be lost."""
    for hook in (tensor._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class Reducer:
    """What objects of the library are made of again."""

    def __init__(self, storages: Storages) -> None:
        self.storages = storages

    def reduce(self, obj: Any) -> Any:
        """A reduction in terms of Names, or NotImplemented."""
        if isinstance(obj, TensorBase):
            return self._tensor(obj)
        if isinstance(obj, UntypedStorage):
            typed = isinstance(obj, TypedStorage)
            dtype: Any = obj.dtype if isinstance(obj, TypedStorage) else dt.uint8
            return self.storages.reference(obj._storage, dtype, typed)
        kind = type(obj)
        if kind is Size:
            return SIZE, (tuple(obj),)
        if isinstance(obj, Device):
            return DEVICE, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, Layout):
            return LAYOUT, (str(obj),)
        if kind is Generator:
            return GENERATOR, (obj.device,), (obj.initial_seed(), None, obj.get_state())
        return NotImplemented

    def _tensor(self, t: Any) -> Any:
        kind = type(t)
        own = kind.__reduce_ex__
        if own is not Tensor.__reduce_ex__ and own not in Parameters.reductions:
            return NotImplemented  # the user's own class knows better
        state = rebuild.user_state(t)
        if kind is Parameters.cls:
            arguments: tuple = (t.data, t._rg, OrderedDict())
            return (PARAMETER_WITH_STATE, (*arguments, state)) if state else (PARAMETER, arguments)
        function, arguments = self._plain(t)
        if kind is Tensor and not state:
            return function, arguments
        return FROM_TYPE, (function, kind, arguments, state or None)

    def _plain(self, t: Any) -> tuple:
        a = t._aval
        if t.layout is not torch.strided:
            raise NotImplementedError(f"torchlike: torch.save of a tensor with layout {t.layout}")
        if a.device.type == "meta":
            return META_TENSOR, (a.dtype, tuple(a.shape), tuple(t.stride()), t._rg)
        if t._hooks:
            warn_if_has_hooks(t)
        reference = self.storages.reference(t._s, a.dtype)
        hooks: OrderedDict = OrderedDict()
        geometry = (reference, t.storage_offset(), tuple(a.shape), tuple(t.stride()), t._rg, hooks)
        if a.dtype.name in STORAGES:
            return TENSOR_V2, geometry
        return TENSOR_V3, (*geometry, a.dtype)


class _Naming(pickle._Pickler):  # the one written in Python, whose names can be changed
    """Writes the library's own names under `torch`. `reducer` is set by `pickler_for`."""

    reducer: Reducer

    if TYPE_CHECKING:  # what the stubs leave out

        def __getattr__(self, name: str) -> Any: ...

    def persistent_id(self, obj: Any) -> Any:
        """A storage's reference."""
        return obj.pid if type(obj) is StorageRef else None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write one object."""
        kind = type(obj)
        if kind is Name:
            self._write_name(obj, obj.module, obj.name)
        elif isinstance(obj, dt.dtype) or kind is qscheme or kind is memory_format:
            self._write_name(obj, "torch", obj.name)
        elif isinstance(obj, UntypedStorage):
            super().save(self.reducer.reduce(obj), save_persistent_id)  # type: ignore[misc]
        else:
            super().save(obj, save_persistent_id)  # type: ignore[misc]  # missing in the stubs

    def _write_name(self, obj: Any, module: str, name: str) -> None:
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
            return
        if "." in name:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a class or function by its name."""
        module, found = public_name(obj) if name is None else ("", "")
        if "<locals>" in getattr(obj, "__qualname__", ""):
            raise AttributeError(f"Can't pickle local object {obj.__qualname__!r}")
        if module.split(".")[0] == "torch" and "<locals>" not in found and ("." not in found or self.proto >= 4):
            self._write_name(obj, module, found)
        else:
            super().save_global(obj, name)  # type: ignore[misc]  # missing in the stubs

    def _save_type(self, obj: Any) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)  # type: ignore[misc]
        else:
            self.save_global(obj)

    def reducer_override(self, obj: Any) -> Any:
        """How the library's objects are written."""
        return self.reducer.reduce(obj)

    dispatch: Any = {**pickle._Pickler.dispatch, type: _save_type, types.FunctionType: save_global}  # type: ignore[misc]


def pickler_for(pickle_module: Any, file: Any, protocol: int, storages: Storages) -> Any:
    """A pickler of `pickle_module`'s class that writes tensors into this file."""
    reducer = Reducer(storages)
    base = pickle_module.Pickler
    if base is pickle.Pickler or base is pickle._Pickler:
        made = _Naming(file, protocol=protocol)
    else:
        made = _variant(base)(file, protocol=protocol)
    made.reducer = reducer
    return made


def _real(value: Any) -> Any:
    """A reduction without Names, for picklers that look up what they write."""
    if type(value) is Name:
        return value.stands_for if value.stands_for is not None else _import(value)
    if type(value) is tuple:
        return tuple([_real(v) for v in value])
    return value


def _import(name: Name) -> Any:
    module = "torchlike" + name.module[len("torch") :]
    __import__(module)
    return getattr(sys.modules[module], name.name)


def _variant(base: type) -> type:
    """A pickler of another module. It writes names of the library as it finds them, under `torchlike`."""

    class Pickler(base):  # type: ignore[misc, valid-type]
        reducer: Reducer

        def persistent_id(self, obj: Any) -> Any:
            if isinstance(obj, UntypedStorage):
                obj = self.reducer.reduce(obj)
            if type(obj) is StorageRef:
                return tuple([_class_name(v) if type(v) is Name else v for v in obj.pid])
            return None

        def reducer_override(self, obj: Any) -> Any:
            found = self.reducer.reduce(obj)
            if found is not NotImplemented:
                return _real(found)
            above: Callable | None = getattr(super(), "reducer_override", None)
            return NotImplemented if above is None else above(obj)

    return Pickler


def _class_name(name: Name) -> str:
    """Storage classes in files of other pickle modules: their plain names, which `load` knows too."""
    return f"{name.module}.{name.name}"
