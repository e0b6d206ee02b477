"""Exponential families: the entropy as a Bregman divergence of the log normaliser, by automatic differentiation."""

from typing import Any

import torchlike as torch
from torchlike.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities of the form exp(<t(x), θ> - F(θ) + k(x)): natural parameters θ, log normaliser F, carrier measure k."""

    @property
    def _natural_params(self) -> tuple:
        """θ, as a tuple of tensors."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        """F(θ)."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The expected carrier measure."""
        raise NotImplementedError

    def entropy(self) -> Any:
        """F(θ) - <θ, ∇F(θ)> - E[k(x)]."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = torch.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients, strict=True):
            result = result - (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
