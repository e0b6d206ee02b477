"""Files that are damaged or made to do harm: an error with a reason, soon, in bounded memory, and nothing executed."""

import io
import os
import pathlib
import pickle
import signal
import struct
import subprocess
import sys
import time
import zipfile
from typing import Any

import pytest

import torchlike
from compat_tests.serialization import fuzz

STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x03tQ"


def program(offset: int = 0, size: int = 3, stride: int = 1, storage: bytes = STORAGE) -> bytes:
    """A pickle of one tensor over a storage of three numbers."""
    geometry = fuzz.number(offset) + fuzz.number(size) + b"\x85" + fuzz.number(stride) + b"\x85"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + geometry + b"\x89NtR."


def archive(pickled: bytes, method: int = zipfile.ZIP_STORED, **records: bytes) -> io.BytesIO:
    """A file with that pickle, and a storage of 12 bytes."""
    made = {"a/data.pkl": pickled, "a/version": b"3\n", "a/data/0": bytes(12)}
    return io.BytesIO(fuzz.rezipped(made | {f"a/{k}": v for k, v in records.items()}, method))


def test_fuzz() -> None:
    outcomes, bad = fuzz.run(range(500))
    assert not bad
    assert sum(outcomes.values()) == 500


def test_fuzz_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlike._src.checkpoint.archive.LARGE", 8)  # so that records are read by threads
    assert not fuzz.run(range(500, 650), "file")[1]
    assert not fuzz.run(range(650, 750), "map")[1]


def test_fuzz_long(oracle: Any) -> None:
    """10,000 files, with --oracle only; `python -m compat_tests.serialization.fuzz` prints more."""
    assert not fuzz.run(range(10_000))[1]
    assert not fuzz.run(range(10_000, 13_000), "file")[1]
    assert not fuzz.run(range(13_000, 16_000), "map")[1]


@pytest.mark.parametrize(
    "settings, why",
    [
        ({"size": 4}, "need 16 bytes, the storage has 12"),
        ({"offset": 1}, "need 16 bytes, the storage has 12"),
        ({"offset": -1}, "invalid storage offset -1"),
        ({"size": -1}, "overflow"),
        ({"size": 1 << 62}, "overflow"),
        ({"size": 1 << 70}, "more than 64 bits"),
        ({"stride": -1}, "Storage size calculation overflowed"),
        ({"stride": 1 << 40}, "the storage has 12"),
    ],
)
def test_geometry_is_checked(settings: dict, why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        torchlike.load(archive(program(**settings)))


def test_storages_are_checked() -> None:
    with pytest.raises(RuntimeError, match="does not match expected size"):
        torchlike.load(archive(program(storage=STORAGE.replace(b"K\x03", b"\x8a\x05\x00\x00\x00\x00\x40"))))
    with pytest.raises(RuntimeError, match="file not found"):
        torchlike.load(archive(program(storage=STORAGE.replace(b"\x000X", b"\x009X"))))
    file = io.BytesIO()
    torchlike.save(torchlike.arange(4.0), file, _use_new_zipfile_serialization=False)
    larger = file.getvalue().replace(b"K\x04Nt", b"J\xff\xff\xff\x7fNt")
    with pytest.raises(RuntimeError, match="expected 8589934588 got 16"):
        torchlike.load(io.BytesIO(larger))


def test_every_changed_byte_is_noticed() -> None:
    file = io.BytesIO()
    torchlike.save(torchlike.arange(64.0), file)
    content = file.getvalue()
    start = content.index(struct.pack("<2f", 1, 2)) - 4
    for k in range(start, start + 256, 5):
        changed = bytearray(content)
        changed[k] ^= 1
        with pytest.raises(RuntimeError, match="CRC-32 check failed"):
            torchlike.load(io.BytesIO(bytes(changed)))


def test_large_records(tmp_path: Any) -> None:
    """Read by threads, some before they are asked for: right, in any order, and every damage to what was asked for is
    noticed."""
    made = {str(k): torchlike.full((300_000 + k,), float(k)) for k in range(7)}
    path = tmp_path / "a.pt"
    torchlike.save([made, made["5"], made["0"][:2]], path)
    for source in (path, io.BytesIO(path.read_bytes())):
        loaded, *others = torchlike.load(source)
        assert all(torchlike.equal(loaded[k], v) for k, v in made.items())
        assert [x.data_ptr() for x in others] == [loaded[k].data_ptr() for k in ("5", "0")]
    content = bytearray(path.read_bytes())
    content[content.index(struct.pack("<2f", 6, 6)) + 1_000_000] ^= 4
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="reading file data/6: CRC-32 check failed"):
        torchlike.load(path)
    with pytest.raises(RuntimeError, match="reading file data/6: CRC-32 check failed"):
        torchlike.load(io.BytesIO(content))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(RuntimeError, match="finding central directory"):
        torchlike.load(path)


def test_bombs() -> None:
    began = time.process_time()
    with pytest.raises(RuntimeError, match="zip bomb"):
        torchlike.load(archive(b"\x80\x02" + b"(" * (65 << 20) + b".", zipfile.ZIP_DEFLATED))
    with pytest.raises(pickle.UnpicklingError, match="more than 1000 parts"):  # a key that takes 2**60 steps to hash
        torchlike.load(archive(b"\x80\x02})" + b"q\x00h\x00\x86" * 60 + b"Ns."))
    with pytest.raises(pickle.UnpicklingError, match="more than 1000 parts"):  # one whose hash overflows the C stack
        torchlike.load(archive(b"\x80\x02})" + b"\x85" * 200_000 + b"Ns."))
    deep = torchlike.load(archive(b"\x80\x02)" + b"\x85" * 200_000 + b"."))
    assert len(deep) == 1
    del deep
    for name in ("builtins\nbytearray", "torch\nTensor", "torch\nFloatTensor"):
        with pytest.raises(pickle.UnpicklingError):
            torchlike.load(archive(f"\x80\x02c{name}\n".encode("latin1") + fuzz.number(1 << 33) + b"\x85R."))
    assert time.process_time() - began < 8


def test_overlapping_records() -> None:
    content = bytearray(archive(program()).getvalue())
    at = content.rindex(b"PK\x01\x02")
    content[at + 42 : at + 46] = bytes(4)  # the last record begins where the first does
    with pytest.raises(RuntimeError, match="overlap"):
        torchlike.load(io.BytesIO(bytes(content)))


def test_kill_leaves_the_older_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file.pt"
    torchlike.save(torchlike.ones(3), path)
    code = (
        "import os, sys, torchlike; from torchlike._src.checkpoint import archive\n"
        "write = archive.Replacement.write\n"
        "def slow(self, content): write(self, memoryview(content)[:100]); os.kill(os.getpid(), 9)\n"
        "archive.Replacement.write = slow\n"
        "torchlike.save(torchlike.zeros(1000), sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert done.returncode == -signal.SIGKILL
    assert torchlike.load(path).tolist() == [1, 1, 1]


def test_failure_leaves_the_older_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.pt"
    torchlike.save(torchlike.ones(3), path)
    path.chmod(0o640)

    def full(self: Any, content: Any) -> int:
        raise OSError(28, "No space left on device")

    from torchlike._src.checkpoint import archive

    for older in (False, True):
        with monkeypatch.context() as m:
            m.setattr(archive.Replacement, "write", full)
            with pytest.raises(OSError, match="No space left"):
                torchlike.save(torchlike.zeros(5), path, _use_new_zipfile_serialization=not older)
        assert os.listdir(tmp_path) == ["file.pt"]
        assert torchlike.load(path).tolist() == [1, 1, 1]
    torchlike.save(torchlike.zeros(1), path)
    assert path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    torchlike.save(torchlike.ones(1), link)
    assert link.is_symlink() and torchlike.load(path).tolist() == [1]


def test_mapping_reads_what_is_touched(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "file.pt"
    torchlike.save({str(k): torchlike.full((1 << 20,), float(k)) for k in range(16)}, path)  # 64 MiB
    pages = os.sysconf("SC_PAGE_SIZE")

    def resident() -> int:
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * pages

    before = resident()
    state = torchlike.load(path, mmap=True)
    assert resident() - before < 4 << 20
    assert state["3"][-1].item() == 3
    assert state["5"].sum().item() == 5 << 20
    assert resident() - before < 24 << 20
    state["3"][0] = 7
    assert torchlike.load(path)["3"][0].item() == 3


def test_shared_mapping_writes_the_file(tmp_path: pathlib.Path) -> None:
    import mmap

    path = tmp_path / "file.pt"
    torchlike.save([torchlike.arange(4.0)], path)
    with torchlike.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        x = torchlike.load(path, mmap=True)[0]
    x[1] = 50
    x.tolist()
    assert torchlike.load(path, mmap=True)[0].tolist() == [0, 50, 2, 3]


def test_unsupported_tensors_are_named() -> None:
    for name in ("_rebuild_sparse_tensor", "_rebuild_qtensor", "_rebuild_nested_tensor", "_rebuild_wrapper_subclass"):
        with pytest.raises(NotImplementedError, match="torchlike: torch.load of a"):
            torchlike.load(archive(f"\x80\x02ctorch._utils\n{name}\n(NNtR.".encode("latin1")))
    script = archive(b"\x80\x02N.", **{"constants.pkl": b""})
    with pytest.warns(UserWarning, match="TorchScript"), pytest.raises(RuntimeError, match="weights_only=True"):
        torchlike.load(script)
    script.seek(0)
    with (
        pytest.warns(UserWarning, match="TorchScript"),
        pytest.raises(NotImplementedError, match="TorchScript archive"),
    ):
        torchlike.load(script, weights_only=False)
