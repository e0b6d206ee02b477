"""Transforms, constraints and the registries between them."""

from typing import Any

import numpy as np

from compat_tests import case, data
from compat_tests.distributions.building import FACTOR, POSITIVE, outcome

TRANSFORMS = {
    "abs": "t.AbsTransform()",
    "exp": "t.ExpTransform()",
    "power": "t.PowerTransform(torch.tensor([2.,.5,-1.]))",
    "sigmoid": "t.SigmoidTransform()",
    "softplus": "t.SoftplusTransform()",
    "tanh": "t.TanhTransform(cache_size=1)",
    "affine": "t.AffineTransform(1.,-2.)",
    "affine1": "t.AffineTransform(torch.tensor([1.,2.,3.]),torch.tensor([-1.,2.,3.]),event_dim=1)",
    "softmax": "t.SoftmaxTransform()",
    "stick": "t.StickBreakingTransform()",
    "correlation": "t.CorrCholeskyTransform()",
    "cholesky": "t.LowerCholeskyTransform()",
    "positive": "t.PositiveDefiniteTransform()",
    "compose": "t.ComposeTransform([t.ExpTransform(),t.AffineTransform(.5,2.),t.ExpTransform().inv])",
    "cached": "t.ComposeTransform([t.AffineTransform(.5,2.),t.StickBreakingTransform()],cache_size=1)",
    "independent": "t.IndependentTransform(t.ExpTransform(),1)",
    "reshape": "t.ReshapeTransform((3,),(3,1))",
    "cat": "t.CatTransform([t.ExpTransform(),t.AffineTransform(1.,2.)],dim=-1,lengths=[1,2])",
    "stack": "t.StackTransform([t.ExpTransform(),t.identity_transform,t.SigmoidTransform()],dim=-1)",
    "cdf": "t.CumulativeDistributionTransform(torch.distributions.Normal(.5,2.))",
    "identity": "t.identity_transform",
}


@case(rtol=1e-4, atol=1e-5)
@case.params("name", list(TRANSFORMS))
def case_transform(torch: Any, name: str) -> Any:
    def make() -> Any:
        return eval(TRANSFORMS[name], {"torch": torch, "t": torch.distributions.transforms})

    f = make()
    numbers = data((3, 3), seed=1)
    x = torch.tensor(np.abs(numbers) if name == "power" else numbers, requires_grad=True)
    y = f(x)
    return {
        "repr": [repr(f), outcome(torch, lambda: repr(f.inv)), outcome(torch, lambda: repr(f.with_cache(1)))],
        "value": [y.detach(), outcome(torch, lambda: f.inv(y).detach())],
        "jacobian": outcome(torch, lambda: f.log_abs_det_jacobian(x, y).detach()),
        "inverse jacobian": outcome(torch, lambda: f.inv.log_abs_det_jacobian(y, x).detach()),
        "spaces": outcome(torch, lambda: [repr(f.domain), repr(f.codomain), f.domain.event_dim, f.codomain.event_dim]),
        "bijective": outcome(torch, lambda: f.bijective),
        "sign": outcome(torch, lambda: str(f.sign)),
        "event": outcome(torch, lambda: f.event_dim),
        "shapes": outcome(
            torch,
            lambda: [list(f.forward_shape(torch.Size((4, 3)))), list(f.inverse_shape(torch.Size((4, 3, 3))))],
        ),
        "equal": outcome(torch, lambda: [f == make(), f == torch.distributions.ExpTransform()]),
        "gradient": torch.autograd.grad(y.exp().sum(), x)[0],
    }


CONSTRAINTS = [
    "boolean", "corr_cholesky", "lower_cholesky", "lower_triangular", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_integer", "positive_semidefinite", "positive_definite", "real", "real_vector",
    "simplex", "square",
    "symmetric", "unit_interval", "cat([c.real,c.positive],-1,[1,2])", "greater_than(.5)",
    "greater_than_eq(torch.tensor([0.,1.,2.]))", "half_open_interval(0.,1.)", "independent(c.positive,1)",
    "integer_interval(0,2)", "interval(-1.,1.)", "less_than(0.)", "multinomial(3)",
    "stack([c.real,c.positive,c.boolean],-1)",
    "MixtureSameFamilyConstraint(c.positive)", "dependent",
]  # fmt: skip


@case(rtol=1e-4, atol=1e-5)
@case.params("text", CONSTRAINTS)
def case_constraint(torch: Any, text: str) -> Any:
    d = torch.distributions
    constraint = eval("c." + text, {"torch": torch, "c": d.constraints})
    correlation = np.linalg.cholesky(np.array([[1, 0.3, 0.2], [0.3, 1, 0.1], [0.2, 0.1, 1]]))
    values = [
        np.eye(3),
        np.zeros((3, 3)),
        np.array([[1.0, 0.5, 0], [0.5, 2.0, 0], [0, 0, np.nan]]),
        np.array([[0.2, 0.3, 0.5], [1, 0, 0], [1, 1, 1]]),
        np.arange(9.0).reshape(3, 3),
        np.array(POSITIVE),
        np.array(FACTOR),
        correlation,
        np.ones((3, 3)) * -0.5,
    ]
    x = torch.tensor(data((3, 3), seed=1))
    return {
        "repr": outcome(torch, lambda: repr(constraint)),
        "kind": outcome(torch, lambda: [constraint.is_discrete, constraint.event_dim]),
        "checks": [outcome(torch, lambda v=v: constraint.check(torch.tensor(v.astype("float32")))) for v in values],
        "registered": [
            outcome(torch, lambda r=r: [repr(r(constraint)), r(constraint)(x)]) for r in (d.biject_to, d.transform_to)
        ],
    }
