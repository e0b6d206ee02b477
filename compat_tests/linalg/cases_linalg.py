"""torch.linalg: values (up to signs where free), gradients and errors."""

from compat_tests import case, grads, raises, tensor

LOOSE = {"rtol": 1e-3, "atol": 1e-3}


def matrix(torch, shape=(2, 4, 4), dtype="float64", seed=0):
    return tensor(torch, shape, dtype, seed, requires_grad=True)


def positive(torch, dtype="float64"):
    a = tensor(torch, (2, 4, 4), dtype)
    return (a @ a.mT + torch.eye(4, dtype=a.dtype)).detach().requires_grad_()


@case(**LOOSE)
@case.params("dtype", ["float32", "float64"])
def case_positive_definite(torch, dtype):
    L = torch.linalg
    a = positive(torch, dtype)
    b = tensor(torch, (2, 4, 3), dtype, 1, requires_grad=True)
    return [
        grads(torch, L.cholesky, a), grads(torch, L.inv, a), grads(torch, lambda a, b: L.solve(a, b), a, b),
        grads(torch, torch.logdet, a), grads(torch, lambda a: L.eigvalsh(a), a),
        grads(torch, lambda a: L.eigh(a)[1].abs(), a),
        grads(torch, lambda a, b: torch.cholesky_solve(b, L.cholesky(a)), a, b), L.cholesky_ex(a)[1], L.inv_ex(a)[1],
        grads(torch, lambda a, b: L.solve_triangular(a, b, upper=True), a, b), grads(torch, lambda a: L.cond(a), a),
        grads(torch, lambda a: L.matrix_power(a, -2), a),
    ]  # fmt: skip


@case(**LOOSE)
@case.params("shape", [(4, 3), (3, 4), (3, 3), (2, 5, 3)])
def case_rectangular(torch, shape):
    L = torch.linalg
    a = matrix(torch, shape)
    return [
        grads(torch, lambda a: L.qr(a)[1].abs(), a), grads(torch, L.svdvals, a), grads(torch, L.pinv, a),
        grads(torch, lambda a: L.lu(a)[1:], a), L.lu_factor(a.detach()), L.matrix_rank(a.detach()),
        grads(torch, lambda a: L.svd(a, full_matrices=False)[0].abs(), a),
        *[grads(torch, lambda a, o=o: L.matrix_norm(a, o), a) for o in ("fro", "nuc", 1, -1, 2, -2, float("inf"))],
    ]  # fmt: skip


@case(**LOOSE)
def case_square(torch):
    L = torch.linalg
    a, b = matrix(torch), matrix(torch, (2, 4, 3), seed=1)
    return [
        grads(torch, L.det, a), grads(torch, L.slogdet, a), grads(torch, L.matrix_exp, a),
        grads(torch, lambda a: L.eigvals(a).abs().sort()[0], a), grads(torch, lambda a: L.matrix_power(a, 5), a),
        grads(torch, lambda a, b: L.lu_solve(*L.lu_factor(a), b), a, b), L.vander(b[0, :, 0].detach(), N=5),
        grads(torch, lambda b: L.lstsq(b, b * 2)[0], b), L.vecdot(b, b + 1), torch.geqrf(b.detach()),
    ]  # fmt: skip


@case()
def case_norms(torch):
    a = matrix(torch, (3, 3), "float32")
    L = torch.linalg
    return [
        *[grads(torch, lambda a, o=o: L.norm(a, o), a) for o in (None, 2, "fro", "nuc", 1)],
        *[grads(torch, lambda a, o=o: L.norm(a, o, dim=0), a) for o in (None, 2, 1)],
    ]  # fmt: skip


@case()
def case_errors(torch):
    L = torch.linalg
    a, wide, v = (tensor(torch, s) for s in ((3, 3), (3, 4), (3,)))
    calls = []
    for name in ("inv", "det", "cholesky", "eigh", "matrix_exp", "solve"):
        function = getattr(L, name)
        extra = (v,) if name == "solve" else ()
        calls += [lambda f=function, e=extra: f(wide, *e), lambda f=function, e=extra: f(v, *e)]
        if name != "solve":
            calls.append(lambda f=function: f(a.long()))
    calls += [
        lambda: L.solve(a, tensor(torch, (4, 2))), lambda: L.solve(a, a.double()), lambda: L.qr(a, "foo"),
        lambda: L.eigh(a, "X"), lambda: L.matrix_norm(a, "foo"), lambda: L.matrix_norm(a, 3), lambda: L.matrix_norm(v),
        lambda: L.norm(tensor(torch, (2, 2, 2)), 2), lambda: L.multi_dot([a]), lambda: L.inv(a.half()),
        lambda: L.lstsq(wide, tensor(torch, (4, 2))), lambda: L.solve_triangular(a, v, upper=True),
    ]  # fmt: skip
    return [[e[0], e[1].split("\n")[0]] for e in (raises(torch, call) for call in calls)]


@case(**LOOSE)
@case.params("dtype", ["float32", "complex64"])
def case_ldl(torch, dtype):
    L = torch.linalg
    a = torch.tensor([[1, 2, 3], [2, 0, 5], [3, 5, -1]], dtype=getattr(torch, dtype))
    LD, pivots = found = L.ldl_factor(torch.stack([a, a + torch.eye(3)]))
    b = tensor(torch, (2, 3, 2), dtype, 1)
    return [
        found, L.ldl_factor_ex(a), L.ldl_factor(a, hermitian=True), L.ldl_solve(LD, pivots, b),
        L.ldl_factor_ex(torch.zeros(2, 2)), raises(torch, lambda: L.ldl_factor(torch.ones(2, 3))),
        raises(torch, lambda: L.ldl_solve(LD, pivots, b[:, :2])),
        raises(torch, lambda: L.ldl_factor(torch.ones(2, 2, dtype=torch.int64))),
    ]  # fmt: skip
