"""Kullback-Leibler divergences of all registered pairs, with gradients."""

from typing import Any

from compat_tests import case
from compat_tests.distributions.building import EXAMPLES, build, outcome, with_gradients

PAIRS = """Bernoulli Bernoulli, Bernoulli.logits Bernoulli.logits, Bernoulli Poisson, Beta Beta, Beta
ContinuousBernoulli,
Beta Exponential, Beta Gamma, Beta Normal, Beta Pareto, Beta Uniform, Binomial Binomial, Categorical Categorical,
Categorical.logits Categorical.logits, Cauchy Cauchy, ContinuousBernoulli ContinuousBernoulli,
ContinuousBernoulli Exponential, ContinuousBernoulli Normal, ContinuousBernoulli Pareto, ContinuousBernoulli Uniform,
Dirichlet Dirichlet, Exponential Beta, Exponential ContinuousBernoulli, Exponential Exponential, Exponential Gamma,
Exponential Gumbel, Exponential Normal, Exponential Pareto, Exponential Uniform, Gamma Beta, Gamma ContinuousBernoulli,
Gamma Exponential, Gamma Gamma, Gamma Gumbel, Gamma Normal, Gamma Pareto, Gamma Uniform, Geometric Geometric, Gumbel
Beta,
Gumbel ContinuousBernoulli, Gumbel Exponential, Gumbel Gamma, Gumbel Gumbel, Gumbel Normal, Gumbel Pareto, Gumbel
Uniform,
HalfNormal HalfNormal, Laplace Beta, Laplace ContinuousBernoulli, Laplace Exponential, Laplace Gamma, Laplace Laplace,
Laplace Normal, Laplace Pareto, Laplace Uniform, LowRankMultivariateNormal LowRankMultivariateNormal,
LowRankMultivariateNormal MultivariateNormal, LowRankMultivariateNormal MultivariateNormal.factor,
MultivariateNormal LowRankMultivariateNormal, MultivariateNormal.factor LowRankMultivariateNormal,
MultivariateNormal MultivariateNormal, MultivariateNormal MultivariateNormal.factor,
MultivariateNormal.factor MultivariateNormal.precision, Normal Beta, Normal ContinuousBernoulli, Normal Exponential,
Normal Gamma, Normal Gumbel, Normal Laplace, Normal Normal, Normal Normal.broadcast, Normal Pareto, Normal Uniform,
OneHotCategorical OneHotCategorical, Pareto Beta, Pareto ContinuousBernoulli, Pareto Exponential, Pareto Gamma,
Pareto Normal, Pareto Pareto, Pareto Uniform, Poisson Bernoulli, Poisson Binomial, Poisson Poisson, Uniform Beta,
Uniform ContinuousBernoulli, Uniform Exponential, Uniform Gamma, Uniform Gumbel, Uniform Normal, Uniform Pareto,
Uniform Uniform, LogNormal LogNormal, Chi2 Chi2, Chi2 Gamma, Wishart Wishart, Poisson Gamma, Normal StudentT,
OneHotCategoricalStraightThrough OneHotCategorical, Weibull Weibull, InverseGamma InverseGamma"""
PAIR_LIST = [tuple(pair.split()) for pair in PAIRS.replace("\n", " ").split(",")]
FIXED = ("covariance_matrix", "precision_matrix", "scale_tril", "total_count", "probs", "concentration1")


def _scaled(value: Any) -> Any:
    return [_scaled(v) for v in value] if isinstance(value, list) else value * 1.1


@case(rtol=3e-4, atol=3e-5)
@case.params("p, q", PAIR_LIST)
def case_divergence(torch: Any, p: str, q: str) -> Any:
    def one() -> Any:
        of_p, leaves = build(torch, p)
        changed = {k: _scaled(v) for k, v in EXAMPLES[q][1].items() if isinstance(v, list) and k not in FIXED}
        of_q, others = build(torch, q, **changed)
        return with_gradients(torch.distributions.kl_divergence(of_p, of_q), leaves + others)

    return outcome(torch, one)


@case(rtol=1e-5, atol=1e-6)
def case_registry(torch: Any) -> Any:
    d = torch.distributions

    class Own(d.Normal):
        pass

    class Other(d.Laplace):
        pass

    before = d.kl_divergence(Own(0.0, 1.0), Other(1.0, 2.0))
    registered = d.register_kl(Own, Other)(lambda p, q: p.loc * 0 + 5)
    independent = [d.Independent(d.Normal(torch.arange(6.0).reshape(2, 3), 1.5 + k), 1) for k in range(2)]
    return {
        "inherited": before,
        "own": d.kl_divergence(Own(0.0, 1.0), Other(1.0, 2.0)),
        "returned": callable(registered),
        "independent": d.kl_divergence(*independent),
        "dims": outcome(
            torch, lambda: d.kl_divergence(independent[0], d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 2))
        ),
        "none": outcome(torch, lambda: d.kl_divergence(d.Poisson(1.0), d.Cauchy(0.0, 1.0))),
        "events": outcome(
            torch,
            lambda: d.kl_divergence(
                d.MultivariateNormal(torch.zeros(2), torch.eye(2)), d.MultivariateNormal(torch.zeros(3), torch.eye(3))
            ),
        ),
    }
