"""Averages of weights."""

from compat_tests import case, raises, tensor


def model_of(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(tensor(torch, (3, 2), seed=1))
            self.register_buffer("seen", torch.zeros(2))
            self.register_buffer("count", torch.tensor(0))

        def forward(self, x):
            return x @ self.w + self.seen

    return Model()


def train(torch, model, averaged, count=5):
    out = []
    for i in range(count):
        with torch.no_grad():
            model.w.add_(tensor(torch, (3, 2), seed=10 + i))
            model.seen.add_(1)
            if hasattr(model, "count"):
                model.count.add_(2)
        averaged.update_parameters(model)
        out.append([p.detach().clone() for p in averaged.module.state_dict().values()])
    return out


def rules(torch):
    u = torch.optim.swa_utils
    return {
        "default": {},
        "ema": {"avg_fn": u.get_ema_avg_fn(0.9)},
        "swa": {"avg_fn": u.get_swa_avg_fn()},
        "multi ema": {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
        "multi swa": {"multi_avg_fn": u.get_swa_multi_avg_fn()},
        "own": {"avg_fn": lambda average, current, count: 0.5 * average + 0.5 * current + count},
        "own multi": {
            "multi_avg_fn": lambda averages, currents, count: [a.add_(c) for a, c in zip(averages, currents)]
        },
    }


@case(rtol=1e-5, atol=1e-6)
@case.params("rule", ["default", "ema", "swa", "multi ema", "multi swa", "own", "own multi"])
@case.params("use_buffers", [False, True])
def case_averaged_model(torch, rule, use_buffers):
    model = model_of(torch)
    if rule == "multi swa":
        del model.count  # PyTorch's formula refuses integers
    averaged = torch.optim.swa_utils.AveragedModel(model, use_buffers=use_buffers, **rules(torch)[rule])
    seen = train(torch, model, averaged)
    x = tensor(torch, (4, 3), seed=3)
    return seen, averaged.n_averaged, averaged(x), dict(averaged.state_dict()), averaged.module is model


@case(rtol=1e-5, atol=1e-6)
def case_functions(torch):
    u = torch.optim.swa_utils
    a, b = tensor(torch, (3,), seed=1), tensor(torch, (3,), seed=2)
    lists = [a.clone(), a.clone() * 2]
    u.get_ema_multi_avg_fn(0.8)(lists, [b, b], 3)
    means = [a.clone()]
    u.get_swa_multi_avg_fn()(means, [b], torch.tensor(3))
    return [
        u.get_ema_avg_fn(0.8)(a, b, 3),
        u.get_swa_avg_fn()(a, b, torch.tensor(3)),
        lists,
        means,
        raises(torch, lambda: u.get_ema_avg_fn(1.5)),
        raises(torch, lambda: u.get_ema_multi_avg_fn(-0.1)),
        raises(torch, lambda: u.AveragedModel(model_of(torch), avg_fn=len, multi_avg_fn=len)),
    ]


@case(rtol=1e-4, atol=1e-5)
def case_update_bn(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(tensor(torch, (4, 3), seed=1))
        model[0].bias.zero_()
    model.eval()
    batches = [(tensor(torch, (5, 3), seed=10 + i), None) for i in range(3)]
    torch.optim.swa_utils.update_bn(batches, model)
    bn = model[1]
    return bn.running_mean, bn.running_var, bn.num_batches_tracked, bn.momentum, model.training
