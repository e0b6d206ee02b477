"""Constraints: the sets in which parameters and samples must lie. `constraint.check(value)` answers for each event.

Validation looks at values in host memory, with NumPy, which costs a few microseconds (`holds`); `check` itself is
written with operators that tensors and arrays share wherever there are such."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchlike as torch
from torchlike._src.tensor.tensor import TensorBase
from torchlike.distributions.utils import readable, to_host

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
    "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square",
    "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values. is_discrete: whether it is; event_dim: how many trailing dims make one event."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """Whether each event of `value` lies inside: bool, value's shape without its event dims."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__class__.__name__[1:] + "()"


class _Dependent(Constraint):
    """A region that depends on other variables, which no check on a value alone can decide."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> "_Dependent":
        """The same with other static attributes: `constraints.dependent(is_discrete=True, event_dim=1)`."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether the constraint depends on other variables."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A decorator: a dependent constraint on the class, a property on its instances."""

    def __init__(
        self, fn: Callable | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable) -> "_DependentProperty":  # type: ignore[override]
        """Decorate: `@constraints.dependent_property(is_discrete=True, event_dim=1)`."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _required(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _all_over(result: Any, keep: int) -> Any:
    """all() over everything after the first `keep` dims."""
    return result.reshape((*result.shape[:keep], -1)).all(-1)


class _IndependentConstraint(Constraint):
    """An event is valid if all of its independent entries, in the last dims, are."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _required(
            isinstance(base_constraint, Constraint),
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
        )
        _required(
            isinstance(reinterpreted_batch_ndims, int),
            f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}",
        )
        _required(
            reinterpreted_batch_ndims >= 0, f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        if result.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return _all_over(result, result.ndim - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The components' constraint, on values that lack the dimension of the components."""

    def __init__(self, base_constraint: Constraint) -> None:
        _required(
            isinstance(base_constraint, Constraint),
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
        )
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        """Whether each event is a possible outcome of some component."""
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_over(result, value.dim() - self.event_dim)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """A constraint that its bounds describe, and its `repr` names."""

    bounds: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}(" + ", ".join(f"{b}={getattr(self, b)}" for b in self.bounds) + ")"


class _Lower(_Bounded):
    bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _Upper(_Bounded):
    bounds: tuple[str, ...] = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Upper):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Lower):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """Anything but NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _GreaterThan(_Lower):
    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_Lower):
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_Upper):
    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_Between):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Nonnegative, and 1 in sum over the last dim (within 1e-6)."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(_Upper):
    """Counts: nonnegative, at most upper_bound in sum."""

    is_discrete = True
    event_dim = 1
    bounds = ()

    def check(self, x: Any) -> Any:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return _all_over(value.tril() == value, value.dim() - 2)


class _LowerCholesky(Constraint):
    """Lower triangular with a positive diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        positive_diagonal = (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)
        return _all_over(value.tril() == value, value.dim() - 2) & positive_diagonal


class _CorrCholesky(Constraint):
    """Lower triangular, a positive diagonal, rows of length 1."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        tolerance = torch.finfo(value.dtype).eps * value.size(-1) * 10
        row_norm = torch.linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & ((row_norm - 1.0).abs() <= tolerance).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        square = value.shape[-2] == value.shape[-1]
        return torch.full(value.shape[:-2], square, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return torch.linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        return torch.linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


class _Sequence(Constraint):
    """Several constraints along a dim."""

    cseq: list
    dim: int

    def _set(self, cseq: Sequence, dim: int) -> None:
        _required(all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value: Any) -> None:
        _required(
            -value.dim() <= self.dim < value.dim(),
            f"dim {self.dim} out of range for value with {value.dim()} dimensions",
        )


class _Cat(_Sequence):
    """A constraint for each part, of the given lengths, of the dim: the counterpart of torch.cat."""

    def __init__(self, cseq: Sequence, dim: int = 0, lengths: Sequence | None = None) -> None:
        self._set(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        _required(
            len(self.lengths) == len(self.cseq), f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
        )
        super().__init__()

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        results = []
        start = 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            results.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return torch.cat(results, self.dim)


class _Stack(_Sequence):
    """A constraint for each slice along the dim: the counterpart of torch.stack."""

    def __init__(self, cseq: Sequence, dim: int = 0) -> None:
        self._set(cseq, dim)
        super().__init__()

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return torch.stack([c.check(v) for v, c in zip(slices, self.cseq, strict=False)], self.dim)


# -- looking at values on the host -----------------------------------------------------------------------------------


def _is_lower(a: np.ndarray) -> bool:
    return bool((np.tril(a) == a).all())


def _is_symmetric(a: np.ndarray) -> bool:
    return a.shape[-2] == a.shape[-1] and bool(np.isclose(a, a.swapaxes(-2, -1), atol=1e-6).all())


def _has_factor(a: np.ndarray) -> bool:
    if not _is_symmetric(a):
        return False
    try:
        return bool(np.isfinite(np.linalg.cholesky(a)).all())
    except np.linalg.LinAlgError:
        return False


def _is_cholesky(a: np.ndarray) -> bool:
    return _is_lower(a) and bool((np.diagonal(a, axis1=-2, axis2=-1) > 0).all())


def _is_correlation(a: np.ndarray) -> bool:
    tolerance = np.finfo(a.dtype).eps * a.shape[-1] * 10
    return _is_cholesky(a) and bool((np.abs(np.linalg.norm(a, axis=-1) - 1) <= tolerance).all())


_MATRIX_TESTS: dict[type, Callable] = {
    _LowerTriangular: _is_lower,
    _LowerCholesky: _is_cholesky,
    _CorrCholesky: _is_correlation,
    _Square: lambda a: a.shape[-2] == a.shape[-1],
    _Symmetric: _is_symmetric,
    _PositiveSemidefinite: lambda a: _is_symmetric(a) and bool((np.linalg.eigvalsh(a) >= 0).all()),
    _PositiveDefinite: _has_factor,
}
_SHARED_OPERATORS = (_Boolean, _OneHot, _Real, _Simplex)
_HALF = ("float16", "bfloat16")


def _host_check(constraint: Constraint) -> Callable | None:
    """check() as a function of arrays, if it can be one and looking at its bounds is harmless."""
    kind = type(constraint)
    if kind in _SHARED_OPERATORS:
        return constraint.check
    if isinstance(constraint, _Bounded) and kind.__module__ == Constraint.__module__:
        names = _Upper.bounds if kind is _Multinomial else constraint.bounds
        bounds = [getattr(constraint, n) for n in names]
        if not any(isinstance(b, TensorBase) for b in bounds):
            return constraint.check
        return kind(*map(to_host, bounds)).check if all(map(readable, bounds)) else None
    if isinstance(constraint, _IndependentConstraint) and kind is _IndependentConstraint:
        base = _host_check(constraint.base_constraint)
        if base is None:
            return None
        return _IndependentConstraint(_Checked(base), constraint.reinterpreted_batch_ndims).check
    return None


class _Checked(Constraint):
    def __init__(self, check: Callable) -> None:
        self.check = check  # type: ignore[method-assign]


def _needs_tensors(constraint: Constraint) -> bool:
    """Whether only `check` on tensors can decide (constraints of the user's, cat, stack, mixtures)."""
    if isinstance(constraint, _IndependentConstraint) and type(constraint) is _IndependentConstraint:
        return _needs_tensors(constraint.base_constraint)
    return not (
        type(constraint) in _SHARED_OPERATORS
        or (isinstance(constraint, _Bounded) and type(constraint).__module__ == Constraint.__module__)
    )


def holds(constraint: Constraint, value: Any) -> bool | None:
    """Whether all of `value` satisfies the constraint; None if it cannot be looked at now (see `readable`)."""
    if not readable(value):
        return None
    if not isinstance(value, TensorBase):
        return bool(constraint.check(value).all())
    test = _MATRIX_TESTS.get(type(constraint))
    if test is not None and value.dtype.is_floating_point and str(value.dtype).split(".")[1] not in _HALF:
        return bool(test(to_host(value)))
    check = constraint.__dict__.get("_on_host")
    if check is None:
        if _needs_tensors(constraint):
            return bool(constraint.check(value).all())
        check = _host_check(constraint)
        if check is None:
            return None
        if _has_no_bounds(constraint):
            constraint._on_host = check  # type: ignore[attr-defined]
    with np.errstate(all="ignore"):
        return bool(np.logical_and.reduce(check(to_host(value)), None))


def _has_no_bounds(constraint: Constraint) -> bool:
    """Whether the constraint is one of those without bounds, which could be tensors, or independent ones of it."""
    while type(constraint) is _IndependentConstraint:
        constraint = constraint.base_constraint
    return type(constraint) in _SHARED_OPERATORS


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
