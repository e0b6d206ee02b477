"""backward() and torch.autograd.grad(): what accumulates where, what is freed, and what they refuse."""

# ruff: noqa: E501 - tables of one line functions

from compat_tests import case, raises, tensor, warns


def attempt(torch, function):
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


@case
def case_leaves(torch):
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2)
    c = a * b
    d = b * 2
    out = [
        (t.is_leaf, t.requires_grad, t.grad_fn is None)
        for t in (a, b, c, d, c.detach(), a.data, a.detach().requires_grad_())
    ]
    with torch.no_grad():
        e = a * 2
    out.append((e.is_leaf, e.requires_grad, e.grad_fn is None))
    p = torch.nn.Parameter(torch.ones(1))
    out.append((p.is_leaf, p.requires_grad))
    f = torch.ones(2, requires_grad=True).to(torch.float64)
    out.append((f.is_leaf, f.requires_grad, f.grad_fn.name()))
    out.append(torch.rand(3, requires_grad=True).is_leaf)
    out.append((torch.rand(3) * 2).requires_grad_().is_leaf)
    return out


@case
def case_accumulates_in_place(torch):
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    first = w.grad
    (w * 3).sum().backward()
    return w.grad is first, first, first.requires_grad, first._version, w.grad.grad_fn is None


@case
def case_accumulates_out_of_place_with_create_graph(torch):
    w = torch.ones(3, requires_grad=True)
    (w * 2).sum().backward()
    first = w.grad
    (w * w).sum().backward(create_graph=True)
    return w.grad is first, w.grad, w.grad.requires_grad, first


@case
def case_grad_assigned_by_user(torch):
    w = torch.ones(3, requires_grad=True)
    g = torch.full((3,), 10.0)
    w.grad = g
    (w * 2).sum().backward()
    return w.grad is g, g


@case
def case_retain_grad(torch):
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y.retain_grad()
    y.retain_grad()
    out = [y.retains_grad, w.retains_grad]
    (y * y).sum().backward(retain_graph=True)
    out.append(y.grad)
    w.retain_grad()
    out.append(raises(torch, lambda: torch.ones(1).retain_grad()))
    return out


@case
def case_retain_graph(torch):
    w = torch.ones(3, requires_grad=True)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    y.backward()
    out = [w.grad.clone(), raises(torch, y.backward)]
    z = (w + 1).sum()
    z.backward()
    z.backward()  # nothing was saved, so nothing was freed
    out.append(w.grad)
    v = w.exp()
    s = v.sum()
    s.backward()
    out.append(raises(torch, s.backward))
    out.append(raises(torch, lambda: torch.autograd.grad(s, w)))
    return out


@case
def case_gradient_argument(torch):
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = w * w
    y.backward(torch.tensor([1.0, 0.1, 0.01]))
    out = [w.grad.clone()]
    out.append(raises(torch, lambda: (w * w).backward()))
    out.append(raises(torch, lambda: (w * w).backward(torch.ones(2))))
    out.append(raises(torch, lambda: (w * w).backward(2.0)))
    out.append(raises(torch, lambda: (w * w).backward(gradient=[1.0, 2.0, 3.0])))
    out.append(raises(torch, lambda: torch.ones(1).backward()))
    out.append(raises(torch, lambda: torch.ones(3).backward()))
    out.append(raises(torch, lambda: torch.ones(3).backward(torch.ones(3))))
    out.append(attempt(torch, lambda: (w * w).backward(torch.ones(3, dtype=torch.float64))))
    out.append(attempt(torch, lambda: (w * w).backward(torch.ones(3, dtype=torch.int64))))
    out.append(attempt(torch, lambda: (w * w).backward(torch.ones(3, dtype=torch.complex64))))
    one = torch.tensor([2.0], requires_grad=True)
    (one * 3).backward()
    out.append(one.grad)
    (one * one).backward(gradient=None)
    out.append(one.grad)
    return out


@case
def case_complex_roots(torch):
    z = torch.tensor(1.0 + 2.0j, requires_grad=True)
    out = [raises(torch, lambda: (z * z).backward())]
    (z * z).backward(torch.tensor(1.0 + 0.0j))
    out.append(z.grad.clone())
    (z * z).abs().backward()
    out.append(z.grad)
    return out


@case
def case_several_roots(torch):
    w = torch.ones(2, requires_grad=True)
    a, b = (w * 2).sum(), w * w
    torch.autograd.backward([a, b], [None, torch.ones(2)])
    out = [w.grad.clone()]
    torch.autograd.backward((w * 2).sum())
    out.append(w.grad.clone())
    out.append(raises(torch, lambda: torch.autograd.backward([a, b], [torch.ones(2)])))
    out.append(raises(torch, lambda: torch.autograd.backward([(w * 2).sum(), w * w])))
    c = (w * 3).sum()
    torch.autograd.backward([c, c])
    out.append(w.grad.clone())
    torch.autograd.backward([w], [torch.ones(2)])
    out.append(w.grad.clone())
    out.append(raises(torch, lambda: torch.autograd.backward([(w * 2).sum(), torch.ones(1)])))
    return out


@case
def case_backward_of_a_leaf(torch):
    w = torch.tensor(3.0, requires_grad=True)
    w.backward()
    out = [w.grad.clone()]
    w.backward(torch.tensor(5.0))
    out.append(w.grad.clone())
    out.append(torch.autograd.grad(w, w))
    return out


@case
def case_backward_inputs(torch):
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    c = a * 2
    y = (c * b).sum()
    y.backward(inputs=[a], retain_graph=True)
    out = [a.grad.clone(), b.grad]
    y.backward(inputs=b, retain_graph=True)
    out += [a.grad.clone(), b.grad.clone()]
    y.backward(inputs=[c], retain_graph=True)
    out += [warns(torch, lambda: c.grad)[0], a.grad.clone()]
    out.append(raises(torch, lambda: y.backward(inputs=[])))
    out.append(raises(torch, lambda: y.backward(inputs=[torch.ones(1)])))
    unused = torch.ones(2, requires_grad=True)
    y.backward(inputs=[unused, a], retain_graph=True)
    out += [unused.grad, a.grad]
    out.append(attempt(torch, lambda: y.backward(inputs=(a, a), retain_graph=True)))
    out.append(a.grad)
    return out


@case
def case_grad(torch):
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    c = a * b
    y = (c * c).sum()
    out = [torch.autograd.grad(y, a, retain_graph=True), torch.autograd.grad(y, [a, b], retain_graph=True)]
    out.append(torch.autograd.grad(y, (c, a), retain_graph=True))
    out.append(torch.autograd.grad(y, [a, a], retain_graph=True))
    out.append(torch.autograd.grad(y, y, retain_graph=True))
    out.append(torch.autograd.grad([y, c], [a], [None, torch.ones(2)], retain_graph=True))
    out.append(torch.autograd.grad(c, a, torch.tensor([1.0, 10.0]), retain_graph=True))
    out.append(torch.autograd.grad(c, a, grad_outputs=[torch.tensor([1.0, 10.0])], retain_graph=True))
    out += [a.grad, b.grad]
    return out


@case
def case_grad_unused(torch):
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    y = (a * a).sum()
    out = [attempt(torch, lambda: torch.autograd.grad(y, b, retain_graph=True))]
    out.append(attempt(torch, lambda: torch.autograd.grad(y, [a, b], retain_graph=True)))
    out.append(torch.autograd.grad(y, [a, b], retain_graph=True, allow_unused=True))
    out.append(torch.autograd.grad(y, [a, b], retain_graph=True, materialize_grads=True))
    out.append(attempt(torch, lambda: torch.autograd.grad(y, b, allow_unused=False, materialize_grads=True)))
    out.append(attempt(torch, lambda: torch.autograd.grad(y, torch.ones(2), retain_graph=True)))
    out.append(attempt(torch, lambda: torch.autograd.grad(y, [a, torch.ones(2)], retain_graph=True, allow_unused=True)))
    out.append(attempt(torch, lambda: torch.autograd.grad(y, [], retain_graph=True)))
    out.append(attempt(torch, lambda: torch.autograd.grad([], [a], retain_graph=True, allow_unused=True)))
    out.append(attempt(torch, lambda: torch.autograd.grad(torch.ones(1), a)))
    out.append(attempt(torch, lambda: torch.autograd.grad(a * a, a)))
    out.append(attempt(torch, lambda: torch.autograd.grad(y, a, grad_outputs=torch.ones(2))))
    out.append(attempt(torch, lambda: torch.autograd.grad(y, a, grad_outputs=[torch.ones(()), torch.ones(())])))
    return out


@case
def case_grad_of_split(torch):
    x = torch.arange(6.0).requires_grad_()
    y = x * 2
    a, b, c = y.split(2)
    loss = (a * 1 + b * 10).sum()
    return (
        torch.autograd.grad(loss, x, retain_graph=True),
        torch.autograd.grad(loss, [a, b], retain_graph=True),
        torch.autograd.grad(loss, [b, c], retain_graph=True, allow_unused=True),
        torch.autograd.grad(loss, y),
    )


@case
def case_grads_batched(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    out = [torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True, retain_graph=True)]
    m = torch.ones(2, 2, requires_grad=True)
    z = (x.sum() * m * m).sum(0)
    out.append(torch.autograd.grad(z, [x, m], torch.eye(2), is_grads_batched=True, retain_graph=True))
    out.append(
        raises(torch, lambda: torch.autograd.grad(y, x, torch.ones(3), is_grads_batched=True, retain_graph=True))
    )
    out.append(
        attempt(
            torch, lambda: torch.autograd.grad([y, z], [x], [torch.ones(2, 3), torch.ones(2, 2)], is_grads_batched=True)
        )
    )
    return out


@case(rtol=1e-4, atol=1e-4)
@case.params(
    "name",
    ["exp", "sin", "tanh", "sigmoid", "relu", "softplus", "gelu", "silu", "log_softmax", "softmax", "pow3", "div", "matmul", "norm",
     "var", "std", "mean", "prod", "cumsum", "logsumexp", "sqrt", "log", "layer_norm", "conv", "mse", "ce", "index", "cat", "max",
     "bmm", "linear", "abs", "clamp", "where", "atan2", "erf", "rsqrt", "elu", "leaky", "batch_norm", "huber", "bce", "maxpool",
     "avgpool", "gather", "det", "inv", "cumprod", "logsigmoid", "l1", "embedding", "sdpa", "hypot", "xlogy", "lerp", "addcdiv"],
)  # fmt: skip
def case_third_order(torch, name):
    F = torch.nn.functional
    x = tensor(torch, (3, 3), "float64", 1)
    x = (x.abs() + 0.3).requires_grad_()
    w = tensor(torch, (3, 3), "float64", 2).requires_grad_()
    target = torch.tensor([0, 2, 1])
    functions = {
        "exp": lambda: x.exp() * w, "sin": lambda: (x * w).sin(), "tanh": lambda: (x * w).tanh(), "sigmoid": lambda: (x * w).sigmoid(),
        "relu": lambda: (x * w).relu() * x * w, "softplus": lambda: F.softplus(x * w), "gelu": lambda: F.gelu(x * w),
        "silu": lambda: F.silu(x * w), "log_softmax": lambda: F.log_softmax(x * w, 1), "softmax": lambda: F.softmax(x * w, 0),
        "pow3": lambda: x**3 * w + x**w, "div": lambda: x / (w * w + 1), "matmul": lambda: (x @ w) @ x, "norm": lambda: (x * w).norm(),
        "var": lambda: (x * w).var(0), "std": lambda: (x * w).std(1), "mean": lambda: (x * w * x).mean(1), "prod": lambda: (x * w).prod(1),
        "cumsum": lambda: (x * w * x).cumsum(0), "logsumexp": lambda: (x * w).logsumexp(1), "sqrt": lambda: x.sqrt() * w,
        "log": lambda: x.log() * w, "layer_norm": lambda: F.layer_norm(x * w, (3,), w[0], x[0]),
        "conv": lambda: F.conv2d((x * x)[None, None], w[None, None, :2, :2] ** 2, padding=1), "mse": lambda: F.mse_loss(x * w, x + w),
        "ce": lambda: F.cross_entropy(x * w, target), "index": lambda: (x * w)[target] * x[[1, 1, 2]],
        "cat": lambda: torch.cat([x * w, w * w * w, x.t()]) ** 2, "max": lambda: (x * w).max(1)[0] * x[0],
        "bmm": lambda: torch.bmm((x * x)[None], (w * w)[None]), "linear": lambda: F.linear(x * x, w * w, x[0]),
        "abs": lambda: (x * w).abs() * x, "clamp": lambda: (x * w).clamp(-0.5, 0.5) * x * x, "where": lambda: torch.where(w > 0, x * w * x, w**3),
        "atan2": lambda: torch.atan2(x, w), "erf": lambda: torch.erf(x * w), "rsqrt": lambda: x.rsqrt() * w, "elu": lambda: F.elu(x * w),
        "leaky": lambda: F.leaky_relu(x * w) * x, "batch_norm": lambda: F.batch_norm(x * w, None, None, w[0], x[0], True),
        "huber": lambda: F.huber_loss(x * x * w, w), "bce": lambda: F.binary_cross_entropy_with_logits(x * w, x.detach().clamp(0, 1)),
        "maxpool": lambda: F.max_pool2d((x * x * w)[None, None], 2, 1), "avgpool": lambda: F.avg_pool2d((x * x * w)[None, None], 2, 1),
        "gather": lambda: (x * x * w).gather(1, target[:, None]), "det": lambda: torch.linalg.det(x + 3 * torch.eye(3, dtype=x.dtype)) * w.sum(),
        "inv": lambda: torch.linalg.inv(x + 3 * torch.eye(3, dtype=x.dtype)) * w, "cumprod": lambda: (x * w).cumprod(1),
        "logsigmoid": lambda: F.logsigmoid(x * w), "l1": lambda: F.l1_loss(x * x * w, w), "embedding": lambda: F.embedding(target, w) ** 3 * x,
        "sdpa": lambda: F.scaled_dot_product_attention(x[None], w[None], (x * w)[None]), "hypot": lambda: torch.hypot(x, w),
        "xlogy": lambda: torch.xlogy(w, x), "lerp": lambda: torch.lerp(x * x, w * w, x), "addcdiv": lambda: torch.addcdiv(x, w, x, value=0.5) * x,
    }  # fmt: skip
    y = functions[name]()
    seeds = [tensor(torch, s, "float64", 10 + k) for k, s in enumerate([tuple(y.shape), (3, 3), (3, 3)])]
    first = torch.autograd.grad(
        (y * seeds[0]).sum(), [x, w], create_graph=True, allow_unused=True, materialize_grads=True
    )
    second = torch.autograd.grad(
        sum((g * seeds[1]).sum() for g in first), [x, w], create_graph=True, allow_unused=True, materialize_grads=True
    )
    if name in (
        "layer_norm",
        "batch_norm",
    ):  # PyTorch's own third derivative is wrong: it is not 0 along shifts of a row
        return [g.detach() for g in first], [g.detach() for g in second]
    total = sum((g * seeds[2]).sum() for g in second)
    third = torch.autograd.grad(total, [x, w], allow_unused=True) if total.requires_grad else None
    return [g.detach() for g in first], [g.detach() for g in second], third


@case
def case_create_graph_results(torch):
    x = torch.tensor(2.0, requires_grad=True)
    (a,) = torch.autograd.grad(x**3, x, create_graph=True)
    (b,) = torch.autograd.grad(a, x, create_graph=True)
    (c,) = torch.autograd.grad(b, x)
    out = [a, b, c, a.requires_grad, c.requires_grad]
    out.append(torch.autograd.grad((x * 2), x, create_graph=True)[0].requires_grad)
    (d,) = torch.autograd.grad(x**2, x)
    out.append(d.requires_grad)
    result, messages = warns(torch, lambda: (x * x).backward(create_graph=True))
    out += [result, [[kind, text.split(" (Triggered")[0]] for kind, text in messages], x.grad]
    x.grad = None
    return out


@case
def case_gradient_penalty(torch):
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(5, 4, requires_grad=True)
    (g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).mean().backward()
    return [p.grad for p in net.parameters()]


@case
def case_grad_of_non_leaf_warns(torch):
    w = torch.ones(2, requires_grad=True)
    y = w * 2
    y.sum().backward()
    result, messages = warns(torch, lambda: y.grad)
    return result, [[kind, text.split(" (Triggered")[0]] for kind, text in messages], w.grad


@case
def case_requires_grad_rules(torch):
    w = torch.ones(2, requires_grad=True)
    y = w * 2
    out = [attempt(torch, lambda: torch.ones(2, dtype=torch.int64).requires_grad_())]
    out.append(attempt(torch, lambda: torch.ones(2, dtype=torch.int64, requires_grad=True)))
    out.append(attempt(torch, lambda: torch.tensor([1, 2], requires_grad=True)))
    out.append(attempt(torch, lambda: torch.tensor([True], requires_grad=True)))
    out.append(attempt(torch, lambda: setattr(torch.ones(2, dtype=torch.int64), "requires_grad", True)))
    out.append(attempt(torch, lambda: y.requires_grad_(False)))
    out.append(attempt(torch, lambda: setattr(y, "requires_grad", False)))
    out.append(attempt(torch, lambda: y.requires_grad_(True) is y))
    out.append(attempt(torch, lambda: setattr(w, "requires_grad", 1)))
    out.append(attempt(torch, lambda: setattr(w, "requires_grad", None)))
    out.append(attempt(torch, lambda: torch.nn.Parameter(torch.ones(2, dtype=torch.int64))))
    out.append(torch.ones(2, dtype=torch.complex64).requires_grad_().requires_grad)
    out.append(attempt(torch, lambda: setattr(w, "grad_fn", None))[0])
    out.append(attempt(torch, lambda: setattr(w, "is_leaf", True))[0])
    return out


@case
def case_grad_setter(torch):
    w = torch.ones(2, requires_grad=True)
    out = [attempt(torch, lambda g=g: setattr(w, "grad", g)) for g in (
        torch.ones(3), torch.ones(2, dtype=torch.float64), 1.0, [1.0, 2.0], w, None, torch.ones(2))]  # fmt: skip
    del w.grad
    out.append(w.grad)
    return out


@case
def case_detach(torch):
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    d = y.detach()
    out = [d.requires_grad, d.is_leaf, d.data_ptr() == y.data_ptr()]
    v = y * 3
    out.append(v.detach_() is v)
    out += [v.requires_grad, v.is_leaf, v.grad_fn is None]
    out.append(attempt(torch, lambda: y[0].detach_()))
    out.append(attempt(torch, lambda: w.view(3).detach_()))
    u = y.exp()
    u.detach().add_(1)
    out.append(attempt(torch, lambda: u.sum().backward()))
    return out


@case
def case_zero_size(torch):
    w = torch.ones(0, 3, requires_grad=True)
    (w * 2).sum().backward()
    return w.grad


@case
def case_unused_outputs(torch):
    x = tensor(torch, (4,), seed=1, requires_grad=True)
    values, indices = x.sort()
    out = [indices.requires_grad, values.requires_grad]
    top, where = x.topk(2)
    top.sum().backward()
    out.append(x.grad.clone())
    lo, hi = torch.aminmax(x)
    hi.backward()
    out.append(x.grad.clone())
    a, b = x.chunk(2)
    b.sum().backward()
    out.append(x.grad)
    q, r = torch.linalg.qr(tensor(torch, (3, 3), seed=2, requires_grad=True))
    out.append(attempt(torch, lambda: r.sum().backward()))
    return out


@case
def case_broadcasting_gradients(torch):
    a = torch.ones(3, 1, requires_grad=True)
    b = torch.ones(1, 4, requires_grad=True)
    c = torch.tensor(2.0, requires_grad=True)
    (a * b * c).sum().backward()
    return a.grad, b.grad, c.grad


@case
def case_mixed_dtypes(torch):
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, dtype=torch.float64, requires_grad=True)
    h = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    (a * b + h).sum().backward()
    return a.grad, b.grad, h.grad


@case
def case_control_flow(torch):
    out = []
    for value in (1.0, -1.0):
        x = torch.tensor([value], requires_grad=True)
        y = 2 * x + torch.exp(x) if x.sum() < 0 else torch.sin(x) + x
        for _ in range(int(abs(value)) + 1):
            y = y * x
        y.backward()
        out.append(x.grad)
    return out


@case
def case_copies(torch):
    import copy
    import pickle

    w = torch.ones(2, requires_grad=True)
    y = w * 2
    out = [raises(torch, lambda: copy.deepcopy(y))]
    c = copy.deepcopy(w)
    out += [c.requires_grad, c.is_leaf]
    w.grad = torch.ones(2)
    out.append(copy.deepcopy(w).grad)
    out.append(attempt(torch, lambda: pickle.loads(pickle.dumps(w)).requires_grad))
    out.append(attempt(torch, lambda: y.numpy()))
    out.append(attempt(torch, lambda: w.numpy()))
    out.append(attempt(torch, lambda: [float(y.sum()), y.tolist(), y[0].item()]))
    return out
