"""What cases of distributions share: examples of every distribution, built from plain numbers."""

import warnings
from typing import Any

POSITIVE = [[1.5, 0.2, 0.1], [0.2, 2.0, -0.3], [0.1, -0.3, 1.2]]
FACTOR = [[1.5, 0.0, 0.0], [0.2, 2.0, 0.0], [0.1, -0.3, 1.2]]
P, L = [0.2, 0.5, 0.9], [-1.0, 0.3, 2.0]
P2, L2 = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], [[0.2, 0.3, 0.5], [0.1, -2.0, 0.8]]
LOC, SCALE = [0.0, 1.0, -2.0], [1.0, 0.5, 3.0]

EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "Bernoulli": ("Bernoulli", {"probs": P}),
    "Bernoulli.logits": ("Bernoulli", {"logits": L}),
    "Bernoulli.number": ("Bernoulli", {"probs": 0.3}),
    "Beta": ("Beta", {"concentration1": [0.5, 2.0, 30.0], "concentration0": [1.5, 0.7, 3.0]}),
    "Beta.number": ("Beta", {"concentration1": 2, "concentration0": 3.0}),
    "Binomial": ("Binomial", {"total_count": [10.0, 3.0, 5.0], "probs": P}),
    "Binomial.logits": ("Binomial", {"total_count": 4, "logits": L}),
    "Categorical": ("Categorical", {"probs": P2}),
    "Categorical.logits": ("Categorical", {"logits": L2}),
    "Categorical.one": ("Categorical", {"logits": L}),
    "Cauchy": ("Cauchy", {"loc": LOC, "scale": SCALE}),
    "Chi2": ("Chi2", {"df": [0.7, 3.0, 10.0]}),
    "ContinuousBernoulli": ("ContinuousBernoulli", {"probs": P}),
    "ContinuousBernoulli.logits": ("ContinuousBernoulli", {"logits": [-1.0, 0.001, 2.0]}),
    "Dirichlet": ("Dirichlet", {"concentration": [[0.5, 1.0, 3.0], [10.0, 0.2, 4.0]]}),
    "Exponential": ("Exponential", {"rate": SCALE}),
    "FisherSnedecor": ("FisherSnedecor", {"df1": [1.5, 3.0, 10.0], "df2": [1.5, 5.0, 9.0]}),
    "Gamma": ("Gamma", {"concentration": [0.5, 1.0, 30.0], "rate": SCALE}),
    "GeneralizedPareto": (
        "GeneralizedPareto",
        {"loc": LOC, "scale": SCALE, "concentration": [0.0, 0.3, -0.2]},
    ),
    "Geometric": ("Geometric", {"probs": P}),
    "Geometric.logits": ("Geometric", {"logits": L}),
    "Gumbel": ("Gumbel", {"loc": LOC, "scale": SCALE}),
    "Gumbel.number": ("Gumbel", {"loc": 0.5, "scale": 2.0}),
    "HalfCauchy": ("HalfCauchy", {"scale": SCALE}),
    "HalfNormal": ("HalfNormal", {"scale": SCALE}),
    "InverseGamma": ("InverseGamma", {"concentration": [1.5, 4.0, 30.0], "rate": SCALE}),
    "Kumaraswamy": ("Kumaraswamy", {"concentration1": [1.5, 2.0, 3.0], "concentration0": [1.5, 0.7, 3.0]}),
    "LKJCholesky": ("LKJCholesky", {"dim": 3, "concentration": [0.7, 2.0]}),
    "Laplace": ("Laplace", {"loc": LOC, "scale": SCALE}),
    "LogNormal": ("LogNormal", {"loc": LOC, "scale": [1.0, 0.5, 0.3]}),
    "LogisticNormal": ("LogisticNormal", {"loc": LOC, "scale": [1.0, 0.5, 0.3]}),
    "LowRankMultivariateNormal": (
        "LowRankMultivariateNormal",
        {"loc": LOC, "cov_factor": [[1.0, 0.2], [0.3, 0.5], [-0.3, 0.4]], "cov_diag": SCALE},
    ),
    "Multinomial": ("Multinomial", {"total_count": 5, "probs": P2}),
    "MultivariateNormal": ("MultivariateNormal", {"loc": LOC, "covariance_matrix": POSITIVE}),
    "MultivariateNormal.precision": ("MultivariateNormal", {"loc": [LOC, SCALE], "precision_matrix": POSITIVE}),
    "MultivariateNormal.factor": ("MultivariateNormal", {"loc": [LOC, SCALE], "scale_tril": [FACTOR, FACTOR]}),
    "NegativeBinomial": ("NegativeBinomial", {"total_count": [10.0, 3.0, 5.0], "probs": P}),
    "NegativeBinomial.logits": ("NegativeBinomial", {"total_count": 4, "logits": L}),
    "Normal": ("Normal", {"loc": LOC, "scale": SCALE}),
    "Normal.number": ("Normal", {"loc": 0, "scale": 1.5}),
    "Normal.broadcast": ("Normal", {"loc": [[0.0], [1.0]], "scale": SCALE}),
    "OneHotCategorical": ("OneHotCategorical", {"probs": P2}),
    "OneHotCategoricalStraightThrough": ("OneHotCategoricalStraightThrough", {"logits": L2}),
    "Pareto": ("Pareto", {"scale": SCALE, "alpha": [1.5, 0.5, 3.0]}),
    "Poisson": ("Poisson", {"rate": [0.5, 1.0, 30.0]}),
    "RelaxedBernoulli": ("RelaxedBernoulli", {"temperature": [0.7], "probs": P}),
    "RelaxedBernoulli.logits": ("RelaxedBernoulli", {"temperature": [0.7], "logits": L}),
    "RelaxedOneHotCategorical": ("RelaxedOneHotCategorical", {"temperature": [0.7], "probs": P2}),
    "StudentT": ("StudentT", {"df": [0.7, 2.0, 10.0], "loc": LOC, "scale": SCALE}),
    "Uniform": ("Uniform", {"low": [0.1, 0.2, -2.0], "high": [0.6, 1.5, 3.0]}),
    "VonMises": ("VonMises", {"loc": LOC, "concentration": [1.0, 0.5, 30.0]}),
    "Weibull": ("Weibull", {"scale": SCALE, "concentration": [1.0, 1.5, 3.0]}),
    "Wishart": ("Wishart", {"df": 4.5, "covariance_matrix": POSITIVE}),
    "Wishart.batch": ("Wishart", {"df": [5.0, 6.0], "scale_tril": FACTOR}),
}


def build(torch: Any, example: str, requires_grad: bool = True, **changed: Any) -> tuple[Any, list]:
    """The distribution, and the leaf tensors among its arguments."""
    name, numbers = EXAMPLES[example]
    arguments = {**numbers, **changed}
    for key, value in arguments.items():
        if isinstance(value, list):
            arguments[key] = torch.tensor(value, dtype=torch.float32, requires_grad=requires_grad)
    leaves = [v for v in arguments.values() if isinstance(v, torch.Tensor)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(torch.distributions, name)(**arguments), leaves


def outcome(torch: Any, function: Any) -> Any:
    """The result, or what was raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except (ValueError, NotImplementedError, AttributeError, TypeError, RuntimeError) as e:
        return [type(e).__name__, str(e).replace("torchlike", "torch")]


def with_gradients(value: Any, leaves: list) -> list:
    """The value and, if it has any, the gradients of its weighted sum."""
    out = [value.detach(), value.requires_grad]
    if value.requires_grad:
        weights = value.detach() * 0 + 1
        (value * weights).sum().backward()
        out += [leaf.grad for leaf in leaves]
    return out
