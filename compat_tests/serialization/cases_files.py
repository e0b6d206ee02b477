"""torch.save and torch.load: what comes back, and what is refused."""

import io
import os
import pickle
import tempfile
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
