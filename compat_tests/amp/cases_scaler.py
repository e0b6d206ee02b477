"""torch.amp.GradScaler: scaling, unscaling, skipped steps, growth, state and errors."""

import copy
import pickle

from compat_tests import case, raises, tensor, warns


def _model(torch, optimizer="SGD", **options):
    model = torch.nn.Linear(4, 3)
    with torch.no_grad():
        model.weight.copy_(tensor(torch, (3, 4), seed=1))
        model.bias.zero_()
    return model, getattr(torch.optim, optimizer)(model.parameters(), lr=0.1, **options)


def _train(torch, scaler, optimizer="SGD", bad=(), unscale=False, autocast=None, steps=6, **options):
    model, opt = _model(torch, optimizer, **options)
    x = tensor(torch, (5, 4), seed=2)
    out = []
    for k in range(steps):
        opt.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast is not None):
            loss = model(x).float().pow(2).mean()
        if k in bad:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(opt)
        scaler.update()
        out.append((loss.detach(), scaler.get_scale(), scaler._get_growth_tracker()))
    return out, model.weight, opt.state_dict()["state"]


@case(rtol=1e-5, atol=1e-6)
@case.params("bad", [(), (2,), (0,), (1, 2)])
@case.params("optimizer", ["SGD", "Adam", "AdamW", "RMSprop"])
def case_training(torch, optimizer, bad):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    out, weight, state = _train(torch, scaler, optimizer, bad)
    # PyTorch leaves the state empty if the first step is skipped; the state of later steps is the same.
    return out, weight, state


@case(rtol=1e-5, atol=1e-6)
@case.params("dampening", [0.0, 0.3])
@case.params("bad", [(), (0,), (0, 3)])
def case_momentum(torch, bad, dampening):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    return _train(torch, scaler, "SGD", bad, unscale=True, momentum=0.9, dampening=dampening)


@case(rtol=2e-2, atol=2e-2)
def case_autocast(torch):
    return _train(torch, torch.amp.GradScaler("cpu"), "Adam", autocast=True)


@case(rtol=1e-5, atol=1e-6)
def case_fused(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    return _train(torch, scaler, "Adam", (2,), fused=True)[:2]


@case(rtol=1e-5, atol=1e-6)
def case_gradients(torch):
    model, opt = _model(torch)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    out = []
    scaler.scale(model(torch.ones(2, 4)).sum()).backward()
    out.append(model.weight.grad.clone())
    scaler.unscale_(opt)
    out.append(model.weight.grad.clone())
    out.append(list(scaler._found_inf_per_device(opt).values()))
    model.weight.grad[0, 0] = float("nan")
    scaler.step(opt)
    scaler.update()
    out += [model.weight, scaler.get_scale()]
    return out


@case(rtol=1e-5, atol=1e-6)
def case_two_optimizers(torch):
    (a, oa), (b, ob) = _model(torch), _model(torch)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    loss = a(torch.ones(2, 4)).sum() + b(torch.ones(2, 4)).sum() * float("inf")
    scaler.scale(loss).backward()
    scaler.step(oa)
    scaler.step(ob)
    scaler.update()
    return a.weight, b.weight, scaler.get_scale()


@case
def case_scale_containers(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    one = torch.ones(2)
    return [
        scaler.scale(one),
        scaler.scale([one, (one, one)]),
        list(scaler.scale(t for t in (one, one))),
        scaler.get_scale(),
    ]


@case
def case_options(torch):
    scaler = torch.amp.GradScaler("cpu")
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    out = [scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval(), scaler.is_enabled()]
    out.append(scaler.state_dict())
    scaler.scale(torch.ones(()))
    scaler.update(8.0)
    out.append(scaler.state_dict())
    scaler.update(torch.tensor(16.0))
    out.append(scaler.get_scale())
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    out.append(other.state_dict())
    out.append(pickle.loads(pickle.dumps(scaler)).state_dict())
    out.append(copy.deepcopy(scaler).state_dict())
    return out


@case
def case_errors(torch):
    model, opt = _model(torch)
    scaler = torch.amp.GradScaler("cpu")
    out = [
        raises(torch, lambda: torch.amp.GradScaler("cpu", growth_factor=1.0)),
        raises(torch, lambda: torch.amp.GradScaler("cpu", backoff_factor=1.0)),
        raises(torch, lambda: scaler.update()),
        raises(torch, lambda: scaler.step(opt)),
        raises(torch, lambda: scaler.unscale_(opt)),
        raises(torch, lambda: scaler.scale(3)),
        raises(torch, lambda: scaler.load_state_dict({})),
    ]
    scaler.scale(model(torch.ones(1, 4)).sum()).backward()
    out.append(raises(torch, lambda: scaler.update()))
    out.append(raises(torch, lambda: scaler.step(opt, closure=lambda: 1)))
    scaler.unscale_(opt)
    out.append(raises(torch, lambda: scaler.unscale_(opt)))
    out.append(raises(torch, lambda: pickle.dumps(scaler)))
    scaler.step(opt)
    out.append(raises(torch, lambda: scaler.step(opt)))
    out.append(raises(torch, lambda: scaler.unscale_(opt)))
    scaler.update()
    opt.zero_grad()
    out.append(raises(torch, lambda: scaler.step(opt)))
    half = torch.nn.Linear(2, 2).half()
    half_opt = torch.optim.SGD(half.parameters(), lr=0.1)
    other = torch.amp.GradScaler("cpu")
    other.scale(half(torch.ones(1, 2).half()).sum()).backward()
    out.append(raises(torch, lambda: other.unscale_(half_opt)))
    out.append(raises(torch, lambda: other.update(torch.ones(2))))
    return out


@case(rtol=1e-5, atol=1e-6)
def case_disabled(torch):
    def train(make):
        model, opt = _model(torch)
        scaler, caught = warns(torch, make)[0], None
        loss = model(torch.ones(2, 4)).sum()
        same = scaler.scale(loss) is loss
        loss.backward()
        scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
        return [same, scaler.is_enabled(), scaler.get_scale(), scaler.state_dict(), model.weight, caught]

    return [
        train(lambda: torch.amp.GradScaler("cpu", enabled=False)),
        train(lambda: torch.amp.GradScaler("cuda")),
        train(lambda: torch.cuda.amp.GradScaler()),
        warns(torch, lambda: torch.cuda.amp.GradScaler().is_enabled()),
        warns(torch, lambda: torch.amp.GradScaler().is_enabled()),
        warns(torch, lambda: torch.cpu.amp.GradScaler().is_enabled()),
        warns(torch, lambda: torch.cuda.amp.GradScaler(enabled=False).is_enabled()),
    ]


@case(rtol=1e-5, atol=1e-6)
@case.params("kind", ["LBFGS-like", "hook", "subclass", "amp"])
def case_steps_of_the_users_own(torch, kind):
    calls = []

    class Own(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})

        @torch.no_grad()
        def step(self):
            calls.append("step")
            for group in self.param_groups:
                for p in group["params"]:
                    p -= 0.1 * p.grad

    class Sub(torch.optim.SGD):
        def step(self, closure=None):
            calls.append("step")
            return super().step(closure)

    class Amp(Own):
        _step_supports_amp_scaling = True

        @torch.no_grad()
        def step(self):
            calls.append((self.grad_scale, self.found_inf))

    model, opt = _model(torch)
    if kind == "hook":
        opt.register_step_post_hook(lambda *a: calls.append("hook"))
    elif kind == "subclass":
        opt = Sub(model.parameters(), lr=0.1)
    elif kind == "amp":
        opt = Amp(model.parameters())
    else:
        opt = Own(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    for factor in (1.0, float("inf"), 1.0):
        opt.zero_grad()
        scaler.scale(model(torch.ones(2, 4)).sum() * factor).backward()
        scaler.step(opt)
        scaler.update()
    return calls, model.weight, scaler.get_scale()
