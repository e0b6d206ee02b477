"""torch.func: gradients, Jacobians, and modules as functions."""

from compat_tests import case, raises, tensor


def parts(torch):
    return tensor(torch, (5, 5), seed=1), tensor(torch, (5,), seed=2), tensor(torch, (5,), seed=3)


@case
def case_grad(torch):
    grad = torch.func.grad
    _, b, x = parts(torch)
    t = torch.tensor(0.3)
    w = tensor(torch, (5,), seed=4, requires_grad=True)
    with torch.no_grad():
        outer = grad(lambda a: (a * a * w).sum())(x)
    tracked = grad(lambda a: (a * w * w).sum())(x)
    tracked.sum().backward()
    return [
        grad(lambda a: a.sin().sum())(x),
        grad(lambda a, b: (a * b).sum(), argnums=(0, -1))(x, b),
        grad(lambda d: (d["p"] * d["q"][0]).sum())({"p": x, "q": (b,)}),
        grad(lambda a: (a.sum(), {"a": a * 2}), has_aux=True)(x),
        torch.func.grad_and_value(lambda a: (a * a).sum())(x),
        torch.func.grad_and_value(lambda a: (a.sum(), a), has_aux=True)(x),
        grad(lambda a, b: a.sum(), argnums=(0, 1))(x, b),
        grad(grad(grad(lambda a: a.sin() * a)))(t),
        grad(lambda a: a * grad(lambda c: a + c)(a))(t),
        grad(lambda a: a * grad(lambda c: a * c * c)(a))(t),
        grad(lambda a: torch.no_grad()(lambda: (a * a).sum())())(x),
        outer, tracked.detach(), w.grad,
    ]  # fmt: skip


@case
def case_products(torch):
    f = torch.func
    _, b, x = parts(torch)
    out, pull = f.vjp(lambda a, c: (a * c, a.sum()), x, b)
    pulled = pull((x, torch.tensor(2.0)))
    linear = f.linearize(lambda a: a.sin() * 2, x)
    return [
        out, pulled, pull((x, torch.tensor(2.0))),
        f.vjp(lambda a: {"z": a["q"] * 2}, {"q": x})[1]({"z": b}),
        f.vjp(lambda a: (a, a * 2), x, has_aux=True)[2],
        f.jvp(lambda a: a.sin().sum(), (x,), (b,)),
        f.jvp(lambda a, c: {"m": a * c}, (x, b), (b, x)),
        f.jvp(lambda a: (a, a * 2), (x,), (b,), has_aux=True),
        f.jvp(lambda a: torch.ones(2), (x,), (x,)),
        f.jvp(f.grad(lambda a: (a.sin() * a).sum()), (x,), (b,)),
        f.vjp(f.grad(lambda a: (a.sin() * a).sum()), x)[1](b),
        linear[0], linear[1](b), torch.vmap(linear[1])(torch.eye(5)),
    ]  # fmt: skip


@case(rtol=1e-4, atol=1e-5)
def case_jacobians(torch):
    f = torch.func
    W, b, x = parts(torch)
    X = tensor(torch, (4, 5), seed=5)

    def predict(W, b, x):
        return torch.nn.functional.linear(x, W, b).tanh()

    def batched(x):
        return torch.vmap(lambda a: (a * b).sum() ** 3)(x)

    return [
        f.jacrev(predict, argnums=2)(W, b, x),
        f.jacfwd(predict, argnums=2)(W, b, x),
        f.jacrev(predict, argnums=(0, 1), chunk_size=2)(W, b, x),
        f.jacfwd(predict, argnums=(0, 1))(W, b, x),
        f.jacrev(lambda a: {"s": a["k"] * 2, "t": a["k"].sum()})({"k": x}),
        f.jacfwd(lambda a: (a * 2, a), has_aux=True)(x),
        f.hessian(predict, argnums=2)(W, b, x),
        f.hessian(lambda *a: predict(*a).sum(), argnums=(0, 1))(W, b, x),
        f.jacrev(f.jacrev(predict, argnums=2), argnums=2)(W, b, x),
        f.jacfwd(f.jacfwd(predict, argnums=2), argnums=2)(W, b, x),
        f.jacrev(f.jacfwd(predict, argnums=2), argnums=2)(W, b, x),
        torch.vmap(f.jacrev(predict, argnums=2), in_dims=(None, None, 0))(W, b, X),
        torch.vmap(f.hessian(predict, argnums=2), in_dims=(None, None, 0))(W, b, X),
        f.jacrev(batched)(X), f.jacfwd(batched)(X), f.hessian(lambda x: batched(x).sum())(X),
    ]  # fmt: skip


def network(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100, 10)
    )


@case(rtol=1e-4, atol=1e-5)
def case_per_sample_gradients(torch):
    f = torch.func
    model = network(torch)
    data = tensor(torch, (6, 1, 14, 14), seed=1)
    targets = torch.arange(6)
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, x, y):
        return torch.nn.functional.cross_entropy(f.functional_call(model, params, (x[None],)), y[None])

    return [torch.vmap(f.grad(loss), (None, 0, 0), chunk_size=n)(params, data, targets) for n in (None, 4)]


@case(rtol=1e-4, atol=1e-5)
def case_ensemble(torch):
    models = [network(torch) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    data = tensor(torch, (4, 1, 14, 14), seed=1)

    def call(params, buffers, x):
        return torch.func.functional_call(models[0], (params, buffers), (x,))

    out = torch.vmap(call, (0, 0, None))(params, buffers, data)
    out.square().mean().backward()
    return out.detach(), {k: v.grad for k, v in params.items()}


@case(rtol=1e-4, atol=1e-5)
def case_inner_loop(torch):
    F = torch.nn.functional
    p = [tensor(torch, s, seed=k) for k, s in enumerate(((8, 1), (8,), (1, 8), (1,)))]
    for t in p:
        t.requires_grad_()
    optimizer = torch.optim.SGD(p, 1e-3)

    def net(p, x):
        return F.linear(F.linear(x, p[0], p[1]).tanh(), p[2], p[3])

    def task(x1, x2):
        g = torch.func.grad(lambda q: ((net(q, x1) - x1.sin()) ** 2).mean())(tuple(p))
        q = [t - 0.1 * d for t, d in zip(p, g)]
        return ((net(q, x2) - x2.sin()) ** 2).mean()

    losses = []
    for k in range(4):
        loss = torch.vmap(task)(tensor(torch, (4, 10, 1), seed=k), tensor(torch, (4, 10, 1), seed=9 + k)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, [t.detach() for t in p]


@case
def case_functional_call(torch):
    call = torch.func.functional_call
    m = torch.nn.Linear(3, 1)
    x = torch.arange(6.0).reshape(2, 3)
    w, b = {"weight": torch.ones(1, 3)}, {"bias": torch.zeros(1)}
    return [
        call(m, [w, b], x), call(m, w | b, (x,)), call(m, w, (), {"input": x}).detach(),
        [raises(torch, function) for function in (
            lambda: call(m, [w, w], x), lambda: call(m, [3], x), lambda: call(m, 3, x),
            lambda: call(m, w, x, strict=True), lambda: call(m, w | {"foo": x}, x, strict=True),
            lambda: torch.func.stack_module_state([]),
            lambda: torch.func.stack_module_state([m, torch.nn.Identity()]),
        )],
        torch.func.rearrange(torch.arange(24).reshape(2, 12), "b (h w) -> w b h", h=3),
        torch.func.functionalize(lambda a: a.clone().add_(1))(x),
    ]  # fmt: skip


@case
def case_errors(torch):
    f = torch.func
    x = torch.arange(6.0).reshape(2, 3)

    def total(a):
        return (a * a).sum()

    return [
        raises(torch, function)
        for function in (
            lambda: f.grad(lambda a: a.sin_().sum())(x.clone()),
            lambda: f.grad(lambda a: a)(x),
            lambda: f.grad(lambda a: 3.0)(x),
            lambda: f.grad(lambda a: a.sum(), has_aux=True)(x),
            lambda: f.grad(total)(x.long()),
            lambda: f.grad(total, argnums=1)(x),
            lambda: f.grad(total, argnums="a")(x),
            lambda: f.grad(lambda a, b: a.sum(), argnums=(0, 0))(x, x),
            lambda: f.grad(total)(3.0),
            lambda: f.grad(lambda a: (a.sum().backward(), a.sum())[1])(x),
            lambda: f.vjp(total, x)[1]((torch.ones(()),)),
            lambda: f.vjp(total, x)[1](torch.ones(3)),
            lambda: f.vjp(lambda a: 3, x),
            lambda: f.jvp(total, x, x),
            lambda: f.jvp(total, (x,), (x, x)),
            lambda: f.jvp(total, (x,), (x[0],)),
            lambda: f.jvp(total, (), ()),
            lambda: f.jvp(lambda a: torch.ones(2), (x,), (x,), strict=True),
            lambda: f.jacrev(total, chunk_size=0)(x),
            lambda: f.jacfwd(total)(x.long()),
            lambda: f.jacfwd(lambda a: a * torch.rand(3))(x[0]),
            lambda: f.linearize(total, x)[1](x[0]),
            lambda: f.functionalize(total, remove="foo")(x),
        )
    ]
