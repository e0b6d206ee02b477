"""torch.autograd.Function: contexts, in-place functions, what is checked and how it is said."""

# ruff: noqa: E501 - tables of one line functions

import re

from compat_tests import case, raises, tensor, warns


def attempt(torch, function):
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, re.sub(r"0x[0-9a-f]+", "0x", str(error))]


def make(torch, forward, backward, **more):
    """A Function from plain functions."""
    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Made", (torch.autograd.Function,), methods | {k: staticmethod(v) for k, v in more.items()})


def leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


@case
def case_basics(torch):
    def forward(ctx, x, y, scale, name=None):
        ctx.save_for_backward(x, y, None, x * y)
        ctx.scale = scale
        return x * y * scale

    def backward(ctx, g):
        x, y, none, product = ctx.saved_tensors
        seen.append(
            [
                none,
                product,
                product.requires_grad,
                x.requires_grad,
                ctx.scale,
                ctx.needs_input_grad,
                torch.is_grad_enabled(),
            ]
        )
        return g * y * ctx.scale, g * x * ctx.scale, None, None

    seen = []
    f = make(torch, forward, backward)
    x, y = leaf(torch), leaf(torch, 4.0, 5.0, 6.0)
    z = f.apply(x, y, 2.0)
    out = [
        z,
        z.requires_grad,
        z.grad_fn.name(),
        type(z.grad_fn).__name__,
        re.sub("0x.*", "", repr(z.grad_fn)),
        z.is_leaf,
    ]
    out.append([n[0].name() if n[0] else None for n in z.grad_fn.next_functions])
    out.append(len(z.grad_fn.saved_tensors))
    out.append(z.grad_fn.scale)
    z.sum().backward()
    out += [x.grad, y.grad, seen]
    out.append(raises(torch, lambda: z.grad_fn.saved_tensors))
    out.append(raises(torch, lambda: z.sum().backward()))
    plain = torch.ones(3)
    w = f.apply(plain, y, 3.0, "name")
    out.append([n[0].name() if n[0] else None for n in w.grad_fn.next_functions])
    w.sum().backward()
    out += [y.grad, seen[-1][5]]
    v = f.apply(plain, plain, 1.0)
    out += [v.requires_grad, v.grad_fn]
    with torch.no_grad():
        u = f.apply(x, y, 1.0)
    out += [u.requires_grad, u.grad_fn]
    return out


@case
def case_grad_mode_inside(torch):
    seen = []

    def forward(ctx, x):
        seen.append(torch.is_grad_enabled())
        seen.append(x.requires_grad)
        y = x * 2
        seen.append(y.requires_grad)
        return y

    def backward(ctx, g):
        seen.append(torch.is_grad_enabled())
        return g * 2

    f = make(torch, forward, backward)
    x = leaf(torch)
    f.apply(x).sum().backward()
    torch.autograd.grad(f.apply(x).sum(), x, create_graph=True)
    return seen, x.grad


@case
def case_no_saved_tensors(torch):
    f = make(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
    x = leaf(torch)
    y = f.apply(x).sum()
    y.backward()
    return x.grad, attempt(torch, lambda: y.backward()), x.grad


@case
def case_wrong_gradients(torch):
    x, y = leaf(torch), leaf(torch)
    out = []

    def run(backward, *args):
        f = make(torch, lambda ctx, *a: a[0] * 2, backward)
        x.grad = None
        return attempt(torch, lambda: (f.apply(*args).sum().backward(), x.grad)[1])

    out.append(run(lambda ctx, g: (g, g), x))
    out.append(run(lambda ctx, g: (g,), x, y))
    out.append(run(lambda ctx, g: (), x))
    out.append(run(lambda ctx, g: (g, None, None), x))
    out.append(run(lambda ctx, g: (g, g), x, 2.0))
    out.append(run(lambda ctx, g: (g, 1.0), x, 2.0))
    out.append(run(lambda ctx, g: g[:2], x))
    out.append(run(lambda ctx, g: g.sum(), x))
    out.append(run(lambda ctx, g: g.reshape(3, 1), x))
    out.append(run(lambda ctx, g: g[None].expand(2, 3), x))
    out.append(run(lambda ctx, g: g.double(), x))
    out.append(run(lambda ctx, g: g.to(torch.int64), x))
    out.append(run(lambda ctx, g: 3.0, x))
    out.append(run(lambda ctx, g: "text", x))
    out.append(run(lambda ctx, g: None, x))
    out.append(run(lambda ctx, g: [g], x))
    out.append(run(lambda ctx, g: (None, g), x, y))
    return out


@case
def case_wrong_outputs(torch):
    x = leaf(torch)
    back = lambda ctx, *g: g[0]  # noqa: E731
    out = []
    for value in (3.0, None, "text", [1.0]):
        out.append(attempt(torch, lambda: make(torch, lambda ctx, x: value, back).apply(x)))  # noqa: B023
    out.append(attempt(torch, lambda: make(torch, lambda ctx, x: (x * 2, 3.0), lambda ctx, g, n: g * 2).apply(x)[1]))
    out.append(attempt(torch, lambda: make(torch, lambda ctx, x: (x * 2, None), lambda ctx, g, n: g * 2).apply(x)[1]))
    out.append(
        attempt(
            torch, lambda: type(make(torch, lambda ctx, x: [x * 2, x * 3], lambda ctx, g, n: g * 2).apply(x)).__name__
        )
    )
    out.append(attempt(torch, lambda: type(make(torch, lambda ctx, x: (x * 2,), back).apply(x)).__name__))
    return out


@case
def case_several_outputs(torch):
    seen = []

    def backward(ctx, g1, g2):
        seen.append([g1, g2])
        return g1 * 2 + g2 * 3

    f = make(torch, lambda ctx, x: (x * 2, x * 3), backward)
    x = leaf(torch)
    a, b = f.apply(x)
    out = [a.grad_fn is b.grad_fn, a.output_nr, b.output_nr]
    a.sum().backward()
    a, b = f.apply(x)
    b.sum().backward()
    a, b = f.apply(x)
    (a * b).sum().backward()
    return out, seen, x.grad


@case
def case_materialize_grads(torch):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, g1, g2):
        seen.append([g1, g2])
        return g1

    f = make(torch, forward, backward)
    x = leaf(torch)
    f.apply(x)[0].sum().backward()
    return seen, x.grad


@case
def case_mark_dirty(torch):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    f = make(torch, forward, lambda ctx, g: g * 2)
    x = leaf(torch)
    y = x * 1
    before = y._version
    z = f.apply(y)
    out = [z is y, z.grad_fn.name(), y._version - before]
    z.sum().backward()
    out += [x.grad, raises(torch, lambda: f.apply(x))]
    g = make(torch, lambda ctx, x: (ctx.mark_dirty(x), x + 1)[1], lambda ctx, g: g)
    out.append(attempt(torch, lambda: g.apply(x * 1)))
    w = torch.ones(2)
    out.append(f.apply(w) is w)
    base = x * 1
    view = base[:2]
    out.append(attempt(torch, lambda: (f.apply(view).sum().backward(), base.grad_fn.name())[1]))
    e = x.exp()
    f.apply(e)
    out.append(attempt(torch, lambda: e.sum().backward()))
    return out


@case
def case_mark_non_differentiable(torch):
    def forward(ctx, x):
        values, indices = x.sort()
        mask = x > 1
        ctx.mark_non_differentiable(indices, mask)
        other = x * 2
        ctx.mark_non_differentiable(indices, mask, other)
        return values, indices, mask, other

    seen = []

    def backward(ctx, g, gi, gm, go):
        seen.append([g, gi, gm, go])
        return g

    x = leaf(torch)
    v, i, m, o = make(torch, forward, backward).apply(x)
    v.sum().backward()
    out = [v.requires_grad, i.requires_grad, m.requires_grad, o.requires_grad, o.grad_fn, x.grad, seen]
    ints = make(torch, lambda ctx, x: x.to(torch.int64), lambda ctx, g: g).apply(x)
    out += [ints.requires_grad, ints.dtype]
    return out


@case
def case_returning_inputs_and_views(torch):
    x = leaf(torch)
    f = make(torch, lambda ctx, x: x, lambda ctx, g: g * 10)
    y = f.apply(x)
    out = [y is x, y.grad_fn.name(), y.data_ptr() == x.data_ptr(), y.is_leaf]
    y.sum().backward()
    out.append(x.grad.clone())
    g = make(torch, lambda ctx, x: x.view(3, 1), lambda ctx, g: g.view(3) * 5)
    z = g.apply(x)
    out += [z.shape, z.grad_fn.name()]
    z.sum().backward()
    out.append(x.grad.clone())
    h = make(torch, lambda ctx, x, y: (y, x), lambda ctx, g, k: (k * 2, g * 3))
    a, b = h.apply(x, torch.ones(3))
    (a.sum() + b.sum()).backward()
    out += [a.requires_grad, b.requires_grad, x.grad.clone()]
    d = make(torch, lambda ctx, x: x.detach(), lambda ctx, g: g * 7).apply(x)
    out += [d.requires_grad, d.grad_fn.name()]
    out.append(attempt(torch, lambda: f.apply(x * 1).add_(1).grad_fn.name()))
    out.append(attempt(torch, lambda: g.apply(x * 1).add_(1).grad_fn.name()))
    const = torch.ones(2)
    e = make(torch, lambda ctx, x: const, lambda ctx, g: torch.ones(3)).apply(x)
    out += [e is const, e.requires_grad, const.requires_grad]
    return out


@case
def case_double_backward(torch):
    def forward(ctx, x):
        y = x**3
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * 3 * x**2 + 0 * y.sum()

    f = make(torch, forward, backward)
    x = leaf(torch)
    (a,) = torch.autograd.grad(f.apply(x).sum(), x, create_graph=True)
    (b,) = torch.autograd.grad(a.sum(), x, create_graph=True)
    (c,) = torch.autograd.grad(b.sum(), x)
    x2 = torch.tensor([0.5, 0.7], dtype=torch.float64, requires_grad=True)
    ok = [torch.autograd.gradcheck(f.apply, (x2,)), torch.autograd.gradgradcheck(f.apply, (x2,))]

    def output_backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    def exp(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    e = make(torch, exp, output_backward)
    (d,) = torch.autograd.grad(e.apply(x * 2).sum(), x, create_graph=True)
    (k,) = torch.autograd.grad(d.sum(), x, create_graph=True)
    (m,) = torch.autograd.grad(k.sum(), x)
    ok.append(torch.autograd.gradgradcheck(e.apply, (x2,)))
    return a, b, c, ok, d, k, m


@case
def case_once_differentiable(torch):
    once = torch.autograd.function.once_differentiable
    f = make(torch, lambda ctx, x: x**2, once(lambda ctx, g: g * 2))
    x = leaf(torch)
    f.apply(x).sum().backward()
    (g,) = torch.autograd.grad(f.apply(x).sum(), x, create_graph=True)
    out = [x.grad, g.requires_grad]
    w = leaf(torch)
    (h,) = torch.autograd.grad((f.apply(x) * w).sum(), x, create_graph=True)
    out += [h.requires_grad, attempt(torch, lambda: h.sum().backward())]
    return out


@case
def case_setup_context(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(x, k, flag=True):
            return x * k if flag else x

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, k, flag = inputs
            ctx.save_for_backward(x, output)
            ctx.k = k

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * ctx.k, None, None

    x = leaf(torch)
    y = F.apply(x, 3.0, True)
    y.sum().backward()
    out = [y, y.grad_fn.name(), x.grad.clone()]
    out.append(attempt(torch, lambda: F.apply(x, 3.0)))
    out.append(attempt(torch, lambda: F.apply(x, k=2.0)))
    return out


@case
def case_kwargs_and_misuse(torch):
    f = make(torch, lambda ctx, x, k=1.0: x * k, lambda ctx, g: (g, None))
    x = leaf(torch)
    out = [attempt(torch, lambda: f.apply(x, k=2.0))]
    out.append(attempt(torch, lambda: f.apply(x).requires_grad))
    out.append(attempt(torch, lambda: f.apply()))
    instance, messages = warns(torch, f)
    out += [attempt(torch, lambda: instance(x)), [kind for kind, _ in messages]]
    empty = type("Empty", (torch.autograd.Function,), {})
    out.append(attempt(torch, lambda: empty.apply(x)))
    only = type("Only", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    out.append(attempt(torch, lambda: only.apply(x).sum().backward()))
    nope = make(torch, lambda ctx, x: (ctx.save_for_backward(3.0), x * 2)[1], lambda ctx, g: g)
    out.append(attempt(torch, lambda: nope.apply(x)))
    nope = make(torch, lambda ctx, x: (ctx.save_for_backward(x, [x]), x * 2)[1], lambda ctx, g: g)
    out.append(attempt(torch, lambda: nope.apply(x)))
    return out


@case
def case_saved_tensor_modified(torch):
    f = make(torch, lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], lambda ctx, g: g * ctx.saved_tensors[0])
    x = leaf(torch)
    y = x * 1
    z = f.apply(y)
    y.add_(1)
    out = [attempt(torch, lambda: z.sum().backward())]

    def forward(ctx, x):
        r = x * 2
        ctx.save_for_backward(r)
        return r

    g = make(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0])
    z = g.apply(x)
    z.add_(1)
    out.append(attempt(torch, lambda: z.sum().backward()))
    with torch.no_grad():
        w = leaf(torch)
    z = f.apply(w)
    with torch.no_grad():
        w.add_(1)
    out.append(attempt(torch, lambda: z.sum().backward()))
    return out


@case
def case_raising(torch):
    def forward(ctx, x, bad):
        if bad:
            raise ValueError("in forward")
        return x * 2

    x = leaf(torch)
    f = make(torch, forward, lambda ctx, g, *_: (g * 2, None))
    out = [
        attempt(torch, lambda: f.apply(x, True)),
        torch.is_grad_enabled(),
        attempt(torch, lambda: f.apply(x, False).requires_grad),
    ]
    calls = []

    def backward(ctx, g):
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("in backward")
        return g * 2

    h = make(torch, lambda ctx, x: x * 2, backward)
    w = leaf(torch)
    v = leaf(torch)
    y = h.apply(w) * v
    out.append(attempt(torch, lambda: y.sum().backward()))
    out += [torch.is_grad_enabled(), w.grad, y, (w * 2)]
    w.grad = v.grad = None
    (h.apply(w) * v).sum().backward()
    out += [w.grad, v.grad]
    return out


@case
def case_context_attributes(torch):
    seen = []

    def forward(ctx, x):
        seen.append(sorted(a for a in ("save_for_backward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads",
                                       "needs_input_grad", "saved_tensors", "saved_variables", "save_for_forward") if hasattr(ctx, a)))  # fmt: skip
        ctx.anything = {"a": 1}
        ctx.items = [x]
        seen.append(ctx.needs_input_grad)
        return x * 1

    def backward(ctx, g):
        seen.append([ctx.anything, ctx.items, hasattr(ctx, "missing"), ctx.needs_input_grad])
        return g

    f = make(torch, forward, backward)
    x = leaf(torch)
    y = f.apply(x)
    y.sum().backward()
    ctx = torch.autograd.function.FunctionCtx()
    ctx.save_for_backward(x)
    return (
        seen,
        isinstance(y.grad_fn, f),
        issubclass(type(y.grad_fn), torch.autograd.function.FunctionCtx),
        f._backward_cls.__name__,
    )


@case
def case_hooks_on_function_nodes(torch):
    f = make(torch, lambda ctx, x, s, y: x * s + y, lambda ctx, g: (g * 2, None, g * 3))
    x = leaf(torch)
    z = f.apply(x, 2.0, leaf(torch))
    seen = []
    z.grad_fn.register_hook(lambda gi, go: seen.append([gi, go]))
    z.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    z.sum().backward()
    return seen, x.grad


@case
def case_straight_through(torch):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, alpha):
            ctx.alpha = alpha
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g.neg() * ctx.alpha, None

    x = tensor(torch, (4,), seed=1, requires_grad=True)
    net = torch.nn.Linear(4, 2)
    with torch.no_grad():
        for p in net.parameters():
            p.fill_(0.5)
    y = net(Reverse.apply(Round.apply(x), 0.3))
    y.sum().backward()
    return y, x.grad, net.weight.grad, net.bias.grad, y.grad_fn.name()


@case
def case_nested_tuples_of_tensors(torch):
    f = make(torch, lambda ctx, xs: xs[0] * 2, lambda ctx, g: None)
    x = leaf(torch)
    out = [f.apply([x]).requires_grad, f.apply((x,)).requires_grad]
    g = make(torch, lambda ctx, *xs: sum(xs), lambda ctx, g: (g,) * 3)
    y = g.apply(x, x, x)
    y.sum().backward()
    return out, x.grad
