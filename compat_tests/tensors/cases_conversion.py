# ruff: noqa: C408, E501, UP031 - functions are called at once; long lists of short cases
"""Tensors to and from Python, NumPy and other dtypes; protocols of the Python object."""

import numpy as np

from compat_tests import case, raises, tensor, warns


def attempt(function):
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def kind(value):
    return [type(value).__name__, value]


@case
def case_numpy_shares(torch):
    x = torch.zeros(2, 3)
    n = x.numpy()
    n[0, 1] = 5
    first = x.clone()
    x.add_(1)
    seen = n.copy()
    v = x[1].numpy()
    v[:] = 9
    t = x.t().numpy()
    t[0, 0] = -1
    m = x.numpy()
    return [
        first,
        seen,
        x.clone(),
        n is x.numpy(),
        m.copy(),
        n.strides,
        t.strides,
        t.flags.writeable,
        np.shares_memory(n, m),
    ]


@case
def case_from_numpy_shares(torch):
    n = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = torch.from_numpy(n)
    n[0, 0] = 10
    out = [x.clone()]
    x[1] = 7
    out.append(n.copy())
    y = x * 2  # of the values now
    n[:] = 0
    out += [y, x.clone()]
    a = torch.as_tensor(n)
    b = torch.asarray(n)
    c = torch.tensor(n)
    d = torch.as_tensor(n, dtype=torch.float64)
    e = torch.asarray(n, copy=True)
    n[:] = 3
    out += [a, b, c, d, e]
    t = torch.from_numpy(n.T)
    n[0, 1] = -1
    s = torch.from_numpy(n[:, ::2])
    s[0, 0] = 99
    out += [t, t.stride(), t.is_contiguous(), s, s.stride(), n.copy(), x.numpy() is n, np.shares_memory(x.numpy(), n)]
    f = torch.from_numpy(n).view(-1)[1:4]
    f.zero_()
    return [*out, n.copy()]


@case
def case_from_numpy_errors(torch):
    read_only = np.zeros(2)
    read_only.flags.writeable = False
    return [
        attempt(function)
        for function in (
            lambda: torch.from_numpy([1]),
            lambda: torch.from_numpy(np.array(["a"])),
            lambda: torch.from_numpy(np.array([object()])),
            lambda: torch.from_numpy(np.zeros(3)[::-1]),
            lambda: torch.from_numpy(np.zeros(2, ">f4")),
            lambda: torch.from_numpy(np.zeros(2, np.float32)).dtype,
            lambda: torch.from_numpy(np.zeros((), np.int64)),
            lambda: torch.from_numpy(np.float32(1)),
            lambda: 0,
            lambda: torch.tensor(np.array(["a"])),
            lambda: torch.tensor(np.array([None])),
        )
    ]


@case
@case.params(
    "name",
    ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"],
)
def case_dtypes(torch, name):
    dtype = getattr(torch, name)
    x = torch.tensor([0, 1, 3]).to(dtype)
    n = x.numpy()
    source = torch.tensor([0.0, 1.7, 100.9, -3.2], dtype=torch.float64)
    return [
        x.dtype, n.dtype.name, torch.from_numpy(n).dtype, x.element_size(), x.type(), x.tolist(), kind(x[2].item()),
        torch.tensor([1.5, 0, 100.25]).to(dtype), torch.tensor([1, 0, 100]).to(dtype), torch.tensor([True]).to(dtype),
        attempt(lambda: source[:3].to(dtype)), x.to(torch.float32), x.bool(), x.to(torch.complex64),
        x.is_floating_point(), x.is_complex(), x.type(torch.float64).dtype, x.type("torch.IntTensor").dtype,
        x.type_as(torch.zeros(1, dtype=torch.int16)).dtype, x.is_signed(), x.itemsize, x.nbytes, repr(x.dtype),
        torch.zeros(2, dtype=dtype), torch.ones(2, dtype=dtype), torch.eye(2, dtype=dtype),
    ]  # fmt: skip


@case
def case_to(torch):
    x = tensor(torch, (2, 2), seed=1)
    y = torch.zeros(1, dtype=torch.float64)
    return [
        attempt(function)
        for function in (
            lambda: x.to(torch.float64), lambda: x.to("cpu") is x, lambda: x.to(torch.device("cpu")) is x,
            lambda: x.to(y).dtype, lambda: x.to("cpu", torch.int32).dtype,
            lambda: x.to(device="cpu", dtype=torch.float16).dtype, lambda: x.to(dtype=torch.bool),
            lambda: x.to(torch.float32) is x, lambda: x.to(torch.float32, copy=True) is x,
            lambda: x.to(torch.float32, False, True) is x, lambda: x.to("meta").device, lambda: x.to("meta").to("cpu"),
            lambda: x.to("cuda"), lambda: x.cuda(), lambda: x.to("cuda:1"), lambda: x.to("nonsense"), lambda: x.to(),
            lambda: x.to(non_blocking=True) is x, lambda: x.to(None) is x,
            lambda: x.to(torch.int64, memory_format=torch.preserve_format).dtype, lambda: x.double().dtype,
            lambda: x.half().dtype, lambda: x.bfloat16().dtype, lambda: x.int().dtype, lambda: x.long().dtype,
            lambda: x.short().dtype, lambda: x.char().dtype, lambda: x.byte().dtype, lambda: x.bool().dtype,
            lambda: x.cfloat().dtype, lambda: x.cdouble().dtype, lambda: x.type("nonsense"),
            lambda: x.type(torch.DoubleTensor).dtype, lambda: torch.zeros(1, device="cuda"),
            lambda: torch.zeros(1, device="cuda:0"), lambda: torch.zeros(1, device=0),
            lambda: torch.ones(2, device="cpu:0").device, lambda: torch.zeros(2, device=torch.device("cpu", 0)).device,
            lambda: torch.empty(2, device="meta").device,
        )
    ]  # fmt: skip


@case
def case_python_numbers(torch):
    x = torch.tensor([1.5])
    i = torch.tensor(3)
    many = torch.zeros(2)
    none = torch.zeros(0)
    c = torch.tensor(1 + 2j)
    return [
        attempt(function)
        for function in (
            lambda: float(x), lambda: int(x), lambda: bool(x), lambda: complex(x), lambda: x.item(), lambda: i.item(), lambda: kind(i.item()),
            lambda: float(many), lambda: int(many), lambda: bool(many), lambda: bool(none), lambda: float(none),
            lambda: many.item(), lambda: none.item(), lambda: complex(c), lambda: float(c), lambda: int(c),
            lambda: bool(c), lambda: c.item(), lambda: range(i), lambda: [10, 20, 30, 40][i], lambda: [1, 2][x],
            lambda: [1, 2][torch.tensor([1])], lambda: [1, 2][torch.tensor(True)], lambda: len(many), lambda: len(i),
            lambda: list(many), lambda: list(i), lambda: [a.tolist() for a in torch.arange(4).view(2, 2)], lambda: 1.5 in x, lambda: 2 in x, lambda: torch.tensor(1.5) in x, lambda: "a" in x, lambda: hash(x) == hash(x), lambda: {x: 1}[x], lambda: x == x, lambda: x != x, lambda: x == None, lambda: x == "a",  # noqa: E711
            lambda: not torch.tensor(0), lambda: torch.tensor(2.567).round(decimals=1), lambda: abs(torch.tensor(-2)),
            lambda: -i, lambda: +i, lambda: ~i, lambda: i // 2, lambda: i % 2, lambda: 2**i, lambda: i**2,
            lambda: 7 // i, lambda: 7 % i, lambda: 7 / i, lambda: i << 1, lambda: 1 << i, lambda: i & 1, lambda: 2 | i,
            lambda: i ^ 1, lambda: f"{i}", lambda: f"{x}", lambda: f"{torch.tensor(2.5):.3f}", lambda: f"{i:5d}",
            lambda: f"{x:.2f}", lambda: f"{many:.2f}", lambda: "%d %.2f" % (i, torch.tensor(2.5)), lambda: str(i),
            lambda: many.tolist(), lambda: c.tolist(), lambda: i.tolist(), lambda: none.tolist(),
            lambda: torch.zeros(2, 0).tolist(), lambda: reversed(torch.arange(3)), lambda: sum(torch.arange(4)),
            lambda: max(torch.arange(4)), lambda: sorted(torch.tensor([3, 1, 2])), lambda: [*torch.arange(2)],
            lambda: tuple(torch.arange(2)), lambda: dict(a=i)["a"], lambda: torch.tensor([1, 2]).__contains__(1),
            lambda: operator_index(torch.tensor([2])), lambda: "x" * i, lambda: [0] * i, lambda: many.__bool__(),
            lambda: i.__index__(), lambda: x.__index__(), lambda: (1, 2) + (i,),
        )
    ]  # fmt: skip


def operator_index(t):
    import operator

    return operator.index(t)


@case
def case_numpy_functions(torch):
    x = torch.tensor([1.0, 4.0, 9.0])
    a = np.array([1.0, 2.0, 3.0])
    f = np.array([1.0, 2.0, 3.0], np.float32)
    i = torch.arange(3)
    w = torch.ones(3, requires_grad=True)
    return [
        attempt(lambda function=function: kind(function()))
        for function in (
            lambda: np.sqrt(x), lambda: np.add(a, x), lambda: np.add(x, a),
            lambda: a + x, lambda: x + a, lambda: f * x, lambda: x * f, lambda: x - a, lambda: a / x,
            lambda: np.array(x), lambda: np.asarray(x), lambda: np.asarray(x, dtype=np.int64), lambda: np.stack([x, x]),
            lambda: np.concatenate([x, a]), lambda: np.exp(i), lambda: np.maximum(x, 2), lambda: np.dot(a, x),
            lambda: np.isfinite(x), lambda: np.allclose(x, x), lambda: np.array_equal(x, x), lambda: np.float64(2) * x,
            lambda: x * np.float64(2), lambda: np.float32(2) + x, lambda: x + np.float32(2), lambda: np.int64(2) + i,
            lambda: i + np.int64(2), lambda: i * np.float64(1.5), lambda: np.float64(2) * i, lambda: x == a,
            lambda: x > np.float64(2), lambda: a > x, lambda: np.array(w), lambda: w + a, lambda: a + w.detach(),
            lambda: np.zeros(3)[i], lambda: a[torch.tensor(1)], lambda: a[torch.tensor([True, False, True])],
            lambda: x.numpy().sum(), lambda: np.argmax(x), lambda: np.clip(x, 2, 5), lambda: np.where(x > 2, x, 0),
            lambda: np.linalg.norm(x), lambda: x @ f, lambda: np.ones(3) @ x.double(), lambda: torch.add(x, 2) + f,
            lambda: torch.tensor(np.float32(3)), lambda: torch.tensor(np.arange(2)),
            lambda: torch.tensor([np.float32(1), 2]), lambda: torch.tensor([np.arange(2), np.arange(2)]),
            lambda: x.__array__(), lambda: x.__array__(np.float64), lambda: np.array(torch.tensor(1 + 2j)),
        )
    ]  # fmt: skip


@case
def case_dlpack(torch):
    x = torch.arange(4.0)
    n = np.from_dlpack(x)
    x[0] = 9
    y = torch.from_dlpack(np.arange(3))
    z = torch.utils.dlpack.from_dlpack(x) if hasattr(torch.utils, "dlpack") else torch.from_dlpack(x)
    z[1] = 8
    w = torch.ones(2, requires_grad=True)
    return [n.copy(), y, x, x.__dlpack_device__(), raises(torch, lambda: w.__dlpack__())]


@case
def case_attributes(torch):
    x = torch.zeros(2, 3, 4)
    names = [
        "shape",
        "size",
        "add_",
        "T",
        "grad",
        "requires_grad",
        "__add__",
        "numpy",
        "backward",
        "data",
        "is_cuda",
        "sum",
    ]
    listed = dir(x)
    return [
        [n in listed for n in names], x.ndim, x.dim(), x.numel(), x.nelement(), x.size(), x.size(1), x.size(-1),
        x.stride(), x.stride(0), x.element_size(), x.nbytes, x.is_cuda, x.is_cpu, x.is_meta, x.is_sparse,
        x.is_quantized, x.layout, x.device, x.device.type, x.get_device(), x.is_contiguous(), x.is_shared(),
        x.is_pinned(), x.is_inference(), x.output_nr, x.retains_grad, x.grad, x.grad_fn, x.is_leaf, x.name,
        attempt(lambda: x.nonsense), torch.is_tensor(x), torch.is_tensor(1), torch.numel(x), torch.is_floating_point(x),
        torch.typename(x), isinstance(x, torch.FloatTensor), type(x).__name__, x.ndimension(), x.storage_offset(),
        torch.is_storage(x.untyped_storage()), x.dtype.itemsize, x.dtype.is_signed, x.mH.shape, x.is_set_to(x),
        len(x.shape), x.shape[1:], type(x.shape[1:]).__name__, x.shape == (2, 3, 4), x.shape.numel(), repr(x.shape),
    ]  # fmt: skip


@case
def case_meta(torch):
    a = torch.zeros(2, 3, device="meta")
    b = torch.empty(3, 4, device="meta")
    return [
        attempt(function)
        for function in (
            lambda: (a @ b).shape, lambda: (a + 1).device, lambda: a.sum().shape, lambda: repr(a),
            lambda: repr((a @ b).relu()), lambda: a.item(), lambda: a[0, 0].item(), lambda: a.numpy(),
            lambda: a.tolist(), lambda: bool(a[0, 0]), lambda: a.view(-1).shape, lambda: a[1:].stride(),
            lambda: torch.cat([a, a]).shape, lambda: (a + torch.tensor(1.0)).device, lambda: torch.zeros_like(a).device,
            lambda: torch.zeros_like(a, device="cpu"), lambda: a.cpu(), lambda: a.to(torch.float64).dtype,
            lambda: a.softmax(-1).shape, lambda: a.t().stride(), lambda: a.add_(1) is a, lambda: a.zero_() is a,
            lambda: a.copy_(torch.ones(2, 3)) is a, lambda: torch.zeros(2, 3).copy_(a), lambda: a.clone().device,
            lambda: a.new_zeros(2).device, lambda: (a == a).dtype, lambda: a.is_meta,
        )
    ]  # fmt: skip


@case
def case_defaults(torch):
    out = [torch.get_default_dtype(), torch.get_default_device()]
    torch.set_default_dtype(torch.float64)
    out += [
        torch.tensor(1.0).dtype,
        torch.zeros(1).dtype,
        torch.arange(1.0).dtype,
        torch.tensor(1j).dtype,
        torch.tensor(1).dtype,
        (torch.ones(1, dtype=torch.int64) / 2).dtype,
    ]
    out += [
        torch.Tensor([1]).dtype,
        torch.full((1,), 1.0).dtype,
        torch.tensor([1.0]),
        torch.linspace(0, 1, 2).dtype,
        torch.rand(1).dtype,
    ]
    torch.set_default_dtype(torch.float16)
    out += [torch.tensor(1.0).dtype, torch.tensor([1.0])]
    out += [attempt(lambda: torch.set_default_dtype(torch.int64)), attempt(lambda: torch.set_default_dtype("float32"))]
    torch.set_default_dtype(torch.float32)
    torch.set_default_device("meta")
    out += [torch.zeros(1).device, torch.tensor([1.0]).device, torch.get_default_device()]
    torch.set_default_device(None)
    with torch.device("meta"):
        out += [torch.zeros(1).device, torch.arange(3).device]
    return [*out, torch.zeros(1).device]


@case
def case_as_tensor_and_tensor(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    return [
        torch.as_tensor(x) is x, torch.as_tensor(x, dtype=torch.float32) is x, torch.as_tensor([1, 2.5]),
        torch.as_tensor(3), torch.asarray([1, 2]), torch.asarray(x) is x,
        torch.asarray(y, dtype=torch.float64).grad_fn is not None, torch.as_tensor(np.float32(2)),
        torch.as_tensor((1, 2), dtype=torch.float16), warns(torch, lambda: torch.tensor(y)),
        attempt(lambda: x.new_tensor([1, 2])), x.new_zeros(2, 2), x.new_ones((1, 2), dtype=torch.int64),
        x.new_full((2,), 7), x.new_empty(0), torch.asarray(np.arange(3), dtype=torch.float32),
        torch.frombuffer(bytearray(b"\x01\x02\x03\x04"), dtype=torch.uint8),
        torch.frombuffer(bytearray(b"\x01\x02\x03\x04"), dtype=torch.int16, offset=2, count=1),
        attempt(lambda: torch.frombuffer(bytearray(b""), dtype=torch.uint8)), torch.Tensor(2, 3).shape,
        torch.Tensor([1, 2]), torch.Tensor(), torch.LongTensor([1, 2]), torch.FloatTensor(2).shape,
        attempt(lambda: torch.Tensor(1.5)), attempt(lambda: torch.IntTensor([1.7])), torch.BoolTensor([0, 2]),
        torch.scalar_tensor(3), torch.tensor([[1, 2], [3, 4.0]]), torch.tensor([True, 2]), torch.tensor([1, 1j]),
        torch.tensor([]), torch.tensor([[], []]), torch.tensor(()), torch.tensor([torch.tensor(1), torch.tensor(2.5)]),
        torch.tensor([[torch.tensor(1)], [2]]), torch.tensor(range(3)),
    ]  # fmt: skip


@case
def case_tensor_errors(torch):
    return [
        attempt(function)
        for function in (
            lambda: torch.tensor([[1, 2], [3]]), lambda: torch.tensor("a"), lambda: torch.tensor(["a"]),
            lambda: torch.tensor(None), lambda: torch.tensor([None]), lambda: torch.tensor([1, "a"]),
            lambda: torch.tensor({}), lambda: torch.tensor(object()), lambda: torch.tensor([[1], 2]),
            lambda: torch.tensor(1, 2), lambda: torch.tensor([torch.zeros(2)]),
            lambda: torch.tensor([torch.zeros(2), torch.zeros(3)]), lambda: torch.tensor(2**63),
            lambda: torch.tensor(300, dtype=torch.uint8), lambda: torch.tensor([300], dtype=torch.uint8),
            lambda: torch.tensor(1e10, dtype=torch.int32), lambda: torch.tensor(float("nan"), dtype=torch.int64),
            lambda: torch.tensor(1j, dtype=torch.float32), lambda: torch.tensor(1j, dtype=torch.int64),
            lambda: torch.tensor([1j], dtype=torch.int64), lambda: torch.tensor(-1, dtype=torch.uint8),
            lambda: torch.tensor([1, 2], requires_grad=True), lambda: torch.zeros(-1), lambda: torch.zeros(2, -3),
            lambda: torch.zeros("a"), lambda: torch.zeros(1.5), lambda: torch.zeros([1.5]),
            lambda: torch.zeros(2, dtype=int).dtype, lambda: torch.zeros(2, dtype=float).dtype,
            lambda: torch.zeros(2, dtype="float32"), lambda: torch.zeros(2, foo=1), lambda: torch.full((2,), "a"),
            lambda: torch.full((2,), 1j, dtype=torch.float32), lambda: torch.full((2,), 2.5, dtype=torch.int64),
            lambda: torch.full((2,), 300, dtype=torch.uint8), lambda: torch.full((2,), True), lambda: torch.full((), 3),
            lambda: torch.full((2,), 1j), lambda: torch.set_default_device("nonsense"),
            lambda: torch.device("nonsense"),
        )
    ]  # fmt: skip


@case
def case_ranges(torch):
    return [
        attempt(function)
        for function in (
            lambda: torch.arange(5), lambda: torch.arange(2, 8, 3), lambda: torch.arange(5.0),
            lambda: torch.arange(0, 1, 0.25), lambda: torch.arange(5, 0, -2), lambda: torch.arange(0.1, 1.0, 0.1),
            lambda: torch.arange(3, dtype=torch.float16), lambda: torch.arange(0, 2.5, dtype=torch.int64),
            lambda: torch.arange(1, 2.5, 0.5, dtype=torch.int32), lambda: torch.arange(5, 0),
            lambda: torch.arange(0, 5, 0), lambda: torch.arange(0, float("inf")), lambda: torch.arange(torch.tensor(4)),
            lambda: torch.arange(0), lambda: torch.arange(start=1, end=4), lambda: torch.arange(end=3),
            lambda: torch.arange(True), lambda: torch.arange(1 << 40, (1 << 40) + 3),
            lambda: torch.arange(0, 3, out=torch.zeros(3)), lambda: torch.arange(5, dtype=torch.bool),
            lambda: torch.arange(2, dtype=torch.bool), lambda: torch.linspace(0, 1, 5),
            lambda: torch.linspace(0, 10, 4, dtype=torch.int64), lambda: torch.linspace(3, -3, 7),
            lambda: torch.linspace(0, 1, 1), lambda: torch.linspace(0, 1, 0), lambda: torch.linspace(0, 1, -1),
            lambda: torch.linspace(0, 1j, 3), lambda: torch.linspace(torch.tensor(0.0), torch.tensor(2.0), 3),
            lambda: torch.linspace(0.1, 0.7, 11, dtype=torch.float64), lambda: torch.linspace(-0.3, 123.4, 9),
            lambda: torch.logspace(0, 3, 4), lambda: torch.logspace(0, 3, 4, base=2),
            lambda: torch.logspace(-1, 1, 3, dtype=torch.float64), lambda: torch.eye(3), lambda: torch.eye(2, 3),
            lambda: torch.eye(3, 2, dtype=torch.int64), lambda: torch.eye(0), lambda: torch.eye(-1),
            lambda: torch.eye(2, -1), lambda: torch.range(1, 4), lambda: torch.range(0, 1, 0.5),
            lambda: torch.zeros(()), lambda: torch.zeros((2,)), lambda: torch.zeros(size=(2, 1)),
            lambda: torch.zeros(torch.Size([1, 2])), lambda: torch.ones([2, 2]),
            lambda: torch.ones(2, requires_grad=True), lambda: torch.zeros(np.int64(2)),
            lambda: torch.zeros(torch.tensor(2)), lambda: torch.zeros(2, out=torch.ones(2)),
            lambda: torch.zeros_like(torch.ones(2, dtype=torch.int8)),
            lambda: torch.ones_like(torch.zeros(2), dtype=torch.bool), lambda: torch.full_like(torch.zeros(2), 3),
            lambda: torch.full_like(torch.zeros(2, dtype=torch.int64), 2.7),
            lambda: torch.empty_like(torch.zeros(2, 3)).shape, lambda: torch.zeros_like([1]),
            lambda: torch.empty(2, 3).shape, lambda: torch.empty_strided((2, 3), (1, 2)).stride(),
            lambda: torch.complex(torch.ones(2), torch.zeros(2)), lambda: torch.polar(torch.ones(1), torch.zeros(1)),
            lambda: torch.tril_indices(3, 3), lambda: torch.triu_indices(2, 3, 1),
        )
    ]  # fmt: skip
