"""Learning rate schedules: rates to the last digit, state dicts, warnings and errors."""

import copy

from compat_tests import case, raises, tensor, warns


class Decay:
    """A callable with attributes, which state dicts keep."""

    def __init__(self):
        self.k = 0.9

    def __call__(self, epoch):
        return self.k**epoch


def schedules(torch):
    s = torch.optim.lr_scheduler
    swa = torch.optim.swa_utils.SWALR
    return {
        "lambda": lambda o: s.LambdaLR(o, [lambda e: 0.95**e, Decay()]),
        "multiplicative": lambda o: s.MultiplicativeLR(o, lambda e: 0.95),
        "step": lambda o: s.StepLR(o, 4, gamma=0.3),
        "multistep": lambda o: s.MultiStepLR(o, [3, 3, 8, 15], gamma=0.3),
        "constant": lambda o: s.ConstantLR(o, 0.3, 6),
        "linear": lambda o: s.LinearLR(o, 0.3, 0.9, 7),
        "exponential": lambda o: s.ExponentialLR(o, 0.9),
        "polynomial": lambda o: s.PolynomialLR(o, 9, 2.0),
        "cosine": lambda o: s.CosineAnnealingLR(o, 7, eta_min=0.001),
        "restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 4, 2, eta_min=0.01),
        "equal restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 4),
        "one cycle": lambda o: s.OneCycleLR(o, [0.3, 0.5], total_steps=41),
        "three phases": lambda o: s.OneCycleLR(
            o, 0.3, epochs=6, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"
        ),
        "triangular": lambda o: s.CyclicLR(o, 0.01, 0.1, 5, 7),
        "triangular2": lambda o: s.CyclicLR(o, 0.01, [0.1, 0.2], 5, mode="triangular2"),
        "exp_range": lambda o: s.CyclicLR(o, 0.01, 0.1, 5, mode="exp_range", gamma=0.9),
        "own scale": lambda o: s.CyclicLR(o, 0.01, 0.1, 5, scale_fn=lambda x: 0.5**x, scale_mode="iterations"),
        "sequence": lambda o: s.SequentialLR(
            o, [s.ConstantLR(o, 0.1, 5), s.LinearLR(o, 0.5, 1.0, 4), s.CosineAnnealingLR(o, 9)], [5, 12]
        ),
        "chain": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]),
        "chain in sequence": lambda o: s.SequentialLR(
            o, [s.ChainedScheduler([s.ConstantLR(o, 0.1, 5), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 3)], [6]
        ),
        "plateau": lambda o: s.ReduceLROnPlateau(o, patience=2, cooldown=2, min_lr=[0.001, 0.002], factor=0.3),
        "plateau up": lambda o: s.ReduceLROnPlateau(o, "max", patience=1, threshold=0.3, threshold_mode="abs"),
        "swa": lambda o: swa(o, 0.05, anneal_epochs=6),
        "linear swa": lambda o: swa(o, [0.05, 0.01], anneal_epochs=6, anneal_strategy="linear"),
    }


NAMES = [
    "lambda", "multiplicative", "step", "multistep", "constant", "linear", "exponential", "polynomial", "cosine",
    "restarts", "equal restarts", "one cycle", "three phases", "triangular", "triangular2", "exp_range", "own scale",
    "sequence", "chain", "chain in sequence", "plateau", "plateau up", "swa", "linear swa",
]  # fmt: skip


def two_groups(torch, kind="SGD", **options):
    a, b = tensor(torch, (2,), seed=1, requires_grad=True), tensor(torch, (3,), seed=2, requires_grad=True)
    options = {"momentum": 0.9, **options} if kind == "SGD" else options
    return getattr(torch.optim, kind)([{"params": [a], "lr": 0.2}, {"params": [b]}], lr=0.1, **options)


def plain(x):
    """Nested containers with everything as text: rates must be equal to the last digit."""
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items() if not callable(v)}
    return [plain(v) for v in x] if isinstance(x, (list, tuple)) else repr(x)


def options(optimizer):
    return [plain({k: v for k, v in g.items() if k != "params"}) for g in optimizer.param_groups]


def moving(optimizer):
    """What schedules change, as one text."""
    return "; ".join(f"{g['lr']!r} {g.get('momentum', g.get('betas'))!r}" for g in optimizer.param_groups)


@case
@case.params("kind", ["SGD", "Adam"])
@case.params("name", NAMES)
def case_rates(torch, name, kind):
    optimizer = two_groups(torch, kind)
    make = schedules(torch)[name]
    schedule = make(optimizer)
    seen = [options(optimizer)]
    for i in range(30):
        optimizer.step()
        schedule.step(*([1.0 / (1 + min(i, 5))] if "plateau" in name else []))
        seen.append(moving(optimizer))
        if i == 14:
            saved = copy.deepcopy(schedule.state_dict())
            schedule = make(optimizer)
            schedule.load_state_dict(saved)
    return seen, plain(schedule.get_last_lr()), options(optimizer), plain(schedule.state_dict())


@case
@case.params("name", [n for n in NAMES if n not in ("sequence", "chain", "chain in sequence") and "plateau" not in n])
def case_closed_forms(torch, name):
    def run():
        optimizer = two_groups(torch)
        schedule = schedules(torch)[name](optimizer)
        seen = []
        for epoch in (1, 5, 2, 9, 30):
            optimizer.step()
            schedule.step(epoch)
            schedule.step()
            seen.append(plain(schedule.get_last_lr()))
        return seen

    return warns(torch, run)


@case
@case.params("name", ["step", "linear", "cosine", "one cycle", "plateau", "lambda"])
def case_tensor_rates(torch, name):
    p = tensor(torch, (2,), requires_grad=True)
    optimizer = torch.optim.SGD([{"params": [p]}, {"params": [torch.zeros(2)]}], lr=torch.tensor(0.1), momentum=0.9)
    lr = optimizer.param_groups[0]["lr"]
    schedule = schedules(torch)[name](optimizer)
    seen = []
    for _ in range(6):
        optimizer.step()
        schedule.step(*([1.0] if name == "plateau" else []))
        seen.append([x.clone() for x in schedule.get_last_lr()])
    return seen, optimizer.param_groups[0]["lr"] is lr, lr


@case
def case_fractions_of_epochs(torch):
    optimizer = two_groups(torch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2)
    seen = []
    for i in range(40):
        optimizer.step()
        schedule.step(i / 4)
        seen.append(plain(schedule.get_last_lr()))
    return seen, raises(torch, lambda: schedule.step(-1))


@case
def case_order_warnings(torch):
    s = torch.optim.lr_scheduler

    def too_early():
        schedule = s.StepLR(two_groups(torch), 2)
        schedule.step()
        schedule.step()

    def overridden():
        optimizer = two_groups(torch)
        schedule = s.StepLR(optimizer, 2)
        optimizer.step = lambda: None
        schedule.step()

    def right():
        optimizer = two_groups(torch)
        schedule = s.StepLR(optimizer, 2)
        optimizer.step()
        schedule.step()
        return schedule.get_lr()

    def no_warning():
        optimizer = two_groups(torch)
        schedule = s.StepLR(optimizer, 2)
        optimizer.step(lambda: torch.zeros(()))
        schedule.step()
        schedule.step(5)

    return [warns(torch, f) for f in (too_early, overridden, right, no_warning)]


@case
def case_resuming(torch):
    optimizer = two_groups(torch)
    s = torch.optim.lr_scheduler
    error = raises(torch, lambda: s.StepLR(optimizer, 2, last_epoch=3))
    for group in optimizer.param_groups:
        group["initial_lr"] = 1.0
    seen = []
    for make in (
        lambda: s.StepLR(optimizer, 2, last_epoch=3),
        lambda: s.CosineAnnealingLR(optimizer, 10, last_epoch=3),
        lambda: s.ExponentialLR(optimizer, 0.5, last_epoch=3),
        lambda: s.LinearLR(optimizer, 0.5, total_iters=9, last_epoch=3),
        lambda: s.LambdaLR(optimizer, lambda e: 0.5**e, last_epoch=3),
    ):
        schedule = make()
        seen.append([plain(schedule.get_last_lr()), schedule.last_epoch])
        optimizer.step()
        schedule.step()
        seen.append(plain(schedule.get_last_lr()))
    return error, seen


@case
def case_own_schedule(torch):
    class Half(torch.optim.lr_scheduler.LRScheduler):
        def get_lr(self):
            return [base / (self.last_epoch + 1) for base in self.base_lrs]

    optimizer = two_groups(torch)
    schedule = Half(optimizer)
    for _ in range(3):
        optimizer.step()
        schedule.step()
    return (
        plain(schedule.get_last_lr()),
        plain(schedule.state_dict()),
        issubclass(torch.optim.lr_scheduler.LRScheduler, object),
    )


@case
def case_errors(torch):
    s = torch.optim.lr_scheduler
    swa = torch.optim.swa_utils.SWALR
    o, other = two_groups(torch), two_groups(torch)
    rprop = torch.optim.Rprop([torch.zeros(1, requires_grad=True)])
    attempts = [
        lambda: s.StepLR("x", 3),
        lambda: s.LambdaLR(o, [lambda e: 1.0]),
        lambda: s.MultiplicativeLR(o, [1, 2]),
        lambda: s.ConstantLR(o, factor=1.5),
        lambda: s.LinearLR(o, start_factor=0.0),
        lambda: s.LinearLR(o, end_factor=-1.0),
        lambda: s.SequentialLR(o, [], []),
        lambda: s.SequentialLR(o, [s.StepLR(o, 1)], [1]),
        lambda: s.SequentialLR(o, [s.StepLR(o, 1), s.ReduceLROnPlateau(o)], [1]),
        lambda: s.SequentialLR(o, [s.StepLR(o, 1), 5], [1]),
        lambda: s.SequentialLR(o, [s.StepLR(o, 1), s.StepLR(other, 1)], [1]),
        lambda: s.ChainedScheduler([]),
        lambda: s.ChainedScheduler([s.StepLR(o, 1), s.ReduceLROnPlateau(o)]),
        lambda: s.ReduceLROnPlateau(o, factor=1.0),
        lambda: s.ReduceLROnPlateau(o, mode="no"),
        lambda: s.ReduceLROnPlateau(o, threshold_mode="no"),
        lambda: s.ReduceLROnPlateau(o, min_lr=[0.1]),
        lambda: s.ReduceLROnPlateau("x"),
        lambda: s.CyclicLR(o, 0.1, [0.2], 3),
        lambda: s.CyclicLR(o, 0.1, 0.2, 3, mode="no"),
        lambda: s.CyclicLR(rprop, 0.1, 0.2, 3),
        lambda: s.OneCycleLR(o, 0.1),
        lambda: s.OneCycleLR(o, 0.1, total_steps=0),
        lambda: s.OneCycleLR(o, 0.1, epochs=0, steps_per_epoch=3),
        lambda: s.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=-3),
        lambda: s.OneCycleLR(o, 0.1, total_steps=9, pct_start=2.0),
        lambda: s.OneCycleLR(o, 0.1, total_steps=9, anneal_strategy="no"),
        lambda: s.CosineAnnealingWarmRestarts(o, 0),
        lambda: s.CosineAnnealingWarmRestarts(o, 3, 0),
        lambda: swa(o, 0.1, anneal_strategy="no"),
        lambda: swa(o, 0.1, anneal_epochs=-1),
        lambda: swa(o, [0.1]),
    ]
    errors = [raises(torch, a) for a in attempts]
    for error in errors:  # a list's repr of an optimizer may hold an address
        error[1] = error[1].split(" has SGD")[0]
    short = s.OneCycleLR(o, 0.1, total_steps=2)

    def beyond():
        for _ in range(4):
            o.step()
            short.step()

    return errors, raises(torch, beyond)


@case
def case_plateau_with_a_new_group(torch):
    optimizer = two_groups(torch)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=0.01)
    strict = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.01, 0.02])
    optimizer.add_param_group({"params": [torch.zeros(1, requires_grad=True)], "lr": 1.0})
    for metric in (1.0, 2.0, torch.tensor(3.0)):
        schedule.step(metric)
    strict.step(1.0)
    return options(optimizer), raises(torch, lambda: strict.step(2.0)), plain(schedule.state_dict())
