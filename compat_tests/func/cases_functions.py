"""Custom autograd Functions inside of torch.func's transforms."""

from compat_tests import case, raises, tensor


def make(torch, **members):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x.exp() * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx, g):
            x, y, out = ctx.saved_tensors
            return g * out, g * x.exp()

    return type("Product", (Product,), members)


@case
def case_vmap(torch):
    F = torch.func
    x, y = tensor(torch, (3,), "float64", 1), tensor(torch, (3,), "float64", 2)
    seen = []

    def rule(info, in_dims, x, y):
        seen.append([tuple(info), in_dims, tuple(x.shape), tuple(y.shape)])
        return By.apply(x, y), 0

    By = make(torch, vmap=staticmethod(rule))
    Generated = make(torch, generate_vmap_rule=True)
    out = [F.vmap(f.apply)(x, y) for f in (Generated, By)]
    out += [F.vmap(By.apply, (0, None))(x, y[0]), F.vmap(F.grad(By.apply))(x, y), F.vmap(F.grad(Generated.apply))(x, y)]
    out.append(F.grad(lambda x: F.vmap(By.apply)(x, y).sum())(x))
    return [*out, seen]


@case
def case_errors(torch):
    F = torch.func
    x = tensor(torch, (3,), "float64", 1)

    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    def run(**members):
        return raises(torch, lambda: F.vmap(make(torch, **members).apply)(x, x))

    plain = staticmethod(lambda info, in_dims, x, y: x)
    pair = staticmethod(lambda info, in_dims, x, y: (x, (0, 0)))
    out = [raises(torch, lambda f=f: f(Old.apply)(x)) for f in (F.vmap, lambda f: F.grad(lambda x: f(x).sum()))]
    out.append(raises(torch, lambda: F.jvp(make(torch).apply, (x, x), (x, x))))
    return [*out, run(), run(vmap=plain, generate_vmap_rule=True), run(vmap=plain), run(vmap=pair)]
