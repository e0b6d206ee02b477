"""The negative binomial distribution."""

from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions._binary import ProbsOrLogits
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.gamma import Gamma
from torchlike.distributions.utils import lazy_property
from torchlike.nn import functional as F

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes (of probability `probs`) before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._set_param(probs, logits, total_count), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "NegativeBinomial":
        return self._expanded(NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits", "_param")

    @property
    def mean(self) -> torch.Tensor:
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> torch.Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> torch.Tensor:
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        with torch.no_grad():
            return self._drawn(torch.poisson(self._gamma.sample(sample_shape=sample_shape)), self._param)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        unnormalized = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalization = -torch.lgamma(n + value) + torch.lgamma(1.0 + value) + torch.lgamma(n)
        return unnormalized - normalization.masked_fill(n + value == 0.0, 0.0)
