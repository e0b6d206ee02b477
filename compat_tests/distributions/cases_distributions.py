"""Every distribution: how it shows itself, its moments, samples with a seed, densities, gradients and errors."""

from typing import Any

import numpy as np

from compat_tests import case
from compat_tests.distributions.building import EXAMPLES, build, outcome, with_gradients

IMPLICIT = ("Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT", "Wishart")
"""Their draws have gradients that PyTorch approximates to about 1e-3."""
EXPLICIT = [e for e in EXAMPLES if not e.startswith(IMPLICIT)]


@case(rtol=1e-4, atol=1e-5)
@case.params("example", list(EXAMPLES))
def case_moments(torch: Any, example: str) -> Any:
    def one(attribute: str) -> Any:
        d, leaves = build(torch, example)
        value = getattr(d, attribute)
        return with_gradients(value() if callable(value) else value, leaves)

    d, _ = build(torch, example)
    return {
        "repr": repr(d),
        "shapes": [list(d.batch_shape), list(d.event_shape)],
        "support": outcome(torch, lambda: repr(d.support)),
        "flags": [d.has_rsample, d.has_enumerate_support],
        **{
            a: outcome(torch, lambda a=a: one(a))
            for a in ("mean", "mode", "variance", "stddev", "entropy", "perplexity")
        },
        "enumerate": [outcome(torch, lambda e=e: d.enumerate_support(e)) for e in (True, False)],
    }


@case(rtol=1e-4, atol=1e-5)
@case.params("example", list(EXAMPLES))
def case_sample(torch: Any, example: str) -> Any:
    d, _ = build(torch, example)
    results = [outcome(torch, lambda s=s: d.sample(s)) for s in ((), (5,), (2, 3))]
    return [*results, d.expand((2, *d.batch_shape)).sample((2,)), torch.rand(2)]


def _rsample(torch: Any, example: str) -> Any:
    def one(shape: tuple) -> Any:
        d, leaves = build(torch, example)
        return with_gradients(d.rsample(shape), leaves)

    return [outcome(torch, lambda s=s: one(s)) for s in ((), (5,))]


@case(rtol=1e-4, atol=1e-5)
@case.params("example", EXPLICIT)
def case_rsample(torch: Any, example: str) -> Any:
    return _rsample(torch, example)


@case(rtol=3e-3, atol=1e-3)
@case.params("example", [e for e in EXAMPLES if e.startswith(IMPLICIT) and not e.startswith("Wishart")])
def case_rsample_implicit(torch: Any, example: str) -> Any:
    return _rsample(torch, example)


def _inside(torch: Any, example: str) -> np.ndarray:
    """Values in the support that do not depend on the library: fixed draws of the example."""
    torch.manual_seed(3)
    d, _ = build(torch, example, requires_grad=False)
    return np.asarray(d.sample((4,)))


@case(rtol=2e-4, atol=2e-5)
@case.params("example", list(EXAMPLES))
def case_log_prob(torch: Any, example: str) -> Any:
    inside = _inside(torch, example)

    def one(method: str, expand: bool = False) -> Any:
        d, leaves = build(torch, example)
        x = torch.tensor(inside, requires_grad=inside.dtype.kind == "f")
        if expand:
            d = d.expand((2, *d.batch_shape))
            return with_gradients(getattr(d, method)(x.unsqueeze(1)), [*leaves, x])
        return with_gradients(getattr(d, method)(x), [*leaves, x])

    return [outcome(torch, lambda: one("log_prob")), outcome(torch, lambda: one("log_prob", True))]


@case(rtol=2e-4, atol=2e-5)
@case.params("example", [e for e in EXAMPLES if not e.startswith(("Gamma", "Chi2", "InverseGamma"))])
def case_cdf(torch: Any, example: str) -> Any:
    inside = _inside(torch, example)

    def one(method: str, numbers: np.ndarray) -> Any:
        d, leaves = build(torch, example)
        x = torch.tensor(numbers, requires_grad=numbers.dtype.kind == "f")
        return with_gradients(getattr(d, method)(x), [*leaves, x])

    uniform = np.linspace(0.05, 0.95, inside.size, dtype="float32").reshape(inside.shape)
    return [outcome(torch, lambda: one("cdf", inside)), outcome(torch, lambda: one("icdf", uniform))]


@case
@case.params("example", [e for e in EXAMPLES if not e.startswith("LowRank")])
def case_validation(torch: Any, example: str) -> Any:
    torch.zeros(1).item()  # torchlike checks no pending values beside operations that a gradient needs: have none
    d, _ = build(torch, example, requires_grad=False)
    shape = (*d.batch_shape, *d.event_shape)
    out = {
        "outside": outcome(torch, lambda: d.log_prob(torch.tensor(np.full(shape, -3.5, "float32")))),
        "shape": outcome(torch, lambda: d.log_prob(torch.ones(7, 7))),
        "number": outcome(torch, lambda: d.log_prob(3.0)),
        "subclass": outcome(
            torch, lambda: type("Own", (type(d),), {"__init__": lambda self: None}).expand(d, (2,)) and None
        ),
    }
    for key, value in EXAMPLES[example][1].items():
        if isinstance(value, list) and key != "temperature":
            for what, wrong in (("nan", np.nan), ("negative", -1.0)):
                changed = (np.array(value) * 0 + wrong).tolist()
                out[f"{key} {what}"] = outcome(
                    torch, lambda k=key, c=changed: repr(build(torch, example, requires_grad=False, **{k: c})[0])
                )
    return out


@case
def case_construction_errors(torch: Any) -> Any:
    d = torch.distributions
    attempts = (
        lambda: d.Bernoulli(),
        lambda: d.Categorical(probs=torch.tensor(1.0)),
        lambda: d.Categorical(logits=torch.tensor(1.0)),
        lambda: d.Categorical(torch.ones(2), torch.ones(2)),
        lambda: d.Normal("a", 1.0),
        lambda: d.MultivariateNormal(torch.zeros(2)),
        lambda: d.MultivariateNormal(torch.tensor(1.0), torch.eye(2)),
        lambda: d.MultivariateNormal(torch.zeros(2), torch.zeros(2)),
        lambda: d.LowRankMultivariateNormal(torch.zeros(2), torch.zeros(3, 1), torch.ones(2)),
        lambda: d.LowRankMultivariateNormal(torch.zeros(2), torch.zeros(2, 1), torch.ones(3)),
        lambda: d.Independent(d.Normal(0.0, 1.0), 1),
        lambda: d.Multinomial(torch.tensor(3), torch.ones(3)),
        lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
        lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
        lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
        lambda: d.LKJCholesky(1),
        lambda: d.MixtureSameFamily(3, 4),
        lambda: d.MixtureSameFamily(d.Categorical(torch.ones(3)), d.Normal(torch.zeros(4), torch.ones(4))),
        lambda: d.Wishart(torch.tensor(1.0), torch.eye(3)),
        lambda: d.Distribution.set_default_validate_args(3),
        lambda: d.Normal(0.0, 1.0).enumerate_support(),
        lambda: d.Normal(0.0, 1.0).log_prob(torch.tensor(float("nan"))),
        lambda: d.Binomial(torch.tensor([3.0, 4.0]), torch.tensor([0.5, 0.5])).entropy(),
        lambda: d.Normal(0.0, -1.0, validate_args=False).scale,
    )
    return [outcome(torch, f) for f in attempts]


@case(rtol=1e-4, atol=1e-5)
def case_composed(torch: Any) -> Any:
    d = torch.distributions
    logits = torch.tensor([0.3, -1.0, 0.2, 0.0], requires_grad=True)
    loc = torch.tensor([1.0, -2.0, 0.5, 4.0], requires_grad=True)
    mixture = d.MixtureSameFamily(d.Categorical(logits=logits), d.Normal(loc, loc.exp()))
    sample = mixture.sample((5,))
    vectors = d.MixtureSameFamily(
        d.Categorical(torch.ones(3, 5)), d.Independent(d.Normal(torch.zeros(3, 5, 2), torch.ones(3, 5, 2)), 1)
    )
    bits = d.Independent(d.Bernoulli(logits=torch.tensor([[0.1, 2.0, -1.0], [1.0, 0.0, 0.5]])), 1)
    drawn = bits.sample((4,))
    flow = d.TransformedDistribution(
        d.Independent(d.Normal(torch.zeros(2), torch.ones(2)), 1),
        [
            d.TanhTransform(cache_size=1),
            d.AffineTransform(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 3.0]), event_dim=1),
        ],
    )
    y = flow.rsample((3,))
    return {
        "mixture": [repr(mixture), sample, with_gradients(mixture.log_prob(sample), [logits, loc])],
        "moments": [mixture.mean.detach(), mixture.variance.detach(), mixture.cdf(sample).detach()],
        "vectors": [repr(vectors), vectors.sample((2,)), vectors.mean, vectors.variance, repr(vectors.expand((2, 3)))],
        "bits": [
            repr(bits),
            drawn,
            bits.log_prob(drawn),
            bits.entropy(),
            repr(bits.support),
            repr(bits.expand((5, 2))),
        ],
        "cartesian": outcome(torch, lambda: bits.enumerate_support()),
        "flow": [repr(flow), y, flow.log_prob(y), repr(flow.support), flow.expand((4,)).sample()],
    }


@case(rtol=1e-5, atol=1e-6)
def case_reinforce(torch: Any) -> Any:
    """Policy gradients: a step reads its actions, and nothing else."""
    net = torch.nn.Linear(3, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses, actions = [], []
    for _ in range(4):
        policy = torch.distributions.Categorical(logits=net(torch.rand(5, 3)))
        action = policy.sample()
        loss = -(policy.log_prob(action) * torch.arange(5.0)).mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        actions.append(action.tolist())
        losses.append(loss.item())
    return actions, losses
