"""The base class of distributions."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.utils import lazy_property, readable, to_host
from torchlike.types import _size

__all__ = ["Distribution"]


class Distribution:
    """Base of all distributions.

    batch_shape: the shape of independent, differently parametrised draws; event_shape: the shape of one draw.
    validate_args: whether parameters and values are checked, ValueError if they are outside (default: yes, unless
    Python runs with -O).

    Values that a training step has not computed yet are not waited for, because that would cut the step's program in
    two: parameters that are pending beside operations which a gradient needs are checked as soon as they are known when
    the distribution is next used (after `sample`, in `log_prob`), and pending samples are not checked."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _unchecked: tuple = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switch the checks on or off for distributions made from now on that do not say."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: torch.Size = torch.Size(),  # noqa: B008  (immutable)
        event_shape: torch.Size = torch.Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. "
                "Please set `arg_constraints = {}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # computed only when it is asked for
            self._check_parameter(name, constraint, getattr(self, name))

    def _check_parameter(self, name: str, constraint: constraints.Constraint, value: Any) -> None:
        valid = constraints.holds(constraint, value)
        if valid is None:
            self._unchecked += ((name, constraint, value),)
        elif not valid:
            raise ValueError(
                f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
            )

    def _check_rest(self) -> None:
        """Check the parameters that were pending when this was made and are known by now."""
        waiting, self._unchecked = self._unchecked, ()
        for item in waiting:
            self._check_parameter(*item)

    def _check_given(self, given: Any, fine: Callable[[Any], Any]) -> None:
        """Parameters that wait for others' sake, but come of an argument whose data is known: check them now unless
        fine(array) says that they will pass."""
        if self._unchecked and readable(given):
            with np.errstate(all="ignore"):
                if fine(to_host(given)):
                    return
            for _, _, value in self._unchecked:
                to_host(value)
            self._check_rest()

    def _drawn(self, sample: Any, like: Any = None) -> Any:
        """A sample for whose sake parameters were read; on the device of `like`."""
        if self._unchecked:
            self._check_rest()
        return sample if like is None or sample.device == like.device else sample.to(like.device)

    def expand(self, batch_shape: _size, _instance: Any = None) -> "Distribution":
        """The same distribution with its batch dimensions expanded. `_instance`: for subclasses, the object to fill."""
        raise NotImplementedError

    def _expanded(self, cls: type, batch_shape: _size, _instance: Any, *names: str, event_shape: Any = None) -> Any:
        """`expand` for a class whose attributes `names`, those that are set, all have the batch shape."""
        new = self._get_checked_instance(cls, _instance)
        batch_shape = torch.Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape))
        return self._finish(new, batch_shape, torch.Size() if event_shape is None else event_shape)

    def _finish(self, new: Any, batch_shape: Any, event_shape: Any = torch.Size()) -> Any:  # noqa: B008
        Distribution.__init__(new, batch_shape, event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> torch.Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> torch.Size:
        """The shape of one sample, without batching."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Argument name -> constraint that it must satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> constraints.Constraint | None:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> torch.Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> torch.Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> torch.Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> torch.Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: _size = torch.Size()) -> torch.Tensor:  # noqa: B008
        """Draws of shape sample_shape + batch_shape + event_shape, without gradient."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: _size = torch.Size()) -> torch.Tensor:  # noqa: B008
        """Draws through which gradients reach the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> torch.Tensor:
        """n draws. Deprecated: `sample((n,))`."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(torch.Size((n,)))

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        """The logarithm of the density, or probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: torch.Tensor) -> torch.Tensor:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: torch.Tensor) -> torch.Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> torch.Tensor:
        """All values of a discrete distribution: (cardinality,) + batch_shape + event_shape, the batch dims 1 if not
        `expand`."""
        raise NotImplementedError

    def entropy(self) -> torch.Tensor:
        """The entropy, of batch shape."""
        raise NotImplementedError

    def perplexity(self) -> torch.Tensor:
        """exp(entropy), of batch shape."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: _size = torch.Size()) -> torch.Size:  # noqa: B008
        """sample_shape + batch_shape + event_shape."""
        if not isinstance(sample_shape, torch.Size):
            sample_shape = torch.Size(sample_shape)
        return torch.Size(sample_shape + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: torch.Tensor) -> None:
        """ValueError unless `value` fits batch and event shape and lies in the support."""
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if self._unchecked:
            self._check_rest()
        actual = value.size()
        if actual[len(actual) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            with torch.no_grad():  # bounds worked out for the check alone are no part of a training step
                support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable "
                "sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=2,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if constraints.holds(support, value) is False:
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({self.support!r}) of the distribution {self!r}, but found invalid "
                f"values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = [(n, self.__dict__[n]) for n in self.arg_constraints if n in self.__dict__]
        return (
            self.__class__.__name__
            + "("
            + ", ".join(f"{n}: {v if v.numel() == 1 else v.size()}" for n, v in shown)
            + ")"
        )
