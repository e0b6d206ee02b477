"""What the round-trip matrix saves, and how it is compared.

As a program (`import torch` is PyTorch, or torchlike under `python -m torchlike`):
  matrix.py write FOLDER   saves every object as FOLDER/<name>.pt, and what it looks like as FOLDER/described.json
  matrix.py read FOLDER    loads FOLDER's objects and prints what they look like as JSON
  matrix.py record FOLDER  as write, but with a digest of each description: for `recorded`, with PyTorch"""

import collections
import hashlib
import json
import pathlib
import sys
import warnings
from typing import Any

DTYPES = (
    "float16 bfloat16 float32 float64 uint8 int8 int16 int32 int64 bool complex64 complex128 uint16 uint32 "
    "uint64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()

# -- objects -----------------------------------------------------------------------------------------------------


def of_bits(torch: Any, dtype: str) -> Any:
    """8 elements with many different bit patterns: NaNs with payloads, infinities, negative zero, subnormals."""
    kind = getattr(torch, dtype)
    if kind is torch.bool:
        return torch.tensor([True, False, False, True, True, True, False, True])
    size = torch.empty(0, dtype=kind).element_size()
    half = size // 2 if kind.is_complex else size
    patterns = [b"\x00", b"\x01", b"\x80", b"\x7f", b"\xff", b"\x3c", b"\xc1", b"\xf8"]
    raw = b"".join((bytes([k]) * (half - 1) + patterns[k % 8])[-half:] for k in range(8 * size // half))
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(kind)


def views(torch: Any) -> dict:
    base = torch.arange(24.0).reshape(2, 3, 4)
    ints = torch.arange(10)
    rows = torch.arange(12.0).reshape(3, 4)
    return {
        "base": base,
        "offset": base[1],
        "stride": base[:, ::2, 1::2],
        "transposed": base.transpose(0, 2),
        "permuted alone": torch.arange(6.0).reshape(1, 2, 3).permute(2, 0, 1),
        "channels last": torch.arange(16.0).reshape(1, 2, 4, 2).permute(0, 3, 1, 2),
        "expanded": torch.arange(3.0).reshape(3, 1).expand(3, 4),
        "expanded scalar": torch.tensor(2.0).expand(2, 2),
        "scalar of": base[1, 2, 3],
        "diagonal": rows.diagonal(),
        "unfolded": torch.arange(6.0).unfold(0, 3, 1),
        "strided": torch.as_strided(torch.arange(9.0), (2, 2), (1, 2), 3),
        "overlapping": torch.as_strided(ints, (3, 2), (1, 1), 2),
        "narrow": ints.narrow(0, 3, 4),
        "chunks": list(ints.chunk(3)),
        "slice alone": torch.arange(100.0)[90:95],
        "column alone": torch.arange(12.0).reshape(3, 4)[:, 1],
        "empty": torch.zeros(0, 3),
        "empty of": base[:, :, 4:],
        "unsqueezed": rows[1:2].unsqueeze(-1),
        "real": torch.view_as_real(torch.tensor([1 + 2j])),
        "squeezed": torch.arange(3.0)[None, :, None].squeeze(0),
        "bool": (ints > 4)[::3],
    }


def sharing(torch: Any) -> dict:
    shared = torch.arange(8.0)
    torch.manual_seed(2)
    p = torch.nn.Parameter(torch.ones(2, 3))
    net = tied(torch)
    return {
        "one": shared,
        "same object": shared,
        "alias": shared.view(2, 4),
        "detached": shared.detach(),
        "overlap": [shared[:5], shared[3:]],
        "inner": {"deep": (shared[2:3],)},
        "parameter": p,
        "parameter again": p,
        "its data": p.data,
        "its row": p.detach()[1],
        "frozen": torch.nn.Parameter(torch.zeros(2), requires_grad=False),
        "buffer": torch.nn.Buffer(torch.zeros(2), persistent=False),
        "leaf": torch.ones(2, requires_grad=True),
        "result": torch.ones(2, requires_grad=True) * 2,
        "tied": net.state_dict(),
        "tied kept": net.state_dict(keep_vars=True),
    }


def tied(torch: Any) -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(5, 3)
            self.head = torch.nn.Linear(3, 5, bias=False)
            self.head.weight = self.embedding.weight
            self.register_buffer("mask", torch.ones(5, 5).tril())
            self.register_buffer("hidden", torch.ones(1), persistent=False)

    return Net()


def containers(torch: Any) -> dict:
    t = torch.ones(2)
    ordered = collections.OrderedDict(b=t, a=[t, (t, {"x": t})])
    ordered.note = "an attribute"  # type: ignore[attr-defined]
    marked = torch.ones(1)
    marked.note = {"k": [1, t]}
    return {
        "ordered": ordered,
        "nested": [[], (), {}, [[[t]]], {1: {2.5: {None: {True: t}}}}, {(1, "a"): t}],
        "counter": collections.Counter("abca"),
        "sets": [{1, 2}, frozenset()][:1],
        "numbers": [0, -1, 255, 256, 2**31, -(2**63), 2**70, 1.5, float("inf"), 1e-320, True, False, None, 2 - 3j],
        "text": ["", "é \u4e2d \U0001f600", "a\nb", b"\x00\xff", bytearray(b"xy")],
        "size": [t.shape, torch.Size([]), torch.Size([2, 3])],
        "dtypes": [getattr(torch, d) for d in DTYPES],
        "devices": [torch.device("cpu"), torch.device("cpu", 0), torch.device("meta"), torch.device("cuda", 1)],
        "layouts": [torch.strided, torch.sparse_coo],
        "meta": [torch.empty(2, 3, device="meta"), torch.empty(4, dtype=torch.int8, device="meta")],
        "marked": marked,
    }


def net_and_data(torch: Any) -> tuple:
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    return net, torch.randn(5, 3), torch.randn(5, 2)


def optimizers(torch: Any) -> dict:
    """Constructors by name; the value is called with a module's parameters."""
    o = torch.optim
    groups = lambda ps: [{"params": ps[:1], "lr": 0.5}, {"params": ps[1:]}]  # noqa: E731
    return {
        "SGD": lambda ps: o.SGD(ps, 0.1),
        "SGD momentum": lambda ps: o.SGD(ps, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        "Adam": lambda ps: o.Adam(ps, 0.1),
        "Adam amsgrad": lambda ps: o.Adam(ps, torch.tensor(0.1), amsgrad=True, maximize=True),
        "Adam groups": lambda ps: o.Adam(groups(ps), 0.1, weight_decay=0.1),
        "Adam fused": lambda ps: o.Adam(ps, 0.1, fused=True),
        "AdamW": lambda ps: o.AdamW(ps, 0.1),
        "AdamW named": lambda ps: o.AdamW([(f"p{k}", p) for k, p in enumerate(ps)], 0.1),
        "Adamax": lambda ps: o.Adamax(ps, 0.1),
        "NAdam": lambda ps: o.NAdam(ps, 0.1),
        "RAdam": lambda ps: o.RAdam(ps, 0.1),
        "Adagrad": lambda ps: o.Adagrad(ps, 0.1, lr_decay=0.1, initial_accumulator_value=0.5),
        "Adadelta": lambda ps: o.Adadelta(ps, 0.1),
        "ASGD": lambda ps: o.ASGD(ps, 0.1, t0=1),
        "RMSprop": lambda ps: o.RMSprop(ps, 0.1),
        "RMSprop centered": lambda ps: o.RMSprop(ps, 0.1, centered=True, momentum=0.5),
        "Rprop": lambda ps: o.Rprop(ps, 0.1),
        "Adafactor": lambda ps: o.Adafactor(ps, 0.1),
        "LBFGS": lambda ps: o.LBFGS(ps, 0.1, max_iter=3, history_size=2),
        "LBFGS wolfe": lambda ps: o.LBFGS(ps, 0.1, max_iter=2, line_search_fn="strong_wolfe"),
        "Muon": lambda ps: o.Muon([p for p in ps if p.dim() == 2], 0.1),
        "SparseAdam": lambda ps: o.SparseAdam(ps, 0.1),
    }


def stepped(torch: Any, name: str, steps: int = 3) -> tuple:
    """(module, optimizer after some steps); SparseAdam, which needs sparse gradients, takes none."""
    net, x, y = net_and_data(torch)
    optimizer = optimizers(torch)[name](list(net.parameters()))

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (net(x) - y).square().mean()
        loss.backward()
        return loss

    for _ in range(0 if name == "SparseAdam" else steps):
        optimizer.step(closure)
    return net, optimizer


class Decay:
    """A callable with a state, for schedules of functions."""

    def __init__(self) -> None:
        self.rate = 0.9

    def __call__(self, epoch: int) -> float:
        return self.rate**epoch


def schedulers(torch: Any) -> dict:
    """Constructors by name; the value is called with an optimizer."""
    s = torch.optim.lr_scheduler
    return {
        "LambdaLR": lambda o: s.LambdaLR(o, Decay()),
        "LambdaLR function": lambda o: s.LambdaLR(o, lambda e: 0.5**e),
        "MultiplicativeLR": lambda o: s.MultiplicativeLR(o, Decay()),
        "StepLR": lambda o: s.StepLR(o, 2),
        "MultiStepLR": lambda o: s.MultiStepLR(o, [1, 3, 3]),
        "ConstantLR": lambda o: s.ConstantLR(o, total_iters=2),
        "LinearLR": lambda o: s.LinearLR(o, total_iters=4),
        "ExponentialLR": lambda o: s.ExponentialLR(o, 0.9),
        "PolynomialLR": lambda o: s.PolynomialLR(o, 4, 2.0),
        "CosineAnnealingLR": lambda o: s.CosineAnnealingLR(o, 4),
        "CosineAnnealingWarmRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 2, 2),
        "CyclicLR": lambda o: s.CyclicLR(o, 0.01, 0.1, 2, mode="exp_range", gamma=0.9),
        "CyclicLR function": lambda o: s.CyclicLR(o, 0.01, 0.1, 2, scale_fn=Decay()),
        "OneCycleLR": lambda o: s.OneCycleLR(o, 0.1, total_steps=10),
        "ReduceLROnPlateau": lambda o: s.ReduceLROnPlateau(o, patience=1),
        "SequentialLR": lambda o: s.SequentialLR(o, [s.ConstantLR(o, total_iters=2), s.ExponentialLR(o, 0.9)], [2]),
        "ChainedScheduler": lambda o: s.ChainedScheduler([s.ConstantLR(o, total_iters=2), s.ExponentialLR(o, 0.9)], o),
    }


def scheduled(torch: Any, name: str, steps: int = 3) -> tuple:
    """(optimizer, scheduler after some epochs)."""
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], 0.1, momentum=0.9)
    scheduler = schedulers(torch)[name](optimizer)
    for epoch in range(steps):
        optimizer.step()
        if name == "ReduceLROnPlateau":
            scheduler.step(1.0 + epoch)
        else:
            scheduler.step()
    return optimizer, scheduler


def random_states(torch: Any) -> dict:
    torch.manual_seed(11)
    torch.randn(3)  # an odd number of normals: one is kept for later
    generator = torch.Generator()
    generator.manual_seed(2**40 + 5)
    torch.rand(700, generator=generator)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
    return {
        "global": torch.get_rng_state(),
        "generator": generator.get_state(),
        "fresh": torch.Generator().get_state(),
        "scaler": scaler.state_dict(),
        "scaler disabled": torch.amp.GradScaler("cpu", enabled=False).state_dict(),
    }


def modules(torch: Any) -> dict:
    """Whole modules, optimizers and schedules: read with weights_only=False."""
    nn = torch.nn
    torch.manual_seed(4)
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3, padding="same", padding_mode="circular"), nn.BatchNorm2d(2), nn.ReLU(True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * 2 * 2, 4), nn.LayerNorm(4), nn.Dropout(0.3), nn.GELU("tanh"), nn.PReLU(),
        nn.Sequential(nn.Linear(4, 4), nn.Identity()), nn.Softmax(-1),
    )  # fmt: skip
    net.eval()
    more = nn.ModuleDict(
        {
            "lstm": nn.LSTM(3, 2, 2, bidirectional=True),
            "gru": nn.GRU(3, 2),
            "attention": nn.MultiheadAttention(4, 2, batch_first=True),
            "layer": nn.TransformerEncoderLayer(4, 2, 8, activation="gelu"),
            "lazy": nn.LazyLinear(3),
            "list": nn.ModuleList([nn.Embedding(3, 2, padding_idx=0)]),
            "plist": nn.ParameterList([nn.Parameter(torch.ones(1))]),
            "named": nn.ParameterDict({"a": nn.Parameter(torch.ones(2))}),
        }
    )
    stepper, optimizer = stepped(torch, "Adam", 1)
    return {
        "net": net,
        "more": more,
        "loss": nn.CrossEntropyLoss(label_smoothing=0.1),
        "optimizer": [stepper, optimizer],
        "dataset": torch.utils.data.TensorDataset(torch.arange(4.0), torch.arange(4)),
        "scaler": torch.amp.GradScaler("cpu"),
        "schedule": torch.optim.lr_scheduler.StepLR(stepped(torch, "SGD", 1)[1], 2),
    }


def objects(torch: Any) -> dict:
    """Everything that is saved, by the name of its file."""
    return {
        "dtypes": {d: of_bits(torch, d) for d in DTYPES},
        "views": views(torch),
        "sharing": sharing(torch),
        "containers": containers(torch),
        "optimizers": {name: stepped(torch, name)[1].state_dict() for name in optimizers(torch)},
        "schedulers": {name: [x.state_dict() for x in scheduled(torch, name)] for name in schedulers(torch)},
        "random": random_states(torch),
        "modules": modules(torch),
    }


RESUMED = ("optimizers", "schedulers", "random")
"""Files of states that something takes over."""
TRUSTED = ("modules",)
"""Files that hold more than data."""

# -- going on ----------------------------------------------------------------------------------------------------


def resumed(torch: Any, name: str, loaded: Any) -> Any:
    """What optimizers, schedules and generators make of the loaded states; None for other objects."""
    if name == "optimizers":
        out = {}
        for key, state in loaded.items():
            optimizer = stepped(torch, key, 0)[1]
            optimizer.load_state_dict(state)
            out[key] = optimizer.state_dict()
        return out
    if name == "schedulers":
        return {key: rates(torch, key, *states) for key, states in loaded.items()}
    if name == "random":
        return draws(torch, loaded)
    return None


def rates(torch: Any, name: str, optimizer_state: dict, state: dict) -> list:
    """The learning rates and momenta of the next epochs."""
    optimizer, scheduler = scheduled(torch, name, 0)
    optimizer.load_state_dict(optimizer_state)
    scheduler.load_state_dict(state)
    out = []
    for _ in range(4):
        optimizer.step()
        if name == "ReduceLROnPlateau":
            scheduler.step(5.0)
        else:
            scheduler.step()
        out.append([(group["lr"], group["momentum"]) for group in optimizer.param_groups])
    return out


def draws(torch: Any, loaded: dict) -> list:
    """The next random numbers."""
    generator = torch.Generator()
    out = []
    for key in ("global", "generator", "fresh"):
        if key == "global":
            torch.set_rng_state(loaded[key])
        generator.set_state(loaded[key])
        given = None if key == "global" else generator
        out += [torch.randn(3, generator=given), torch.rand(2, generator=given), torch.randn(20, generator=given)]
        out += [torch.randperm(9, generator=given), torch.randint(1000, (3,), generator=given)]
        out += [torch.get_rng_state() if given is None else generator.get_state(), generator.initial_seed()]
    scaler = torch.amp.GradScaler("cpu")
    scaler.load_state_dict(loaded["scaler"])
    return [*out, scaler.state_dict(), scaler.get_scale()]


# -- comparing ---------------------------------------------------------------------------------------------------


class Describer:
    """Objects as JSON: types, bits, strides, offsets, and which tensors share a storage or are one object."""

    def __init__(self, torch: Any, bits: bool = True) -> None:
        self.torch = torch
        self.bits = bits
        self.storages: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        self.kept: list = []

    def __call__(self, x: Any) -> Any:
        torch = self.torch
        if isinstance(x, torch.Tensor):
            return self.tensor(x)
        if isinstance(x, (torch.nn.Module, torch.optim.Optimizer)):
            return self.members(x, x.__dict__)
        if isinstance(x, torch.Size):
            return ["Size", *x]
        name = type(x).__name__
        if isinstance(x, dict):
            out = [name, [[self(k), self(v)] for k, v in x.items()]]
            return [*out, self(vars(x))] if getattr(x, "__dict__", None) else out
        if isinstance(x, (list, tuple)):
            return [name, *map(self, x)]
        if isinstance(x, (set, frozenset)):
            return [name, *sorted(map(repr, x))]
        if isinstance(x, float) and not self.bits:
            return [name]
        if x is None or isinstance(x, (int, float, complex, str, bytes, bytearray)):
            return [name, repr(x)]
        if isinstance(x, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return [name, str(x)]
        if type(x).__module__.startswith(("torch", "torchlike")) and hasattr(x, "__dict__"):
            return self.members(x, x.__dict__)
        return [name]

    def members(self, x: Any, fields: dict) -> Any:
        """An object by its public fields and those that hold state."""
        kept = {
            k: v for k, v in fields.items()
            if k in ("_parameters", "_buffers", "_modules", "optimizer") or not (k.startswith("_") or callable(v))
        }  # fmt: skip
        return [type(x).__name__, [[k, self(v)] for k, v in sorted(kept.items())]]

    def tensor(self, t: Any) -> Any:
        self.kept.append(t)
        if isinstance(t, self.torch.nn.parameter.UninitializedTensorMixin):
            return [type(t).__name__, t.requires_grad, str(t.dtype)]
        out = [type(t).__name__, str(t.dtype), list(t.shape), list(t.stride()), t.requires_grad, str(t.device)]
        if t.device.type == "meta":
            return out
        own = self.seen.setdefault(id(t), len(self.seen))
        storage = t.untyped_storage()
        where = self.storages.setdefault(storage.data_ptr(), len(self.storages)) if t.numel() else -1
        out += [f"object {own}", f"storage {where}"]
        if not (t.is_complex() and (t.is_conj() or t.is_neg())) and t.numel():
            out += [t.storage_offset(), storage.nbytes()]
        notes = {k: v for k, v in t.__dict__.items() if not k.startswith("_")}
        if notes:
            out.append(self(notes))
        return [*out, bits(self.torch, t)] if self.bits else out


def bits(torch: Any, t: Any) -> str:
    """All elements, as hexadecimal digits."""
    t = t.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    if not t.numel():
        return ""
    size = t.element_size()
    data = bytes(t.reshape(-1).view(torch.uint8).tolist())
    return " ".join(data[k : k + size].hex() for k in range(0, len(data), size))


def described(torch: Any, x: Any, bits: bool = True) -> Any:
    return json.loads(json.dumps(Describer(torch, bits)(x)))


# -- as a program -------------------------------------------------------------------------------------------------


def write(torch: Any, folder: pathlib.Path, short: bool = False) -> None:
    """Save every object, and what it looks like."""
    text = {}
    for name, x in objects(torch).items():
        torch.save(x, folder / f"{name}.pt")
        text[name] = described(torch, x)
        text[f"{name} resumed"] = described(torch, resumed(torch, name, x))
    if short:
        text = {name: digests(text[name]) for name in text}
    (folder / "described.json").write_text(json.dumps(text, indent=0 if short else None) + "\n")


def digests(description: Any) -> Any:
    """A description of a dict or list with the digest of each entry in its place."""
    if description[0] == "dict":
        return {json.dumps(k): digest(v) for k, v in description[1]}
    return [digest(x) for x in description]


def digest(x: Any) -> str:
    return hashlib.sha256(json.dumps(x).encode()).hexdigest()[:12]


def read(torch: Any, folder: pathlib.Path, **settings: Any) -> dict:
    """What each of FOLDER's objects looks like once it is loaded; an error as its text."""
    out = {}
    for path in sorted(folder.glob("*.pt")):
        try:
            loaded = torch.load(path, weights_only=path.stem not in TRUSTED, **settings)
            out[path.stem] = described(torch, loaded)
            out[f"{path.stem} resumed"] = described(torch, resumed(torch, path.stem, loaded))
        except Exception as e:
            out[path.stem] = f"{type(e).__name__}: {e}"
    return out


if __name__ == "__main__":
    import torch

    warnings.simplefilter("ignore")
    target = pathlib.Path(sys.argv[2])
    if sys.argv[1] in ("write", "record"):
        write(torch, target, sys.argv[1] == "record")
    else:
        print(json.dumps(read(torch, target)))
