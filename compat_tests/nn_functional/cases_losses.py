"""Losses and distances: values, gradients, names of graph nodes and errors."""

from compat_tests import case, grads, raises, tensor

REDUCTIONS = ["mean", "sum", "none"]


def with_node(torch, function, *inputs):
    out = function(*inputs)
    return {"node": out.grad_fn.name(), **grads(torch, function, *inputs)}


def pair(torch, shape=(3, 4)):
    return [tensor(torch, shape, seed=k, requires_grad=True) for k in (0, 1)]


def unit(torch, shape, seed=5):
    return tensor(torch, shape, seed=seed).sigmoid()


@case()
@case.params("reduction", REDUCTIONS)
@case.params(
    "name,settings",
    [("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.5}), ("huber_loss", {"delta": 0.5})],
)
def case_regression(torch, name, settings, reduction):
    function = getattr(torch.nn.functional, name)
    return with_node(torch, lambda a, b: function(a, b, reduction=reduction, **settings), *pair(torch))


@case()
@case.params("reduction", REDUCTIONS)
@case.params("shape", [(4,), (5, 4), (3, 4, 2), (3, 4, 2, 3)])
def case_nll(torch, reduction, shape):
    F = torch.nn.functional
    x = tensor(torch, shape, requires_grad=True)
    t = tensor(torch, shape[:1] + shape[2:] if len(shape) > 1 else (), "int64", 3).remainder(4)
    w = unit(torch, 4)
    return [
        with_node(torch, lambda x: F.nll_loss(x, t, reduction=reduction), x),
        with_node(torch, lambda x: F.nll_loss(x, t, w, reduction=reduction, ignore_index=1), x) if t.dim() else None,
    ]


@case()
@case.params("reduction", REDUCTIONS)
@case.params("smoothing", [0.0, 0.1])
def case_cross_entropy(torch, reduction, smoothing):
    F = torch.nn.functional
    x = tensor(torch, (5, 4), requires_grad=True)
    t = torch.tensor([1, 3, -100, 0, 2])
    settings = {"reduction": reduction, "label_smoothing": smoothing}
    w = unit(torch, 4)
    return [
        with_node(torch, lambda x: F.cross_entropy(x, t, **settings), x),
        with_node(torch, lambda x: F.cross_entropy(x, t, w, **settings), x),
        grads(torch, lambda x: F.cross_entropy(x, unit(torch, (5, 4)), **settings), x),
    ]


@case()
@case.params("reduction", REDUCTIONS)
def case_binary(torch, reduction):
    F = torch.nn.functional
    x = tensor(torch, (3, 4), requires_grad=True)
    p = unit(torch, (3, 4), 2).detach().requires_grad_()
    t, w = unit(torch, (3, 4), 3), unit(torch, 4, 4)
    return [
        with_node(torch, lambda p: F.binary_cross_entropy(p, t, w, reduction=reduction), p),
        with_node(torch, lambda x: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=w, reduction=reduction), x),
        F.binary_cross_entropy(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 1.0]), reduction=reduction),
    ]


@case()
@case.params("reduction", REDUCTIONS)
def case_others(torch, reduction):
    F = torch.nn.functional
    x, y = pair(torch)
    sign, p = tensor(torch, (3, 4), seed=6).sign(), unit(torch, (3, 4))
    t = torch.tensor([1, 3, 0])
    labels = torch.tensor([[0, 2, -1, 1], [3, -1, 0, 0], [1, 2, 3, 0]])
    k = {"reduction": reduction}
    return [
        with_node(torch, lambda x: F.kl_div(x, p, **k), x),
        with_node(torch, lambda x: F.poisson_nll_loss(x, p, full=True, **k), x),
        with_node(torch, lambda x, y: F.gaussian_nll_loss(x, y, p, full=True, **k), x, y),
        with_node(torch, lambda x: F.hinge_embedding_loss(x, sign, **k), x),
        with_node(torch, lambda x: F.soft_margin_loss(x, sign, **k), x),
        with_node(torch, lambda x: F.multi_margin_loss(x, t, p=2, **k), x),
        with_node(torch, lambda x: F.multilabel_margin_loss(x, labels, **k), x),
        with_node(torch, lambda x: F.multilabel_soft_margin_loss(x, (sign > 0).float(), **k), x),
        with_node(torch, lambda x, y: F.cosine_embedding_loss(x, y, sign[:, 0], 0.1, **k), x, y),
        with_node(torch, lambda x, y: F.triplet_margin_loss(x, y, x + 1, **k), x, y),
        grads(torch, lambda x, y: F.margin_ranking_loss(x, y, sign, 0.1, **k), x, y),
    ]


@case(rtol=1e-4, atol=1e-5)
@case.params("reduction", REDUCTIONS)
def case_ctc(torch, reduction):
    F = torch.nn.functional
    x = tensor(torch, (12, 4, 6), requires_grad=True)
    t = torch.tensor([[1, 2, 2, 3], [1, 1, 4, 0], [3, 0, 0, 0], [5, 5, 5, 5]])
    lengths, sizes = torch.tensor([12, 10, 7, 6]), torch.tensor([4, 3, 1, 4])

    def run(x):
        return F.ctc_loss(x.log_softmax(2), t, lengths, sizes, reduction=reduction, zero_infinity=True)

    return grads(torch, run, x)


@case(rtol=1e-4, atol=1e-5)
@case.params("p", [1.0, 2.0, 3.0, float("inf")])
def case_distances(torch, p):
    F = torch.nn.functional
    x, y = pair(torch)
    return [
        with_node(torch, lambda a, b: torch.cdist(a, b, p), x, y), with_node(torch, lambda a: F.pdist(a, p), x),
        with_node(torch, lambda a, b: F.pairwise_distance(a, b, p), x, y),
        with_node(torch, lambda a, b: F.cosine_similarity(a, b), x, y),
    ]  # fmt: skip


@case()
def case_errors(torch):
    F = torch.nn.functional
    x, y = (t.detach() for t in pair(torch))
    p, t = unit(torch, (3, 4)), torch.tensor([1, 3, 0])
    calls = [
        lambda: F.mse_loss(x, y, reduction="foo"), lambda: F.mse_loss(x, y[:, :3]), lambda: F.mse_loss(t, t),
        lambda: F.cross_entropy(x, t, label_smoothing=2.0), lambda: F.cross_entropy(x, y[:, :3]),
        lambda: F.cross_entropy(x, x.long()), lambda: F.cross_entropy(x, x[:, 0]), lambda: F.cross_entropy(x, t[:2]),
        lambda: F.cross_entropy(x, t.int()), lambda: F.cross_entropy(x, t, p[0, :3]),
        lambda: F.nll_loss(x, t, p[0].double()), lambda: F.binary_cross_entropy(p, p[:2]),
        lambda: F.binary_cross_entropy(p, p.double()), lambda: F.binary_cross_entropy_with_logits(x, x[:2]),
        lambda: F.smooth_l1_loss(x, y, beta=-1.0), lambda: F.huber_loss(x, y, delta=0),
        lambda: F.gaussian_nll_loss(x, y, -p), lambda: F.margin_ranking_loss(x, y[0], x),
        lambda: F.multi_margin_loss(x, t, p=3), lambda: F.multi_margin_loss(x, t[:2]), lambda: F.pdist(x[0]),
        lambda: torch.cdist(x, y[:, :3]), lambda: F.triplet_margin_loss(x, y, x[0]),
    ]  # fmt: skip
    return [[e[0], e[1].split("\n")[0]] for e in (raises(torch, call) for call in calls)]
