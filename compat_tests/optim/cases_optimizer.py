"""What all optimizers share: groups, state dicts, hooks, errors."""

import copy
import importlib
import pickle

from compat_tests import case, raises, tensor, warns

NAMES = [
    "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "Adafactor",
]  # fmt: skip


def base(torch):
    """torch.optim.optimizer, which is no attribute of torch.optim."""
    return importlib.import_module(torch.__name__ + ".optim.optimizer")


def leaf(torch, seed=0, shape=(2, 3)):
    return tensor(torch, shape, seed=seed, requires_grad=True)


def run(torch, optimizer, params, count=3, seed=0):
    for i in range(count):
        for k, p in enumerate(params):
            p.grad = tensor(torch, tuple(p.shape), seed=seed + 10 * i + k)
        optimizer.step()


@case
@case.params("name", [*NAMES, "SparseAdam", "LBFGS", "Muon"])
def case_defaults(torch, name):
    kind = getattr(torch.optim, name)
    optimizer = kind([leaf(torch)])
    return optimizer.defaults, repr(optimizer), kind.__name__, optimizer.state_dict()


@case
def case_constructor_errors(torch):
    o = torch.optim
    p = leaf(torch)
    attempts = [
        lambda: o.SGD([], lr=0.1),
        lambda: o.SGD(p, lr=0.1),
        lambda: o.SGD([p, "a"], lr=0.1),
        lambda: o.SGD([1.5], lr=0.1),
        lambda: o.SGD([p * 2], lr=0.1),
        lambda: o.SGD([{"params": {p}}], lr=0.1),
        lambda: o.SGD([{"params": [p]}, {"params": p}], lr=0.1),
        lambda: o.SGD([{"params": [p]}, [p]], lr=0.1),
        lambda: o.SGD([("a", p), leaf(torch)], lr=0.1),
        lambda: o.SGD([{"params": [("a", p)]}, {"params": [leaf(torch)]}], lr=0.1),
        lambda: o.Optimizer([p], {}).step(),
        lambda: o.Optimizer([{"params": [p]}], {"lr": base(torch).required}),
        lambda: o.SGD([p], lr=-1),
        lambda: o.SGD([p], lr=-0.5),
        lambda: o.SGD([p], lr=torch.tensor([0.1, 0.2])),
        lambda: o.SGD([p], momentum=-0.1),
        lambda: o.SGD([p], weight_decay=-0.1),
        lambda: o.SGD([p], nesterov=True),
        lambda: o.SGD([p], nesterov=True, momentum=0.9, dampening=0.1),
        lambda: o.SGD([p], fused=True, foreach=True),
        lambda: o.SGD([p], fused=True, differentiable=True),
        lambda: o.Adam([p], lr=-1.0),
        lambda: o.Adam([p], betas=(1.0, 0.9)),
        lambda: o.Adam([p], betas=(0.9, -0.1)),
        lambda: o.Adam([p], betas=(0.9, torch.tensor(0.9))),
        lambda: o.Adam([p], betas=(0, 0.9)),
        lambda: o.Adam([p], eps=-1),
        lambda: o.Adam([p], weight_decay=-1),
        lambda: o.Adam([p], lr=torch.tensor(0.1), foreach=True),
        lambda: o.AdamW([p], betas=(0.9, 1.5)),
        lambda: o.Adamax([p], eps=-1.0),
        lambda: o.NAdam([p], momentum_decay=-1.0),
        lambda: o.RAdam([p], weight_decay=-1.0),
        lambda: o.Adagrad([p], lr_decay=-1.0),
        lambda: o.Adagrad([p], initial_accumulator_value=-1.0),
        lambda: o.Adadelta([p], rho=1.5),
        lambda: o.RMSprop([p], alpha=-1.0),
        lambda: o.RMSprop([p], momentum=-1.0),
        lambda: o.Rprop([p], etas=(1.5, 1.2)),
        lambda: o.ASGD([p], weight_decay=-1.0),
        lambda: o.Adafactor([p], lr=-1.0),
        lambda: o.Adafactor([p], beta2_decay=0.5),
        lambda: o.Adafactor([p], eps=(-1.0, 0.1)),
        lambda: o.Adafactor([p], eps=(None, -0.1)),
        lambda: o.Adafactor([p], d=0.5),
        lambda: o.Muon([leaf(torch, shape=(3,))]),
        lambda: o.Muon([p], momentum=-1.0),
        lambda: o.Muon([p], adjust_lr_fn="no"),
        lambda: o.SparseAdam([p], lr=0.0),
        lambda: o.SparseAdam([p], eps=0.0),
        lambda: o.SparseAdam([tensor(torch, (2,), "complex64", requires_grad=True)]),
        lambda: o.LBFGS([{"params": [p]}, {"params": [leaf(torch)]}]),
        lambda: o.LBFGS([p], lr=-1.0),
    ]
    return [raises(torch, a) for a in attempts]


@case
def case_step_errors(torch):
    o = torch.optim
    p = leaf(torch)
    p.grad = torch.ones(2, 3)
    z = tensor(torch, (2, 2), "complex64", requires_grad=True)
    z.grad = z.detach()
    return [
        raises(torch, lambda: o.SparseAdam([p]).step()),
        raises(torch, lambda: o.Adam([p], capturable=True).step()),
        raises(torch, lambda: o.NAdam([p], capturable=True).step()),
        raises(torch, lambda: o.ASGD([p], capturable=True).step()),
        raises(torch, lambda: o.Adam([p], capturable=True, foreach=True).step()),
        raises(torch, lambda: o.Adafactor([z]).step()),
        raises(torch, lambda: o.Muon([z]).step()),
        raises(torch, lambda: o.Muon([p], ns_steps=100).step()),
        raises(torch, lambda: o.LBFGS([p], line_search_fn="x").step(lambda: (p * p).sum())),
    ]


@case
def case_duplicate_parameters(torch):
    p = leaf(torch)
    return warns(torch, lambda: len(torch.optim.SGD([p, p], lr=0.1).param_groups[0]["params"]))


@case
def case_add_param_group(torch):
    a, b, c = leaf(torch, 1), leaf(torch, 2), leaf(torch, 3)
    optimizer = torch.optim.SGD([a], lr=0.1, momentum=0.9)
    run(torch, optimizer, [a])
    optimizer.add_param_group({"params": b, "lr": 0.5})
    optimizer.add_param_group({"params": iter([c]), "momentum": 0.0, "note": "mine"})
    run(torch, optimizer, [a, b, c])
    errors = [
        raises(torch, lambda: optimizer.add_param_group([a])),
        raises(torch, lambda: optimizer.add_param_group({"params": [a]})),
        raises(torch, lambda: optimizer.add_param_group({"params": [("x", leaf(torch))]})),
    ]
    return a, b, c, optimizer.state_dict(), repr(optimizer), errors


@case
def case_named_parameters(torch):
    a, b = leaf(torch, 1), leaf(torch, 2)
    optimizer = torch.optim.SGD([("a", a), ("b", b)], lr=0.1)
    groups = torch.optim.Adam([{"params": [("a", a)], "lr": 0.5}, {"params": [("b", b)]}])
    return optimizer.state_dict(), groups.state_dict(), repr(optimizer)


@case
@case.params("name", NAMES)
def case_state_dict_round_trip(torch, name):
    kind = getattr(torch.optim, name)
    a, b = leaf(torch, 1), leaf(torch, 2, (3,))
    first = kind([a, b], lr=0.05)
    run(torch, first, [a, b])
    saved = copy.deepcopy(first.state_dict())
    c, d = a.detach().clone().requires_grad_(), b.detach().clone().requires_grad_()
    second = kind([c, d], lr=0.7)
    second.load_state_dict(saved)
    run(torch, first, [a, b], seed=50)
    run(torch, second, [c, d], seed=50)
    return bool(torch.equal(a, c)), bool(torch.equal(b, d)), second.state_dict(), sorted(saved)


@case
def case_load_old_state(torch):
    """Steps that are numbers, and groups without newer options, as in checkpoints of long ago."""
    p = leaf(torch)
    optimizer = torch.optim.Adam([p])
    old = {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8, "weight_decay": 0, "params": [0]}
    state = {"step": 4, "exp_avg": torch.ones(2, 3), "exp_avg_sq": torch.ones(2, 3)}
    optimizer.load_state_dict({"state": {0: state}, "param_groups": [old]})
    run(torch, optimizer, [p])
    return p, optimizer.state_dict()


@case
def case_load_converts(torch):
    p = leaf(torch)
    q = tensor(torch, (2, 3), "float64", requires_grad=True)
    first = torch.optim.Adam([q], lr=0.1)
    q.grad = torch.ones(2, 3, dtype=torch.float64)
    first.step()
    second = torch.optim.Adam([p])
    second.load_state_dict(first.state_dict())
    return second.state_dict(), second.state[p]["exp_avg"].dtype


@case
def case_load_errors(torch):
    a, b = leaf(torch, 1), leaf(torch, 2)
    one, two = torch.optim.SGD([a], lr=0.1), torch.optim.SGD([a, b], lr=0.1)
    groups = torch.optim.SGD([{"params": [a]}, {"params": [b]}], lr=0.1)
    return [
        raises(torch, lambda: one.load_state_dict(two.state_dict())),
        raises(torch, lambda: one.load_state_dict(groups.state_dict())),
    ]


@case
def case_state_of_separate_steps(torch):
    """Parameters whose step counts differ, before and after loading."""
    a, b = leaf(torch, 1), leaf(torch, 2)
    optimizer = torch.optim.Adam([a, b], lr=0.1)
    run(torch, optimizer, [a], 2)
    run(torch, optimizer, [a, b], 2)
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    run(torch, optimizer, [a, b], 2)
    optimizer.state[a]["step"].fill_(100)
    run(torch, optimizer, [a, b], 2)
    return a, b, optimizer.state_dict()


@case
def case_zero_grad(torch):
    p, q = leaf(torch, 1), leaf(torch, 2)
    optimizer = torch.optim.SGD([p, q], lr=0.1)
    p.grad = torch.ones(2, 3)
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    kept = [p.grad is grad, p.grad.clone(), q.grad]
    p.grad = torch.ones(2, 3)
    optimizer.zero_grad()
    return kept, p.grad


@case
def case_zero_grad_of_a_graph(torch):
    p = leaf(torch)
    optimizer = torch.optim.SGD([p], lr=0.1)
    (p**3).sum().backward(create_graph=True)
    before = p.grad.requires_grad
    optimizer.zero_grad(set_to_none=False)
    return before, p.grad.requires_grad, p.grad


@case
@case.params("name", ["SGD", "Adam"])
def case_closure(torch, name):
    p = leaf(torch)
    optimizer = getattr(torch.optim, name)([p], lr=0.1)
    modes = []

    def closure():
        optimizer.zero_grad()
        modes.append(torch.is_grad_enabled())
        loss = (p * p).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        losses = [optimizer.step(closure).detach() for _ in range(3)]
    return losses, p, modes, torch.is_grad_enabled(), optimizer.step()


@case
def case_grad_mode_after_an_error(torch):
    p = leaf(torch)
    optimizer = torch.optim.SGD([p], lr=0.1)

    def closure():
        raise KeyError("x")

    return raises(torch, lambda: optimizer.step(closure)), torch.is_grad_enabled()


@case
def case_step_hooks(torch):
    p = leaf(torch)
    optimizer = torch.optim.SGD([p], lr=0.1)
    calls = []
    before = p.detach().clone()
    handles = [
        optimizer.register_step_pre_hook(
            lambda o, args, kwargs: calls.append(("pre", o is optimizer, len(args), kwargs))
        ),
        optimizer.register_step_post_hook(lambda o, a, k: calls.append(("post", torch.equal(p, before), len(a)))),
        base(torch).register_optimizer_step_pre_hook(lambda o, a, k: calls.append("global pre")),
        base(torch).register_optimizer_step_post_hook(lambda o, a, k: calls.append("global post")),
    ]
    run(torch, optimizer, [p], 1)
    for handle in handles:
        handle.remove()
    run(torch, optimizer, [p], 1)
    bad = optimizer.register_step_pre_hook(lambda o, args, kwargs: 5)
    error = raises(torch, optimizer.step)[0]
    bad.remove()
    replaced = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: replaced.append(1)), {}))
    optimizer.step()
    return calls, error, replaced


@case
def case_state_dict_hooks(torch):
    p = leaf(torch)
    optimizer = torch.optim.SGD([p], lr=0.1)
    calls = []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("pre"))
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "more": 1})
    optimizer.register_state_dict_post_hook(lambda o, s: calls.append(sorted(s)))
    state = optimizer.state_dict()
    optimizer.register_load_state_dict_pre_hook(
        lambda o, s: s.update(param_groups=[{**s["param_groups"][0], "lr": 9.0}])
    )
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append(o.param_groups[0]["lr"]))
    optimizer.load_state_dict(state)
    return state, calls, optimizer.param_groups[0]["lr"]


@case
@case.params("name", ["SGD", "Adam", "RMSprop"])
def case_copies(torch, name):
    p = leaf(torch)
    optimizer = getattr(torch.optim, name)([p], lr=0.1)
    run(torch, optimizer, [p])
    other = copy.deepcopy(optimizer)
    q = other.param_groups[0]["params"][0]
    run(torch, other, [q])
    pickled = pickle.loads(pickle.dumps(optimizer))
    return p, q, other.state_dict(), pickled.state_dict(), pickled.defaults, repr(pickled)


@case
def case_names(torch):
    return [hasattr(torch.optim, n) for n in ("optimizer", "adam", "sgd", "lr_scheduler", "swa_utils", "lbfgs")]


@case
def case_own_optimizer(torch):
    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state.setdefault("sum", torch.zeros_like(p)).add_(p.grad)
                    p.add_(state["sum"].sign(), alpha=-group["lr"])

    p = leaf(torch)
    optimizer = Signs([p], 0.1)
    run(torch, optimizer, [p])
    return p, optimizer.state_dict(), repr(optimizer), Signs.step.hooked


@case
def case_in_place_is_noticed(torch):
    w = leaf(torch)
    x = torch.ones(2, 3, requires_grad=True)
    loss = (w * x).sum()
    w.grad = torch.ones(2, 3)
    torch.optim.SGD([w], lr=0.1).step()
    message = raises(torch, loss.backward)
    return message[0], "modified by an inplace operation" in message[1], w._version


@case
def case_views_and_shared_parameters(torch):
    flat = torch.zeros(6)
    p = flat[:4].view(2, 2).detach().requires_grad_()
    optimizer = torch.optim.Adam([p], lr=0.1)
    p.grad = torch.ones(2, 2)
    optimizer.step()
    q = torch.nn.Parameter(torch.zeros(2))
    alias = q.data
    q.grad = torch.ones(2)
    torch.optim.SGD([q], lr=0.5).step()
    return flat, p, alias, q.requires_grad, q.is_leaf


@case
def case_no_gradients(torch):
    p, frozen = leaf(torch, 1), tensor(torch, (2,), seed=2)
    optimizer = torch.optim.Adam([p, frozen], lr=0.1)
    optimizer.step()
    empty = optimizer.state_dict()
    run(torch, optimizer, [p])
    return empty, p, frozen, len(optimizer.state)


@case
def case_numbers_of_other_types(torch):
    import numpy as np

    p, q = leaf(torch, 1), leaf(torch, 1)
    a = torch.optim.SGD([p], lr=1, momentum=np.float32(0.5), weight_decay=0)
    b = torch.optim.SGD([q], lr=np.float64(1.0), momentum=0.5)
    run(torch, a, [p])
    run(torch, b, [q])
    return p, q


@case
def case_fused_with_a_scaler(torch):
    p, q = leaf(torch, 1), leaf(torch, 2)
    optimizer = torch.optim.Adam([p, q], lr=0.1, fused=True)
    run(torch, optimizer, [p, q], 1)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0), torch.tensor(0.0)
    run(torch, optimizer, [p, q], 1)
    grad = p.grad.clone()
    optimizer.found_inf = torch.tensor(1.0)
    run(torch, optimizer, [p, q], 1)
    return p, q, grad, optimizer.state_dict()


@case
def case_swap_in(torch):
    p = leaf(torch, 1)
    optimizer = torch.optim.Adam([p], lr=0.1)
    run(torch, optimizer, [p])
    other, state = leaf(torch, 5), copy.deepcopy(optimizer.state_dict())
    state["param_groups"][0]["lr"] = 1.0
    other.grad = torch.ones(2, 3)
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"x": other}, state):
        optimizer.step()
    wrong = {"state": {}, "param_groups": []}
    return (
        p,
        other,
        state,
        optimizer.state_dict(),
        raises(torch, lambda: torch.optim.swap_in_optimizer_params_and_state(optimizer, {}, wrong).__enter__()),
    )
