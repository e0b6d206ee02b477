"""Found by random programs and by comparing names: inputs as a dict, captured gradients, views of views, old names."""

from collections import OrderedDict

from compat_tests import case, raises, tensor


@case
def case_inputs_as_dict(torch):
    layer = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(layer.weight)
    x, unused = torch.ones(3, 2), torch.ones(2, requires_grad=True)
    params = dict(layer.named_parameters())
    more = {**params, "unused": unused}

    def grad(inputs, **options):
        return torch.autograd.grad(layer(x).sum(), inputs, **options)

    edge = torch.autograd.graph.get_gradient_edge(unused)
    out = [grad(params), grad(more, allow_unused=True), grad(more, materialize_grads=True, create_graph=True)]
    out += [raises(torch, lambda i=i: grad(i)) for i in (more, OrderedDict(params), {}, {"w": 3})]
    out.append(raises(torch, lambda: grad([edge], materialize_grads=True)))
    layer(x).sum().backward(inputs={"w": layer.weight})
    out += [layer.weight.grad, layer.bias.grad]
    return [*out, raises(torch, lambda: layer(x).sum().backward(inputs=OrderedDict(params)))]


@case
def case_captured_before_hooks(torch):
    """A gradient that grad() returns is the one before a tensor's hooks if the walk goes on from there, else after."""
    x = torch.ones(2, requires_grad=True)
    out = []
    for both in (True, False):
        v = x * 1
        v.register_hook(lambda g: g * 2)
        out.append(torch.autograd.grad(v.sum(), [v, x] if both else [v]))
    v = x * 1
    v.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
    return [*out, torch.autograd.grad(v.sum(), [v, x])]


@case
def case_as_strided_of_view(torch):
    x = tensor(torch, (3, 4), "float64", 1, requires_grad=True)
    out = []
    for view in (x.t(), x.t().t(), x[1:], x * 1, (x * 1).t()):
        part = view.as_strided((2, 2), (1, 2))
        out += [type(part.grad_fn.next_functions[0][0]).__name__, torch.autograd.grad((part**2).sum(), [view, x])]
    return out


@case
def case_dirty(torch):
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(0.5)

        @staticmethod
        def backward(ctx, g):
            return g * 0.5

    x = torch.ones(2, 2, requires_grad=True)
    out = [raises(torch, lambda: Half.apply(x)), x._version, raises(torch, lambda: Half.apply(x.t()))]
    y = torch.ones(2)
    y.copy_(y)
    return [*out, y._version]


@case
def case_old_variable(torch):
    Variable = torch.autograd.Variable
    x = torch.ones(2, requires_grad=True) * 2
    made = Variable(x, requires_grad=True)
    return [
        made.requires_grad, made.is_leaf, type(made).__name__, Variable(x).requires_grad, isinstance(x, Variable),
        isinstance(3, Variable), issubclass(torch.nn.Parameter, Variable), Variable().shape,
        raises(torch, lambda: Variable([1.0])), raises(torch, lambda: torch.autograd.variable(1)),
        torch.autograd.variable.Variable is Variable,
    ]  # fmt: skip


@case
def case_swap(torch):
    swap = torch.utils.swap_tensors
    a, b = torch.nn.Parameter(torch.ones(2)), torch.arange(3.0)
    a.mark = 1
    swap(a, b)
    out = [a, b, type(a).__name__, type(b).__name__, b.mark, hasattr(a, "mark")]
    x, other = torch.ones(2, requires_grad=True), torch.zeros(2)
    y = x * 2
    swap(x, other)
    return [*out, x, other, raises(torch, lambda: y.sum().backward())]


@case
def case_switches(torch):
    A = torch.autograd
    out = []
    with A.set_multithreading_enabled(False), A.enforce_grad_layout_policy(False):
        out.append(A.is_multithreading_enabled())
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    saved = y.grad_fn._raw_saved_result
    out += [A.is_multithreading_enabled(), A.is_view_replay_enabled(), isinstance(saved, A.SavedTensor), saved.data]
    return [*out, raises(torch, lambda: A.graph.region_activation_memory_budget(0.5).__enter__())]
