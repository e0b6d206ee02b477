"""The categorical distribution."""

from typing import Any

import numpy as np

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions._binary import EITHER, enumerated
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """One of K categories, 0 … K - 1. `probs` (..., K) nonnegative weights, normalised; or `logits` (..., K),
    unnormalised log probabilities."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(EITHER)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        shape = self._param.size()
        self._num_events = shape[-1]
        super().__init__(shape[:-1], validate_args=validate_args)
        if self._unchecked:
            if probs is not None:
                self._check_given(probs, lambda p: constraints.simplex.check(p / p.sum(-1, keepdims=True)).all())
            else:
                self._check_given(logits, lambda x: np.isfinite(x.max(-1)).all())

    def expand(self, batch_shape: Any, _instance: Any = None) -> "Categorical":
        new = self._get_checked_instance(Categorical, _instance)
        batch_shape = torch.Size(batch_shape)
        for name in ("probs", "logits", "_param"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape + torch.Size((self._num_events,))))
        new._num_events = self._num_events
        return self._finish(new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """Normalised log probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """Normalised probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the parameter."""
        return self._param.size()

    @property
    def mean(self) -> torch.Tensor:
        return torch.full(self._extended_shape(), torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> torch.Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> torch.Tensor:
        return self.mean

    def sample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        weights = self.probs.reshape(-1, self._num_events)
        samples = torch.multinomial(weights, sample_shape.numel(), True).T
        return self._drawn(samples.reshape(self._extended_shape(sample_shape)))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, log_pmf = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> torch.Tensor:
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)  # 0 * -inf would be NaN
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        return enumerated(self._num_events, self._param, self._batch_shape, expand, torch.long)
