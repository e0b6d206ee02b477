"""Fifty steps of each optimizer, with each of its options: parameters on the way, and the state at the end."""

from compat_tests import case, data, tensor

SHAPES = [(4, 3), (3,), (2, 3, 2), ()]

SETTINGS = {
    "SGD": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        {"momentum": 0.9, "dampening": 0.3, "maximize": True},
        {"foreach": True, "momentum": 0.5},
    ],
    "Adam": [
        {},
        {"amsgrad": True},
        {"weight_decay": 0.1, "betas": (0.5, 0.6)},
        {"maximize": True, "eps": 1e-3},
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
        {"fused": True},
        {"foreach": True, "amsgrad": True},
    ],
    "AdamW": [{}, {"weight_decay": 0.3, "amsgrad": True}, {"maximize": True}, {"weight_decay": 0.0}, {"fused": True}],
    "Adamax": [{}, {"weight_decay": 0.1, "maximize": True}, {"betas": (0.5, 0.9)}],
    "NAdam": [
        {},
        {"weight_decay": 0.1, "maximize": True},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1},
    ],
    "RAdam": [
        {},
        {"weight_decay": 0.1, "maximize": True},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.8, 0.9)},
    ],
    "Adagrad": [
        {},
        {"weight_decay": 0.1, "maximize": True, "lr_decay": 0.1},
        {"initial_accumulator_value": 0.5},
        {"fused": True},
    ],
    "Adadelta": [{}, {"weight_decay": 0.1, "maximize": True, "rho": 0.5}],
    "RMSprop": [
        {},
        {"weight_decay": 0.1, "maximize": True, "momentum": 0.9},
        {"centered": True},
        {"centered": True, "momentum": 0.5},
    ],
    "Rprop": [{}, {"maximize": True, "etas": (0.3, 1.1), "step_sizes": (0.001, 0.2)}],
    "ASGD": [{}, {"weight_decay": 0.1, "maximize": True, "t0": 10, "lambd": 0.01}],
    "Adafactor": [{}, {"weight_decay": 0.1, "maximize": True, "eps": (1e-6, 1e-2)}, {"d": 2.0, "beta2_decay": -0.5}],
}
ALL = [(name, k) for name, settings in SETTINGS.items() for k in range(len(settings))]


def steps(torch, optimizer, params, count=50, missing=True, lr_changes=True):
    """Parameters after some of the steps. The second one has no gradient in three of them."""
    seen = []
    for i in range(count):
        optimizer.zero_grad()
        for k, p in enumerate(params):
            if missing and k == 1 and i in (0, 1, 7):
                continue
            noise = tensor(torch, tuple(p.shape), str(p.dtype).removeprefix("torch."), seed=100 * i + k)
            p.grad = 0.5 * noise + 0.1 * p.detach()
        if lr_changes and i == 20:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
        optimizer.step()
        if i in (0, 1, 8, count - 1):
            seen.append([p.detach().clone() for p in params])
    return seen


def parameters(torch, dtype="float32", shapes=SHAPES):
    return [tensor(torch, shape, dtype, seed=k, requires_grad=True) for k, shape in enumerate(shapes)]


@case(rtol=1e-4, atol=1e-5)
@case.params("name, setting", ALL)
def case_options(torch, name, setting):
    options = SETTINGS[name][setting]
    params = parameters(torch)
    optimizer = getattr(torch.optim, name)(params, lr=0.1, **options)
    # PyTorch's fused SGD fails on parameters that get their first gradient late.
    seen = steps(torch, optimizer, params, missing=not options.get("fused"))
    return {"seen": seen, "state": optimizer.state_dict(), "repr": repr(optimizer)}


@case(rtol=1e-4, atol=1e-5)
@case.params("name", [name for name in SETTINGS if name != "Adafactor"])
def case_complex(torch, name):
    params = parameters(torch, "complex64")
    optimizer = getattr(torch.optim, name)(params, lr=0.1)
    return steps(torch, optimizer, params, 20), optimizer.state_dict()


@case(rtol=1e-9, atol=1e-10)
@case.params("name", list(SETTINGS))
def case_double(torch, name):
    params = parameters(torch, "float64")
    optimizer = getattr(torch.optim, name)(params, lr=0.1)
    return steps(torch, optimizer, params, 20), optimizer.state_dict()


@case(rtol=0.03, atol=0.03)
@case.params("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def case_bfloat16(torch, name):
    params = parameters(torch, "bfloat16")
    optimizer = getattr(torch.optim, name)(params, lr=0.1)
    return steps(torch, optimizer, params, 10), optimizer.state_dict()


@case(rtol=1e-4, atol=1e-5)
@case.params("name", list(SETTINGS))
def case_groups(torch, name):
    params = parameters(torch)
    groups = [{"params": params[:2], "lr": 0.03}, {"params": params[2:]}]
    optimizer = getattr(torch.optim, name)(groups, lr=0.1)
    return steps(torch, optimizer, params, 20), optimizer.state_dict(), repr(optimizer)


@case(rtol=1e-4, atol=1e-5)
@case.params("name", list(SETTINGS))
def case_tensor_lr(torch, name):
    params = parameters(torch)
    optimizer = getattr(torch.optim, name)(params, lr=torch.tensor(0.1))
    return steps(torch, optimizer, params, 10, lr_changes=False), optimizer.state_dict()


@case(rtol=1e-4, atol=1e-5)
def case_tensor_betas(torch):
    params = parameters(torch)
    options = {"betas": (torch.tensor(0.8), torch.tensor([0.9])), "weight_decay": 0.1}
    optimizer = torch.optim.Adam(params, lr=torch.tensor([0.1]), **options)
    return steps(torch, optimizer, params, 10, lr_changes=False), optimizer.state_dict()


@case(rtol=0.02, atol=0.02)
@case.params("options", [{}, {"nesterov": False, "weight_decay": 0.5}, {"adjust_lr_fn": "match_rms_adamw"}])
def case_muon(torch, options):
    params = parameters(torch, shapes=[(4, 3), (3, 5), (2, 2)])
    optimizer = torch.optim.Muon(params, lr=0.05, **options)
    return steps(torch, optimizer, params, 20), optimizer.state_dict(), repr(optimizer)


@case(rtol=1e-6, atol=1e-7)
@case.params(
    "search, lr, history", [(None, 0.05, 100), (None, 0.1, 3), ("strong_wolfe", 1, 100), ("strong_wolfe", 0.1, 3)]
)
def case_lbfgs(torch, search, lr, history):
    a, b = tensor(torch, (20, 5), "float64", 1), tensor(torch, (20,), "float64", 2)
    w, c = tensor(torch, (5,), "float64", 3, requires_grad=True), tensor(torch, (), "float64", 4, requires_grad=True)
    optimizer = torch.optim.LBFGS([w, c], lr=lr, line_search_fn=search, history_size=history, max_iter=6)

    def closure():
        optimizer.zero_grad()
        loss = ((a @ (w * w * w) + c * (a * a).sum(1) - b) ** 2).mean() + 0.1 * (w**4).sum()
        loss.backward()
        return loss

    seen = []
    for _ in range(3):
        loss = optimizer.step(closure)
        seen.append([loss.detach(), w.detach().clone(), c.detach().clone()])
    state = optimizer.state_dict()["state"][0]
    return seen, {k: state[k] for k in ("func_evals", "n_iter", "t")}, len(state["old_dirs"]), sorted(state)


@case(rtol=1e-4, atol=1e-5)
@case.params("name", ["SGD", "Adam", "RMSprop"])
def case_training(torch, name):
    x, y = torch.tensor(data((16, 4), seed=1)), torch.tensor(data((16, 2), seed=2))
    w, b = tensor(torch, (4, 2), seed=3, requires_grad=True), torch.zeros(2, requires_grad=True)
    optimizer = getattr(torch.optim, name)([w, b], lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((torch.tanh(x @ w + b) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, w, b, optimizer.state_dict()


@case(rtol=1e-4, atol=1e-5)
@case.params("name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "NAdam", "RAdam", "Adadelta", "ASGD"])
def case_differentiable(torch, name):
    start = tensor(torch, (3,), "float64", seed=1, requires_grad=True)
    g = tensor(torch, (3,), "float64", seed=2, requires_grad=True)
    p = start.clone()
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    p.retain_grad()
    optimizer = getattr(torch.optim, name)([p], lr=0.1, differentiable=True, **options)
    for _ in range(3):
        p.grad = g * g
        optimizer.step()
    (p * p).sum().backward()
    return p.detach(), start.grad, g.grad
