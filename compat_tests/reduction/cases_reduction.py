"""Reductions, scans, softmax, sorting: values, dtypes, indices, gradients, names of graph nodes and errors."""

import numpy as np

from compat_tests import case, tensor

DTYPES = ["bool", "uint8", "int64", "bfloat16", "float16", "float32", "float64", "complex64"]
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


def make(torch, shape, dtype="float32", seed=1):
    """Small numbers with ties; integers and bool from their signs."""
    x = tensor(torch, shape, "float64", seed) * 3
    if dtype == "complex64":
        return torch.complex(x, x.flip(0)).to(torch.complex64)
    if dtype == "bool":
        return x > 0
    if dtype == "uint8":
        return x.abs().round().to(torch.uint8)
    return x.round().to(torch.int64) if dtype == "int64" else x.to(getattr(torch, dtype))


def outcome(function):
    """The result of `function`, or the error it raises."""
    try:
        result = function()
    except (RuntimeError, TypeError, IndexError, NotImplementedError, ValueError) as error:
        return [type(error).__name__, str(error).split("\n")[0]]
    return list(result) if isinstance(result, tuple) else result


def with_gradients(torch, function, *inputs):
    """Outputs, name of the graph node and gradients of the inputs."""
    inputs = [i.detach().requires_grad_() if i.is_floating_point() or i.is_complex() else i for i in inputs]
    out = function(*inputs)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    tracked = [o for o in outs if o.requires_grad]
    weights = [
        tensor(torch, tuple(o.shape), str(o.dtype).removeprefix("torch."), 50 + k) for k, o in enumerate(tracked)
    ]
    wanted = [i for i in inputs if i.requires_grad]
    return {
        "out": [o.detach() for o in outs],
        "node": tracked[0].grad_fn.name(),
        "grads": torch.autograd.grad(tracked, wanted, weights),
    }


# -- sums, products, moments -----------------------------------------------------------------------------------


@case(**CLOSE)
@case.params("name", ["sum", "mean", "prod", "var", "std", "amax", "amin", "nansum", "nanmean", "logsumexp"])
def case_reduce(torch, name):
    function = getattr(torch, name)
    x = make(torch, (3, 4, 5))
    out = [
        with_gradients(torch, lambda x: function(x, 1), x),
        with_gradients(torch, lambda x: function(x, -1, keepdim=True), x),
    ]
    if name != "prod":
        out.append(with_gradients(torch, lambda x: function(x, (0, 2)), x))
    if name != "logsumexp":
        out.append(with_gradients(torch, function, x))
    return out


@case(rtol=1e-2, atol=1e-2)
@case.params(
    "name",
    ["sum", "mean", "prod", "std", "amax", "argmax", "all", "any", "count_nonzero", "max", "median", "logsumexp"],
)
@case.params("dtype", DTYPES)
def case_reduce_dtypes(torch, name, dtype):
    x = make(torch, (3, 4), dtype)
    function = getattr(torch, name)
    return [outcome(lambda: function(x, 1)), outcome(lambda: function(x)) if name != "logsumexp" else None]


@case()
@case.params(
    "name", ["sum", "mean", "prod", "var", "amax", "argmax", "all", "max", "cumsum", "softmax", "sort", "logsumexp"]
)
def case_reduce_errors(torch, name):
    function = getattr(torch, name)
    x = make(torch, (3, 4))
    empty = torch.zeros(2, 0)
    out = [outcome(lambda: function(x, 5)), outcome(lambda: function(empty, 1))]
    if name in ("sum", "mean", "var", "amax", "all"):
        out.append(outcome(lambda: function(x, (0, 0))))
    if name in ("amax", "argmax", "max", "sum", "mean"):
        out.append(outcome(lambda: function(empty)))
    return out


@case(**CLOSE)
def case_dtype_argument(torch):
    x = make(torch, (3, 4), "int64")
    return [
        x.sum(dtype=torch.float32),
        x.sum(0, dtype=torch.int32),
        x.mean(dtype=torch.float64),
        x.prod(1, dtype=torch.float32),
        x.cumsum(0, dtype=torch.float32),
        x.softmax(0, dtype=torch.float64),
        outcome(lambda: x.mean(dtype=torch.int32)),
        make(torch, (4,)).softmax(0, torch.float64),
    ]


@case(**CLOSE)
def case_variance_forms(torch):
    x = make(torch, (3, 4))
    return [
        x.var(False),
        x.var(1),
        x.var(True),
        x.var(0, False),
        x.std(0, True, True),
        x.std(unbiased=False),
        x.var(1, correction=0),
        x.var((0, 1), correction=2, keepdim=True),
        list(torch.var_mean(x, 1)),
        list(torch.std_mean(x, 0, correction=0)),
        with_gradients(torch, lambda x: torch.var_mean(x, 1), x),
        with_gradients(torch, lambda x: torch.std_mean(x, dim=(0, 1)), x),
    ]


@case()
def case_bfloat16_sum_accumulates_in_float32(torch):
    return [torch.full((4096,), 1.0 / 256, dtype=torch.bfloat16).sum(), torch.ones(3000, dtype=torch.float16).mean()]


@case(**CLOSE)
def case_prod_with_zeros(torch):
    x = make(torch, (3, 4)).clone()
    x[0, 1] = 0
    x[1, 1] = x[1, 2] = 0
    return [with_gradients(torch, lambda x: x.prod(1), x), with_gradients(torch, lambda x: x.prod(), x)]


# -- extrema --------------------------------------------------------------------------------------------------


@case(**CLOSE)
@case.params("name", ["max", "min"])
def case_extrema(torch, name):
    function = getattr(torch, name)
    ties = torch.tensor([[1.0, 3, 3, 0], [2, 2, -1, -1], [float("nan"), 1, float("nan"), 0]])
    x = make(torch, (3, 4))
    named = function(x, 1)
    return [
        with_gradients(torch, lambda x: function(x, 1), ties),
        with_gradients(torch, lambda x: function(x, 0, True), x),
        with_gradients(torch, function, ties[:2]),
        function(x, make(torch, (4,), seed=5)),
        named.values,
        named.indices,
        outcome(lambda: function(torch.zeros(0))),
    ]


@case(**CLOSE)
def case_ties_share(torch):
    ties = torch.tensor([[1.0, 3, 3], [2, 2, 2]])
    return [
        with_gradients(torch, lambda x: x.amax(1), ties),
        with_gradients(torch, lambda x: x.amin((0, 1)), ties),
        with_gradients(torch, lambda x: torch.aminmax(x, dim=1), ties),
        ties.argmax(1),
        ties.argmin(),
        ties.argmax(1, True),
        with_gradients(torch, torch.median, ties),
        torch.tensor([1.0, float("nan"), 2]).argmax(),
    ]


# -- norms ----------------------------------------------------------------------------------------------------


@case(**CLOSE)
@case.params("p", [2, 1, float("inf"), -float("inf"), 3, 1.5])
def case_norm(torch, p):
    x = make(torch, (3, 4)).clone()
    x[1] = 0
    return [
        with_gradients(torch, lambda x: torch.linalg.vector_norm(x, p), x),
        with_gradients(torch, lambda x: torch.linalg.vector_norm(x, p, 1, True), x),
        torch.norm(x, p, 0),
        x.norm(p),
        with_gradients(torch, lambda x: x.renorm(p, 0, 1.5), make(torch, (3, 4))) if p > 0 else None,
    ]


@case(**CLOSE)
def case_norm_errors(torch):
    x = make(torch, (3, 4), "int64")
    return [
        outcome(lambda: x.norm()),
        outcome(lambda: torch.linalg.vector_norm(torch.zeros(2, 0), float("inf"))),
        outcome(lambda: torch.dist(x, x)),
        torch.dist(make(torch, (3,)), make(torch, (3,), seed=2), 1),
    ]


# -- softmax and scans ----------------------------------------------------------------------------------------


@case(**CLOSE)
@case.params("name", ["softmax", "log_softmax"])
def case_softmax(torch, name):
    function = getattr(torch.nn.functional, name)
    x = make(torch, (2, 3, 4))
    masked = torch.tensor([[1.0, -float("inf"), 2], [-float("inf")] * 3])
    return [
        with_gradients(torch, lambda x: function(x, 1), x),
        with_gradients(torch, lambda x: function(x, -1), x * 50),
        function(masked, -1),
        function(torch.tensor(2.0), 0),
        outcome(lambda: function(make(torch, (3,), "int64"), 0)),
        function(x.half(), 0, dtype=torch.float32),
    ]


@case(rtol=1e-2, atol=1e-2)
def case_softmax_bfloat16(torch):
    x = make(torch, (2, 3), "bfloat16")
    return [with_gradients(torch, lambda x: x.softmax(1), x), with_gradients(torch, lambda x: x.log_softmax(0), x)]


@case(**CLOSE)
@case.params("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def case_scan(torch, name):
    function = getattr(torch, name)
    x = make(torch, (3, 4))
    whole = make(torch, (3, 4), "int64")
    return [
        with_gradients(torch, lambda x: function(x, 0), x),
        with_gradients(torch, lambda x: function(x, -1), x),
        outcome(lambda: function(whole, 1)),
        outcome(lambda: function(torch.tensor(2.0), 0)),
        outcome(lambda: function(torch.zeros(2, 0), 1)),
    ]


# -- sorting --------------------------------------------------------------------------------------------------


@case(**CLOSE)
def case_sort(torch):
    x = torch.tensor([[3.0, float("nan"), 1, 2, 5], [2, 2.5, float("inf"), -1, 0]])
    ties = torch.tensor([2, 1, 2, 1, 2])
    clean = make(torch, (3, 4))
    return [
        list(x.sort()),
        list(x.sort(1, descending=True)),
        list(ties.sort(stable=True)),
        list(ties.sort(stable=True, descending=True, dim=0)),
        x.argsort(1),
        torch.argsort(ties, stable=True),
        with_gradients(torch, lambda x: x.sort(0), clean),
        with_gradients(torch, torch.msort, clean),
        outcome(lambda: torch.sort(make(torch, (3,), "complex64"))),
        list(torch.tensor(3.0).sort()),
    ]


@case(**CLOSE)
def case_topk(torch):
    x = make(torch, (3, 7))
    return [
        with_gradients(torch, lambda x: x.topk(2), x),
        with_gradients(torch, lambda x: x.topk(3, 0, largest=False), x),
        x.topk(2).indices,
        outcome(lambda: x.topk(9)),
        outcome(lambda: x.topk(1, 4)),
        with_gradients(torch, lambda x: x.kthvalue(3), x),
        outcome(lambda: x.kthvalue(8)),
        with_gradients(torch, lambda x: x.median(1), x),
        with_gradients(torch, lambda x: torch.mode(x, 1), x),
    ]


@case(**CLOSE)
def case_order_statistics(torch):
    x = torch.tensor([[1.0, 5, 2, float("nan")], [4, 3, 8, 0]])
    return [
        x.median(),
        x.nanmedian(),
        list(x.median(1)),
        list(x.nanmedian(1)),
        x.nanquantile(0.5, 1),
        x.quantile(0.25, dim=1),
        x[1].quantile(torch.tensor([0.1, 0.5, 0.9])),
        [x[1].quantile(0.4, interpolation=m) for m in ("linear", "lower", "higher", "midpoint", "nearest")],
        outcome(lambda: x.quantile(1.5)),
        outcome(lambda: x.quantile(torch.tensor(0.5, dtype=torch.float64))),
        list(torch.tensor([1, 2, 2, 3, 3]).mode()),
    ]


@case()
def case_search(torch):
    borders = torch.tensor([-1.0, 0, 0.5, 0.5, 2])
    x = torch.tensor([[-2.0, -1, 0.5], [0.6, 2, float("nan")]])
    rows = torch.tensor([[1.0, 3, 5], [2, 4, 6]])
    return [
        torch.bucketize(x, borders),
        torch.bucketize(x, borders, right=True),
        torch.bucketize(0.7, borders),
        torch.searchsorted(rows, x),
        torch.searchsorted(borders, x, side="right", out_int32=True),
        torch.searchsorted(torch.tensor([3.0, 1, 2]), x, sorter=torch.tensor([1, 2, 0])),
        outcome(lambda: torch.searchsorted(rows, x[0])),
        outcome(lambda: torch.bucketize(x, x)),
        torch.isin(x, torch.tensor([0.5, 2])),
        torch.isin(torch.tensor([1, 2, 3]), 2),
        torch.isin(x, x, invert=True),
        torch.histc(x[0], 4),
        torch.histc(x, 3, -1, 1),
    ]


# -- calculus and statistics -----------------------------------------------------------------------------------


@case(**CLOSE)
def case_differences(torch):
    x = make(torch, (3, 5))
    points = torch.tensor([0.0, 1, 1.5, 3, 4])
    return [
        x.diff(),
        x.diff(2, 0),
        x.diff(prepend=x[:, :1]),
        outcome(lambda: torch.diff(torch.tensor(1.0))),
        torch.trapezoid(x),
        torch.trapezoid(x, points),
        torch.trapezoid(x, dx=0.5, dim=0),
        torch.cumulative_trapezoid(x),
        list(torch.gradient(x)),
        list(torch.gradient(x, spacing=2.0, edge_order=2)),
        list(torch.gradient(x, spacing=(points,), dim=1)),
        outcome(lambda: torch.gradient(x, edge_order=3)),
    ]


@case(**CLOSE)
def case_covariance(torch):
    x = make(torch, (3, 6))
    return [
        x.cov(),
        x.cov(correction=0),
        torch.cov(x, fweights=torch.tensor([1, 2, 1, 1, 3, 1])),
        torch.cov(x[0]),
        x.corrcoef(),
        torch.cov(x, aweights=torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])),
        outcome(lambda: torch.cov(x[None])),
        torch.vander(x[0], 3),
        torch.vander(x[0], increasing=True),
        x[:, :3].trace(),
        outcome(lambda: x[0].trace()),
    ]


@case(**CLOSE)
def case_cross(torch):
    a, b = make(torch, (4, 3)), make(torch, (4, 3), seed=2)
    return [
        torch.cross(a, b),
        with_gradients(torch, lambda a, b: torch.cross(a, b, 1), a, b),
        torch.linalg.cross(a, b[:1]),
        outcome(lambda: torch.cross(a, b, 0)),
        outcome(lambda: torch.cross(a, b[0])),
    ]


@case()
def case_numpy_agrees(torch):
    x = np.arange(12.0).reshape(3, 4)
    return [
        torch.tensor(x).flip(0).sum(0),
        torch.tensor(x).count_nonzero(1),
        torch.tensor(x).all(1),
        torch.tensor(x).any(),
    ]
