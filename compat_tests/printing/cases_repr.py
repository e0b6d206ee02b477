# ruff: noqa: UP031, UP032 - functions are called at once; long lists of short cases
"""What tensors print as."""

from compat_tests import case, data, tensor


def attempt(function):
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


@case
def case_kinds(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    m = torch.tensor([[1.0, 2.0], [3.0, 4.5]])
    with torch.no_grad():
        in_no_grad = x[0:1]
    y = x * 2
    y[0] = 5
    values = [
        x, x * 2, (x * 2).sum(), x.view(2, 1), x[0], x.detach(), y, y[1], in_no_grad, torch.nn.Parameter(torch.ones(2)),
        torch.nn.Parameter(m), torch.nn.Parameter(torch.ones(1), requires_grad=False), m, m.t(), m[0], m.data,
        torch.tensor(3), torch.tensor(3.0), torch.tensor(True), torch.tensor([]), torch.zeros(0, 3), torch.zeros(2, 0),
        torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.bool),
        torch.zeros(2, dtype=torch.float16), torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.uint8),
        torch.tensor([1 + 2j, 3]), torch.tensor(1j), torch.tensor([1 + 2j], dtype=torch.complex128),
        torch.zeros(2, 3, device="meta"), torch.zeros(2, device="meta", requires_grad=True),
        torch.zeros((), device="meta", dtype=torch.int64), x.exp(), x.unbind()[0], x.split(1)[1], x.expand(2, 2),
        x.double(), x.to(torch.complex64), torch.stack([x, x]), torch.nn.functional.relu(x), x.sum(0), x @ x, x.clone(),
        x.reshape(2, 1).t(), x.unsqueeze(0), x[None], x[..., 0], x[[0]], x[x > 1], x.float(),
    ]  # fmt: skip
    return [repr(v) for v in values]


@case
def case_numbers(torch):
    values = [
        [1.0, 2.5, 3.14159265], [1e-5, 1.0], [1e5, 1.0], [1e8, 1.0], [123456.789], [1e-10], [0.0, -0.0],
        [float("nan"), 1.0], [float("inf"), -1.0], [float("nan")], [1000.0, 0.001], [99999.0, 1.0], [100000.0, 0.5],
        [0.1, 0.22, 0.333], [-1.0, 10.0], [1e38, 1e-38], [12345678.0], [1.0, float("inf"), float("nan")], [0.00001],
        [16777216.0, 1.5], [1e4, 1e-4],
    ]  # fmt: skip
    return [[str(torch.tensor(v)), str(torch.tensor(v, dtype=torch.float64)), str(torch.tensor(v[0]))] for v in values]


@case
def case_integers(torch):
    return [
        str(torch.tensor(v))
        for v in (
            [1, -20, 300],
            [[1, 2], [30, 4]],
            12345678901234,
            [2**62, -(2**63)],
            [True, False],
            [[True]],
            [0] * 30,
            list(range(2000)),
        )
    ]


@case
def case_large(torch):
    x = torch.arange(5000.0)
    return [
        str(x), str(x.view(50, 100)), str(x.view(2, 50, 50)), str(tensor(torch, (3, 4, 5), seed=1)),
        str(tensor(torch, (1001,), seed=2)), str(tensor(torch, (40, 30), seed=3)), str(torch.zeros(10, 10)),
        str(torch.zeros(1001, 2, dtype=torch.int64)), repr(x.view(50, 100)[3:7, ::9]),
        str(torch.tensor(data((20, 4), "complex64", 1))), str(torch.zeros(2, 2, 2, 2)),
    ]  # fmt: skip


@case
def case_options(torch):
    x = tensor(torch, (5, 6), seed=1) * 100
    out = []
    for options in (
        {"precision": 2}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"linewidth": 40}, {"sci_mode": True},
        {"sci_mode": False}, {"profile": "short"}, {"profile": "full"}, {"profile": "default"}, {"precision": 8},
    ):  # fmt: skip
        torch.set_printoptions(**options)
        out += [str(x), str(torch.tensor([1e-8, 1e8])), str(x[0, 0])]
        torch.set_printoptions(profile="default")
    return out


@case
def case_containers(torch):
    x = torch.tensor([1.0, 2.0])
    return [
        str([x, x]), str({"a": x}), str((x,)), f"{x}", f"{x[0]}", f"{x[0]:.3f}", f"{x!r}", "%s" % x,
        "{:.1f}".format(x[1]), str(x.shape), str(x.dtype), str(x.device), repr(x.size()), str(torch.Size([])),
        repr(torch.device("cuda", 1)), str(torch.float16), repr(torch.strided), str(x.max(0)), repr(x.sort()),
        repr(torch.nn.Linear(2, 3)), str(x.max(0).indices), attempt(lambda: f"{x:.2f}"),
        repr(torch.finfo(torch.float32)), repr(torch.iinfo(torch.int8)), str(torch.contiguous_format),
        repr(torch.nn.ParameterList([torch.nn.Parameter(torch.ones(2))])), str(x.grad_fn),
        str((x.requires_grad_() * 2).grad_fn).split(" object")[0], str(x.untyped_storage().nbytes()),
    ]  # fmt: skip
