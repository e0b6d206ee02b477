"""The generalised Pareto distribution."""

import math
from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.utils import batch_of, broadcast_all, uniform_like_param

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Tails above `loc`, of `scale` and `concentration`: exponential for concentration 0, bounded for negative ones."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(batch_of(self.loc, loc, scale, concentration), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "GeneralizedPareto":
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    def rsample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        return self.icdf(uniform_like_param(self._extended_shape(sample_shape), self.loc))

    def _split(self) -> tuple:
        """Where the concentration is (close to) 0, and the concentration with 1 put there."""
        near_zero = torch.isclose(self.concentration, torch.zeros_like(self.concentration))
        return near_zero, torch.where(near_zero, torch.ones_like(self.concentration), self.concentration)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        near_zero, xi = self._split()
        y = 1 / xi + torch.ones_like(z)
        general = torch.where(y == 0, y, y * torch.log1p(xi * z))
        return -self.scale.log() - torch.where(near_zero, z, general)

    def log_survival_function(self, value: torch.Tensor) -> torch.Tensor:
        """log P(X > value)."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        near_zero, xi = self._split()
        return torch.where(near_zero, -z, -torch.log1p(xi * z) / xi)

    def log_cdf(self, value: torch.Tensor) -> torch.Tensor:
        """log P(X <= value)."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        near_zero, xi = self._split()
        log_rest = torch.log1p(-value)
        general = self.loc + self.scale / xi * torch.expm1(-xi * log_rest)
        return torch.where(near_zero, self.loc - self.scale * log_rest, general)

    @property
    def mean(self) -> torch.Tensor:
        valid = self.concentration < 1
        return torch.where(valid, self.loc + self.scale / (1 - torch.where(valid, self.concentration, 0.5)), math.nan)

    @property
    def variance(self) -> torch.Tensor:
        valid = self.concentration < 0.5
        xi = torch.where(valid, self.concentration, 0.25)
        return torch.where(valid, self.scale**2 / ((1 - xi) ** 2 * (1 - 2 * xi)), math.nan)

    @property
    def mode(self) -> torch.Tensor:
        return self.loc

    def entropy(self) -> torch.Tensor:
        return torch.broadcast_to(torch.log(self.scale) + self.concentration + 1, self._batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        upper = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, upper)
