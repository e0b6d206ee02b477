"""Hooks: on tensors, on leaves after accumulation, on nodes, on saved tensors."""

from compat_tests import case, raises


def attempt(torch, function):
    """The result of `function`, or [exception type, message]."""
    try:
        return function()
    except Exception as error:
        return [type(error).__name__, str(error)]


def leaf(torch):
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


@case
def case_order_and_replacement(torch):
    x = leaf(torch)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("y1", g)))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("y3", g)))
    x.register_hook(lambda g: seen.append(("x1", g)))
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: seen.append(("x3", g)))
    y.sum().backward()
    return seen, x.grad


@case
def case_removal(torch):
    x = leaf(torch)
    seen = []
    a = x.register_hook(lambda g: seen.append("a"))
    b = x.register_hook(lambda g: (seen.append("b"), a.remove())[0])
    c = x.register_hook(lambda g: seen.append("c"))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    c.remove()
    c.remove()
    (x * 2).sum().backward()
    with x.register_hook(lambda g: seen.append("with")):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    return seen, type(b).__name__, isinstance(b.id, int)


@case
def case_once_per_backward(torch):
    x = leaf(torch)
    seen = []
    x.register_hook(lambda g: seen.append(g))
    (x * x + x).sum().backward()
    torch.autograd.grad((x * x).sum(), x)
    y = x * 2
    y.register_hook(lambda g: seen.append(g))
    torch.autograd.grad((y * y).sum(), y)
    (y * y).sum().backward(inputs=[x])
    return seen


@case
def case_wrong_replacements(torch):
    out = []
    for bad in (lambda g: 1.0, lambda g: g[:2], lambda g: g.double(), lambda g: None, lambda g: g.sum()):
        x = leaf(torch)

        def hook(g, bad=bad):
            return bad(g)

        x.register_hook(hook)
        out.append(attempt(torch, lambda: ((x * 2).sum().backward(), x.grad)[1]))  # noqa: B023
    out.append(raises(torch, lambda: torch.ones(2).register_hook(lambda g: g)))
    out.append(raises(torch, lambda: torch.ones(2).register_post_accumulate_grad_hook(lambda g: g)))
    out.append(raises(torch, lambda: (leaf(torch) * 2).register_post_accumulate_grad_hook(lambda g: g)))
    return out


@case
def case_hook_raises(torch):
    x = leaf(torch)

    def hook(g):
        raise ValueError("from the hook")

    handle = x.register_hook(hook)
    out = [attempt(torch, lambda: (x * 2).sum().backward()), x.grad, torch.is_grad_enabled()]
    handle.remove()
    (x * 2).sum().backward()
    return out, x.grad


@case
def case_hook_and_retain_grad(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    out = [y.grad, x.grad]
    z = x * 2
    z.retain_grad()
    z.mul_(5)
    z.sum().backward()
    out.append(z.grad)
    w = x * 2
    seen = []
    w.register_hook(lambda g: seen.append(("old", g)))
    w.mul_(5)
    w.register_hook(lambda g: seen.append(("new", g)))
    w.sum().backward()
    return out, seen


@case
def case_views(torch):
    x = torch.arange(6.0).requires_grad_()
    y = (x * 2).view(2, 3)
    seen = []
    y.register_hook(lambda g: seen.append(("y", g)))
    a, b = y.unbind(0)
    b.register_hook(lambda g: seen.append(("b", g)))
    y[0].register_hook(lambda g: seen.append("never"))
    (a.sum() + (b * b).sum()).backward()
    return seen, x.grad


@case
def case_grad_mode_in_hooks(torch):
    x = leaf(torch)
    seen = []
    x.register_hook(lambda g: seen.append((torch.is_grad_enabled(), g.requires_grad)))
    (x * x).sum().backward()
    torch.autograd.grad((x * x).sum(), x, create_graph=True)
    return seen


@case
def case_post_accumulate(torch):
    x = leaf(torch)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.clone())))
    x.register_post_accumulate_grad_hook(lambda t: setattr(t, "grad", None))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    torch.autograd.grad((x * 3).sum(), x)
    return seen, x.grad


@case
def case_optimizer_in_backward(torch):
    ws = [leaf(torch) for _ in range(3)]
    opts = {w: torch.optim.SGD([w], lr=0.1) for w in ws}

    def hook(w):
        opts[w].step()
        opts[w].zero_grad()

    for w in ws:
        w.register_post_accumulate_grad_hook(hook)
    for _ in range(2):
        (ws[0] * ws[1] * ws[2]).sum().backward()
    return [w.detach() for w in ws], [w.grad for w in ws]


@case
def case_node_hooks(torch):
    x = leaf(torch)
    y = x * 2
    z = y.exp()
    seen = []
    h = z.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi, go)))
    z.grad_fn.register_prehook(lambda go: seen.append(("pre", go)))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 100, *gi[1:]))
    z.sum().backward()
    out = [x.grad.clone()]
    h.remove()
    y = x * 2
    (y * 1).sum().backward()
    out.append(x.grad.clone())
    node = (x * 2).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: seen.append(("acc", gi, go)))
    (x * 3).sum().backward()
    b = x.sum()
    b.grad_fn.register_hook(lambda gi, go: gi[0])
    out.append(attempt(torch, lambda: b.backward()))
    c = x.sum()

    def too_many(gi, go):
        return gi[0], gi[0]

    c.grad_fn.register_hook(too_many)
    out.append(attempt(torch, lambda: c.backward()))
    return out, seen


@case
def case_node_prehook_replaces(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 7,))
    y.sum().backward()
    return x.grad


@case
def case_multi_grad_hook(torch):
    a, b = leaf(torch), leaf(torch)
    c = a * b
    d = a * 2
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, c, d), lambda grads: seen.append([g is not None for g in grads])
    )
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward(retain_graph=True)
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(g), mode="any")
    c.sum().backward(retain_graph=True)
    return seen, raises(torch, lambda: torch.autograd.graph.register_multi_grad_hook((a,), print, mode="x"))


@case
def case_saved_tensors_hooks(torch):
    log = []

    def pack(x):
        log.append(("pack", x.clone(), x.requires_grad, torch.is_grad_enabled()))
        return x * 10

    def unpack(x):
        log.append(("unpack", x))
        return x / 10

    a = leaf(torch)
    b = torch.ones(3) * 2
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = a * b
        z = y.exp()
        (z + 1).sum()
    z.sum().backward()
    out = [len(log), sorted(kind for kind, *_ in log), log[0][2:], a.grad]
    log.clear()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: None, lambda t: "no tensor"):
        w = a * a
    out.append(attempt(torch, lambda: w.sum().backward())[0])
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        out.append(attempt(torch, lambda: a * a))
    with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        a * a
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        a + a
        a.view(3)
    out.append(len(log))
    return out


@case
def case_saved_hooks_nest(torch):
    a = leaf(torch)
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda t: ("outer", t), lambda p: p[1]):
        with hooks(lambda t: ("inner", t * 2), lambda p: p[1] / 2 * 3):
            y = a**2
        z = a**3
    y.sum().backward()
    out = [a.grad.clone()]
    a.grad = None
    z.sum().backward()
    return out, a.grad


@case
def case_saved_hooks_and_double_backward(torch):
    a = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), lambda t: torch.from_numpy(t)):
        y = (a**3).exp()
        (g,) = torch.autograd.grad(y.sum(), a, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), a)
    return g, h


@case
def case_save_on_cpu(torch):
    a = leaf(torch)
    with torch.autograd.graph.save_on_cpu():
        y = (a * a).sin().sum()
    y.backward()
    return a.grad


@case
def case_disable_saved_tensors_hooks(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("no hooks here"):
        out = [attempt(torch, lambda: graph.save_on_cpu().__enter__())]
        with graph.disable_saved_tensors_hooks("deeper"):
            out.append(attempt(torch, lambda: graph.save_on_cpu().__enter__()))
        out.append(attempt(torch, lambda: graph.save_on_cpu().__enter__()))
    with graph.save_on_cpu():
        out.append(attempt(torch, lambda: graph.disable_saved_tensors_hooks("late").__enter__()))
    return out


@case
def case_saved_hooks_in_function(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * x * y

    a = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = F.apply(a)
    y.sum().backward()
    return a.grad


@case
def case_allow_mutation(torch):
    a = leaf(torch)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        b = a * 1
        c = (b**2).sum()
        b.mul_(100)
        c.backward()
    return a.grad, b


@case
def case_gradient_edge(torch):
    a = leaf(torch)
    b = a * 2
    c = (b * b).sum()
    edge = torch.autograd.graph.get_gradient_edge
    out = [torch.autograd.grad(c, edge(b), retain_graph=True), torch.autograd.grad(c, [edge(a), b], retain_graph=True)]
    out.append([edge(b).output_nr, edge(b).node is b.grad_fn, edge(a).node is b.grad_fn.next_functions[0][0]])
    out.append(raises(torch, lambda: edge(torch.ones(1))))
    torch.autograd.backward(edge(c))
    out.append(a.grad)
    d = a * 3
    torch.autograd.backward([edge(d)], [torch.ones(3)])
    out.append(a.grad)
    return out


@case
def case_raw_saved_tensors(torch):
    a = leaf(torch)
    y = a.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)
    y.sum().backward()
    return a.grad


@case
def case_hooks_on_accumulate_grad(torch):
    x = leaf(torch)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    seen = []
    node.register_prehook(lambda go: (seen.append(go), (go[0] * 10,))[1])
    node.register_hook(lambda gi, go: seen.append((gi, go)))
    y.sum().backward()
    return seen, x.grad
