"""The format from before PyTorch 1.6: four pickles (a magic number, a version, the machine, the object), one with the
keys of the storages, and the storages: each its number of elements (int64) and its elements.

The storages come after the pickle that needs them. They are found first, so that what the pickle asks for can be
checked against what is there."""

import os
import pickle
import struct
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlike._src.checkpoint import names, rebuild
from torchlike._src.checkpoint.archive import CHUNK, empty_bytes
from torchlike._src.checkpoint.location import is_meta, restored
from torchlike._src.checkpoint.pickler import Storages, pickler_for
from torchlike._src.core.restricted_pickle import Damaged, shown

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001


class SourceChangeWarning(Warning):
    """The source of a module's class is not what it was when the module was saved."""


def save(obj: Any, file: Any, pickle_module: Any, protocol: int) -> None:
    """Write an object. file: anything with write and flush."""
    machine = {
        "protocol_version": VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for header in (MAGIC, VERSION, machine):
        pickle_module.dump(header, file, protocol=protocol)
    storages = Storages(legacy=True)
    pickler_for(pickle_module, file, protocol, storages).dump(obj)
    found = {key: (content, dtype) for key, content, dtype, _ in storages.known.values()}
    keys = sorted(found)
    pickle_module.dump(keys, file, protocol=protocol)
    file.flush()
    for key in keys:
        content, dtype = found[key]
        if sys.byteorder == "big":
            content = swapped(content, dtype)
        file.write(struct.pack("<q", len(content) // dtype.itemsize))
        for at in range(0, len(content), CHUNK):
            file.write(memoryview(content)[at : at + CHUNK])


def swapped(content: np.ndarray, dtype: Any) -> np.ndarray:
    """The bytes in the other byte order."""
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if width == 1:
        return content
    return content[: len(content) // width * width].view(f"u{width}").byteswap().view(np.uint8)


# -- reading -----------------------------------------------------------------------------------------------------------


def check_tar(file: Any, weights_only: bool, risk: str) -> None:
    """RuntimeError or NotImplementedError for the format from before PyTorch 0.2."""
    if not _is_real(file) or file.tell():
        return
    import tarfile  # rarely needed, and slow to import

    try:
        tarfile.open(fileobj=file, mode="r:", format=tarfile.PAX_FORMAT).close()
    except tarfile.TarError:
        file.seek(0)
        return
    if weights_only:
        raise RuntimeError(f"Cannot use ``weights_only=True`` with files saved in the legacy .tar format. {risk}")
    raise NotImplementedError(
        "torchlike: torch.load of a file in the .tar format from before PyTorch 0.2; load it and save it again with "
        "PyTorch"
    )


def _is_real(file: Any) -> bool:
    """Whether it is a file on disk, read as it is."""
    if getattr(file, "__module__", None) == "gzip":
        return False
    try:
        return file.fileno() >= 0
    except (AttributeError, OSError):
        return False


class _Inert:
    """What the scan makes of everything that is not part of a storage's reference."""


class _InPieces:
    """A file of which long stretches are read piece by piece: no memory is taken for what is not there."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.readline = file.readline

    def read(self, count: int) -> bytes:
        if count <= CHUNK:
            return self.file.read(count)  # type: ignore[no-any-return]
        pieces = []
        while count > 0:
            piece = self.file.read(min(count, CHUNK))
            if not piece:
                break
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)


class _Scan(pickle._Unpickler):
    """Runs a pickle without importing, calling or filling anything, for the storages that it refers to."""

    if TYPE_CHECKING:  # what the stubs leave out
        stack: list[Any]

        def pop_mark(self) -> list[Any]: ...

    def __init__(self, file: Any) -> None:
        super().__init__(_InPieces(file))
        self.widths: dict[Any, int] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Storage classes; anything else is inert."""
        found = names.BY_STORAGE.get(name) or (names.UNTYPED if name == "UntypedStorage" else None)
        return found if found is not None and module.split(".")[0] == "torch" else _Inert()

    def persistent_load(self, pid: Any) -> Any:
        """Remember a storage's element size."""
        if type(pid) is tuple and len(pid) == 6 and isinstance(pid[2], (str, bytes, int)):
            kind = names.storage_class(pid[1])
            if kind is not None:
                self.widths.setdefault(pid[2], kind.dtype.itemsize)
        return _Inert()

    def _drop(self) -> None:
        self.stack.pop()

    def _drop_two(self) -> None:
        del self.stack[-2:]

    def _drop_marked(self) -> None:
        self.pop_mark()

    def _call(self) -> None:
        self.stack[-2:] = [_Inert()]

    def _call_with_names(self) -> None:
        self.stack[-3:] = [_Inert()]

    def _call_marked(self) -> None:
        self.pop_mark()
        self.stack.append(_Inert())

    def _long_bytes(self) -> None:
        self.read(struct.unpack("<Q", self.read(8))[0])  # type: ignore[attr-defined]
        self.stack.append(_Inert())

    def _instance(self) -> None:
        self.readline()  # type: ignore[attr-defined]
        self.readline()  # type: ignore[attr-defined]
        self._call_marked()

    _own: dict[int, Any] = {
        getattr(pickle, name)[0]: function
        for name, function in {
            "APPEND": _drop, "APPENDS": _drop_marked, "SETITEM": _drop_two, "SETITEMS": _drop_marked,
            "ADDITEMS": _drop_marked, "BUILD": _drop, "REDUCE": _call, "NEWOBJ": _call,
            "NEWOBJ_EX": _call_with_names, "OBJ": _call_marked, "INST": _instance, "FROZENSET": _call_marked,
            "LIST": _call_marked, "DICT": _call_marked, "BYTEARRAY8": _long_bytes,
        }.items()
    }  # fmt: skip
    dispatch = {**pickle._Unpickler.dispatch, **_own}


class Reader:
    """A file that is being read. unpickler: (file) -> an unpickler with `load` and a settable `persistent_load`."""

    def __init__(self, file: Any, unpickler: Any, map_location: Any) -> None:
        self.file = file
        self.unpickler = unpickler
        self.map_location = map_location
        self.loaded: dict[Any, Any] = {}
        self.found: dict[Any, tuple[int, int]] = {}
        self.end: int | None = None
        self.problem: Exception | None = None

    def load(self) -> Any:
        """The object."""
        magic = self._pickled()
        if type(magic) is not int or magic != MAGIC:
            raise RuntimeError("Invalid magic number; corrupt file?")
        version = self._pickled()
        if type(version) is not int or version != VERSION:
            raise RuntimeError(f"Invalid protocol version: {shown(version)[:40]}")
        self._pickled()
        start = self.file.tell()
        try:
            self._find_storages()
        except Exception as e:  # if the pickle has a problem too, that one is the cause
            self.problem = e
        self.file.seek(start)
        unpickler = self.unpickler(self.file)
        unpickler.persistent_load = self._persistent
        result = unpickler.load()
        if self.problem is not None:
            raise self.problem
        self.file.seek(self.end)
        return result

    def _pickled(self) -> Any:
        unpickler = self.unpickler(self.file)
        unpickler.persistent_load = _no_storage
        return unpickler.load()

    def _find_storages(self) -> None:
        """Where each storage's elements begin, and how many bytes they are."""
        file = self.file
        scan = _Scan(file)
        try:
            scan.load()
        except EOFError:
            raise EOFError("Ran out of input: the pickle is cut short") from None
        except Exception as e:
            raise Damaged(f"not a checkpoint, or a damaged one: its pickle makes no sense ({e})") from e
        keys = self._pickled()
        position = file.tell()
        file.seek(0, os.SEEK_END)
        size = file.tell()
        if type(keys) is not list:
            raise RuntimeError("not a checkpoint, or a damaged one: there is no list of storages after its pickle")
        for key in keys:
            if not isinstance(key, (str, bytes, int)) or key not in scan.widths or key in self.found:
                raise RuntimeError("not a checkpoint, or a damaged one: its list of storages does not fit its pickle")
            file.seek(position)
            header = file.read(8)
            if len(header) < 8:
                raise _short(8 - len(header))
            count = struct.unpack("<q", header)[0] * scan.widths[key]
            position += 8
            if count < 0:
                raise RuntimeError("not a checkpoint, or a damaged one: a storage has a negative size")
            if position + count > size:
                raise _short(position + count - size)
            self.found[key] = (position, count)
            position += count
        self.end = position

    def _persistent(self, pid: Any) -> Any:
        """What a persistent id stands for: a storage, or the class of a module with its source."""
        if not isinstance(pid, tuple):
            raise AssertionError(f"saved_id must be a tuple, got {type(pid).__name__}")
        kind, *data = pid
        kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
        if kind == "module" and len(data) == 3:
            if all(data[1:]):
                _check_source(*data)
            return data[0]
        if kind != "storage":
            raise RuntimeError(f"Unknown saved id type: {shown(kind)[:40]}")
        if len(data) != 5:
            raise ValueError(f"not enough values to unpack (expected 5, got {len(data)})")
        named, key, location, count, part = data
        cls = names.storage_class(named)
        if cls is None or not isinstance(key, (str, bytes, int)) or type(count) is not int:
            raise pickle.UnpicklingError("a storage must have a class, a key and a number of elements")
        if part is not None:
            raise NotImplementedError("torchlike: torch.load of a storage that is a view of another (PyTorch 0.1)")
        if key not in self.loaded:
            location = location.decode("ascii") if isinstance(location, bytes) else location
            self.loaded[key] = self._storage(key, location, count * cls.dtype.itemsize, cls.dtype)
        return rebuild.LoadedStorage(self.loaded[key], cls.dtype)

    def _storage(self, key: Any, location: Any, count: int, dtype: Any) -> Any:
        if is_meta(self.map_location):
            return rebuild.Bytes(None, count, rebuild.META)
        if key not in self.found:
            raise self.problem or RuntimeError(
                f"storage {str(key)[:40]} is not in the file, which is damaged or cut short"
            )
        position, there = self.found[key]
        if there != count:
            raise RuntimeError(f"storage has wrong byte size: expected {count} got {there}")

        def content() -> rebuild.Bytes:
            target = np.zeros(count, np.uint8) if rebuild.LOADING.skip_data else empty_bytes(count)
            if not rebuild.LOADING.skip_data:
                self._read(position, target)
                if sys.byteorder == "big":
                    target = swapped(target, dtype)
            return rebuild.Bytes(target, count, rebuild.CPU)

        before = self.file.tell()
        try:
            return restored(content, location, dtype, self.map_location)
        finally:
            self.file.seek(before)

    def _read(self, position: int, target: np.ndarray) -> None:
        file = self.file
        file.seek(position)
        view, done = memoryview(target), 0  # type: ignore[arg-type]
        while done < len(view):
            if hasattr(file, "readinto"):
                count = file.readinto(view[done:])
            else:
                piece = file.read(len(view) - done)
                count = len(piece)
                view[done : done + count] = piece
            if not count:
                raise _short(len(view) - done)
            done += count


def _no_storage(pid: Any) -> Any:
    raise pickle.UnpicklingError("unsupported persistent id encountered")


def _short(missing: int) -> RuntimeError:
    return RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")


def _check_source(cls: Any, source_file: Any, original: Any) -> None:
    """Warn if the class of a saved module has another source now; the library's own always have."""
    if getattr(cls, "__module__", "").split(".")[0] in ("torch", "torchlike"):
        return
    import inspect  # rarely needed, and slow to import

    try:
        current = inspect.getsource(cls)
    except Exception:  # having the source is optional
        warnings.warn(
            f"Couldn't retrieve source code for container of type {cls.__name__}. It won't be checked for correctness "
            "upon loading.",
            stacklevel=2,
        )
        return
    if current != original:
        warnings.warn(
            f"source code of class '{cls.__module__}.{cls.__qualname__}' has changed. you can retrieve the original "
            "source code by accessing the object's source attribute or set `torch.nn.Module.dump_patches = True` and "
            "use the patch tool to revert the changes.",
            SourceChangeWarning,
            stacklevel=2,
        )
