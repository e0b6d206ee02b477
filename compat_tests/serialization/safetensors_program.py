"""A program that uses safetensors as PyTorch's users do. What it prints is the same on PyTorch and on torchlike.

safetensors_program.py FOLDER [OTHER]: files are written to FOLDER; those of another run are read from OTHER."""

import ctypes
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from torch import nn

DTYPES = (
    "float16 bfloat16 float32 float64 uint8 int8 int16 int32 int64 bool complex64 uint16 uint32 uint64 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
).split()
folder = pathlib.Path(sys.argv[1])
others = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else folder


def of_bits(dtype):
    kind = getattr(torch, dtype)
    if kind is torch.bool:
        return torch.tensor([[True, False], [False, True]])
    size = torch.empty(0, dtype=kind).element_size()
    return torch.tensor([(37 * k + 129) % 256 for k in range(4 * size)], dtype=torch.uint8).view(kind).reshape(2, 2)


def shown(t):
    """Everything about a tensor, bit for bit."""
    raw = t.contiguous().reshape(-1).view(torch.uint8).tolist() if t.numel() else []
    return type(t).__name__, t.dtype, tuple(t.shape), t.stride(), t.is_contiguous(), t.requires_grad, str(t.device), raw


def report(title, function):
    try:
        result = function()
    except Exception as e:
        print(title, type(e).__name__, " ".join(str(e).split())[:400])
    else:
        print(title, result)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4, 3)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 4, bias=False)
        self.head.weight = self.embedding.weight


def net():
    torch.manual_seed(1)
    return Tied()


every = {d: of_bits(d) for d in DTYPES}
every["scalar"] = torch.tensor(2.5)
every["empty"] = torch.zeros(0, 3)
every["parameter"] = nn.Parameter(torch.arange(3.0))

# Files
save_file(every, folder / "every.safetensors", metadata={"format": "pt", "by": "someone"})
save_model(net(), str(folder / "tied.safetensors"))
for backend in ("mmap", "pread"):
    loaded = load_file(others / "every.safetensors", backend=backend)
    for name in sorted(loaded):
        print(backend, name, *shown(loaded[name]))
again = load(save(every))
print(all(shown(again[k]) == shown(every[k].detach()) for k in every), sorted(again) == sorted(every))
print(save(every, {"a": "b"}) == save({k: v.clone() for k, v in every.items()}, {"a": "b"}))

# What is loaded can be written to, and stays independent of the file
loaded["float32"].add_(1)
loaded["int64"][0] = 7
print(loaded["float32"].isnan().tolist(), loaded["int64"].tolist())
print(*shown(load_file(others / "every.safetensors")["int64"]))

# Slices
with safe_open(others / "every.safetensors", framework="pt", device="cpu") as f:
    print(sorted(f.keys()), sorted(f.metadata().items()), len(list(f.offset_keys())))
    for name in ("float32", "bfloat16", "int64", "bool", "float8_e4m3fn", "complex64"):
        part = f.get_slice(name)
        print(name, part.get_shape(), part.get_dtype())
        for index in ((slice(None), slice(1, None)), slice(0, 1), (1, slice(None)), (Ellipsis, 0), slice(1, 1)):
            report(index, lambda part=part, index=index: shown(part[index]))
    report("no such tensor", lambda: f.get_tensor("missing"))
    print(*shown(f.get_tensor("scalar")))
    print(*shown(f.get_tensor("empty")))

# Models
other = net()
with torch.no_grad():
    other.embedding.weight.zero_()
print(load_model(other, others / "tied.safetensors"))
print(other.head.weight is other.embedding.weight, torch.equal(other.embedding.weight, net().embedding.weight))
print(sorted(load_file(others / "tied.safetensors")))
plain = nn.Linear(3, 4, bias=False)
report("strict", lambda: load_model(plain, others / "tied.safetensors"))
report("not strict", lambda: [sorted(x) for x in load_model(plain, others / "tied.safetensors", strict=False)])
lined = nn.Linear(2, 2)
lined.load_state_dict({"weight": loaded["float32"] * 0, "bias": loaded["float32"][0] * 0 + 1}, assign=True)
optimizer = torch.optim.SGD(lined.parameters(), 0.5)
lined(torch.ones(1, 2)).sum().backward()
optimizer.step()
print(lined.bias.grad.tolist(), [shown(p)[:3] for p in lined.parameters()])
assigned = nn.Linear(3, 4, bias=False)
assigned.load_state_dict({"weight": load_file(others / "tied.safetensors")["embedding.weight"]}, assign=True)
optimizer = torch.optim.SGD(assigned.parameters(), 0.5)
for _ in range(3):
    optimizer.zero_grad()
    assigned(torch.ones(1, 3)).sum().backward()
    optimizer.step()
print([[f"{x:.4f}" for x in row] for row in assigned.weight.tolist()])

# Refusals
base = torch.arange(6.0)
report("shared", lambda: save({"a": base, "b": base.view(2, 3)}))
report("apart", lambda: len(save({"a": base[:3], "b": base[3:]})))
report("overlap", lambda: save({"a": base[:4], "b": base[3:]}))
report("not contiguous", lambda: save({"a": base.view(2, 3).t()}))
report("no tensor", lambda: save({"a": 3}))
report("no dict", lambda: save([base]))
report("in a part", lambda: load(save({"a": base[2:4]}))["a"].tolist())
report("cut short", lambda: load(save({"a": base})[:-4]))
report("not a file", lambda: load_file(folder / "missing.safetensors"))


# Addresses
def at(t):
    """The bytes at a tensor's address, as other code reads them."""
    return bytes((ctypes.c_ubyte * (t.numel() * t.element_size())).from_address(t.data_ptr())).hex()


x = torch.arange(4.0)
y = x * 2
before = y.data_ptr(), y.untyped_storage().data_ptr()
print(at(x), at(y), at(y[2:]), y[1:].data_ptr() - y.data_ptr(), y.data_ptr() % 64)
y.add_(1)
y[1:].mul_(3)
print(at(y), before == (y.data_ptr(), y.untyped_storage().data_ptr()), at(x.to(torch.bfloat16)), at(x > 1))
z = [torch.zeros(4), torch.zeros(4), x.clone(), x.detach(), x.contiguous()]
print([t.data_ptr() == z[0].data_ptr() for t in z], [t.data_ptr() == x.data_ptr() for t in z])
print(torch.empty(3, device="meta").data_ptr(), torch.zeros(0).data_ptr(), torch.zeros(0).untyped_storage().data_ptr())
array = x.numpy()
print(array.ctypes.data == x.data_ptr(), x.storage().data_ptr() == x.data_ptr(), x.storage().nbytes(), at(x[1:]))
print(x.untyped_storage().nbytes(), x[1:].untyped_storage().nbytes(), x.storage().size(), len(x.untyped_storage()))
raw = bytearray(range(8))
seen = torch.frombuffer(raw, dtype=torch.int16)
raw[0] = 9
print(
    seen.tolist(),
    torch.asarray(raw, dtype=torch.uint8).tolist(),
    torch.frombuffer(raw, dtype=torch.uint8)[2:4].tolist(),
)
(folder / "bytes").write_bytes(bytes(range(16)))
mapped = torch.UntypedStorage.from_file(str(folder / "bytes"), False, 16)
part = torch.asarray(mapped[4:12], dtype=torch.uint8)
print(mapped.nbytes(), mapped[3], part.tolist(), part.view(torch.int32).tolist(), part.view(torch.float16).shape)
part[0] = 200
print(part.tolist()[:2], (folder / "bytes").read_bytes()[4])
report("no file", lambda: torch.UntypedStorage.from_file(str(folder / "nothing"), False, 16))
report("asarray", lambda: torch.asarray(torch.arange(2.0).untyped_storage(), dtype=torch.uint8).tolist())
