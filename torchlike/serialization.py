"""torch.save and torch.load: PyTorch's zip files, readable by PyTorch, and PyTorch's read here.

A file is an uncompressed zip archive: `data.pkl` holds the objects, with PyTorch's names for what makes tensors, and
`data/0`, `data/1`, … the bytes of the storages, each once however many tensors share it."""

import contextlib
import hashlib
import io
import os
import pickle
import struct
import sys
import zipfile
from _codecs import encode
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import torchlike as torch
from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.layout import layout as Layout
from torchlike._src.core.restricted_pickle import RestrictedUnpickler
from torchlike._src.core.size import Size
from torchlike._src.engine import host_array
from torchlike._src.tensor.creation import as_subclass, from_array
from torchlike._src.tensor.tensor import SharedStorage, Tensor, TensorBase
from torchlike.nn.parameter import Buffer, Parameter, _rebuild_parameter, _rebuild_parameter_with_state

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

ALIGNMENT = 64
STORAGE_CLASSES = {
    "float32": "FloatStorage", "float64": "DoubleStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int8": "CharStorage", "uint8": "ByteStorage", "int16": "ShortStorage", "int32": "IntStorage",
    "int64": "LongStorage",
    "bool": "BoolStorage", "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip
"""The classes by which files name storages; other dtypes are written as bytes."""
DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)
_SAFE: list = []


class _Name:
    """A name to be written into a pickle as it is. Callable, because what pickles call must be."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: Any) -> Any:
        raise TypeError("only a name")


class _StorageRef:
    """A storage as a pickle refers to it."""

    def __init__(self, pid: tuple) -> None:
        self.pid = pid


_NAMES = {
    key: _Name(*key.rsplit(".", 1))
    for key in (
        "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3", "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state", "torch._utils._rebuild_meta_tensor_no_storage", "torch.Size",
        "torch.device", "torch.storage.UntypedStorage", "torch._tensor._rebuild_from_type_v2",
        "torch.serialization._get_layout", *("torch." + s for s in STORAGE_CLASSES.values()),
    )
}  # fmt: skip


def _get_layout(name: str) -> Any:
    """The layout that a file names."""
    found = getattr(torch, name.removeprefix("torch."), None)
    if not isinstance(found, Layout):
        raise pickle.UnpicklingError(f"unknown layout {name}")
    return found


# -- writing ---------------------------------------------------------------------------------------------------------


class _Pickler(pickle._Pickler):  # the one written in Python, whose names can be changed
    """Writes tensors as PyTorch does, and the library's own names under `torch`."""

    if TYPE_CHECKING:  # what the stubs leave out

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol=protocol)
        self.storages: dict[int, tuple] = {}

    def persistent_id(self, obj: Any) -> Any:
        return obj.pid if type(obj) is _StorageRef else None

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        kind = type(obj)
        if kind is _Name:
            self._write_name(obj, obj.module, obj.name)
        elif isinstance(obj, dt.dtype):
            self._write_name(obj, "torch", str(obj).removeprefix("torch."))
        else:
            super().save(obj, save_persistent_id)  # type: ignore[misc]  # missing in the stubs

    def _write_name(self, obj: Any, module: str, name: str) -> None:
        known = self.memo.get(id(obj))
        if known is not None:
            self.write(self.get(known[0]))
            return
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = getattr(obj, "__module__", None) or ""
        if module.split(".")[0] == "torchlike" and "._src" not in module:
            self._write_name(obj, "torch" + module[len("torchlike") :], name or obj.__qualname__)
        elif module.split(".")[0] == "torch":
            self._write_name(obj, module, name or obj.__qualname__)
        else:
            super().save_global(obj, name)  # type: ignore[misc]  # missing in the stubs

    _own: dict[type, Any] = {type: save_global, type(_get_layout): save_global}
    dispatch = {**pickle._Pickler.dispatch, **_own}

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, TensorBase):
            return self._tensor(obj)
        if type(obj) is Size:
            return _NAMES["torch.Size"], (tuple(obj),)
        if isinstance(obj, Device):
            return _NAMES["torch.device"], (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, Layout):
            return _NAMES["torch.serialization._get_layout"], (str(obj),)
        return NotImplemented

    def _tensor(self, t: Any) -> tuple:
        state = {k: v for k, v in t.__dict__.items() if not k.startswith("_")}
        if type(t) is Parameter:
            arguments: tuple = (t.data, t.requires_grad, OrderedDict())
            if state:
                return _NAMES["torch._utils._rebuild_parameter_with_state"], (*arguments, state)
            return _NAMES["torch._utils._rebuild_parameter"], arguments
        function, arguments = self._plain(t)
        if type(t) in (Tensor, Buffer) and not state:
            return function, arguments
        kind = Tensor if type(t) is Buffer else type(t)
        return _NAMES["torch._tensor._rebuild_from_type_v2"], (function, kind, arguments, state)

    def _plain(self, t: Any) -> tuple:
        a = t._aval
        if a.device.type == "meta":
            arguments: tuple = (a.dtype, tuple(a.shape), t.stride(), t.requires_grad)
            return _NAMES["torch._utils._rebuild_meta_tensor_no_storage"], arguments
        if t.layout is not torch.strided:
            raise NotImplementedError(f"torch.save of a tensor with layout {t.layout} is not implemented")
        reference = self._storage(t)
        geometry: tuple = (
            reference,
            t.storage_offset(),
            tuple(a.shape),
            tuple(t.stride()),
            t.requires_grad,
            OrderedDict(),
        )
        if a.dtype.name in STORAGE_CLASSES:
            return _NAMES["torch._utils._rebuild_tensor_v2"], geometry
        return _NAMES["torch._utils._rebuild_tensor_v3"], (*geometry, a.dtype)

    def _storage(self, t: Any) -> _StorageRef:
        storage, a = t._s, t._aval
        known = self.storages.get(id(storage))
        if known is None:
            array = storage.shared if type(storage) is SharedStorage else host_array(storage.value)
            known = self.storages[id(storage)] = (
                str(len(self.storages)),
                np.ascontiguousarray(array),
                a.dtype,
                storage,
            )
        key, array, dtype, _ = known
        if dtype != a.dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        location = "cpu" if a.device.type == "cpu" else f"{a.device.type}:{a.device.index or 0}"
        if dtype.name in STORAGE_CLASSES:
            name, count = "torch." + STORAGE_CLASSES[dtype.name], array.nbytes // dtype.itemsize
        else:
            name, count = "torch.storage.UntypedStorage", array.nbytes
        return _StorageRef(("storage", _NAMES[name], key, location, count))


def _add(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    """One uncompressed record whose content starts at a multiple of ALIGNMENT, so that it can be mapped into memory."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    content = memoryview(content).cast("B") if len(content) else b""
    large = len(content) >= 2**31 - 1
    start = archive.fp.tell() + 30 + len(name.encode()) + 4 + (20 if large else 0)  # type: ignore[union-attr]
    padding = -start % ALIGNMENT
    info.extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
    with archive.open(info, "w", force_zip64=large) as record:
        record.write(content)


def _write(obj: Any, file: Any, top: str, protocol: int) -> None:
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, protocol)
    pickler.dump(obj)
    digest = hashlib.sha256(pickled.getbuffer())
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _add(archive, f"{top}/data.pkl", pickled.getbuffer())
        _add(archive, f"{top}/.format_version", b"1")
        _add(archive, f"{top}/.storage_alignment", str(ALIGNMENT).encode())
        _add(archive, f"{top}/byteorder", sys.byteorder.encode())
        for key, array, _, _ in pickler.storages.values():
            content = array.reshape(-1).view(np.uint8) if array.size else b""
            digest.update(content)
            _add(archive, f"{top}/data/{key}", content)
        _add(archive, f"{top}/version", b"3\n")
        _add(archive, f"{top}/.data/serialization_id", str(int(digest.hexdigest(), 16))[-40:].zfill(40).encode())


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object (tensors in containers, state dicts, …) to a path or a file object.

    A path is written under a temporary name and then renamed: what was there stays whole until the new file is."""
    if pickle_module is not pickle:
        raise NotImplementedError("torch.save with another pickle_module is not implemented")
    if not _use_new_zipfile_serialization or _disable_byteorder_record:
        raise NotImplementedError("torch.save in the format from before PyTorch 1.6 is not implemented")
    if not isinstance(f, (str, os.PathLike)):
        if not hasattr(f, "write"):
            raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
        # Through memory: the archive needs to seek, and may begin anywhere in the file.
        buffer = io.BytesIO()
        _write(obj, buffer, "archive", pickle_protocol)
        f.write(buffer.getbuffer())
        return
    path = os.path.realpath(f)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    top = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe cannot be replaced
        with open(path, "wb") as target:
            save(obj, target, pickle_protocol=pickle_protocol)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as target:
            _write(obj, target, top, pickle_protocol)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise


# -- reading ---------------------------------------------------------------------------------------------------------


class _Loaded:
    """A storage from a file: its bytes, and the tensor that was made of them first, of which others are views."""

    def __init__(self, array: np.ndarray, device: Any) -> None:
        self.bytes = array
        self.device = device
        self.tensor: Any = None

    def typed(self, dtype: Any, shape: Any = None) -> Any:
        """The first tensor; made flat, or of `shape`."""
        if self.tensor is None:
            array = self.bytes.view(dtype.np)
            self.tensor = from_array(array if shape is None else array.reshape(shape), dtype, self.device)
        if self.tensor.dtype != dtype:
            raise NotImplementedError("a storage that tensors of different dtypes share is not implemented")
        return self.tensor


class _Typed:
    """A storage with the dtype that the file gives it."""

    def __init__(self, storage: _Loaded, dtype: Any) -> None:
        self.storage = storage
        self.dtype = dtype


def _contiguous(size: tuple, stride: tuple) -> bool:
    step = 1
    for n, s in zip(reversed(size), reversed(stride), strict=True):
        if n != 1 and s != step:
            return False
        step *= n
    return True


def _rebuild_tensor_v3(
    storage: Any,
    offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    hooks: Any,
    dtype: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor over a storage."""
    loaded = storage.storage
    count = int(np.prod(size, dtype=np.int64))
    if count == 0:
        t = torch.empty(size, dtype=dtype, device=loaded.device)
    elif (
        loaded.tensor is None
        and offset == 0
        and count * dtype.itemsize == loaded.bytes.nbytes
        and _contiguous(size, stride)
    ):
        t = loaded.typed(dtype, tuple(size))
    else:
        t = torch.as_strided(loaded.typed(dtype), tuple(size), tuple(stride), offset).detach()
    for flag, function in (("conj", torch.conj), ("neg", torch.neg)):
        if metadata and metadata.get(flag):
            t = function(t)
    return t.requires_grad_() if requires_grad else t


def _rebuild_tensor_v2(
    storage: Any, offset: int, size: tuple, stride: tuple, requires_grad: bool, hooks: Any, metadata: Any = None
) -> Tensor:
    """A tensor over a storage of its dtype."""
    return _rebuild_tensor_v3(storage, offset, size, stride, requires_grad, hooks, storage.dtype, metadata)


def _rebuild_tensor(storage: Any, offset: int, size: tuple, stride: tuple) -> Tensor:
    return _rebuild_tensor_v2(storage, offset, size, stride, False, None)


def _rebuild_meta_tensor_no_storage(dtype: Any, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    if not _contiguous(size, stride):
        raise NotImplementedError("loading a strided meta tensor is not implemented")
    return torch.empty(size, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_from_type_v2(function: Any, kind: type, arguments: tuple, state: Any) -> Any:
    t = function(*arguments)
    if kind is not Tensor and type(t) is not kind:
        t = as_subclass(t, kind)
    if state:
        _set_state(t, state)
    return t


def _set_state(obj: Any, state: Any) -> None:
    """What a file may set: attributes of tensors and ordered dicts, and the state of classes declared safe."""
    kind = type(obj)
    if isinstance(obj, TensorBase) and isinstance(state, dict) and not any(str(k).startswith("_") for k in state):
        obj.__dict__.update(state)
    elif kind in (OrderedDict, Counter) and isinstance(state, dict):
        obj.__dict__.update(state)
    elif any(kind is s for s in _safe_names().values()):
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
        else:
            obj.__dict__.update(state)
    else:
        raise pickle.UnpicklingError(
            f"Can only build Tensor, Parameter, OrderedDict or types allowlisted, but got {kind}"
        )


def _safe_names() -> dict:
    out = {}
    for item in _SAFE:
        value, name = item if isinstance(item, tuple) else (item, f"{item.__module__}.{item.__qualname__}")
        out[name] = value
    return out


class _StorageClass:
    """What a file's name of a storage class stands for."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


def _torch_names() -> dict[str, Any]:
    """The names that files of PyTorch give to what makes tensors and their companions."""
    names: dict[str, Any] = {
        f"torch._utils.{f.__name__}": f
        for f in (
            _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_meta_tensor_no_storage,
            _rebuild_parameter,
            _rebuild_parameter_with_state,
        )
    }  # fmt: skip
    names |= {
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": Device,
        "torch.storage.UntypedStorage": _StorageClass(None),
    }
    names |= {f"torch.{s}": _StorageClass(dt.by_name(d)) for d, s in STORAGE_CLASSES.items()}
    names |= {str(v): v for v in vars(torch).values() if isinstance(v, dt.dtype)}
    return names


def _data_names() -> dict[str, Any]:
    return {
        **_torch_names(),
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "_codecs.encode": _encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
        **_safe_names(),
    }


def _encode(text: str, encoding: str) -> bytes:
    """Bytes as protocol 2 spells them; no other codec, because some are not harmless."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError("only latin1 text can become bytes")
    return encode(text, encoding)  # type: ignore[return-value]


class _TrustingUnpickler(pickle.Unpickler):
    """For weights_only=False: any name may be imported, PyTorch's from here."""

    def __init__(self, file: Any, load_persistent: Any, **kwargs: Any) -> None:
        super().__init__(file, **kwargs)
        self.persistent_load = load_persistent  # type: ignore[method-assign]
        self._own = _torch_names()

    def find_class(self, module: str, name: str) -> Any:
        found = self._own.get(f"{module}.{name}")
        if found is not None:
            return found
        if module.split(".")[0] == "torch":
            module = "torchlike" + module[len("torch") :]
        return super().find_class(module, name)


class _Reader:
    """One archive that is being read."""

    def __init__(self, file: Any, path: str | None, map_location: Any, mapped: bool) -> None:
        self.archive = zipfile.ZipFile(file)
        names = self.archive.namelist()
        pickles = [n for n in names if n.endswith("/data.pkl") and n.count("/") == 1]
        if not pickles:
            raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
        self.top = pickles[0].rsplit("/", 1)[0]
        if f"{self.top}/constants.pkl" in names:
            raise NotImplementedError("torch.load of a TorchScript archive is not implemented")
        order = self.archive.read(f"{self.top}/byteorder") if f"{self.top}/byteorder" in names else b"little"
        if order.decode() != sys.byteorder:
            raise NotImplementedError(f"torch.load of a file with byte order {order.decode()} is not implemented")
        self.path = path
        self.mapped = mapped
        self.map_location = map_location
        self.storages: dict[str, _Loaded] = {}

    def pickled(self) -> io.BytesIO:
        return io.BytesIO(self.archive.read(f"{self.top}/data.pkl"))

    def persistent(self, pid: Any) -> _Typed:
        """The storage that a pickle refers to."""
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not isinstance(pid[1], _StorageClass):
            raise pickle.UnpicklingError(f"unknown persistent id: {pid!r}")
        _, kind, key, location, count = pid
        if key not in self.storages:
            size = count * (1 if kind.dtype is None else kind.dtype.itemsize)
            self.storages[key] = _Loaded(self._bytes(f"{self.top}/data/{key}", size), self._device(location))
        return _Typed(self.storages[key], kind.dtype)

    def _bytes(self, name: str, size: int) -> np.ndarray:
        info = self.archive.getinfo(name)
        if info.file_size < size:
            raise RuntimeError(f"storage {name} has {info.file_size} bytes, where {size} are needed")
        if self.mapped and size:
            with open(self.path, "rb") as file:  # type: ignore[arg-type]
                file.seek(info.header_offset + 26)
                name_length, extra_length = struct.unpack("<HH", file.read(4))
            start = info.header_offset + 30 + name_length + extra_length
            path: Any = self.path
            return np.asarray(np.memmap(path, np.uint8, "c", start, (size,)))
        content: Any = np.empty(size, np.uint8)
        with self.archive.open(info) as record:
            view, done = memoryview(content), 0
            while done < size:
                read = record.readinto(view[done:])  # type: ignore[attr-defined]
                if not read:
                    raise EOFError(f"storage {name} is cut short")
                done += read
        return content

    def _device(self, location: str) -> Any:
        wanted = self.map_location
        if callable(wanted) and not isinstance(wanted, Device):
            # PyTorch hands over the storage, and takes back the storage where it shall be.
            result = wanted(torch.UntypedStorage(torch.empty(0)._s), location)
            wanted = result.device if result is not None else None
        elif isinstance(wanted, dict):
            wanted = wanted.get(location, location)
        if wanted is None:
            wanted = location
            if location.startswith("cuda") and not torch.cuda.is_available():
                raise RuntimeError(
                    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
                    "If you are running on a CPU-only machine, please use torch.load with "
                    "map_location=torch.device('cpu') to map your storages to the CPU."
                )
        return Device(wanted)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `torch.save` wrote, here or in PyTorch, from a path or a seekable file object.

    map_location: where storages go: a device, a dict from saved to wanted locations, or a function (storage, location).
    weights_only (default True): only data is accepted, and nothing in the file is executed; with False anything can be,
    so that only files of trusted origin should be read. mmap: the file stays on disk until its numbers are needed.

    pickle.UnpicklingError for what weights_only does not accept; NotImplementedError for the format from before PyTorch
    1.6 and for TorchScript archives."""
    if weights_only is None:
        weights_only = pickle_module is None
    if pickle_module is not None:
        if weights_only:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        if pickle_module is not pickle:
            raise NotImplementedError("torch.load with another pickle_module is not implemented")
    pickle_load_args.setdefault("encoding", "utf-8")
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        with open(path, "rb") as file:
            return _load(file, path, map_location, weights_only, bool(mmap), pickle_load_args)
    if not all(hasattr(f, n) for n in ("read", "seek", "tell")):
        missing = next(n for n in ("seek", "tell", "read") if not hasattr(f, n))
        raise AttributeError(
            f"{type(f).__name__!r} object has no attribute {missing!r}. You can only torch.load from a file "
            f"that is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _load(f, None, map_location, weights_only, False, pickle_load_args)


def _load(file: Any, path: str | None, map_location: Any, weights_only: bool, mapped: bool, pickle_args: dict) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    if head != b"PK\x03\x04":
        if mapped:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please "
                "torch.save your checkpoint with this option in order to use mmap."
            )
        raise NotImplementedError("torch.load of a file in the format from before PyTorch 1.6 is not implemented")
    if start:  # an archive inside a file: its own beginning counts
        file = io.BytesIO(file.read())
    reader = _Reader(file, path, map_location, mapped)
    with reader.archive:
        if not weights_only:
            return _TrustingUnpickler(reader.pickled(), reader.persistent, **pickle_args).load()
        try:
            names = _data_names()
            return RestrictedUnpickler(reader.pickled(), names, reader.persistent, _set_state, **pickle_args).load()
        except pickle.UnpicklingError as e:
            raise pickle.UnpicklingError(_explained(str(e))) from None


def _explained(message: str) -> str:
    risk = (
        "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from "
        "`False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can "
        "result in arbitrary code execution. Do it only if you got the file from a trusted source."
    )
    if "Please use" not in message:
        return f"Weights only load failed. {risk}\n\n\n{message}{DOCS}"
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        f"\x1b[1mdo those steps only if you trust the source of the checkpoint\x1b[0m. \n\t(1) {risk}\n\t(2) "
        "Alternatively, to load with `weights_only=True` please check the recommended steps in the following error "
        f"message.\n\tWeightsUnpickler error: {message}{DOCS}"
    )


# -- what weights_only accepts besides -------------------------------------------------------------------------------


def add_safe_globals(safe_globals: list) -> None:
    """Classes and functions that files may name from now on, when read with weights_only=True."""
    for item in safe_globals:
        if item not in _SAFE:
            _SAFE.append(item)


def get_safe_globals() -> list:
    """What `add_safe_globals` has added."""
    return list(_SAFE)


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has added."""
    _SAFE.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list) -> Iterator[None]:
    """add_safe_globals, within this context."""
    before = list(_SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _SAFE[:] = before
