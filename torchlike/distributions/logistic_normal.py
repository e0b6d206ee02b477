"""The logistic-normal distribution."""

from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.normal import Normal
from torchlike.distributions.transformed_distribution import TransformedDistribution
from torchlike.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: independent normal variables of `loc` and `scale` (..., K), by stick breaking, (..., K
    + 1)."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "LogisticNormal":
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> torch.Tensor:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> torch.Tensor:
        """The standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale
