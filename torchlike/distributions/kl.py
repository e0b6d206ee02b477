"""Kullback-Leibler divergences: a table by pairs of classes, filled here and by `register_kl`."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import torchlike as torch
from torchlike.distributions.bernoulli import Bernoulli
from torchlike.distributions.beta import Beta
from torchlike.distributions.binomial import Binomial
from torchlike.distributions.categorical import Categorical
from torchlike.distributions.cauchy import Cauchy
from torchlike.distributions.continuous_bernoulli import ContinuousBernoulli
from torchlike.distributions.dirichlet import Dirichlet
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.exp_family import ExponentialFamily
from torchlike.distributions.exponential import Exponential
from torchlike.distributions.gamma import Gamma
from torchlike.distributions.geometric import Geometric
from torchlike.distributions.gumbel import Gumbel
from torchlike.distributions.half_normal import HalfNormal
from torchlike.distributions.independent import Independent
from torchlike.distributions.laplace import Laplace
from torchlike.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from torchlike.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from torchlike.distributions.normal import Normal
from torchlike.distributions.one_hot_categorical import OneHotCategorical
from torchlike.distributions.pareto import Pareto
from torchlike.distributions.poisson import Poisson
from torchlike.distributions.transformed_distribution import TransformedDistribution
from torchlike.distributions.uniform import Uniform
from torchlike.distributions.utils import _sum_rightmost
from torchlike.distributions.utils import euler_constant as _euler_gamma
from torchlike.nn import functional as F

__all__ = ["kl_divergence", "register_kl"]
inf = math.inf
_KL_REGISTRY: dict[tuple[type, type], Callable] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable:
    """Decorator: `fun(p, q)` is the divergence for these classes and their subclasses (unless a closer pair is
    registered)."""
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):  # PyTorch accepts any class
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(fun: Callable) -> Callable:
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()  # what was looked up before may be another now
        return fun

    return decorator


def _closest(matches: list, first: int) -> tuple:
    """Of pairs of base classes, the closest in argument `first`, then in the other."""

    def closer(a: tuple, b: tuple) -> bool:
        for k in (first, 1 - first):
            if not issubclass(a[k], b[k]):
                return False
            if a[k] is not b[k]:
                break
        return True

    best = matches[0]
    for pair in matches[1:]:
        if pair != best and closer(pair, best):
            best = pair
    return best


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left, right = _closest(matches, 0), _closest(matches, 1)
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> torch.Tensor:
    """KL(p || q) = E_p[log p - log q], of batch shape. NotImplementedError if no formula is registered.

    KL divergence is currently implemented for the following distribution pairs:
    """
    key = type(p), type(q)
    fun = _KL_MEMOIZE.get(key)
    if fun is None:
        fun = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return fun(p, q)


def _x_log_x(x: Any) -> Any:
    return torch.special.xlogy(x, x)


def _batch_trace_XXT(x: Any) -> Any:
    """The trace of X Xᵀ."""
    return x.pow(2).sum((-2, -1))


def _infinite(*pairs: tuple) -> None:
    """Register pairs whose divergence is infinite: p has mass where q has none."""

    def infinite(p: Any, q: Any) -> Any:
        return torch.full(p._batch_shape, inf, dtype=p.mean.dtype, device=p.mean.device)

    for pair in pairs:
        register_kl(*pair)(infinite)


_infinite((Beta, Pareto), (ContinuousBernoulli, Pareto), (Poisson, Bernoulli), (Poisson, Binomial))
_infinite(*[(p, q) for p in (Exponential, Gamma, Pareto) for q in (Beta, ContinuousBernoulli, Uniform)])
_infinite((Exponential, Pareto), (Gamma, Pareto))
_infinite(
    *[
        (p, q)
        for p in (Gumbel, Laplace, Normal)
        for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
    ]
)

# -- within a family -------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Any, q: Any) -> Any:
    ones = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    ones = ones.masked_fill(q.probs == 0, inf).masked_fill(p.probs == 0, 0)
    zeros = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    return ones + zeros.masked_fill(q.probs == 1, inf).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Any, q: Any) -> Any:
    p_sum, q_sum = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + p_sum.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + q_sum.lgamma()
    t3 = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (q_sum - p_sum) * torch.digamma(p_sum)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Any, q: Any) -> Any:
    t = p.probs * (p.logits - q.logits)
    return t.masked_fill((q.probs == 0).expand_as(t), inf).masked_fill((p.probs == 0).expand_as(t), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Any:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    of_p = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + of_p - q._cont_bern_log_norm() - torch.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Any, q: Any) -> Any:
    a, b = p.concentration, q.concentration
    t1 = a.sum(-1).lgamma() - b.sum(-1).lgamma()
    t4 = a.digamma() - a.sum(-1).digamma().unsqueeze(-1)
    return t1 - (a.lgamma() - b.lgamma()).sum(-1) + ((a - b) * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             "
            "be computed using Bregman divergences"
        )
    of_p = [n.detach().requires_grad_() for n in p._natural_params]
    normalizer = p._log_normalizer(*of_p)
    gradients = torch.autograd.grad(normalizer.sum(), of_p, create_graph=True)
    of_q = q._natural_params
    result = q._log_normalizer(*of_q) - normalizer
    for theta, eta, g in zip(of_p, of_q, gradients, strict=True):
        result = result - _sum_rightmost((eta - theta) * g, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Any, q: Any) -> Any:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio, q_loc, p_loc = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    t1 = -ratio.log() - q_loc + p_loc
    return t1 + ratio * _euler_gamma + torch.exp(q_loc + (1 + ratio).lgamma() - p_loc) - (1 + _euler_gamma)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Any, q: Any) -> Any:
    var_ratio = (p.scale / q.scale).pow(2)
    t1 = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (var_ratio + t1 - 1 - var_ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: Any, q: Any) -> Any:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * torch.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Any, q: Any) -> Any:
    t1 = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return t1 - (4 * p.scale * q.scale).log()


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Any, q: Any) -> Any:
    alpha_ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - alpha_ratio.log() + alpha_ratio - 1
    return result.masked_fill(p.scale < q.scale, inf)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Any, q: Any) -> Any:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), inf)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Any:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# -- multivariate normal distributions -------------------------------------------------------------------------------


def _same_events(p: Any, q: Any, names: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {names} with                          different event shapes cannot be computed"
        )


def _log_det(d: Any) -> Any:
    if isinstance(d, LowRankMultivariateNormal):
        factor, diag = d._parts()
        return _batch_lowrank_logdet(factor, diag, d._capacitance_tril)
    return 2 * d._half_log_det()


def _whitened(q: Any, matrix: Any) -> Any:
    """The trace of (the inverse factor of q's covariance times `matrix`) times its transpose, for a plain q."""
    return _batch_trace_XXT(torch.linalg.solve_triangular(q._unbroadcasted_scale_tril, matrix, upper=False))


def _lowrank_distance(p: Any, q: Any) -> tuple:
    """Mahalanobis distance of the means, and A = C⁻¹ Wᵀ D⁻¹ of a low-rank q."""
    factor, diag = q._parts()
    distance = _batch_lowrank_mahalanobis(factor, diag, q.loc - p.loc, q._capacitance_tril)
    return distance, torch.linalg.solve_triangular(q._capacitance_tril, factor.mT / diag.unsqueeze(-2), upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _same_events(p, q, "Multivariate Normals")
    trace = _whitened(q, p._unbroadcasted_scale_tril)
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _same_events(p, q, "Low Rank Multivariate Normals")
    distance, a = _lowrank_distance(p, q)
    (p_factor, p_diag), q_diag = p._parts(), q._unbroadcasted_cov_diag
    trace = (
        (p_diag / q_diag).sum(-1)
        + _batch_trace_XXT(p_factor * q_diag.rsqrt().unsqueeze(-1))
        - _batch_trace_XXT(a * p_diag.sqrt().unsqueeze(-2))
        - _batch_trace_XXT(a.matmul(p_factor))
    )
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _same_events(p, q, "(Low Rank) Multivariate Normals")
    distance, a = _lowrank_distance(p, q)
    factor = p._unbroadcasted_scale_tril
    scaled = factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = _batch_trace_XXT(scaled) - _batch_trace_XXT(a.matmul(factor))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _same_events(p, q, "(Low Rank) Multivariate Normals")
    factor, diag = p._parts()
    trace = _whitened(q, factor) + _whitened(q, torch.diag_embed(diag.sqrt()))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


# -- between families ------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(Uniform, ContinuousBernoulli)
def _kl_to_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    if isinstance(p, Uniform):
        result = result.masked_fill((p.high >= 1) | (p.low <= 0), inf)
    return result


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _kl_to_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Any:
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    total = p.concentration1 + p.concentration0
    t3 = (q.concentration - 1) * (p.concentration1.digamma() - total.digamma())
    return -p.entropy() + t2 - t3 + q.rate * p.concentration1 / total


@register_kl(Beta, Normal)
def _kl_beta_normal(p: Any, q: Any) -> Any:
    mean, var = p.mean, q.scale.pow(2)
    second = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + 0.5 * (var * 2 * math.pi).log() + (second - q.loc * mean + q.loc.pow(2) * 0.5) / var


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0) | (q.high < 1), inf)


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    t2 = 0.5 * (math.log(2.0 * math.pi) + torch.square(q.loc / q.scale)) + torch.log(q.scale)
    t3 = (p.variance + torch.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * torch.square(q.scale))
    return -p.entropy() + t2 + t3


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low >= 0) | (q.high <= 1), inf)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    t1 = -q.concentration * torch.log(ratio) + ratio + q.concentration.lgamma()
    return t1 + q.concentration * _euler_gamma - (1 + _euler_gamma)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Any:
    product, loc = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - loc + torch.exp(loc) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Any, q: Any) -> Any:
    var, square = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * torch.log(square * var * 2 * math.pi)
    return t1 - 1 + (square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / var


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Any:
    a, product, loc = p.concentration, p.rate * q.scale, q.loc / q.scale
    t1 = (a - 1) * a.digamma() - a.lgamma() - a
    return t1 + product.log() + a / product + torch.exp(loc) * (1 + product.reciprocal()).pow(-a) - loc


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Any, q: Any) -> Any:
    a, var, square = p.concentration, q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * torch.log(square * var * 2 * math.pi) - a - a.lgamma()
    t2 = 0.5 * (a.pow(2) + a) / square
    return t1 + (a - 1) * a.digamma() + (t2 - q.loc * a / p.rate + 0.5 * q.loc.pow(2)) / var


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * _euler_gamma - q.loc) / q.scale).pow(2) * 0.5
    return -t1 + t2 + t3 - (_euler_gamma + 1)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Any, q: Any) -> Any:
    var = q.scale.pow(2)
    ratio = p.scale.pow(2) / var
    distance = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * torch.log(2 * ratio / math.pi) + ratio + distance / var - 1


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Any:
    p_loc, q_loc, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    t3 = torch.exp(-p_loc + 0.5 * ratio + q_loc)
    return -ratio.log() * 0.5 + p_loc - q_loc + t3 - (0.5 * (1 + math.log(2 * math.pi)))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Any:
    distance = p.loc - q.loc
    scaled = distance / p.scale
    t2 = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * scaled.pow(2))
    t3 = distance * torch.erf(math.sqrt(0.5) * scaled)
    return -torch.log(p.scale / q.scale) + (t2 + t3) / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return result.masked_fill(p.alpha <= 1, inf)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Any:
    common = p.scale.log() + p.alpha.reciprocal()
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t4 = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - common + t2 + (1 - q.concentration) * common + t4 - 1
    return result.masked_fill(p.alpha <= 1, inf)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Any:
    common = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    t3 = p.alpha * common.pow(2) / (p.alpha - 2)
    t4 = (p.alpha * common - q.loc).pow(2)
    result = t1 - p.alpha.reciprocal() + (t3 + t4) / (2 * q.scale.pow(2)) - 1
    return result.masked_fill(p.alpha <= 2, inf)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    t4 = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    return (t3 + t4 - torch.log(width) - t2).masked_fill((p.high > 1) | (p.low < 0), inf)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < 0, inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Any:
    width = p.high - p.low
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return (-width.log() + t2 + t3 + q.rate * (p.high + p.low) / 2).masked_fill(p.low < 0, inf)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Any:
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (torch.exp(-high) - torch.exp(-low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    t3 = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return (math.sqrt(math.pi * 2) * q.scale / width).log() + 0.5 * (width.pow(2) / 12 + t3) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Any:
    width = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * width).log()
    t2 = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return (t2 * (q.alpha + 1) - t1).masked_fill(p.low < q.scale, inf)


def _add_kl_info() -> None:
    """List the pairs in the docstring of kl_divergence."""
    pairs = sorted((p.__name__, q.__name__) for p, q in _KL_REGISTRY)
    role = ":class:`~torch.distributions.{}`"
    rows = "".join(f"\n\t* {role.format(p)} and {role.format(q)}" for p, q in pairs)
    kl_divergence.__doc__ = (kl_divergence.__doc__ or "").rstrip() + rows
