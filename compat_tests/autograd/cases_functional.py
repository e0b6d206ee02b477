"""torch.autograd.functional."""

from compat_tests import case, tensor


def attempt(torch, function):
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def pair(torch):
    return tensor(torch, (2, 3), "float64", 1), tensor(torch, (3,), "float64", 2)


def f(x, y):
    return (x * y).sin().sum(1) * y.sum()


def g(x, y):
    return (x * y).exp().sum() + (y**3).sum()


@case
def case_jacobian(torch):
    J = torch.autograd.functional.jacobian
    x, y = pair(torch)
    out = [
        J(f, (x, y)),
        J(lambda x: x.exp(), x),
        J(lambda x: (x * 2, x.sum()), x),
        J(lambda y: y * y, y.requires_grad_(), create_graph=True),
    ]
    out.append(J(lambda x: torch.ones(2), x))
    out.append(J(lambda x: x.exp(), x, vectorize=True))
    out.append(attempt(torch, lambda: J(lambda x: torch.ones(2), x, strict=True)))
    out.append(attempt(torch, lambda: J(lambda x: 3.0, x)))
    out.append(attempt(torch, lambda: J(f, [x, y])))
    return out


@case
def case_hessian(torch):
    H = torch.autograd.functional.hessian
    x, y = pair(torch)
    out = [H(g, (x, y)), H(lambda x: (x**3).sum(), x), H(lambda y: (y**3).sum(), y.requires_grad_(), create_graph=True)]
    out.append(H(lambda x: x.sum(), x))
    out.append(attempt(torch, lambda: H(lambda x: x.sum(), x, strict=True)))
    out.append(attempt(torch, lambda: H(lambda x: x, x)))
    out.append(attempt(torch, lambda: H(lambda x: (x.sum(), x.sum()), x)))
    return out


@case
def case_products(torch):
    A = torch.autograd.functional
    x, y = pair(torch)
    vx, vy = tensor(torch, (2, 3), "float64", 3), tensor(torch, (3,), "float64", 4)
    vo = tensor(torch, (2,), "float64", 5)
    out = [A.vjp(f, (x, y), vo), A.jvp(f, (x, y), (vx, vy)), A.vhp(g, (x, y), (vx, vy)), A.hvp(g, (x, y), (vx, vy))]
    out += [A.vjp(lambda x: x.sum(), x), A.hvp(lambda y: (y**4).sum(), y, vy, create_graph=True)]
    out += [A.jvp(lambda y: y**2, y.detach().requires_grad_(), vy, create_graph=True)]
    out.append(attempt(torch, lambda: A.vjp(f, (x, y))))
    out.append(attempt(torch, lambda: A.jvp(f, (x, y))))
    out.append(attempt(torch, lambda: A.vjp(f, (x, y), vx)))
    out.append(attempt(torch, lambda: A.hvp(g, (x, y), vx)))
    out.append(attempt(torch, lambda: A.vhp(g, x, (vx, vy))))
    out.append(attempt(torch, lambda: A.vhp(lambda x: x, x, vx)))
    out.append(attempt(torch, lambda: A.vjp(lambda x: torch.ones(2), x, vo, strict=True)))
    return out


@case
def case_gradcheck(torch):
    check, check2 = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    x = tensor(torch, (3,), "float64", 1, requires_grad=True)
    y = tensor(torch, (3,), "float64", 2, requires_grad=True)
    z = tensor(torch, (2,), "complex128", 3, requires_grad=True)
    ints = torch.tensor([0, 2])
    lin = torch.nn.Linear(3, 2).double()

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    out = [
        check(lambda x, y: x * y, (x, y)),
        check(lambda x: x.exp().sum(), x),
        check(lambda x, i: x[i], (x, ints)),
        check(lambda z: z * z, (z,)),
    ]
    out += [
        check(lambda z: z.abs(), (z,)),
        check(lambda x: torch.complex(x, x * x), (x,)),
        check(lin, (x,)),
        check(lambda x: (x * 2, x.exp()), (x,)),
    ]
    out += [
        check(lambda x, y: x * y, (x, y), fast_mode=True),
        check2(lambda x, y: x * y.exp(), (x, y)),
        check2(lambda x: x**3, (x,), fast_mode=True),
    ]
    out += [
        check(Wrong.apply, (x,), raise_exception=False),
        check(Wrong.apply, (x,), raise_exception=False, fast_mode=True),
    ]
    error = attempt(torch, lambda: check(Wrong.apply, (x,)))
    out += [error[0], error[1]]
    out.append(attempt(torch, lambda: check(Wrong.apply, (x,), fast_mode=True))[0])
    out.append(attempt(torch, lambda: check(lambda x: x * 2, (x.detach(),))))
    out.append(
        attempt(torch, lambda: check(lambda x: x * 2, (torch.ones(2, requires_grad=True),), raise_exception=False))
    )
    out.append(attempt(torch, lambda: check(lambda x: torch.ones(2), (x,))))
    out.append(attempt(torch, lambda: check(lambda x: x.detach(), (x,), raise_exception=False)))
    out.append(torch.autograd.gradcheck.__module__)
    out.append(issubclass(torch.autograd.gradcheck.__globals__["GradcheckError"], RuntimeError))
    return out
