"""Distributions given by `probs` or `logits` of a yes-or-no variable."""

from typing import Any

import torchlike as torch
from torchlike.distributions.utils import batch_of, broadcast_all, lazy_property, logits_to_probs, probs_to_logits

EITHER = "Either `probs` or `logits` must be specified, but not both."


class ProbsOrLogits:
    """Holds one of `probs` and `logits`; the other is computed when it is asked for."""

    _binary = True
    _param: Any

    def _set_param(self, probs: Any, logits: Any, total_count: Any = None) -> Any:
        """Broadcast and store what is given; returns the batch shape."""
        if (probs is None) == (logits is None):
            raise ValueError(EITHER)
        name, given = ("probs", probs) if probs is not None else ("logits", logits)
        if total_count is None:
            (param,) = broadcast_all(given)
        else:
            count, param = broadcast_all(total_count, given)
            self.total_count = count.type_as(param)
        self.__dict__[name] = param
        self._param = param
        return batch_of(param, given) if total_count is None else param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Any:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """The probability of 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter."""
        return self._param.size()


def enumerated(count: int, param: Any, batch_shape: Any, expand: bool, dtype: Any = None) -> Any:
    """0 … count - 1 along a new first dim, over the batch dims if `expand`."""
    values = torch.arange(count, dtype=dtype or param.dtype, device=param.device)
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1,) + batch_shape) if expand else values
