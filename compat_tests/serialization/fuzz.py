"""Files that a mutator has damaged or forged, and what `torch.load` may do with them.

Allowed: an error with a reason, within TIME, with MEMORY more at most; or the object. The object must be the one that
was saved if a checksum covers what was changed. Forged files have right checksums (or are of the format that has none):
whatever comes of them must be readable tensors.

As a program, `python -m compat_tests.serialization.fuzz [COUNT [FIRST]]` tries COUNT seeds and prints what happened."""

import collections
import encodings.raw_unicode_escape  # noqa: F401  # pickle imports it by name when a pickle has such text
import gc
import io
import os
import pathlib
import pickle
import pickletools
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from typing import Any

import torchlike as torch

TIME = 2.0
MEMORY = 512 << 20
READ = 1 << 20
"""Tensors with at most so many elements are read; a file may hold one number, expanded without end."""
HOSTILE = [
    "os system", "posix system", "nt system", "sys exit", "subprocess Popen", "builtins eval", "builtins exec",
    "__builtin__ eval", "builtins getattr", "builtins bytearray", "builtins set", "builtins complex", "torch Tensor",
    "torch FloatTensor", "torch.nn.parameter Parameter", "torch Size", "torch device", "_codecs encode",
    "collections OrderedDict", "collections Counter", "torch._tensor _rebuild_from_type_v2", "torch float64",
    "torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v3", "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state", "torch._utils _rebuild_meta_tensor_no_storage", "torch LongStorage",
    "torch.storage UntypedStorage", "torch QInt8Storage", "torch._utils _rebuild_sparse_tensor", "torch.hub load",
    "torch.serialization _get_layout", "torch._C Generator", "builtins type",
]  # fmt: skip
NUMBERS = [-1, -2, 0, 1, 2, 3, 7, 255, 256, 65535, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, 1 << 62, (1 << 63) - 1,
           1 << 63, 1 << 64, -(1 << 63), 1 << 200]  # fmt: skip


def saved() -> Any:
    """What every file holds before it is changed."""
    a = torch.arange(12.0).reshape(3, 4)
    p = torch.nn.Parameter(torch.ones(5))
    p.note = "mine"
    return collections.OrderedDict(
        base=a, view=a[1:, ::2], column=a.t(), tied=[p, p], half=torch.arange(9).to(torch.bfloat16),
        long=torch.arange(-4, 4), flags=torch.tensor([True, False]), odd=torch.arange(3).to(torch.uint16),
        scalar=torch.tensor(2.5), none=torch.zeros(0, 3), shape=torch.Size([1, 2]),
        plain=[1, 2.5, "x", None, (1, 2), {3}],
    )  # fmt: skip


def originals() -> dict[str, bytes]:
    """The files that are changed."""
    out = {}
    for name, settings in (("zip", {}), ("legacy", {"_use_new_zipfile_serialization": False})):
        file = io.BytesIO()
        torch.save(saved(), file, **settings)
        out[name] = file.getvalue()
    return out


# -- changing ----------------------------------------------------------------------------------------------------------


def number(n: int) -> bytes:
    """The instruction that makes an integer."""
    content = pickle.encode_long(n)
    return b"\x8a" + bytes([len(content)]) + content


def edit_pickle(rng: random.Random, program: bytes) -> bytes:
    """A program with a few instructions changed."""
    starts = [at for _, _, at in pickletools.genops(program)]
    parts = [program[a:b] for a, b in zip(starts, [*starts[1:], len(program)], strict=True)]
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        k = rng.randrange(len(parts))
        numbers = [i for i, p in enumerate(parts) if p[:1] in (b"K", b"M", b"J", b"\x8a")]
        names = [i for i, p in enumerate(parts) if p[:1] == b"c"]
        texts = [i for i, p in enumerate(parts) if p[:1] == b"X"]
        kind = rng.randrange(12)
        if kind == 0:
            del parts[k]
        elif kind == 1:
            parts.insert(k, rng.choice(parts))
        elif kind == 2:
            other = rng.randrange(len(parts))
            parts[k], parts[other] = parts[other], parts[k]
        elif kind <= 5 and numbers:
            parts[rng.choice(numbers)] = number(rng.choice(NUMBERS))
        elif kind <= 7 and names:
            parts[rng.choice(names)] = b"c" + rng.choice(HOSTILE).replace(" ", "\n").encode() + b"\n"
        elif kind == 8 and texts:
            text = rng.choice(
                [b"", b"storage", b"../../x", b"cuda:0", b"meta", b"0", b"1", b"_s", b"\xff", b"x" * 70000]
            )
            parts[rng.choice(texts)] = b"X" + struct.pack("<I", len(text)) + text
        elif kind == 9:
            parts[k:k] = [
                rng.choice([b"(", b")", b"]", b"}", b"\x8f", b"0", b"R", b"\x81", b"b", b"Q", b"t", b"u", b"2"])
            ]
        elif kind == 10:
            parts[k:k] = [b"\x85"] * rng.choice((3, 50_000))  # a tuple in a tuple in a tuple
        else:
            parts[k:k] = [b")", *[b"q\xf0h\xf0\x86"] * 60]  # one that has each earlier one twice
        if not parts:
            parts = [b"."]
    return b"".join(parts)


def edit_zip(rng: random.Random, content: bytes) -> bytes:
    """An archive whose directory or headers say something else."""
    data = bytearray(content)
    kind = rng.choice((b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"PK\x07\x08"))
    at = [k for k in range(len(data)) if data.startswith(kind, k)]
    where = rng.choice(at) + rng.randrange(4, 46 if kind == b"PK\x01\x02" else 22)
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice([*NUMBERS, len(content), len(content) - 1, rng.randrange(len(content))]) % (1 << (8 * width))
    data[where : where + width] = value.to_bytes(width, "little")
    return bytes(data[: max(len(content), where + width)])


def edit_bytes(rng: random.Random, content: bytes) -> bytes:
    """Bits flipped, or a piece cut out, doubled, overwritten or filled in."""
    data = bytearray(content)
    kind = rng.randrange(6)
    at = rng.randrange(len(data))
    length = rng.choice((1, 2, 8, 100, 1000))
    if kind <= 1:
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del data[at : at + length]
    elif kind == 3:
        data[at:at] = data[at : at + length]
    elif kind == 4:
        data[at : at + length] = rng.randbytes(min(length, len(data) - at))
    else:
        del data[at:]
    return bytes(data)


def rezipped(records: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive with right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as z:
        for name, content in records.items():
            z.writestr(name, content)
    return file.getvalue()


def mutated(seed: int, files: dict[str, bytes]) -> tuple[str, bytes]:
    """(what was done, the file)."""
    rng = random.Random(seed)
    kind = rng.choice(("zip bytes", "zip headers", "zip headers", "forged pickle", "forged pickle", "forged records",
                       "legacy bytes", "legacy pickle"))  # fmt: skip
    if kind == "zip bytes":
        return kind, edit_bytes(rng, files["zip"])
    if kind == "zip headers":
        return kind, edit_zip(rng, files["zip"])
    if kind == "legacy bytes":
        return kind, edit_bytes(rng, files["legacy"])
    if kind == "legacy pickle":
        file = io.BytesIO(files["legacy"])
        for _ in range(3):
            pickle.load(file)
        start = file.tell()
        for _ in pickletools.genops(file):
            pass
        program = files["legacy"][start : file.tell()]
        return kind, files["legacy"][:start] + edit_pickle(rng, program) + files["legacy"][file.tell() :]
    with zipfile.ZipFile(io.BytesIO(files["zip"])) as z:
        records = {name: z.read(name) for name in z.namelist()}
    if kind == "forged pickle":
        records["archive/data.pkl"] = edit_pickle(rng, records["archive/data.pkl"])
    else:
        name = rng.choice(list(records))
        change = rng.randrange(4)
        if change == 0:
            del records[name]
        elif change == 1:
            records[name] = records[name][: rng.randrange(len(records[name]) + 1)]
        elif change == 2:
            records[name] += rng.randbytes(rng.choice((1, 8, 5000)))
        else:
            records[name] = edit_bytes(rng, records[name]) if records[name] else b"x"
    return kind, rezipped(records, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


# -- watching ----------------------------------------------------------------------------------------------------------

FORBIDDEN = ("os.", "subprocess.", "exec", "shutil.", "socket.", "ctypes.", "pty.", "webbrowser.")
_watched: list[str] | None = None


def _watch(event: str, arguments: tuple) -> None:
    if event == "exec" and getattr(arguments[0], "co_filename", "").startswith(("<host ", "<torchlike")):
        return  # torchlike's own generated code: whoever reads a tensor computes it
    if _watched is not None and (event.startswith(FORBIDDEN) or (event == "open" and "w" in str(arguments[1]))):
        _watched.append(f"{event} {str(arguments)[:100]}")


class Late(BaseException):
    """A load that did not end in time."""


def _late(*unused: object) -> None:
    raise Late


def described(x: Any) -> Any:
    """A comparable form; every tensor that is not too large is read."""
    if isinstance(x, torch.Tensor):
        numbers = x.detach().tolist() if x.numel() <= READ and x.device.type == "cpu" else None
        return [type(x).__name__, str(x.dtype), list(x.shape), list(x.stride()), x.requires_grad, str(numbers)]
    if isinstance(x, dict):
        return [type(x).__name__, [(described(k), described(v)) for k, v in x.items()]]
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, [described(v) for v in x]]
    return [type(x).__name__, str(x)[:1000]]


def attempt(content: bytes, expected: Any, checked: bool, way: str = "memory") -> tuple[str, str]:
    """(outcome, why): 'error', 'same' or 'other' are allowed, 'bad' is not."""
    global _watched
    source: Any = io.BytesIO(content)
    if way != "memory":
        source = pathlib.Path(tempfile.gettempdir(), f"fuzz.{os.getpid()}.pt")
        source.write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, TIME)
    _watched = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = torch.load(source, mmap=way == "map")
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        outcome, why = "other", ""
    except Late:
        return "bad", "took too long"
    except MemoryError as e:
        return "bad", f"MemoryError {e}"
    except Exception as e:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        outcome, why = "error", f"{type(e).__name__}: {str(e)[-300:]}"
        if not str(e):
            outcome, why = "bad", f"{type(e).__name__} without a reason"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        seen, _watched = _watched, None
        if way != "memory":
            source.unlink()
    if seen:
        return "bad", f"{outcome}, and {seen}"
    if time.process_time() - start > TIME:
        return "bad", "took too long"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    if grown > MEMORY:
        return "bad", f"used {grown >> 20} MiB"
    if outcome == "other":
        same = bounded(result) and described(result) == expected
        outcome = "same" if same else "other"
        if checked and not same:
            return "bad", "another object than was saved"
    return outcome, why


def bounded(x: Any) -> bool:
    """Whether the object, written out, is small: containers can hold each other many times."""
    pending, count = [x], 0
    while pending and count < 2000:
        part = pending.pop()
        count += 1
        if isinstance(part, dict):
            pending += [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple, set)):
            pending += list(part)[:2000]
    return count < 2000


def run(seeds: Any, way: str = "memory") -> tuple[collections.Counter, list]:
    """(outcomes by kind of change, the bad ones). way: a file object in memory, a path ("file"), or one whose contents
    are mapped ("map"), which no checksum covers."""
    files = originals()
    expected = described(torch.load(io.BytesIO(files["zip"])))
    assert described(torch.load(io.BytesIO(files["legacy"]))) == expected
    assert attempt(files["zip"], expected, True, way)[0] == "same"
    attempt(b"nothing", None, False, way)  # what is imported for an error's text is imported now
    outcomes: collections.Counter = collections.Counter()
    bad = []
    gc.collect()
    gc.freeze()  # what earlier tests left: looking through all of it takes longer than a file may
    try:
        for seed in seeds:
            kind, content = mutated(seed, files)
            outcome, why = attempt(content, expected, kind.startswith("zip") and way != "map", way)
            outcomes[kind, outcome] += 1
            if outcome == "bad":
                bad.append((seed, kind, why))
    finally:
        gc.unfreeze()
    return outcomes, bad


sys.addaudithook(_watch)

if __name__ == "__main__":
    count, first = (int(a) for a in [*sys.argv[1:], "10000", "0"][:2]) if len(sys.argv) != 2 else (int(sys.argv[1]), 0)
    began = time.process_time()
    failed = False
    for way in ("memory", "file", "map"):
        outcomes, bad = run(range(first, first + count), way)
        failed |= bool(bad)
        for key in sorted(outcomes):
            print(f"{key[0]:16} {key[1]:6} {outcomes[key]:6}")
        print(f"{way}: {count} files, {time.process_time() - began:.1f} s of CPU so far, {len(bad)} bad")
        for one in bad[:50]:
            print(*one)
    os._exit(failed)
