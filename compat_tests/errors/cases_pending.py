"""Errors that depend on values still to be computed when the operation is called: found when they are read."""

from compat_tests import case, raises


def read(call):
    """Call and read every result."""
    found = call()
    for t in found if isinstance(found, (tuple, list)) else (found,):
        t.tolist()


@case
def case_indices(torch):
    F, x = torch.nn.functional, torch.arange(12.0).reshape(3, 4)

    def i(*values):
        return torch.tensor(values) * 1

    row = i(0, 3).reshape(1, 2)
    calls = (
        lambda: F.embedding(i(0, 3), x), lambda: F.embedding(i(-1), x), lambda: x.index_select(0, i(0, 3)),
        lambda: x.gather(0, row), lambda: x.gather(1, i(-1, 0, 0).reshape(3, 1)), lambda: x.scatter(0, row, 1.0),
        lambda: x.scatter(0, row, x[:1, :2]), lambda: x.scatter_add(0, row, x), lambda: x.take(i(0, 12)),
        lambda: x.scatter_reduce(0, row, x, "sum"), lambda: x.put(i(0, 12), torch.ones(2)), lambda: x[i(0, 3)],
        lambda: x[i(0, 1), i(0, -5)], lambda: x[i(3)[0]], lambda: x.index_put((i(0, 3),), torch.tensor(1.0)),
        lambda: x.index_add(0, i(0, 3), x[:2]), lambda: x.index_copy(0, i(0, 3), x[:2]),
        lambda: x.index_fill(0, i(0, 3), 1.0), lambda: x.take_along_dim(i(0, 12)), lambda: F.one_hot(i(0, 3), 3),
        lambda: F.one_hot(i(0, -1), 3), lambda: F.max_unpool1d(torch.ones(1, 1, 2), i(0, 9).reshape(1, 1, 2), 2),
        lambda: F.max_unpool3d(torch.ones(1, 1, 1, 1, 2), i(0, 99).reshape(1, 1, 1, 1, 2), 2),
        lambda: F.embedding_bag(i(0, 3), x, i(0)), lambda: F.embedding_bag(i(0, -1), x.double(), i(0)),
        lambda: F.embedding_bag(i(0, 3), x, i(0), mode="max"), lambda: F.embedding_bag(i(0, 2), x, i(1)),
        lambda: F.embedding_bag(i(0, 2), x, i(0, 5)),
    )  # fmt: skip
    return [raises(torch, lambda call=call: read(call)) for call in calls] + [x[i(-3, 2)], x.take(i(-12, 11))]


@case
def case_values(torch):
    F, x, nan = torch.nn.functional, torch.arange(12.0).reshape(3, 4), float("nan")

    def i(*values):
        return torch.tensor(values) * 1

    def f(*values):
        return torch.tensor([float(v) for v in values]) * 1

    calls = (
        lambda: F.nll_loss(x, i(0, 4, 1)), lambda: F.cross_entropy(x, i(0, -1, 1), label_smoothing=0.1),
        lambda: F.nll_loss(torch.zeros(1, 4, 2, 1), i(0, 4).reshape(1, 2, 1)),
        lambda: F.multi_margin_loss(x, i(0, 4, 1)),
        lambda: F.multilabel_margin_loss(x, torch.stack([i(0, 4, -1, -1)] * 3)),
        lambda: F.binary_cross_entropy(f(2, 0.5), f(1, 0)), lambda: F.binary_cross_entropy(f(0.2, nan), f(1, 0)),
        lambda: F.binary_cross_entropy(f(0.2, 0.5), f(2, 0)), lambda: i(1, 2) // i(0, 1), lambda: i(1, 2) % i(0, 1),
        lambda: torch.fmod(i(1, 2), i(0, 1)), lambda: torch.div(i(1, 2), i(0, 1), rounding_mode="trunc"),
        lambda: torch.quantile(f(1, 2), f(2)[0]), lambda: torch.nanquantile(f(1, 2), f(0.5, -1)),
        lambda: torch.cov(f(1, 2), fweights=i(-1, 1)), lambda: torch.cov(f(1, 2), aweights=f(-1, 1)),
        lambda: torch.cov(f(1, 2), aweights=f(0, 0)), lambda: torch.histc(f(1, float("inf")), 4),
        lambda: torch.histogram(f(1, nan), 4),
    )  # fmt: skip
    return [raises(torch, lambda call=call: read(call)) for call in calls] + [F.cross_entropy(x, i(0, -100, 1))]


@case
def case_matrices(torch):
    eye, linalg, nan = torch.eye(3), torch.linalg, float("nan")
    indefinite, singular = torch.diag(torch.tensor([1.0, -1, 1])), torch.ones(3, 3) * 1
    several, bad = torch.stack([eye, indefinite, singular]), torch.tensor([[1.0, nan], [0, 1]]) * 1
    calls = (
        lambda: linalg.cholesky(indefinite), lambda: linalg.cholesky(several), lambda: torch.cholesky(indefinite),
        lambda: linalg.cholesky(several.reshape(1, 3, 3, 3), upper=True), lambda: linalg.inv(singular),
        lambda: linalg.inv(several), lambda: torch.inverse(singular), lambda: linalg.solve(singular, torch.ones(3)),
        lambda: linalg.solve(several, torch.ones(3, 3, 1)), lambda: linalg.lu_factor(singular),
        lambda: linalg.cholesky_ex(several, check_errors=True), lambda: linalg.inv_ex(several, check_errors=True),
        lambda: linalg.solve_ex(several, torch.ones(3, 3, 1), check_errors=True),
        lambda: linalg.lu_factor_ex(several, check_errors=True), lambda: linalg.tensorinv(singular, ind=1),
        lambda: linalg.tensorsolve(singular, torch.ones(3)), lambda: linalg.matrix_power(singular, -1),
        lambda: torch.cholesky_inverse(0 * eye), lambda: linalg.svd(bad),
        lambda: linalg.svdvals(torch.stack([eye[:2, :2], bad])),
        lambda: linalg.pinv(bad), lambda: linalg.matrix_rank(bad), lambda: linalg.matrix_norm(bad, 2),
        lambda: linalg.eig(bad), lambda: torch.lu_unpack(eye, torch.tensor([1, 2, 9], dtype=torch.int32)),
        lambda: linalg.lu_solve(eye, torch.tensor([0, 2, 3], dtype=torch.int32), torch.ones(3, 1)),
    )  # fmt: skip
    infos = [linalg.cholesky_ex(several)[1], linalg.inv_ex(several)[1], linalg.lu_factor_ex(several)[2]]
    return [raises(torch, lambda call=call: read(call)) for call in calls] + infos
