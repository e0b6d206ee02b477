"""Bernoulli variables relaxed to (0, 1) (Maddison et al., 2017; Jang et al., 2017)."""

from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions._binary import ProbsOrLogits
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.transformed_distribution import TransformedDistribution
from torchlike.distributions.transforms import SigmoidTransform
from torchlike.distributions.utils import broadcast_all, clamp_probs, uniform_like_param

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log odds of a relaxed Bernoulli variable."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(self._set_param(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "LogitRelaxedBernoulli":
        new = self._expanded(LogitRelaxedBernoulli, batch_shape, _instance, "probs", "logits", "_param")
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform_like_param(shape, probs))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A reparametrisable variable in (0, 1) that tends to a Bernoulli variable as `temperature` (a tensor) tends to
    0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(
            LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args
        )

    def expand(self, batch_shape: Any, _instance: Any = None) -> "RelaxedBernoulli":
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    @property
    def temperature(self) -> torch.Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> torch.Tensor:
        """The log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> torch.Tensor:
        """The probabilities."""
        return self.base_dist.probs
