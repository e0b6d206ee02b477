"""torch.utils.checkpoint: both variants, random numbers, nesting, determinism checks and errors."""

from contextlib import contextmanager

from compat_tests import case, raises, tensor, warns


def _block(torch, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Dropout(0.4), torch.nn.Linear(8, 4), torch.nn.Tanh()
    )


def _result(block, x, run):
    out = run(x)
    (out * out).sum().backward()
    return out, x.grad, [p.grad for p in block.parameters()]


@case(rtol=1e-5, atol=1e-6)
@case.params("reentrant", [True, False])
@case.params("preserve", [True, False])
def case_block(torch, preserve, reentrant):
    checkpoint = torch.utils.checkpoint.checkpoint
    block = _block(torch)
    x = tensor(torch, (3, 4), seed=1, requires_grad=True)
    torch.manual_seed(3)
    out = _result(block, x, lambda x: checkpoint(block, x, use_reentrant=reentrant, preserve_rng_state=preserve))
    return out, torch.rand(2)


@case(rtol=1e-5, atol=1e-6)
@case.params("segments", [1, 2, 3, 5])
@case.params("reentrant", [True, False])
def case_sequential(torch, reentrant, segments):
    block = _block(torch)
    x = tensor(torch, (3, 4), seed=1, requires_grad=True)
    torch.manual_seed(3)
    run = torch.utils.checkpoint.checkpoint_sequential
    return _result(block, x, lambda x: run(block, segments, x, use_reentrant=reentrant))


@case(rtol=1e-5, atol=1e-6)
def case_nested(torch):
    checkpoint = torch.utils.checkpoint.checkpoint
    calls = []

    def inner(x):
        calls.append("inner")
        return x.sin().exp()

    def outer(x):
        calls.append("outer")
        return checkpoint(inner, x.cos(), use_reentrant=False).sin()

    x = tensor(torch, (3,), seed=1, requires_grad=True)
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    return x.grad, calls


@case(rtol=1e-5, atol=1e-6)
@case.params("stop", [True, False])
def case_early_stop(torch, stop):
    calls = []

    def function(x):
        calls.append("begin")
        y = x.sin().exp()
        calls.append("end")
        return y + 1

    x = tensor(torch, (3,), seed=1, requires_grad=True)
    out = []
    torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False, early_stop=stop).sum().backward()
    out.append(list(calls))
    with torch.utils.checkpoint.set_checkpoint_early_stop(not stop):
        y = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False, early_stop=stop).sum()
    y.backward()
    return x.grad, out, calls


@case(rtol=1e-5, atol=1e-6)
def case_grad_and_retained_graphs(torch):
    calls = []

    def function(x, scale=1.0):
        calls.append(torch.is_grad_enabled())
        return (x.sin() * scale).exp()

    x = tensor(torch, (3,), seed=1, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(function, x, scale=2.0, use_reentrant=False).sum()
    out = [torch.autograd.grad(y, x, retain_graph=True)[0], torch.autograd.grad(y, x, create_graph=True)[0]]
    out.append(torch.autograd.grad(out[1].sum(), x)[0])
    with torch.no_grad():
        out.append(torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False))
    return out, calls


@case(rtol=1e-5, atol=1e-6)
def case_several_arguments(torch):
    def function(a, n, b, c=None):
        return {"sum": a * n + b, "list": [a * b, c * 2], "n": n}

    a = tensor(torch, (3,), seed=1, requires_grad=True)
    b = tensor(torch, (3,), seed=2)
    c = tensor(torch, (3,), seed=3, requires_grad=True)
    out = torch.utils.checkpoint.checkpoint(function, a, 3, b, c=c, use_reentrant=False)
    (out["sum"] * out["list"][0] * out["list"][1]).sum().backward()
    return out, a.grad, c.grad


@case(rtol=1e-5, atol=1e-6)
def case_contexts(torch):
    seen = []

    @contextmanager
    def note(name):
        seen.append(name + " in")
        yield
        seen.append(name + " out")

    x = tensor(torch, (3,), seed=1, requires_grad=True)
    contexts = lambda: (note("forward"), note("recompute"))  # noqa: E731
    y = torch.utils.checkpoint.checkpoint(
        lambda x: x.sin().exp(), x, use_reentrant=False, early_stop=False, context_fn=contexts
    )
    y.sum().backward()
    return x.grad, seen


@case(rtol=2e-2, atol=2e-2)
@case.params("reentrant", [True, False])
def case_autocast(torch, reentrant):
    seen = []
    w = tensor(torch, (4, 4), seed=2, requires_grad=True)

    def function(x):
        y = x @ w
        seen.append(y.dtype)
        return y.sin() @ w

    x = tensor(torch, (3, 4), seed=1, requires_grad=True)
    with torch.autocast("cpu"):
        y = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=reentrant)
    y.float().sum().backward()
    return y, x.grad, w.grad, seen


def _first_line(found):
    return [found[0], found[1].split("\n")[0]]


@case
def case_determinism(torch):
    def different(change):
        state = {"n": 0}

        def function(x):
            state["n"] += 1
            return change(x, state["n"])

        return function

    def run(change, **options):
        x = tensor(torch, (3,), seed=1, requires_grad=True)
        y = torch.utils.checkpoint.checkpoint(different(change), x, use_reentrant=False, **options)
        return lambda: y.sum().backward()

    def fewer(x, n):
        return x.sin().exp() if n == 1 else x.sin()

    def more(x, n):
        return x.sin().exp() if n == 1 else x.sin().cos().exp().sin()

    def other(x, n):
        return (x if n == 1 else x.double()).sin()

    return [
        _first_line(raises(torch, run(fewer))),
        _first_line(raises(torch, run(more, early_stop=False))),
        raises(torch, run(other))[1].split(".\n")[0],
        raises(torch, lambda: run(other, determinism_check="all")),
        issubclass(torch.utils.checkpoint.CheckpointError, RuntimeError),
    ]


@case
def case_errors(torch):
    checkpoint = torch.utils.checkpoint.checkpoint
    x = tensor(torch, (3,), seed=1, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: x.sin(), x, use_reentrant=True)
    z = torch.utils.checkpoint.checkpoint(lambda x: x.detach(), x, use_reentrant=True)
    return [
        warns(torch, lambda: checkpoint(lambda x: x * 2, x)),
        warns(torch, lambda: torch.utils.checkpoint.checkpoint_sequential([lambda x: x * 2], 1, x)),
        warns(torch, lambda: checkpoint(lambda x: x * 2, x.detach(), use_reentrant=True)),
        raises(torch, lambda: checkpoint(lambda x: x, x, use_reentrant=True, other=1)),
        raises(torch, lambda: checkpoint(lambda x: x, x, use_reentrant=True, debug=True)),
        raises(torch, lambda: torch.utils.checkpoint.checkpoint_sequential([], 1, x, use_reentrant=False, other=1)),
        raises(torch, lambda: torch.autograd.grad(y.sum(), x)),
        raises(torch, lambda: z.sum().backward()),
        raises(torch, lambda: torch.utils.checkpoint.detach_variable([x])),
    ]


@case(rtol=1e-5, atol=1e-6)
def case_in_place(torch):
    def function(x):
        y = x * 2
        y += 1
        y.mul_(x)
        return y.sin()

    x = tensor(torch, (3,), seed=1, requires_grad=True)
    h = x * 3
    out = torch.utils.checkpoint.checkpoint(function, h, use_reentrant=False)
    out.sum().backward()
    a = x * 3
    late = torch.utils.checkpoint.checkpoint(function, a, use_reentrant=False)
    a.add_(1)
    return out, x.grad, raises(torch, lambda: late.sum().backward())[0]


@case(rtol=1e-5, atol=1e-6)
def case_batch_norm(torch):
    m = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU())
    with torch.no_grad():
        m[0].weight.copy_(tensor(torch, (2, 1, 3, 3), seed=1))
        m[0].bias.zero_()
    x = tensor(torch, (2, 1, 6, 6), seed=2, requires_grad=True)
    torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False).pow(2).sum().backward()
    return x.grad, m[1].running_mean, m[1].running_var, m[1].num_batches_tracked
