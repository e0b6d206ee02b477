"""torch.save and torch.load: PyTorch's files, written and read.

A file is an uncompressed zip archive: `data.pkl` holds the objects, with PyTorch's names for what makes tensors, and
`data/0`, `data/1`, … the bytes of the storages, each once however many tensors share it. The format from before
PyTorch 1.6 is read and written too."""

import contextlib
import importlib
import io
import mmap as _mmap
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable
from enum import Enum
from typing import IO, Any

import numpy as np

from torchlike._pickle_names import read_name, written_name
from torchlike._src.checkpoint import legacy, names
from torchlike._src.checkpoint.archive import Archive, Contents, Replacement, Writer
from torchlike._src.checkpoint.legacy import SourceChangeWarning
from torchlike._src.checkpoint.location import (
    REGISTRY,
    default_restore_location,
    is_meta,
    location_tag,
    restored,
    validate_cuda,
)
from torchlike._src.checkpoint.pickler import Parameters, Storages, pickler_for
from torchlike._src.checkpoint.rebuild import CPU, LOADING, META, Bytes, LoadedStorage, _get_layout
from torchlike._src.core.device import device as Device
from torchlike._src.core.restricted_pickle import Damaged, RestrictedUnpickler, globals_of, shown
from torchlike.nn.parameter import Parameter, _rebuild_parameter, _rebuild_parameter_with_state
from torchlike.utils.serialization import config

__all__ = [
    "LoadEndianness", "SourceChangeWarning", "add_safe_globals", "clear_safe_globals", "default_restore_location",
    "get_crc32_options", "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "location_tag", "register_package", "safe_globals", "save",
    "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options", "skip_data", "validate_cuda_device",
]  # fmt: skip

FILE_LIKE: Any = str | os.PathLike[str] | IO[bytes]
MAP_LOCATION: Any = Callable[[Any, str], Any] | str | dict[str, str] | None

DEFAULT_PROTOCOL = 2
MAX_VERSION = 10
SMALL = 1 << 20
"""Records about the file itself are a few bytes; none may have more than this."""
RISK = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` "
    "from `False` to `True`. Re-running `torch.load` with `weights_only` set to `False` will likely succeed, "
    "but it can result in arbitrary code execution. Do it only if you got the file from a "
    "trusted source."
)
DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with "
    "weights_only https://pytorch.org/docs/stable/generated/torch.load.html."
)

names.register_parameter(Parameter, _rebuild_parameter, _rebuild_parameter_with_state)
names.Compiled.read, names.Compiled.written = staticmethod(read_name), staticmethod(written_name)
Parameters.cls, Parameters.reductions = Parameter, (Parameter.__reduce_ex__,)
_get_layout.__module__ = "torchlike.serialization"


def _is_path(f: Any) -> bool:
    return isinstance(f, (str, os.PathLike))


def _check_dill(pickle_module: Any) -> None:
    if getattr(pickle_module, "__name__", "") != "dill":
        return
    version = tuple(int(part) for part in re.findall(r"\d+", pickle_module.__version__)[:3])
    if version < (0, 3, 1):
        raise ValueError(
            f"'torch' supports dill >= (0, 3, 1), but you have dill {pickle_module.__version__}. "
            "Please upgrade dill or switch to 'pickle'"
        )


# -- writing -----------------------------------------------------------------------------------------------------------


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object (tensors in containers, state dicts, modules, …) to a path or a file object with write and flush.

    A path is written under a temporary name and then renamed: what was there stays whole until the new file is.
    pickle_module: whose Pickler writes the objects; its file is read with the same module. Names of the library's own
    classes in such a file are torchlike's, so PyTorch reads them only with pickle itself."""
    _check_dill(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if not _use_new_zipfile_serialization:
        if LOADING.skip_data:
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        if _is_path(f):
            with Replacement(f) as target:
                buffered = _Collected(target.write)
                legacy.save(obj, buffered, pickle_module, pickle_protocol)
                buffered.flush()
        else:
            legacy.save(obj, f, pickle_module, pickle_protocol)
            f.flush()
        return
    if not _is_path(f):
        if not callable(f.write):
            raise TypeError(f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'")
        _write(obj, f.write, "archive", pickle_module, pickle_protocol, _disable_byteorder_record)
        f.flush()
        return
    name = os.fspath(f)
    text = name if isinstance(name, str) else os.fsdecode(name)
    parent, base = os.path.split(text)
    if parent and not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    if os.path.isdir(text):
        raise RuntimeError(f"invalid file name: {text}")
    folder = base.rpartition(".")[0] or base
    if not text.isascii():
        folder = "archive"
    with Replacement(text) as target:
        _write(obj, target.write, folder, pickle_module, pickle_protocol, _disable_byteorder_record)


class _Collected:
    """Small writes become large ones."""

    def __init__(self, write: Callable) -> None:
        self._write = write
        self._waiting = bytearray()

    def write(self, content: Any) -> int:
        count = len(content)
        if count < SMALL // 16:
            self._waiting += content
            if len(self._waiting) < SMALL:
                return count
            content = b""
        self.flush()
        if len(content):
            self._write(content)
        return count

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, bytearray()
        if waiting:
            self._write(waiting)


def _write(obj: Any, write: Callable, folder: str, pickle_module: Any, protocol: int, no_byteorder: bool) -> None:
    pickled = io.BytesIO()
    storages = Storages()
    pickler_for(pickle_module, pickled, protocol, storages).dump(obj)
    alignment = config.save.storage_alignment
    with Writer(write, folder, config.save.compute_crc32, alignment) as writer:
        writer.add("data.pkl", pickled.getbuffer())
        writer.add(".format_version", b"1")
        writer.add(".storage_alignment", str(alignment).encode())
        if not no_byteorder:
            writer.add("byteorder", sys.byteorder.encode())
        for key, content, _, _ in storages.known.values():
            if LOADING.skip_data:
                writer.add(f"data/{key}", bytes(len(content)), crc=False)
            else:
                writer.add(f"data/{key}", content)
        writer.add("version", b"3\n")
        if no_byteorder:  # PyTorch's archives have the record then too, only later
            writer.add("byteorder", sys.byteorder.encode())
        writer.add(".data/serialization_id", writer.serialization_id().encode())
        writer.close()


# -- reading -----------------------------------------------------------------------------------------------------------


class _TrustingUnpickler(pickle.Unpickler):
    """For weights_only=False: any name may be imported, PyTorch's from here."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for."""
        return _imported(module, name, super().find_class)


def _imported(module: str, name: str, find: Callable) -> Any:
    module = {"torch.tensor": "torch._tensor"}.get(module, module)
    found = names.found_class(module, name)
    if found is not None:
        return found
    if module.split(".")[0] != "torch":
        return find(module, name)
    try:
        return find("torchlike" + module[len("torch") :], name)
    except (ImportError, AttributeError) as e:
        raise NotImplementedError(f"torchlike: torch.load of a file that names {module}.{name} ({e})") from e


def _unpickler(weights_only: bool, pickle_module: Any, arguments: dict) -> Callable:
    """(file) -> an unpickler with `load` and a settable `persistent_load`."""
    if weights_only:
        allowed = names.allowed()
        return lambda file: RestrictedUnpickler(file, allowed, **arguments)
    if pickle_module is pickle:
        return lambda file: _TrustingUnpickler(file, **arguments)

    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc, name-defined]
        def find_class(self, module: str, name: str) -> Any:
            return _imported(module, name, super().find_class)

    return lambda file: Unpickler(file, **arguments)


class _Reader:
    """One archive that is being read. path: of a file whose contents shall be mapped."""

    def __init__(self, archive: Archive, map_location: Any, path: Any) -> None:
        self.archive = archive
        self.map_location = map_location
        self.swap = self._order() != sys.byteorder
        self.storages: dict[Any, Bytes] = {}
        self.contents = Contents(archive)
        self.mapped: Any = None
        self.shared = False
        if path is not None:
            self.shared = config.load.mmap_flags == getattr(_mmap, "MAP_SHARED", None)
            access = _mmap.ACCESS_WRITE if self.shared else _mmap.ACCESS_COPY
            with open(path, "r+b" if self.shared else "rb") as file:
                self.mapped = np.frombuffer(_mmap.mmap(file.fileno(), 0, access=access), np.uint8)

    def _order(self) -> str:
        if "byteorder" in self.archive:
            order = self.archive.read("byteorder", SMALL)
            if order not in (b"little", b"big"):
                raise ValueError("Unknown endianness type: " + order[:50].decode(errors="replace"))
            return order.decode()
        fallback = config.load.endianness
        if fallback is None or fallback == LoadEndianness.LITTLE:
            return "little"
        if fallback not in (LoadEndianness.BIG, LoadEndianness.NATIVE):
            raise ValueError("Invalid load endianness type")
        return "big" if fallback == LoadEndianness.BIG else sys.byteorder

    def load(self, unpickler: Callable) -> Any:
        """The object."""
        made = unpickler(io.BytesIO(self.archive.read("data.pkl")))
        made.persistent_load = self._persistent
        try:
            result = made.load()
        except BaseException:
            self.contents.finish(failed=True)
            raise
        self.contents.finish()
        return result

    def _persistent(self, pid: Any) -> LoadedStorage:
        """The storage that a pickle refers to."""
        if not isinstance(pid, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(pid).__name__}")
        kind = pid[0].decode("ascii") if pid and isinstance(pid[0], bytes) else pid[:1] and pid[0]
        if kind != "storage":
            raise AssertionError(
                f"Unknown typename for persistent_load, expected 'storage' but got '{shown(kind)[:40]}'"
            )
        if len(pid) != 5:
            raise ValueError(f"not enough values to unpack (expected 4, got {len(pid) - 1})")
        _, named, key, location, count = pid
        location = location.decode("ascii") if isinstance(location, bytes) else location
        cls = names.storage_class(named)
        if cls is None or not isinstance(key, (str, int)) or type(count) is not int or not isinstance(location, str):
            raise pickle.UnpicklingError("a storage must have a class, a key, a location and a number of elements")
        loaded = self.storages.get(key)
        if loaded is None:
            loaded = self.storages[key] = self._storage(f"data/{key}", count * cls.dtype.itemsize, location, cls.dtype)
        return LoadedStorage(loaded, cls.dtype)

    def _storage(self, name: str, count: int, location: str, dtype: Any) -> Bytes:
        if is_meta(self.map_location):
            return Bytes(None, count, META)
        size = self.archive.record(name).size
        if size != count:
            raise RuntimeError(
                f"record size ({size} bytes) does not match expected size ({count} bytes = {count} elements * 1 "
                "bytes/element) for dtype Byte"
            )

        def content() -> Bytes:
            if LOADING.skip_data:
                array: np.ndarray = np.zeros(count, np.uint8)
            elif self.mapped is not None:
                start = self.archive.mappable(name) if count else 0
                array = self.mapped[start : start + count]
                if self.shared and count and not self.swap:
                    return Bytes(array, count, CPU, shared=True)
            else:
                array = self.contents.get(name)
            return Bytes(legacy.swapped(array, dtype) if self.swap else array, count, CPU)

        return restored(content, location, dtype, self.map_location)


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
    so that only files of trusted origin should be read. mmap: the file stays on disk until its numbers are needed, and
    is not checked for damage. pickle_load_args: of the unpickler (encoding).

    pickle.UnpicklingError for what weights_only does not accept; RuntimeError for damaged files; NotImplementedError
    for TorchScript archives and for sparse, quantised and nested tensors."""
    weights_only, pickle_module = _trust(weights_only, pickle_module)
    if pickle_load_args and weights_only:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    if mmap is None:
        mmap = config.load.mmap
    _check_dill(pickle_module)
    pickle_load_args.setdefault("encoding", "utf-8")
    if _is_path(f):
        if os.fspath(f).endswith(".safetensors"):
            return _load_safetensors(os.fspath(f), map_location)
        opened: Any = open(f, "rb")
    else:
        opened = contextlib.nullcontext(f)
        _check_seekable(f)
    before = LOADING.map_location
    LOADING.map_location = map_location
    try:
        with opened as file:
            unpickler = _unpickler(weights_only, pickle_module, pickle_load_args)
            return _load(file, f if _is_path(f) else None, f, map_location, weights_only, mmap, unpickler)
    except pickle.UnpicklingError as e:
        if weights_only and not isinstance(e, Damaged):
            raise pickle.UnpicklingError(_explained(str(e))) from None
        raise
    finally:
        LOADING.map_location = before


def _load(
    file: Any, path: Any, f: Any, map_location: Any, weights_only: bool, mapped: bool, unpickler: Callable
) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input: the file is empty")
    if head == b"PK\x03\x04":
        archive = _opened(file)
        _refuse_script(archive, weights_only)
        if mapped and path is None:
            raise ValueError("f must be a file path in order to use the mmap argument")
        return _Reader(archive, map_location, path if mapped else None).load(unpickler)
    if mapped:
        name = f"{f}, " if isinstance(f, str) else ""
        raise RuntimeError(
            f"mmap can only be used with files saved with `torch.save({name}_use_new_zipfile_serialization=True), "
            "please torch.save your checkpoint with this option in order to use mmap."
        )
    legacy.check_tar(file, weights_only, RISK)
    return legacy.Reader(file, unpickler, map_location).load()


def _opened(file: Any) -> Archive:
    """An archive whose version can be read."""
    archive = Archive(file)
    if "version" in archive or ".data/version" in archive:
        text = archive.read("version" if "version" in archive else ".data/version", SMALL)
    else:
        raise RuntimeError('not a checkpoint: the archive has no record "version"')
    try:
        version = int(text)
    except ValueError:
        shortened = text[:40].decode(errors="replace")
        raise RuntimeError(f"Couldn't parse the version {shortened} as Long Long.") from None
    if not 1 <= version <= MAX_VERSION:
        bound, age = ("minimum", 1) if version < 1 else ("maximum", MAX_VERSION)
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the {bound} supported version for reading "
            f"is {age}. "
            + (
                "Your PyTorch script module file is too old. Please regenerate it with latest version of PyTorch to "
                "mitigate this issue."
                if version < 1
                else "The version of your PyTorch installation may be too old, please upgrade PyTorch to latest "
                "version to mitigate this issue."
            )
        )
    return archive


def _refuse_script(archive: Archive, weights_only: bool) -> None:
    if "constants.pkl" not in archive:
        return
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call "
        "'torch.jit.load' directly to silence this warning)",
        UserWarning,
        stacklevel=4,
    )
    if weights_only:
        raise RuntimeError(
            f"Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. {RISK}"
        )
    raise NotImplementedError(
        "torchlike: torch.load of a TorchScript archive, which holds a program and not only tensors; in PyTorch, save "
        "torch.jit.load(file).state_dict() with torch.save and load that"
    )


def _trust(weights_only: bool | None, pickle_module: Any) -> tuple[bool, Any]:
    """(weights_only, pickle_module) as arguments and environment have it."""
    unset = weights_only is None
    only = pickle_module is None if unset else bool(weights_only)
    force, force_not = (
        os.getenv(f"TORCH_FORCE_{name}", "0").lower() in ("1", "y", "yes", "true")
        for name in ("WEIGHTS_ONLY_LOAD", "NO_WEIGHTS_ONLY_LOAD")
    )
    if force and force_not:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if force:
        only = True
    elif force_not and unset:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        only = False
    if only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    return only, pickle if pickle_module is None else pickle_module


def _check_seekable(f: Any) -> None:
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as e:
        if "seek" in str(e) or "tell" in str(e):
            raise type(e)(
                f"{e}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
                "like io.BytesIO and try to load from it instead."
            ) from None
        raise


def _load_safetensors(path: str, map_location: Any) -> Any:
    if map_location is not None and not isinstance(map_location, (str, bytes, Device)):
        kind = "dict" if isinstance(map_location, dict) else "callable"
        raise RuntimeError(
            f"Loading safetensors file with {kind} map_location is not supported. "
            "Use a device string or torch.device instead."
        )
    if sys.modules.get("torch") is not sys.modules["torchlike"]:
        raise NotImplementedError(
            "torchlike: torch.load of a .safetensors file without the alias (`python -m torchlike`, "
            "`torchlike.install()`), because the package safetensors imports torch"
        )
    try:
        found = importlib.import_module("safetensors.torch")
    except ImportError as e:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. "
            "Please install safetensors with: pip install safetensors"
        ) from e
    return found.load_file(path, device="cpu" if map_location is None else str(map_location))


def _explained(message: str) -> str:
    """An error of the restricted unpickler, and what can be done about it, in PyTorch's words."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two options, "
            "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
            f"\n\t(1) {RISK}\n\t(2) Alternatively, to load with `weights_only=True` please check "
            f"the recommended steps in the following error message.\n\tWeightsUnpickler error: {message}{DOCS}"
        )
    if re.search(r"(\S+) must be (\S+) to load", message):
        return f"Weights only load failed. {message}\n {RISK}\n"
    issue = (
        "Please file an issue with the following so that we can make "
        "`weights_only=True` compatible with your use case: WeightsUnpickler error: "
    )
    if re.search(r"whose module (\S+) is blocked", message):
        issue = ""
    return f"Weights only load failed. {RISK}\n{issue}\n\n{message}{DOCS}"


# -- what weights_only accepts besides ---------------------------------------------------------------------------------


def add_safe_globals(safe_globals: list) -> None:
    """Classes and functions that files may name from now on, when read with weights_only=True.

    Each is the object, or a pair of it and the full name that the file has for it."""
    for item in set(safe_globals):
        if item not in names.USER:
            names.USER.append(item)


def get_safe_globals() -> list:
    """What `add_safe_globals` has added."""
    return list(names.USER)


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has added."""
    names.USER.clear()


class safe_globals:
    """add_safe_globals, within this context."""

    def __init__(self, safe_globals: list) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *unused: object) -> None:
        removed = set(self.safe_globals)
        names.USER[:] = [item for item in names.USER if item not in removed]


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The full names in a file that weights_only=True does not accept. Nothing of the file is executed.

    ValueError: the file is not one that torch.save wrote."""
    if not _is_path(f):
        _check_seekable(f)
    with open(f, "rb") if _is_path(f) else contextlib.nullcontext(f) as file:
        start = file.tell()
        head = file.read(4)
        file.seek(start)
        if head != b"PK\x03\x04":
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = _opened(file)
        if "constants.pkl" in archive:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint"
            )
        found = globals_of(io.BytesIO(archive.read("data.pkl")))
    allowed = names.allowed()
    return list(found - set(allowed.names) - set(allowed.user))


# -- settings ----------------------------------------------------------------------------------------------------------


class LoadEndianness(Enum):
    """The byte order of files that do not say."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files that do not say; None is little."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files that do not say."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether torch.save writes the CRC-32 of each record."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether torch.save writes the CRC-32 of each record. Without it, damage is not noticed by torch.load."""
    config.save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """How torch.load(mmap=True) maps a file: MAP_PRIVATE or MAP_SHARED."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Set how torch.load(mmap=True) maps a file; as a context, for a while.

    flags: mmap.MAP_PRIVATE (tensors can be written to, the file stays as it is) or mmap.MAP_SHARED (both change)."""

    def __init__(self, flags: int) -> None:
        if not hasattr(_mmap, "MAP_PRIVATE"):
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        if flags not in (_mmap.MAP_PRIVATE, _mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, "
                f"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        config.load.mmap_flags = self.prev


class skip_data:
    """A context in which torch.save leaves the place of storages' bytes empty, and torch.load does not read them (the
    tensors are zero)."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = LOADING.skip_data
        LOADING.skip_data = True

    def __exit__(self, *unused: object) -> None:
        LOADING.skip_data = self._before


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Tags and devices of one's own. Low priorities are asked first, until one answers.

    tagger: storage -> its tag, or None. deserializer: (storage, tag) -> the storage where the tag says, or None."""
    REGISTRY.append((priority, tagger, deserializer))
    REGISTRY.sort(key=lambda entry: entry[0])


def validate_cuda_device(location: str) -> int | None:
    """The index of the GPU that a location names. RuntimeError if there is none such."""
    return validate_cuda(location).index
