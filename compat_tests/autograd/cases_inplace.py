"""In-place operations and autograd: what is refused, when, and in which words."""

# ruff: noqa: E501 - tables of one line functions

from compat_tests import case, raises, tensor


def attempt(torch, function):
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


DAMAGES = {
    "exp": ("(3,)", lambda torch, w: w.exp()),
    "sigmoid": ("(3,)", lambda torch, w: w.sigmoid()),
    "tanh": ("(3,)", lambda torch, w: torch.tanh(w)),
    "sqrt": ("(3,)", lambda torch, w: torch.sqrt(w)),
    "relu": ("(3,)", lambda torch, w: torch.relu(w)),
    "softmax": ("(3,)", lambda torch, w: torch.softmax(w, 0)),
    "log_softmax": ("(3,)", lambda torch, w: torch.log_softmax(w, 0)),
    "reciprocal": ("(3,)", lambda torch, w: w.reciprocal()),
    "prod": ("(3,)", lambda torch, w: w.prod(0, keepdim=True)),
    "norm": ("(3,)", lambda torch, w: w.norm(keepdim=True, dim=0)),
    "add": ("(3,)", lambda torch, w: w + 1),
    "mul_number": ("(3,)", lambda torch, w: w * 2),
    "max": ("(3,)", lambda torch, w: w.max(0, keepdim=True)[0]),
    "amax": ("(3,)", lambda torch, w: w.amax(0, keepdim=True)),
    "logsumexp": ("(3,)", lambda torch, w: w.logsumexp(0, keepdim=True)),
    "tan": ("(3,)", lambda torch, w: w.tan()),
    "rsqrt": ("(3,)", lambda torch, w: w.rsqrt()),
    "elu": ("(3,)", lambda torch, w: torch.nn.functional.elu(w)),
    "leaky_relu": ("(3,)", lambda torch, w: torch.nn.functional.leaky_relu(w)),
    "gelu": ("(3,)", lambda torch, w: torch.nn.functional.gelu(w)),
    "silu": ("(3,)", lambda torch, w: torch.nn.functional.silu(w)),
    "clamp": ("(3,)", lambda torch, w: w.clamp(0, 1)),
    "pow2": ("(3,)", lambda torch, w: w**2),
    "abs": ("(3,)", lambda torch, w: w.abs()),
    "dropout": ("(3,)", lambda torch, w: torch.nn.functional.dropout(w, 0.5)),
    "cat": ("(3,)", lambda torch, w: torch.cat([w, w])),
    "expm1": ("(3,)", lambda torch, w: w.expm1()),
    "erf": ("(3,)", lambda torch, w: w.erf()),
    "sin": ("(3,)", lambda torch, w: w.sin()),
}


@case
@case.params("name", list(DAMAGES))
def case_output_damaged(torch, name):
    w = torch.tensor([0.5, 0.2, 0.7], requires_grad=True)
    y = DAMAGES[name][1](torch, w)
    y.add_(1)
    y.mul_(2)
    return attempt(torch, lambda: (y.sum().backward(), w.grad)[1])


BINARY = {
    "mul": lambda torch, a, b: a * b,
    "div": lambda torch, a, b: a / b,
    "pow": lambda torch, a, b: a**b,
    "add": lambda torch, a, b: a + b,
    "sub": lambda torch, a, b: a - b,
    "atan2": lambda torch, a, b: torch.atan2(a, b),
    "dot": lambda torch, a, b: a.dot(b),
    "max": lambda torch, a, b: torch.maximum(a, b),
    "mse": lambda torch, a, b: torch.nn.functional.mse_loss(a, b),
    "where": lambda torch, a, b: torch.where(a > b, a, b),
    "lerp": lambda torch, a, b: torch.lerp(a, b, 0.5),
    "addcmul": lambda torch, a, b: torch.addcmul(a, a, b),
    "outer": lambda torch, a, b: torch.outer(a, b),
    "stack": lambda torch, a, b: torch.stack([a, b]),
    "hypot": lambda torch, a, b: torch.hypot(a, b),
    "fmod": lambda torch, a, b: torch.fmod(a, b),
    "l1": lambda torch, a, b: torch.nn.functional.l1_loss(a, b),
    "smooth": lambda torch, a, b: torch.nn.functional.smooth_l1_loss(a, b),
    "cosine": lambda torch, a, b: torch.nn.functional.cosine_similarity(a, b, dim=0),
}


@case(xfail="cumprod's gradient does not need its result, so that a change of it does no harm")
def case_output_of_cumprod_damaged(torch):
    w = torch.tensor([0.5, 0.2, 0.7], requires_grad=True)
    y = w.cumprod(0)
    y.add_(1)
    return attempt(torch, lambda: (y.sum().backward(), w.grad)[1])


@case
@case.params("which", ["first", "second"])
@case.params("name", list(BINARY))
def case_operand_damaged(torch, name, which):
    w = torch.tensor([0.5, 0.2, 0.7], requires_grad=True)
    v = torch.tensor([1.5, 0.1, 0.9], requires_grad=True)
    a, b = w + 1, v * 2
    y = BINARY[name](torch, a, b)
    (a if which == "first" else b).add_(1)
    if name == "outer" and which == "first":  # PyTorch saves a view of it and says so
        return attempt(torch, lambda: y.sum().backward())[1][:80]
    return attempt(torch, lambda: (y.sum().backward(), w.grad, v.grad)[1:])


WRITES = {
    "add_": lambda torch, t: t.add_(1),
    "mul_": lambda torch, t: t.mul_(2),
    "exp_": lambda torch, t: t.exp_(),
    "relu_": lambda torch, t: t.relu_(),
    "sigmoid_": lambda torch, t: t.sigmoid_(),
    "copy_": lambda torch, t: t.copy_(torch.ones(2, 2)),
    "zero_": lambda torch, t: t.zero_(),
    "fill_": lambda torch, t: t.fill_(3.0),
    "setitem": lambda torch, t: t.__setitem__(0, 5.0),
    "setitem_mask": lambda torch, t: t.__setitem__(t > 0, 5.0),
    "index_put_": lambda torch, t: t.index_put_((torch.tensor([0]),), torch.tensor(1.0)),
    "index_add_": lambda torch, t: t.index_add_(0, torch.tensor([0]), torch.ones(1, 2)),
    "scatter_": lambda torch, t: t.scatter_(0, torch.tensor([[0, 1]]), 1.0),
    "masked_fill_": lambda torch, t: t.masked_fill_(torch.tensor([[True, False], [False, False]]), 1.0),
    "clamp_": lambda torch, t: t.clamp_(0, 1),
    "row": lambda torch, t: t[0].mul_(2),
    "view": lambda torch, t: t.view(-1).mul_(2),
    "transpose": lambda torch, t: t.t().add_(2),
    "normal_": lambda torch, t: t.fill_(0).add_(1),
    "out": lambda torch, t: torch.add(torch.ones(2, 2), 1, out=t),
    "diagonal": lambda torch, t: t.diagonal().fill_(0),
    "data": lambda torch, t: t.data.mul_(2),
    "detach": lambda torch, t: t.detach().mul_(2),
    "iadd": lambda torch, t: t.__iadd__(1),
    "requires_grad_": lambda torch, t: t.requires_grad_(False),
    "t_": lambda torch, t: t.t_(),
    "squeeze_": lambda torch, t: t.squeeze_(),
    "no_grad": lambda torch, t: torch.no_grad()(lambda: t.mul_(2))(),
}


@case
@case.params("name", list(WRITES))
def case_write(torch, name):
    """Each way of writing: to a leaf, to a saved operand, to a result that was saved, and its gradient where allowed."""
    leaf = torch.tensor([[0.5, -0.2], [0.7, 1.0]], requires_grad=True)
    out = [attempt(torch, lambda: (WRITES[name](torch, leaf), leaf)[1])]
    if name in ("data", "detach", "no_grad", "t_", "squeeze_", "requires_grad_"):
        return out
    w = torch.tensor([[0.5, -0.2], [0.7, 1.0]], requires_grad=True)
    a = w * 1
    y = (a * a).sum()
    out.append(attempt(torch, lambda: (WRITES[name](torch, a), None)[1]))
    out.append(attempt(torch, lambda: (y.backward(), w.grad)[1]))
    v = torch.tensor([[0.5, -0.2], [0.7, 1.0]], requires_grad=True)
    e = v.exp()
    out.append(attempt(torch, lambda: (WRITES[name](torch, e), None)[1]))
    out.append(attempt(torch, lambda: (e.sum().backward(), v.grad)[1]))
    u = torch.tensor([[0.5, -0.2], [0.7, 1.0]], requires_grad=True)
    c = u * 3
    out.append(attempt(torch, lambda: (WRITES[name](torch, c), c.grad_fn.name(), c._version, c.is_leaf)[1:]))
    out.append(attempt(torch, lambda: ((c * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward(), u.grad)[1]))
    d = torch.tensor([[0.5, -0.2], [0.7, 1.0]])
    out.append(attempt(torch, lambda: (WRITES[name](torch, d), d, d.requires_grad)[1:]))
    return out


@case
def case_views_of_leaves(torch):
    w = torch.ones(2, 2, requires_grad=True)
    out = [
        raises(torch, lambda: w[0].add_(1)),
        raises(torch, lambda: w.view(-1).zero_()),
        raises(torch, lambda: w.t().mul_(2)),
    ]
    out.append(attempt(torch, lambda: w.__setitem__((0, 0), 1.0)))
    with torch.no_grad():
        w[0, 0] = 7
        v = w[1]
        v.mul_(3)
    out += [w, w._version, v._version]
    return out


@case
def case_multi_view(torch):
    w = torch.arange(6.0, requires_grad=True)
    y = w * 2
    a, b = y.split(3)
    out = [attempt(torch, lambda: a.mul_(2))]
    rows = (w * 2).view(2, 3).unbind(0)
    out.append(attempt(torch, lambda: rows[1].mul_(2)))
    c, d = (w * 1).chunk(2)
    out.append(attempt(torch, lambda: d.add_(1)))
    with torch.no_grad():
        z = y[:2]
    out.append(attempt(torch, lambda: z.add_(w[:2])))
    out.append(attempt(torch, lambda: z.mul_(2)))
    return out


@case
def case_base_written_after_view(torch):
    w = torch.arange(4.0, requires_grad=True)
    y = w * 1
    v = y[:2]
    y.mul_(3)
    out = [v, v.grad_fn.name(), y.grad_fn.name(), v._version]
    v.sum().backward()
    out.append(w.grad.clone())
    w.grad = None
    y = w * 1
    v = y[:2]
    v.mul_(5)
    out += [y, y.grad_fn.name(), v.grad_fn.name(), y._version]
    (y * y).sum().backward()
    out.append(w.grad.clone())
    w.grad = None
    y = w * 1
    y[1:3] = w[:2] * 10
    y.view(2, 2)[0].add_(w[2])
    (y * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    out.append(w.grad)
    return out


@case
def case_constant_receives_history(torch):
    w = torch.ones(2, requires_grad=True)
    buffer = torch.zeros(4)
    out = [buffer.requires_grad]
    buffer[1:3] = w * 3
    out += [buffer.requires_grad, buffer.grad_fn.name(), buffer.is_leaf]
    (buffer * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    out.append(w.grad.clone())
    cell = torch.zeros(2)
    cell.add_(w)
    out += [cell.requires_grad, cell.grad_fn.name()]
    other = torch.zeros(2)
    other.copy_(w)
    out += [other.grad_fn.name()]
    other.sum().backward()
    out.append(w.grad)
    ints = torch.zeros(2, dtype=torch.int64)
    out.append(attempt(torch, lambda: ints.copy_(w).requires_grad))
    return out


@case
def case_damage_names_operation(torch):
    out = []
    w = torch.randn(3, 3).requires_grad_()
    for make in (
        lambda: w @ w, lambda: w.view(9), lambda: w.t(), lambda: w[0], lambda: torch.nn.functional.linear(w, w, w[0]), lambda: w.clone(),
        lambda: w.sum(0), lambda: torch.nn.functional.relu(w), lambda: w.max(0)[0], lambda: w.split(1)[1] * 1, lambda: -w, lambda: w.mean(1),
        lambda: w.topk(2)[0], lambda: w.to(torch.float64), lambda: torch.sort(w)[0], lambda: torch.nn.functional.layer_norm(w, (3,)),
        lambda: w.permute(1, 0).contiguous(), lambda: w.reshape(9) + 0,
    ):  # fmt: skip
        a = make()
        y = (a * a).sum()
        out.append(attempt(torch, lambda: (a.add_(1), y.backward())[1]))  # noqa: B023
    p = torch.ones(2, requires_grad=True)
    q = (p * p).sum()
    with torch.no_grad():
        p.add_(1)
    out.append(attempt(torch, lambda: q.backward()))
    b = torch.ones(2)
    r = (p * b).sum()
    b.add_(1)
    out.append(attempt(torch, lambda: r.backward()))
    b64 = torch.ones((), dtype=torch.float64)
    s = p.to(torch.float64).sum() * b64
    b64.add_(1)
    out.append(attempt(torch, lambda: s.backward()))
    return out


@case
def case_optimizer_step_between(torch):
    w = torch.ones(2, requires_grad=True)
    v = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([w, v], lr=0.1)
    h = w * v
    loss = (h * v).sum()
    loss.backward(retain_graph=True)
    opt.step()
    return attempt(torch, lambda: loss.backward())


@case
def case_saved_elsewhere(torch):
    """What is not saved may change."""
    w = torch.ones(2, requires_grad=True)
    c = w * 2
    y = c + c
    c.add_(1)
    y.sum().backward()
    out = [w.grad.clone()]
    x = torch.ones(2)
    z = x * w
    w2 = z.sum()
    z.zero_()
    w2.backward()
    out.append(w.grad.clone())
    k = w * 3
    k += 1
    k *= 2
    k /= 4
    k -= 1
    k.sum().backward()
    out += [w.grad, k.grad_fn.name()]
    return out


@case
def case_relu_in_place(torch):
    x = tensor(torch, (4,), seed=1, requires_grad=True)
    y = torch.nn.functional.relu(x * 2, inplace=True)
    out = [y.grad_fn.name()]
    y.sum().backward()
    out.append(x.grad.clone())
    out.append(attempt(torch, lambda: torch.nn.functional.relu(x, inplace=True)))
    z = torch.exp(x)
    torch.relu_(z)
    out.append(attempt(torch, lambda: z.sum().backward()))
    n = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(inplace=True), torch.nn.Linear(3, 1))
    n(x).sum().backward()
    return out


@case
def case_out_and_grad(torch):
    w = torch.ones(2, requires_grad=True)
    buffer = torch.empty(2)
    out = [raises(torch, lambda: torch.mul(w, 2, out=buffer))]
    out.append(raises(torch, lambda: torch.mul(buffer, 2, out=w)))
    with torch.no_grad():
        out.append(torch.mul(w, 2, out=buffer))
    return out


@case
def case_set_data(torch):
    w = torch.ones(2, requires_grad=True)
    y = (w * w).sum()
    y.backward()
    w.data = torch.full((2,), 5.0)
    out = [w._version, w.requires_grad, w.grad]
    w.data.mul_(2)
    out.append(w)
    out.append(attempt(torch, lambda: setattr(w, "data", torch.ones(3))))
    return out


@case
def case_inference_tensors(torch):
    w = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        a = torch.ones(2)
        b = w * 2
        a.add_(1)
    out = [a.is_inference(), b.is_inference(), w.is_inference(), b.requires_grad, a.clone()]
    out.append(raises(torch, lambda: a.view(2).add_(1)))
    out.append(raises(torch, lambda: w * a))
    out.append(attempt(torch, lambda: (w + a).requires_grad))
    out.append(raises(torch, lambda: a.requires_grad_()))
    out.append(attempt(torch, lambda: a._version))
    out.append(attempt(torch, lambda: a.clone().add_(1).is_inference()))
    out.append(attempt(torch, lambda: (w * a.clone()).sum().requires_grad))
    out.append(attempt(torch, lambda: a.view(2).is_inference()))
    out.append(attempt(torch, lambda: (a * 2).is_inference()))
    out.append(attempt(torch, lambda: torch.ones(2).add_(a).is_inference()))
    with torch.inference_mode():
        out.append(attempt(torch, lambda: w.add_(1)))
        out.append(attempt(torch, lambda: torch.ones(2, requires_grad=True).requires_grad))
    out.append(w)
    return out
