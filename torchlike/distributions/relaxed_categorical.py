"""Categorical variables relaxed to the simplex (Maddison et al., 2017; Jang et al., 2017)."""

from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.categorical import Categorical
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.transformed_distribution import TransformedDistribution
from torchlike.distributions.transforms import ExpTransform
from torchlike.distributions.utils import broadcast_all, clamp_probs, uniform_like_param

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot vector."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(self._categorical.batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "ExpRelaxedCategorical":
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(torch.Size(batch_shape))
        return self._finish(new, torch.Size(batch_shape), self.event_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> torch.Tensor:
        """Normalised log probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> torch.Tensor:
        """Normalised probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        u = clamp_probs(uniform_like_param(self._extended_shape(sample_shape), self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        k = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = torch.full_like(self.temperature, float(k)).lgamma() + self.temperature.log() * (k - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A reparametrisable point of the simplex that tends to a one-hot vector as `temperature` (a tensor) tends to 0."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "RelaxedOneHotCategorical":
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> torch.Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> torch.Tensor:
        """Normalised log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> torch.Tensor:
        """Normalised probabilities."""
        return self.base_dist.probs
