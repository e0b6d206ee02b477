"""torch.save and torch.load: what comes back, and what is refused."""

import io
import os
import pickle
import tempfile
import zipfile
from collections import Counter, OrderedDict
from typing import Any

from compat_tests import case, raises


def example(torch: Any) -> dict[str, Any]:
    """Tensors that share storages, a parameter that is there twice, and what else state dicts hold."""
    a = torch.arange(6.0)
    p = torch.nn.Parameter(torch.ones(2) * 3)
    return {
        "a": a,
        "view": a[2:4].view(2, 1),
        "transposed": torch.arange(6).reshape(2, 3).t(),
        "expanded": torch.ones(1).expand(4),
        "parameter": p,
        "again": p,
        "ordered": OrderedDict(x=torch.ones(2, dtype=torch.bfloat16)),
        "types": [
            torch.ones(2, dtype=getattr(torch, d)) for d in ("half", "int8", "bool", "complex64", "uint16", "double")
        ],
        "requires_grad": torch.ones(1, requires_grad=True),
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(2.5),
        "shape": torch.Size([1, 2]),
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "plain": [1, 2.5, "x", None, True, (1, 2), {3}, 2**70, 1j, b"ab", bytearray(b"q"), Counter("aab")],
    }


def described(x: Any) -> Any:
    if hasattr(x, "storage_offset"):
        return [
            type(x).__name__,
            x.dtype,
            list(x.shape),
            list(x.stride()),
            x.storage_offset(),
            x.requires_grad,
            x.tolist(),
        ]
    if isinstance(x, dict):
        return [type(x).__name__, {k: described(v) for k, v in x.items()}]
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, [described(v) for v in x]]
    return [type(x).__name__, str(x)]


@case(modes=("default",))
@case.params("settings", [{}, {"weights_only": False}, {"mmap": True}, {"map_location": "cpu"}])
def case_round_trip(torch: Any, settings: dict) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.pt")
        torch.save("older", path)
        torch.save(example(torch), path)
        back = torch.load(path, **settings)
        left = sorted(os.listdir(folder))
        out = described(back)
        back["a"][2] = 99
        return [out, back["view"][0, 0].item(), back["parameter"] is back["again"], left]


@case(modes=("default",))
def case_state_dicts(torch: Any) -> Any:
    def made() -> tuple:
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
        return net, torch.optim.Adam(net.parameters(), lr=0.1)

    def step(net: Any, optimizer: Any) -> float:
        loss = net(torch.arange(12.0).reshape(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    net, optimizer = made()
    for _ in range(3):
        step(net, optimizer)
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    losses = [step(net, optimizer) for _ in range(3)]
    file.seek(0)
    state = torch.load(file)
    other, other_optimizer = made()
    other.load_state_dict(state["net"])
    other_optimizer.load_state_dict(state["optimizer"])
    again = [step(other, other_optimizer) for _ in range(3)]
    return losses == again, list(state["net"]), state["optimizer"]["param_groups"]


class Harmful:
    """Its pickle runs a command."""

    def __reduce__(self) -> tuple:
        return os.system, ("echo this must never be printed",)


class Own:
    def __init__(self) -> None:
        self.number = 1


@case(modes=("default",))
def case_refused(torch: Any) -> Any:
    def load(obj: Any, **settings: Any) -> Any:
        file = io.BytesIO()
        torch.save(obj, file)
        file.seek(0)
        return torch.load(file, **settings)

    Own.__module__ = Harmful.__module__ = "somewhere"  # the name that messages show
    import sys
    import types

    sys.modules["somewhere"] = module = types.ModuleType("somewhere")
    module.Own, module.Harmful = Own, Harmful
    try:
        refused = [raises(torch, lambda o=o: load(o)) for o in (Harmful(), {"a": Own()}, [torch.nn.Linear(2, 2)])]
        with torch.serialization.safe_globals([Own]):
            accepted = load([Own()])[0].number
        after = Own in torch.serialization.get_safe_globals()
        trusted = load(Own(), weights_only=False).number
    finally:
        del sys.modules["somewhere"]
    both = torch.ones(2, dtype=torch.complex64)
    return {
        "refused": refused,
        "accepted": [accepted, after, trusted],
        "missing": raises(torch, lambda: torch.load("/nowhere/at/all.pt")),
        "no file": [raises(torch, lambda: torch.save(1, 3)), raises(torch, lambda: torch.load(3))],
        "no folder": raises(torch, lambda: torch.save(1, "/nowhere/at/all.pt")),
        "two dtypes": raises(torch, lambda: torch.save([both, torch.view_as_real(both)], io.BytesIO())),
        "pickle": raises(torch, lambda: torch.load(io.BytesIO(), pickle_module=pickle, weights_only=True)),
    }


@case(modes=("default",))
def case_interrupted(torch: Any) -> Any:
    """A file that cannot be written leaves the older one as it was, and nothing beside it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.pt")
        torch.save([torch.ones(2)], path)
        failed = raises(torch, lambda: torch.save([torch.ones(3), lambda: 0], path + ".other"))[0] in (
            "PicklingError",
            "AttributeError",
        )
        return failed, torch.load(path)


def stored(torch: Any, obj: Any, **settings: Any) -> io.BytesIO:
    """The object in a file, positioned at its start."""
    file = io.BytesIO()
    torch.save(obj, file, **settings)
    file.seek(0)
    return file


@case(modes=("default",))
@case.params("older", [False, True])
def case_map_location(torch: Any, older: bool) -> Any:
    settings = {"_use_new_zipfile_serialization": not older}
    x = torch.arange(3.0)
    seen: list = []

    def spy(storage: Any, location: str) -> Any:
        seen.append([isinstance(storage, torch.UntypedStorage), location, storage.nbytes(), str(storage.device)])
        return storage

    forms = ["cpu", torch.device("cpu"), "meta", torch.device("meta"), {"cpu": "meta"}, {"cuda:0": "cpu"}, None,
             spy, lambda storage, location: None, "nowhere", "cuda", "cuda:7", b"cpu", 3, "cpu:0",
             lambda s, l: 5]  # fmt: skip
    out = []
    for form in forms:

        def back(form: Any = form) -> Any:
            t, view = torch.load(stored(torch, [x, x[1:]], **settings), map_location=form)
            return [t.device.type, t.dtype, list(view.shape), t.tolist() if t.device.type == "cpu" else None]

        try:
            out.append(back())
        except Exception as e:
            out.append([type(e).__name__, str(e)])
    return [out, seen]


@case(modes=("default",))
@case.params("older", [False, True])
def case_file_objects(torch: Any, older: bool) -> Any:
    class Written:
        def __init__(self) -> None:
            self.content = b""

        def write(self, data: Any) -> int:
            self.content += bytes(data)
            return len(data)

    class Flushed(Written):
        def flush(self) -> None:
            pass

    class Uncallable:
        write = 3

    class Minimal:
        def __init__(self, content: bytes) -> None:
            file = io.BytesIO(content)
            self.read, self.readline, self.seek, self.tell = file.read, file.readline, file.seek, file.tell

    class NoSeek:
        def read(self, n: int = -1) -> bytes:
            return b""

    class NoTell(NoSeek):
        def seek(self, *args: Any) -> int:
            return 0

    class Stream(io.RawIOBase):
        def readable(self) -> bool:
            return True

    settings = {"_use_new_zipfile_serialization": not older}
    x = torch.arange(3.0)
    target = Flushed()
    torch.save(x, target, **settings)
    shifted = io.BytesIO(b"something before")
    shifted.seek(0, 2)
    torch.save(x, shifted, **settings)
    shifted.seek(len(b"something before"))
    several = io.BytesIO()
    for k in range(3):
        torch.save(x + k, several, _use_new_zipfile_serialization=False)
    several.seek(0)
    return {
        "minimal": torch.load(Minimal(target.content)),
        "shifted": torch.load(shifted),
        "several": [torch.load(several) for _ in range(3)] + [several.read()],
        "no flush": raises(torch, lambda: torch.save(x, Written(), **settings)),
        "uncallable": raises(torch, lambda: torch.save(x, Uncallable())),
        "refused": [raises(torch, lambda c=c: torch.load(c())) for c in (NoSeek, NoTell, Stream)]
        + [raises(torch, lambda c=c: torch.load(c)) for c in (None, b"abc")],
        "mapped": raises(torch, lambda: torch.load(stored(torch, x, **settings), mmap=True)),
    }


def ordered(file: io.BytesIO, order: bytes | None) -> io.BytesIO:
    """The same file with another byte order, or none, written in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if not name.endswith("byteorder"):
                new.writestr(name, old.read(name))
            elif order is not None:
                new.writestr(name, order)
    out.seek(0)
    return out


@case(modes=("default",))
def case_settings(torch: Any) -> Any:
    s = torch.serialization
    x = torch.arange(3.0)
    net = torch.nn.Linear(2, 2)
    before = s.get_crc32_options()
    s.set_crc32_options(False)
    unchecked = torch.load(stored(torch, x))
    s.set_crc32_options(before)
    s.set_default_load_endianness(s.LoadEndianness.BIG)
    added_anyway = torch.load(stored(torch, x, _disable_byteorder_record=True))
    swapped = [added_anyway]
    for order in (None, b"little", b"big", b"middle"):
        file = ordered(stored(torch, [x, x.to(torch.complex64), x.short(), x.bool()]), order)
        swapped.append(raises(torch, lambda f=file: torch.load(f)) if order == b"middle" else torch.load(file))
    given = s.get_default_load_endianness().name
    s.set_default_load_endianness(None)
    with s.skip_data():
        skipped = torch.load(stored(torch, x))
        older = raises(torch, lambda: torch.save(x, io.BytesIO(), _use_new_zipfile_serialization=False))
    s.add_safe_globals([Own])
    added = Own in s.get_safe_globals()
    s.clear_safe_globals()
    return {
        "crc": [before, unchecked],
        "swapped": [given, swapped],
        "skipped": [list(skipped.shape), skipped.dtype, older],
        "safe": [added, s.get_safe_globals()],
        "mapping": [s.get_default_mmap_options(), raises(torch, lambda: s.set_default_mmap_options(7))],
        "unsafe": sorted(s.get_unsafe_globals_in_checkpoint(stored(torch, [net, x, {1}, 1j, b"x"]))),
        "none unsafe": s.get_unsafe_globals_in_checkpoint(stored(torch, net.state_dict())),
        "no checkpoint": raises(torch, lambda: s.get_unsafe_globals_in_checkpoint(io.BytesIO(b"abcdef"))),
        "storages": [
            [type(u).__name__, u.dtype, u.tolist()]
            for u in torch.load(stored(torch, [x.untyped_storage(), (x + 1).untyped_storage()]))
        ],
        "encoding": raises(torch, lambda: torch.load(stored(torch, x), weights_only=False, other=1)),
        "endianness": raises(torch, lambda: s.set_default_load_endianness("big")),
    }


@case(modes=("default",))
def case_protocols(torch: Any) -> Any:
    x = torch.arange(3.0)
    out: list = []
    for older in (False, True):
        for protocol in (2, 3, 4, 5):
            file = stored(torch, [x, x[1:]], pickle_protocol=protocol, _use_new_zipfile_serialization=not older)
            out.append(torch.load(file, weights_only=False))
            file.seek(0)
            if protocol > 3:
                out.append(raises(torch, lambda file=file: torch.load(file)))
    return out


@case(modes=("default",))
def case_damaged(torch: Any) -> Any:
    """Truncated files, and what is no checkpoint."""
    whole = stored(torch, torch.arange(3.0)).getvalue()
    older = stored(torch, torch.arange(3.0), _use_new_zipfile_serialization=False).getvalue()
    cuts = [
        raises(torch, lambda n=n: torch.load(io.BytesIO(whole[:n]))) for n in (10, 100, len(whole) - 30, len(whole) - 1)
    ]
    cuts += [raises(torch, lambda n=n: torch.load(io.BytesIO(older[:-n]))) for n in (1, 12)]
    others = [pickle.dumps(5, 2), pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(5, 2), pickle.dumps([1], 4)]
    return cuts + [raises(torch, lambda c=c: torch.load(io.BytesIO(c))) for c in others]


@case(modes=("default",))
@case.params("protocol", [4, 5])
def case_names_of_later_protocols(torch: Any, protocol: int) -> Any:
    """Methods and memory formats, which these protocols name with a dot."""
    optimizer = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1)
    found = []
    for value in (torch.channels_last, scheduler):
        file = io.BytesIO()
        torch.save(value, file, pickle_protocol=protocol)
        names = zipfile.ZipFile(io.BytesIO(file.getvalue())).read("archive/data.pkl")
        back = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
        found.append([type(back).__name__, b"torchlike" in names, b"torch.optim.lr_scheduler" in names])
    return found


@case(modes=("default",))
def case_meta_and_local_objects(torch: Any) -> Any:
    back = pickle.loads(pickle.dumps(torch.ones(3, 2, device="meta").t()))
    return [
        list(back.shape), list(back.stride()), back.device.type,
        raises(torch, lambda: torch.save(lambda: 3, io.BytesIO())),
    ]  # fmt: skip
