"""Zip archives as PyTorch writes them: uncompressed records whose contents start at multiples of 64 bytes.

The reader believes nothing that a file says about itself. Before a record is read, all records are known to lie apart
from each other within the file, so that what they hold together is no more than the file's own size; compressed ones
(PyTorch writes none, other programs do) may not expand without limit. Contents are checked against their CRC-32,
except where it is 0: that is what PyTorch writes when it computes none (`set_crc32_options(False)`, `skip_data`)."""

import io
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

ALIGNMENT = 64
CHUNK = 1 << 18
"""Bytes that are read or written, and checked while they are still in the processor's cache, at once."""
LARGE = 1 << 20
"""From this size on, memory comes from the system in one piece."""
MAX32 = 0xFFFFFFFF
EXPANSION = 100
EXPANDED = 64 << 20
"""A compressed record that becomes larger than EXPANDED may not grow more than EXPANSION times."""

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_DAMAGED = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint "
    "file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the "
    "file was modified after saving."
)


def damaged(doing: str, why: str) -> RuntimeError:
    """The error for an archive that is not whole, in PyTorch's words."""
    return RuntimeError(f"PytorchStreamReader failed {doing}: {why}. {_DAMAGED}")


def _listing(why: str) -> RuntimeError:
    return damaged("reading zip archive", why)


class Source:
    """Bytes at positions: of a file by its descriptor, or of anything that has seek and read."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.start = file.tell()
        self.end = file.seek(0, os.SEEK_END)
        if self.end is None:  # a file-like object whose seek returns nothing
            self.end = file.tell()
        self.size = self.end - self.start
        self.descriptor = file.fileno() if isinstance(file, (io.FileIO, io.BufferedReader)) else None
        if self.descriptor is not None and not hasattr(os, "preadv"):
            self.descriptor = None

    def read(self, position: int, count: int) -> bytes:
        """Up to `count` bytes at `position`."""
        count = max(0, min(count, self.size - position))
        content = bytearray(count)
        self.fill(position, memoryview(content))
        return bytes(content)

    def fill(self, position: int, target: memoryview) -> None:
        """All of `target`. RuntimeError if the file ends before."""
        done, position = 0, position + self.start
        if self.descriptor is None:
            self.file.seek(position)
        while done < len(target):
            part = target[done:]
            if self.descriptor is not None:
                count = os.preadv(self.descriptor, [part], position + done)
            elif hasattr(self.file, "readinto"):
                count = self.file.readinto(part)
            else:
                piece = self.file.read(len(part))
                count = len(piece)
                part[:count] = piece
            if not count:
                raise _listing("unexpected end of file")
            done += count


def empty_bytes(count: int) -> np.ndarray:
    """Memory to read into, uint8. Large pieces are mapped and filled with pages at once: faulting them in one by one
    costs more than reading does. (Huge pages cost more still where the system has to make them first.)"""
    if count < LARGE or not hasattr(mmap, "MAP_POPULATE"):
        return np.empty(count, np.uint8)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    return np.frombuffer(mmap.mmap(-1, count, flags=flags), np.uint8)


THREADS = 2
AHEAD = 2
"""Large records that are read before they are asked for."""


class Contents:
    """The contents of an archive's records, in memory of their own. Large ones are read and checked by other threads,
    and those that lie behind in the file already with them."""

    def __init__(self, archive: "Archive") -> None:
        self.archive = archive
        self.pool: ThreadPoolExecutor | None = None
        self.checked: dict[str, Future] = {}
        self.asked: list[str] = []
        large = [(r.header, name) for name, r in archive.records.items() if r.size >= LARGE and not r.method]
        self.order = [name for _, name in sorted(large)]
        self.places = {name: k for k, name in enumerate(self.order)}
        self.begun: dict[str, Future] = {}
        self.next = 0

    def get(self, name: str) -> np.ndarray:
        """uint8 of the record's size. What its CRC-32 says may only be known at `finish`."""
        place = self.places.get(name)
        if place is None:
            return self._fresh(name, check=True)
        self.asked.append(name)
        if self.pool is None:
            self.pool = ThreadPoolExecutor(THREADS, "checkpoint")
        if self.archive.source.descriptor is None:  # a file object has one position
            content = self._fresh(name)
            self.checked[name] = self.pool.submit(self._check, name, content)
            return content
        if name not in self.begun:
            self._begin(place)
        for k in range(max(self.next, place + 1), min(place + 1 + AHEAD, len(self.order))):
            self._begin(k)
        return self.begun.pop(name).result()

    def _fresh(self, name: str, check: bool = False) -> np.ndarray:
        """The record in new memory, its CRC-32 compared now or left to `_check`."""
        content = empty_bytes(self.archive.record(name).size)
        self.archive.read_into(name, content, check)
        return content

    def _begin(self, place: int) -> None:
        assert self.pool is not None
        name, there = self.order[place], Future()  # type: ignore[var-annotated]
        self.begun[name] = there
        self.next = max(self.next, place + 1)
        self.checked[name] = self.pool.submit(self._read, name, there)

    def _read(self, name: str, there: Future) -> None:
        try:
            content = self._fresh(name)
        except BaseException as error:
            there.set_exception(error)
            return
        there.set_result(content)
        self._check(name, content)

    def _check(self, name: str, content: np.ndarray) -> None:
        record = self.archive.record(name)
        if record.crc:
            _matches(name, record, zlib.crc32(memoryview(content)))  # type: ignore[arg-type]

    def finish(self, failed: bool = False) -> None:
        """Wait for all, and raise what was wrong with one that was asked for."""
        pool, self.pool = self.pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=failed)
            if not failed:
                for name in self.asked:
                    self.checked[name].result()


def _matches(name: str, record: "Record", crc: int) -> None:
    if record.crc and crc != record.crc:
        raise damaged(
            f"reading file {name}",
            f"CRC-32 check failed: its contents are not what was saved ({crc:08x} instead of {record.crc:08x})",
        )


class Record(NamedTuple):
    """An entry of an archive's directory."""

    header: int
    method: int
    crc: int
    stored: int
    size: int
    encoded: int
    """Length of the name in bytes."""


class Archive:
    """The records of a zip file, by their names within its one folder.

    file: positioned at the archive's first byte; the archive ends where the file does."""

    def __init__(self, file: Any) -> None:
        self.source = Source(file)
        self.folder = ""
        self.records: dict[str, Record] = {}
        self._read_directory()

    # -- the directory ------------------------------------------------------------------------------------------------

    def _read_directory(self) -> None:
        source = self.source
        if source.size < _END.size:
            raise _listing("not a ZIP archive")
        tail_at = max(0, source.size - _END.size - 0xFFFF)
        tail = source.read(tail_at, source.size - tail_at)
        found = tail.rfind(b"PK\x05\x06")
        while found >= 0 and len(tail) - found < _END.size:
            found = tail.rfind(b"PK\x05\x06", 0, found)
        if found < 0:
            raise _listing("failed finding central directory")
        end_at = tail_at + found
        _, disk, first_disk, here, count, size, at, _ = _END.unpack_from(tail, found)
        if end_at >= _LOCATOR.size:
            locator = source.read(end_at - _LOCATOR.size, _LOCATOR.size)
            if locator[:4] == b"PK\x06\x07":
                disk, here, count, size, at = self._end64(_LOCATOR.unpack(locator)[2], end_at)
                first_disk = disk
        if disk or first_disk or here != count:
            raise _listing("multidisk archives are not supported")
        if at + size > end_at or count * _CENTRAL.size > size:
            raise _listing("invalid header or archive is corrupted")
        entries = source.read(at, size)
        position = 0
        names = []
        for _ in range(count):
            name, record, position = _entry(entries, position)
            names.append((name, record))
        self.ends = _check_apart([r for _, r in names], at)
        self._name(names)

    def _end64(self, at: int, end_at: int) -> tuple:
        if at + _END64.size > end_at - _LOCATOR.size:
            raise _listing("invalid header or archive is corrupted")
        signature, _, _, _, disk, _, here, count, size, start = _END64.unpack(self.source.read(at, _END64.size))
        if signature != b"PK\x06\x06":
            raise _listing("invalid header or archive is corrupted")
        return disk, here, count, size, start

    def _name(self, names: list) -> None:
        if not names:
            raise RuntimeError("PytorchStreamReader: the archive is empty")
        folder, slash, _ = names[0][0].partition("/")
        if not slash:
            raise RuntimeError(f"file in archive is not in a subdirectory: {names[0][0]}")
        self.folder = folder
        for name, record in names:
            if name.startswith(folder + "/"):
                short = name[len(folder) + 1 :]
                if short in self.records:
                    raise _listing(f"the directory has two records named {short!r}")
                self.records[short] = record

    # -- contents -----------------------------------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def record(self, name: str) -> Record:
        """The entry of a record. RuntimeError if there is none."""
        found = self.records.get(name)
        if found is None:
            raise damaged(f"locating file {name}", "file not found")
        return found

    def offset(self, name: str) -> int:
        """Where in the archive the contents of an uncompressed record start."""
        record = self.record(name)
        header = self.source.read(record.header, _LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\x03\x04":
            raise damaged(f"reading file {name}", "invalid header or archive is corrupted")
        values = _LOCAL.unpack(header)
        start = record.header + _LOCAL.size + values[9] + values[10]
        if values[9] != record.encoded or start + record.stored > self.source.size:
            raise damaged(f"reading file {name}", "invalid header or archive is corrupted")
        named = self.source.read(record.header + _LOCAL.size, values[9])
        if named != f"{self.folder}/{name}".encode("utf-8", "surrogateescape"):
            raise damaged(f"reading file {name}", "the directory and the record disagree about its name")
        return start

    def mappable(self, name: str) -> int:
        """`offset`, for a record whose contents will not be checked: they must fill the space to the next one."""
        record = self.record(name)
        start = self.offset(name)
        if record.method:
            raise damaged(f"mapping file {name}", "it is compressed; load it without mmap")
        if record.size and self.ends[record.header] - start - record.stored not in (0, 12, 16, 20, 24):
            raise damaged(f"mapping file {name}", "there is a gap between its contents and the next record")
        return start

    def read(self, name: str, most: int = 1 << 62) -> bytes:
        """The contents of a record of at most `most` bytes."""
        record = self.record(name)
        if record.size > most:
            raise damaged(f"reading file {name}", f"{record.size} bytes where at most {most} make sense")
        content = np.empty(record.size, np.uint8)
        self.read_into(name, content)
        return content.tobytes()

    def read_into(self, name: str, target: np.ndarray, check: bool = True) -> None:
        """The contents of a record into an array (uint8) of its size, checked against the record's CRC-32, unless the
        caller will do that."""
        record = self.record(name)
        start = self.offset(name)
        view = memoryview(target)  # type: ignore[arg-type]
        if record.method:
            _matches(name, record, self._inflate(name, record, start, view))
            return
        self.source.fill(start, view)
        if check and record.crc:
            _matches(name, record, zlib.crc32(view))

    def _inflate(self, name: str, record: Record, start: int, view: memoryview) -> int:
        machine = zlib.decompressobj(-15)
        done = crc = 0
        try:
            for at in range(0, record.stored, CHUNK):
                pending = self.source.read(start + at, min(CHUNK, record.stored - at))
                while pending:
                    part = machine.decompress(pending, CHUNK)
                    if done + len(part) > record.size:
                        raise damaged(f"reading file {name}", "it expands to more than its directory says")
                    view[done : done + len(part)] = part
                    crc = zlib.crc32(part, crc)
                    done += len(part)
                    pending = machine.unconsumed_tail
        except zlib.error as e:
            raise damaged(f"reading file {name}", f"decompression failed ({e})") from None
        if done != record.size or not machine.eof:
            raise damaged(f"reading file {name}", "it expands to less than its directory says")
        return crc


def _entry(entries: bytes, position: int) -> tuple:
    """(name, Record, position of the next entry)."""
    if position + _CENTRAL.size > len(entries):
        raise _listing("invalid header or archive is corrupted")
    values = _CENTRAL.unpack_from(entries, position)
    signature, _, _, flags, method, _, _, crc, stored, size, length, extra, comment, _, _, _, header = values
    if signature != b"PK\x01\x02":
        raise _listing("invalid header or archive is corrupted")
    begin = position + _CENTRAL.size
    after = begin + length + extra + comment
    if after > len(entries):
        raise _listing("invalid header or archive is corrupted")
    name = entries[begin : begin + length].decode("utf-8", "surrogateescape")
    if flags & 0x2041:
        raise _listing(f"record {name!r} is encrypted")
    if MAX32 in (stored, size, header):
        stored, size, header = _wide(entries[begin + length : begin + length + extra], stored, size, header)
    if method not in (0, 8):
        raise _listing(f"record {name!r} has compression method {method}, which is not supported")
    if not method and stored != size:
        raise _listing(f"record {name!r} has two different sizes, {stored} and {size} bytes")
    if method and size > EXPANDED and size > stored * EXPANSION:
        raise _listing(f"record {name!r} would expand from {stored} to {size} bytes: refused as a zip bomb")
    return name, Record(header, method, crc, stored, size, length), after


def _wide(extra: bytes, stored: int, size: int, header: int) -> tuple[int, int, int]:
    """Sizes and offset of an entry whose 32 bits do not hold them: those in its zip64 field."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        if kind == 1:
            wanted = [size == MAX32, stored == MAX32, header == MAX32]
            if 8 * sum(wanted) > length or position + 4 + length > len(extra):
                break
            numbers = iter(struct.unpack_from(f"<{sum(wanted)}Q", extra, position + 4))
            size, stored, header = (
                next(numbers) if w else v for w, v in zip(wanted, (size, stored, header), strict=True)
            )
            return stored, size, header
        position += 4 + length
    raise _listing("a record's zip64 sizes are missing")


def _check_apart(records: list[Record], directory: int) -> dict[int, int]:
    """No record lies over another one or over the directory. Where each ends at the latest, by where it begins."""
    reached = 0
    begins = sorted(record.header for record in records)
    for record in sorted(records):
        if record.header < reached:
            raise _listing("records overlap: refused as a zip bomb")
        reached = record.header + _LOCAL.size + record.encoded + record.stored
    if reached > directory:
        raise _listing("a record reaches beyond the archive's end")
    return dict(zip(begins, [*begins[1:], directory], strict=True))


# -- writing -----------------------------------------------------------------------------------------------------------


class Writer:
    """A context that writes an archive front to back, byte for byte as PyTorch lays it out.

    write: takes a bytes-like object."""

    def __init__(self, write: Callable, folder: str, crc: bool = True, alignment: int = ALIGNMENT) -> None:
        self.write = write
        self.folder = folder
        self.crc = crc
        self.alignment = alignment
        self.position = 0
        self.pending = bytearray()
        self.entries: list[tuple] = []
        self.pool: ThreadPoolExecutor | None = None

    def _crc_later(self, content: memoryview) -> Future:
        """The CRC-32 of a large record, worked out while it is written."""
        if self.pool is None:
            self.pool = ThreadPoolExecutor(1, "checkpoint")
        return self.pool.submit(zlib.crc32, content)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *unused: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def _put(self, content: Any) -> None:
        self.position += len(content)
        if len(content) < CHUNK // 4:
            self.pending += content
            if len(self.pending) < CHUNK:
                return
            content = b""
        self._flush()
        if len(content):
            self.write(content)

    def _flush(self) -> None:
        if self.pending:
            pending, self.pending = self.pending, bytearray()
            self.write(pending)

    def add(self, name: str, content: Any, crc: bool | None = None) -> None:
        """One record. content: bytes-like. crc: whether to compute its CRC-32, if not as the archive says."""
        encoded = f"{self.folder}/{name}".encode()
        size, header = len(content), self.position
        flags = 0x0808 if size else 0x0800
        wide = [size] * 2 if size >= MAX32 else []
        wide += [header] if header >= MAX32 else []
        extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        padding = -(header + _LOCAL.size + len(encoded) + len(extra) + 4) % self.alignment
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        self._put(_LOCAL.pack(b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(encoded), len(extra)) + encoded + extra)
        wanted = self.crc if crc is None else crc
        view = memoryview(content)
        later = self._crc_later(view) if wanted and size >= LARGE else None
        total = zlib.crc32(view) if wanted and later is None else 0
        for at in range(0, size, CHUNK):
            self._put(view[at : at + CHUNK])
        if later is not None:
            total = later.result()
        if size:
            self._put(struct.pack("<4sIQQ" if wide else "<4sIII", b"PK\x07\x08", total, size, size))
        self.entries.append((encoded, flags, total, size, header))

    def close(self) -> None:
        """The directory."""
        start = self.position
        for encoded, flags, crc, size, header in self.entries:
            wide = [size] * 2 if size >= MAX32 else []
            wide += [header] if header >= MAX32 else []
            extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
            short, at = min(size, MAX32), min(header, MAX32)
            values = (0, 0, flags, 0, 0, 0, crc, short, short, len(encoded), len(extra), 0, 0, 0, 0, at)
            self._put(_CENTRAL.pack(b"PK\x01\x02", *values) + encoded + extra)
        length, count, end = self.position - start, len(self.entries), self.position
        self._put(_END64.pack(b"PK\x06\x06", 44, 0x031E, 45, 0, 0, count, count, length, start))
        self._put(_LOCATOR.pack(b"PK\x06\x07", 0, end, 1))
        few = min(count, 0xFFFF)
        self._put(_END.pack(b"PK\x05\x06", 0, 0, few, few, min(length, MAX32), min(start, MAX32), 0))
        self._flush()

    def serialization_id(self) -> str:
        """40 digits that follow from the records' names and contents."""
        text = b"".join(struct.pack("<I", crc) + name for name, _, crc, _, _ in self.entries)
        return "".join(f"{zlib.crc32(text, k):010d}" for k in range(4))


# -- files -------------------------------------------------------------------------------------------------------------

_counter = iter(range(1 << 62))
_lock = threading.Lock()


class Replacement:
    """A context that writes a file under another name, and gives it its own when all of it is there.

    Whatever happens in between leaves the file that was there before as it was. Where nothing can be created beside the
    file (or it is a device or a pipe), it is written directly, as it cannot be replaced."""

    def __init__(self, path: Any) -> None:
        self.given = path
        self.path = os.path.realpath(path)
        self.temporary: str | None = None

    def __enter__(self) -> Any:
        mode = None
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:
            pass
        if mode is None or os.path.isfile(self.path):
            folder, base = os.path.split(self.path)
            with _lock:
                number = next(_counter)
            name = os.path.join(folder, f".{base[:40]}.{os.getpid()}.{number}.tmp")
            if mode is not None and not os.access(self.path, os.W_OK):
                raise PermissionError(13, "Permission denied", self.given)
            try:
                self.file = open(name, "xb", buffering=0)
                self.temporary = name
                if mode is not None:
                    os.chmod(name, mode & 0o7777)
                return self
            except FileNotFoundError:
                raise FileNotFoundError(2, "No such file or directory", self.given) from None
            except PermissionError:
                if mode is None:
                    raise PermissionError(13, "Permission denied", self.given) from None
        self.file = open(self.path, "wb", buffering=0)
        return self

    def write(self, content: Any) -> int:
        """All of `content`."""
        view = memoryview(content)
        done = 0
        while done < len(view):
            done += self.file.write(view[done:])  # type: ignore[operator]
        return done

    def flush(self) -> None:
        """Nothing waits."""

    def __exit__(self, kind: Any, *unused: object) -> None:
        try:
            self.file.close()
            if kind is None and self.temporary is not None:
                os.replace(self.temporary, self.path)
                self.temporary = None
        finally:
            if self.temporary is not None:
                try:
                    os.remove(self.temporary)
                except OSError:
                    pass
