"""torch.vmap."""

from compat_tests import case, raises, tensor


def inputs(torch):
    return tensor(torch, (3, 4), seed=1), tensor(torch, (4,), seed=2), tensor(torch, (4, 5), seed=3)


@case
def case_dims(torch):
    x, y, m = inputs(torch)
    V = torch.vmap
    return [
        V(torch.dot, in_dims=(0, None))(x, y),
        V(lambda a: a * 2, in_dims=1)(x),
        V(lambda a: a * 2, in_dims=-1, out_dims=1)(x),
        V(lambda a: (a, a.sum()), out_dims=(1, 0))(x),
        V(lambda a: {"a": a, "b": [a + 1, torch.ones(2)]})(x),
        V(lambda d: d["x"] @ d["y"], in_dims=({"x": 0, "y": None},))({"x": x, "y": m}),
        V(lambda a, k: a * k, in_dims=(0, None))(x, 3),
        V(lambda a, k=1: a * k)(x, k=2.0),
        V(lambda a: torch.ones(2), out_dims=None)(x),
        V(lambda a: a.sin(), chunk_size=2)(x),
        V(V(lambda a, b: (a @ b).sum() + a * b, (0, None)), (None, 1), out_dims=1)(x, m),
    ]


@case(rtol=1e-4, atol=1e-5)
def case_operations(torch):
    F = torch.nn.functional
    x, y, m = inputs(torch)
    q = tensor(torch, (3, 2, 4, 8), seed=4)
    s = tensor(torch, (3, 3, 3), seed=5)
    image = tensor(torch, (3, 2, 6, 6), seed=6)
    kernel = tensor(torch, (4, 2, 3, 3), seed=7)
    return [
        torch.vmap(f)(v)
        for f, v in (
            (lambda a: a.sort()[0].cumsum(0), x),
            (lambda a: torch.topk(a, 2)[0], x),
            (lambda a: F.layer_norm(a, (4,)), x),
            (lambda a: F.scaled_dot_product_attention(a, a, a), q),
            (lambda a: torch.linalg.inv(a @ a.T + torch.eye(3)), s),
            (lambda a: torch.where(a > 0, a, torch.zeros(())), x),
            (lambda a: a[a.argmax()], x),
            (lambda a: a[torch.tensor([0, 2])] * a[1:3], x),
            (lambda a: F.conv2d(a.unsqueeze(0), kernel), image),
            (lambda a: F.max_pool2d(a, 2).flatten(), image),
            (lambda a: F.embedding(torch.tensor([1, 0]), a), s),
            (lambda a: torch.einsum("ij,jk->ik", a, s[0]), s),
            (lambda a: a.softmax(0) + y, x),
        )
    ]


@case
def case_inplace(torch):
    def f(x):
        y = torch.zeros_like(x)
        y[1:] = x[1:] * 2
        y[0].add_(x[0])
        return y.mul_(x)

    x, _, _ = inputs(torch)
    z = x.clone()
    torch.vmap(lambda a: a.mul_(2))(z)
    return torch.vmap(f)(x), z, torch.vmap(torch.func.grad(lambda a: f(a).sum()))(x)


@case
def case_gradient_through(torch):
    x, y, _ = inputs(torch)
    x.requires_grad_()
    y.requires_grad_()

    def total():
        return torch.vmap(lambda a: (a * y + y).sin().sum() * y)(x).sum()

    out = total()
    gx, gy = torch.autograd.grad(out, (x, y), create_graph=True)
    again = torch.autograd.grad(gx.square().sum() + gy.square().sum(), (x, y))
    total().backward()
    return gx.detach(), gy.detach(), again, x.grad, y.grad


@case
def case_random(torch):
    F = torch.nn.functional
    x = tensor(torch, (3, 17), seed=1)

    def f(a):
        return torch.rand(3), torch.randint(0, 10, (20,)), torch.randn_like(a), F.dropout(a), a.clone().uniform_()

    def g(a):
        return torch.bernoulli(a.sigmoid()), torch.normal(a, 1.0), torch.randperm(5)

    return [
        torch.vmap(f, randomness="different")(x),
        torch.vmap(g, randomness="different")(x),
        torch.vmap(f, randomness="same")(x),
        raises(torch, lambda: torch.vmap(f)(x)),
        raises(torch, lambda: torch.vmap(g, randomness="same")(x)),
        raises(torch, lambda: torch.vmap(lambda a: torch.zeros(3).normal_(), randomness="different")(x)),
        torch.vmap(lambda a: F.dropout(a, training=False))(x),
        torch.rand(2),
    ]


@case
def case_errors(torch):
    V = torch.vmap
    x = torch.arange(6.0).reshape(2, 3)

    def f(a):
        return a

    def g(a):
        return a, a

    return [
        raises(torch, function)
        for function in (
            lambda: V(lambda a: a.sum().item())(x),
            lambda: V(lambda a: a if a.sum() > 0 else -a)(x),
            lambda: V(lambda a: float(a.sum()))(x),
            lambda: V(lambda a: a.nonzero())(x),
            lambda: V(lambda a: a[a > 1])(x),
            lambda: V(lambda a: a.tolist())(x),
            lambda: V(f, randomness="no"),
            lambda: V(f, out_dims=(0, 1))(x),
            lambda: V(g, out_dims=(0, 1, 1))(x),
            lambda: V(f, out_dims="a")(x),
            lambda: V(f, out_dims=5)(x),
            lambda: V(f, out_dims=None)(x),
            lambda: V(f, in_dims=3)(x),
            lambda: V(f, in_dims=(0, 0))(x),
            lambda: V(f, in_dims=[0])(x),
            lambda: V(f, in_dims=None)(x),
            lambda: V(f, in_dims=("a",))(x),
            lambda: V(lambda a, b: a, in_dims=(0, 0))(x, 3),
            lambda: V(f)(),
            lambda: V(lambda a, b: a)(x, torch.ones(4)),
            lambda: V(lambda a: 3)(x),
            lambda: V(lambda a: a.requires_grad_())(x),
            lambda: V(f, chunk_size=0),
        )
    ]
