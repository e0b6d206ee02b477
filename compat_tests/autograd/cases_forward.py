"""torch.autograd.forward_ad, and forward mode in torch.func, autograd.functional, gradcheck and custom Functions."""

from compat_tests import case, raises, tensor


def vector(torch, n=3, seed=1, **options):
    return tensor(torch, (n,), "float64", seed, **options)


def parts(torch, dual):
    """(primal, tangent) without history."""
    primal, tangent = torch.autograd.forward_ad.unpack_dual(dual)
    return primal.detach().clone(), None if tangent is None else tangent.detach().clone()


@case
def case_duals(torch):
    ad = torch.autograd.forward_ad
    x, v = vector(torch), vector(torch, seed=2)
    out = [raises(torch, lambda: ad.make_dual(x, v)), ad.unpack_dual(x)[1], raises(torch, ad.exit_dual_level)]
    with ad.dual_level() as level:
        d = ad.make_dual(x, v)
        out += [level, str(d), str(d * 2), parts(torch, d), parts(torch, x), parts(torch, (d * d).sin().sum())]
        out += [parts(torch, y) for y in (d.view(3, 1).t(), d[1:], d.clone(), d.floor(), torch.stack([d, x]))]
        out += [(d > 0), d.long(), d.detach(), d[0].item(), d.tolist()]
        with torch.no_grad():
            out.append(parts(torch, d * 2))
        out += [
            raises(torch, ad.enter_dual_level),
            raises(torch, lambda: ad.exit_dual_level(level=4)),
            raises(torch, lambda: ad.make_dual(x, v[:2])),
            raises(torch, lambda: ad.make_dual(x.long(), v)),
            raises(torch, lambda: ad.make_dual(x, v.long())),
            raises(torch, lambda: ad.make_dual(d, v)),
            raises(torch, lambda: ad.unpack_dual(3)),
            raises(torch, lambda: torch.mul(d, d, out=torch.zeros(3, dtype=torch.float64))),
        ]
    return [*out, d, d * 2]


@case
def case_in_place(torch):
    ad = torch.autograd.forward_ad
    x, v = vector(torch), vector(torch, seed=2)
    out = []
    with ad.dual_level():
        z = torch.zeros(2, 3, dtype=torch.float64)
        column = z[:, 1]
        z[0] = ad.make_dual(x, v)
        column.mul_(ad.make_dual(x[:2], v[:2]))
        out += [parts(torch, z), parts(torch, column)]
        d = ad.make_dual(x.clone(), v)
        d.mul_(x)
        d[0] = 5.0
        out.append(parts(torch, d))
        d.zero_()
        out.append(parts(torch, d))
    return out


OPERATORS = {
    "elementwise": lambda torch, x, y: [
        x.abs(),
        x.relu(),
        x.clamp(-0.5, 0.5),
        x.atan2(y),
        torch.maximum(x, y),
        x.sign(),
    ],
    "reductions": lambda torch, x, y: [x.std(), x.norm(), x.logsumexp(0), x.max(), x.prod(), x.cumprod(0), x.median()],
    "orders": lambda torch, x, y: [x.sort()[0], x.topk(2)[0], x.cummax(0)[0], x.logcumsumexp(0), x.flip(0), x.roll(1)],
    "matrices": lambda torch, x, y: [
        torch.linalg.inv(torch.outer(x, y) + torch.eye(3, dtype=x.dtype)),
        torch.linalg.solve(torch.outer(x, y) + torch.eye(3, dtype=x.dtype), y),
        torch.linalg.det(torch.outer(x, y) + torch.eye(3, dtype=x.dtype)),
        torch.einsum("i,j->ij", x, y),
    ],
    "layers": lambda torch, x, y: [
        torch.nn.functional.layer_norm(x, (3,)),
        torch.nn.functional.softmax(x, 0),
        torch.nn.functional.linear(x, torch.outer(y, y), y),
        torch.nn.functional.conv1d(x.view(1, 1, 3), y[:2].view(1, 1, 2)),
        torch.nn.functional.max_pool1d(x.view(1, 1, 3), 2),
        torch.nn.functional.gelu(x),
    ],
    "complex": lambda torch, x, y: [torch.complex(x, y).exp().abs(), torch.view_as_real(torch.complex(x, y) ** 2)],
}


@case
@case.params("group", list(OPERATORS))
def case_operators(torch, group):
    ad = torch.autograd.forward_ad
    with ad.dual_level():
        x = ad.make_dual(vector(torch), vector(torch, seed=2))
        y = ad.make_dual(vector(torch, seed=3), vector(torch, seed=4))
        return [parts(torch, out) for out in OPERATORS[group](torch, x, y)]


@case
def case_both_orders(torch):
    """Reverse over forward, forward over reverse, and a third derivative, by levels and by torch.func."""
    ad = torch.autograd.forward_ad
    x, w, v = vector(torch, requires_grad=True), vector(torch, seed=2, requires_grad=True), vector(torch, seed=3)
    with ad.dual_level():
        y = (ad.make_dual(x, v) ** 3 * w).sum()
        gx, gw = torch.autograd.grad(y, (x, w), create_graph=True)
        out = [parts(torch, gx), parts(torch, gw)]
        value, tangent = ad.unpack_dual(y)
    twice = torch.autograd.grad(tangent, (x, w), create_graph=True)
    out += [g.detach() for g in twice]
    out += torch.autograd.grad(twice[0].sum(), (x, w), retain_graph=True)
    out += torch.autograd.grad(value, (x, w))

    def f(x):
        return (x.sin() * w.detach() * x).sum()

    F = torch.func
    x, one = x.detach(), torch.ones(3, dtype=torch.float64)
    out += [F.jvp(F.grad(f), (x,), (v,))[1], F.grad(lambda x: F.jvp(f, (x,), (v,))[1])(x)]
    out += [F.jvp(lambda x: F.jvp(F.grad(f), (x,), (v,))[1], (x,), (one,))[1], F.jacfwd(F.jacfwd(f))(x)]
    out += [F.jacrev(F.jacfwd(torch.sin))(x), F.vmap(F.hessian(lambda a: a.sin() ** 2))(x)]
    out += torch.autograd.grad(F.jacfwd(lambda a: a**2 * w)(x).sum(), w)
    return out


@case
def case_modules(torch):
    ad = torch.autograd.forward_ad
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()
    x = tensor(torch, (2, 3), "float64", 1)
    params = {k: p.detach() for k, p in net.named_parameters()}
    tangents = {k: tensor(torch, tuple(p.shape), "float64", 2) for k, p in params.items()}
    out = [torch.func.jvp(lambda p: torch.func.functional_call(net, p, (x,)), (params,), (tangents,))]
    with ad.dual_level():
        u, t = ad.unpack_dual(net(ad.make_dual(x, torch.ones_like(x))))
        (u.pow(2).sum() + t.pow(2).sum()).backward()
        out += [p.grad for p in net.parameters()]
        for name, p in params.items():
            module, attribute = net[int(name[0])], name[2:]
            delattr(module, attribute)
            setattr(module, attribute, ad.make_dual(p, tangents[name]))
        out.append(parts(torch, net(x)))
    return out


def functions(torch):
    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, c):
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            ctx.c = c
            return x * y * c

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y * ctx.c, g * x * ctx.c, None

        @staticmethod
        def jvp(ctx, xt, yt, ct):
            x, y = ctx.saved_tensors
            return (xt * y + x * yt) * ctx.c

    class New(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x.exp() * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)
            ctx.save_for_forward(*inputs, output)

        @staticmethod
        def backward(ctx, g):
            x, y, out = ctx.saved_tensors
            return g * out, g * x.exp()

        @staticmethod
        def jvp(ctx, xt, yt):
            x, y, out = ctx.saved_tensors
            return xt * out + x.exp() * yt

    class Many(Old):
        @staticmethod
        def jvp(ctx, xt, yt, ct):
            return xt, yt

    class Small(Old):
        @staticmethod
        def jvp(ctx, xt, yt, ct):
            return xt.sum()

    class InPlace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(2)

    class OutOfPlace(InPlace):
        @staticmethod
        def jvp(ctx, t):
            return t * 2

    class None_(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    return Old, New, Many, Small, InPlace, OutOfPlace, None_


@case
def case_custom_functions(torch):
    ad = torch.autograd.forward_ad
    Old, New, Many, Small, InPlace, OutOfPlace, Without = functions(torch)
    x, y, v = vector(torch, requires_grad=True), vector(torch, seed=2, requires_grad=True), vector(torch, seed=3)
    out = []
    with ad.dual_level():
        d = ad.make_dual(x, v)
        o = Old.apply(d, y, 2.0)
        g = torch.autograd.grad(o.sum(), (x, y), create_graph=True)
        out += [parts(torch, o), parts(torch, g[0]), parts(torch, g[1]), o.grad_fn.name()]
        out += [raises(torch, lambda f=f: f.apply(d, y, 2.0)) for f in (Many, Small)]
        out.append(raises(torch, lambda: Without.apply(d)))
        t = ad.unpack_dual(New.apply(d, y)).tangent
        out += [t.detach(), *(g.detach() for g in torch.autograd.grad(t.sum(), (x, y)))]
        d, fresh = ad.make_dual(v.clone(), v.clone()), ad.make_dual(v.clone(), v.clone())
        out += [parts(torch, InPlace.apply(d)), parts(torch, d), raises(torch, lambda: OutOfPlace.apply(fresh))]
    F = torch.func
    x, y = x.detach(), y.detach()
    out += [F.jvp(New.apply, (x, y), (v, v)), F.jacfwd(New.apply)(x, y)]
    out.append(F.grad(lambda x, y: F.jvp(New.apply, (x, y), (v, v))[1].sum(), (0, 1))(x, y))
    return out


@case
def case_functional(torch):
    A = torch.autograd.functional
    x, y = tensor(torch, (2, 2), "float64", 1), vector(torch, seed=2)

    def f(x, y):
        return x.sin() * y[:2], y**3, x.sum() * y.sum()

    def g(x, y):
        return (x**3).sum() * (y**2).sum()

    out = [A.jacobian(f, (x, y), vectorize=True), A.jacobian(f, (x, y), vectorize=True, strategy="forward-mode")]
    out += [A.jacobian(lambda x: x.exp(), x, vectorize=True, strategy="forward-mode")]
    out += [
        raises(torch, lambda options=options: A.jacobian(f, (x, y), **options))
        for options in (
            {"strategy": "forward-mode"},
            {"strategy": "forward-mode", "strict": True},
            {"vectorize": True, "strict": True},
        )
    ]
    hessian = A.hessian(lambda y: (y**3).sum(), y, vectorize=True, outer_jacobian_strategy="forward-mode")
    return [*out, A.hessian(g, (x, y), vectorize=True), hessian.detach()]


@case
def case_gradcheck(torch):
    check, second = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    x, y = vector(torch, requires_grad=True), vector(torch, seed=2, requires_grad=True)
    c = torch.complex(x, y).detach().requires_grad_()

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x**2

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    return [
        check(lambda a, b: (a.sin() * b, a.exp()), (x, y), check_forward_ad=True),
        check(lambda a: a * a.conj() + a.exp(), (c,), check_forward_ad=True),
        check(lambda a, b: a.sin() * b, (x, y), check_forward_ad=True, check_batched_forward_grad=True),
        check(lambda a, b: a.sin() * b, (x, y), check_batched_grad=True),
        check(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False, raise_exception=False),
        second(lambda a, b: a.sin() * b, (x, y), check_fwd_over_rev=True),
        raises(torch, lambda: check(lambda a: a, (x,), check_backward_ad=False)),
        raises(torch, lambda: check(lambda a: a, (x,), check_batched_forward_grad=True)),
    ]
