"""What the names in a pickle stand for, and which names things of the library get in one."""

import pickle
import sys
from collections.abc import Callable
from typing import Any

from torchlike._src.checkpoint import rebuild
from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.layout import qscheme
from torchlike._src.core.restricted_pickle import Allowed
from torchlike._src.core.size import Size
from torchlike._src.tensor.misc import TypedStorage, UntypedStorage
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase

STORAGE_CLASSES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int8": "CharStorage", "uint8": "ByteStorage", "int16": "ShortStorage", "int32": "IntStorage",
    "int64": "LongStorage", "bool": "BoolStorage", "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage", "quint8": "QUInt8Storage", "qint8": "QInt8Storage",
    "qint32": "QInt32Storage", "quint4x2": "QUInt4x2Storage", "quint2x4": "QUInt2x4Storage",
}  # fmt: skip
"""The classes by which files name storages; other dtypes are written as bytes."""
TENSOR_CLASSES = tuple(s.removesuffix("Storage") + "Tensor" for s in STORAGE_CLASSES.values() if s[0] != "Q")


class StorageClass:
    """What a file's name of a storage class stands for."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


BY_STORAGE = {name: StorageClass(name, dt.by_name(d)) for d, name in STORAGE_CLASSES.items()}
UNTYPED = StorageClass("UntypedStorage", dt.uint8)


def storage_class(named: Any) -> StorageClass | None:
    """The class that a storage's reference names: as an object, or as the text that other pickle modules get."""
    if isinstance(named, StorageClass):
        return named
    if not isinstance(named, str):
        return None
    name = named.rpartition(".")[2]
    return UNTYPED if name == "UntypedStorage" else BY_STORAGE.get(name)


class TensorClass:
    """What a file's name of a legacy tensor class stands for, where no tensor of it can be here."""


def _tensor(*args: Any) -> Any:
    if args:
        raise pickle.UnpicklingError("a file may only make empty tensors of this class")
    return torch.empty(0)


def _parameter(*args: Any) -> Any:
    if not args or not isinstance(args[0], TensorBase):
        raise pickle.UnpicklingError("a parameter is made of a tensor")
    return _PARAMETER[0](*args)


_PARAMETER: list = []


def _size(*args: Any) -> Any:
    return Size(*args)


def register_parameter(cls: type, plain: Any, with_state: Any) -> None:
    """Parameters come from above: their class and the functions that rebuild them."""

    def make(data: Any, requires_grad: Any, backward_hooks: Any, *state: Any) -> Any:
        if not isinstance(data, TensorBase) or not isinstance(requires_grad, bool) or len(state) > 1:
            raise pickle.UnpicklingError("a parameter is made of a tensor and a bool")
        if backward_hooks:
            raise NotImplementedError("torchlike: torch.load of a parameter with backward hooks")
        result = plain(data, requires_grad, backward_hooks)
        for part in state:
            rebuild.set_attributes(result, part)
        return result

    _PARAMETER.append(cls)
    for function in (plain, with_state):
        NAMES[f"torch._utils.{function.__name__}"] = function
        CALLS[id(function)] = make
    NAMES["torch.nn.parameter.Parameter"] = cls
    CALLS[id(cls)] = _parameter


def _names() -> dict[str, Any]:
    names: dict[str, Any] = {f"torch._utils.{f.__name__}": f for f in rebuild.FUNCTIONS}
    names |= {
        "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
        "torch.serialization._get_layout": rebuild._get_layout,
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": Device,
        "torch.storage.UntypedStorage": UNTYPED,
        "torch.storage.TypedStorage": UNTYPED,
        "torch.UntypedStorage": UNTYPED,
    }
    for where in ("torch", "torch.cuda"):
        names |= {f"{where}.{name}": cls for name, cls in BY_STORAGE.items()}
        names |= {f"{where}.{name}": getattr(torch, name, TensorClass) for name in TENSOR_CLASSES}
        names |= {f"{where}.sparse.{name}": TensorClass for name in TENSOR_CLASSES}
    names |= {f"torch.{name}": d for name, d in dt._by_name.items()}
    names |= {f"torch.{v.name}": v for v in torch._names.values() if isinstance(v, qscheme)}
    return names


NAMES = _names()
CALLS: dict[int, Callable] = {
    id(f): f for f in (*rebuild.FUNCTIONS, rebuild._rebuild_from_type_v2, rebuild._get_layout, Device)
} | {id(Size): _size, id(Tensor): _tensor}

USER: list = []
"""What `add_safe_globals` has added."""


def user_names() -> dict[str, Any]:
    """What the user declared safe, by the names that files have for it."""
    out = {}
    for item in USER:
        name: Any
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), "
                    f"but got tuple of length: {len(item)}"
                )
            item, name = item
            if type(name) is not str:
                raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(name)}")
        else:
            name = ".".join(public_name(item))
        out[name] = item
    return out


def allowed() -> Allowed:
    """What may be in a file that is not trusted."""
    return Allowed(NAMES, CALLS, user_names(), _set_state)


def _set_state(target: Any, state: Any) -> bool:
    """What BUILD may do to tensors: fill them as PyTorch 0.1 did, or set their users' attributes."""
    if type(target) is Tensor and isinstance(state, tuple) and 0 < len(state) <= 4:
        storage, *geometry = state
        if not isinstance(storage, TypedStorage):
            return False
        if not geometry:
            geometry = [0, (storage.size(),), (1,)]
        target.data = rebuild._rebuild_tensor(storage, *geometry)
        return True
    if isinstance(target, TensorBase) and isinstance(state, dict):
        rebuild.set_attributes(target, state)
        return True
    return False


# -- names of the library's own things ---------------------------------------------------------------------------------


class Compiled:
    """The names of PyTorch's compiled functions, which the public surface knows: (module, name) -> object or None, and
    object -> (module, name) or None."""

    read: Callable = staticmethod(lambda module, name: None)
    written: Callable = staticmethod(lambda obj: None)


def public_name(obj: Any) -> tuple[str, str]:
    """The module and name under which PyTorch knows a class or function; its own for what is not the library's."""
    module, name = getattr(obj, "__module__", None) or "", getattr(obj, "__qualname__", None) or obj.__name__
    root = module.split(".")[0]
    if root not in ("torch", "torchlike"):
        return module, name
    if obj is UntypedStorage or obj is TypedStorage:
        return "torch.storage", name
    owner = vars(sys.modules[module]).get(name.partition(".")[0]) if "." in name and module in sys.modules else None
    if isinstance(owner, type):
        return public_name(owner)[0], name
    known = Compiled.written(obj) if "._src." in module or module == "torch" else None
    if known is None and "._src." in module:
        known = _home(obj, name)
    return ("torch" + module[len(root) :], name) if known is None else known


def _home(obj: Any, name: str) -> tuple[str, str] | None:
    """A public module that has the object under its name."""
    for path, module in sorted(sys.modules.items()):
        if path.startswith("torchlike.") and "._src" not in path and vars(module).get(name) is obj:
            return "torch" + path[len("torchlike") :], name
    return None


def found_class(module: str, name: str) -> Any:
    """What a name of PyTorch stands for in a file that is trusted; None for other names."""
    found = NAMES.get(f"{module}.{name}")
    if found is None and module.split(".")[0] == "torch":
        found = Compiled.read(module, name)
        if found is None and module == "torch._C":
            found = getattr(torch, name, None)
    return found
