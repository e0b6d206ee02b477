"""nn.init."""

from typing import Any

from compat_tests import case, warns
from compat_tests.nn.running import attempt


@case(rtol=1e-5, atol=1e-6)
@case.params(
    "call",
    [
        "uniform_(t)",
        "uniform_(t, -2, 3)",
        "normal_(t)",
        "normal_(t, 1, 0.5)",
        "trunc_normal_(t)",
        "trunc_normal_(t, 0.0, 1.0, -0.5, 0.5)",
        "trunc_normal_(t, 0.0, 0.02)",
        "trunc_normal_(t, 0.0, 1.0, 1.0, 1.5)",
        "constant_(t, 0.3)",
        "ones_(t)",
        "zeros_(t)",
        "xavier_uniform_(t)",
        "xavier_uniform_(t, 2.0)",
        "xavier_normal_(t, 0.5)",
        "kaiming_uniform_(t)",
        "kaiming_uniform_(t, 0.2, 'fan_out', 'leaky_relu')",
        "kaiming_normal_(t, nonlinearity='relu')",
        "kaiming_normal_(t, mode='fan_out')",
        "kaiming_uniform_(t, nonlinearity='tanh')",
        "uniform_(t, generator=g)",
        "normal_(t, generator=g)",
        "xavier_uniform_(t, generator=g)",
        "kaiming_normal_(t, generator=g)",
        "trunc_normal_(t, generator=g)",
    ],
)
@case.params("shape", [(3, 5), (4, 2, 3)])
def case_init(torch: Any, shape: tuple, call: str) -> Any:
    t = torch.zeros(shape, requires_grad=True)
    g = torch.Generator().manual_seed(3)
    out = eval(f"init.{call}", {"init": torch.nn.init, "t": t, "g": g})
    return [t, out is t, t.grad_fn, torch.rand(1)]


@case(rtol=1e-4, atol=1e-5)
def case_special_matrices(torch: Any) -> Any:
    init = torch.nn.init
    out = [init.eye_(torch.ones(2, 3)), init.dirac_(torch.ones(4, 2, 3)), init.dirac_(torch.ones(4, 2, 3, 3), 2)]
    out += [init.dirac_(torch.ones(2, 3, 1, 2, 3)), init.sparse_(torch.ones(6, 3), 0.4)]
    for shape in ((3, 3), (5, 3), (2, 4), (3, 2, 2)):
        q = init.orthogonal_(torch.zeros(shape), 2.0)
        flat = q.reshape(shape[0], -1)
        small = flat @ flat.t() if flat.shape[0] <= flat.shape[1] else flat.t() @ flat
        out += [q, small]
    return out


@case
def case_init_errors(torch: Any) -> Any:
    init = torch.nn.init
    one = torch.zeros(3)
    return [
        attempt(lambda: init.eye_(one)),
        attempt(lambda: init.dirac_(one)),
        attempt(lambda: init.dirac_(torch.ones(3, 2, 2), 2)),
        attempt(lambda: init.xavier_uniform_(one)),
        attempt(lambda: init.kaiming_uniform_(one)),
        attempt(lambda: init.kaiming_uniform_(torch.ones(2, 2), mode="x")),
        attempt(lambda: init.kaiming_uniform_(torch.ones(2, 2), nonlinearity="x")),
        attempt(lambda: init.orthogonal_(one)),
        attempt(lambda: init.sparse_(one, 0.1)),
        attempt(lambda: init.calculate_gain("x")),
        attempt(lambda: init.calculate_gain("leaky_relu", True)),
        [init.calculate_gain(n) for n in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")],
        init.calculate_gain("leaky_relu", 0.3),
        warns(torch, lambda: init.kaiming_normal_(torch.zeros(0, 2)).shape),
        warns(torch, lambda: init.trunc_normal_(torch.zeros(2), 9.0)[0].item() <= 2),
        warns(torch, lambda: init.uniform(torch.zeros(2), 1, 1)),
        warns(torch, lambda: init.xavier_normal(torch.zeros(2, 2)).shape),
    ]
