"""From constraints to transforms that map real numbers into them.

`biject_to(constraint)` is a bijection with a tractable Jacobian; `transform_to(constraint)` need only be onto, and is
what suits unconstrained optimisation."""

from collections.abc import Callable
from typing import Any

from torchlike.distributions import constraints, transforms
from torchlike.distributions.utils import Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Links constraint classes to factories of transforms."""

    def __init__(self) -> None:
        self._registry: dict = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable | None = None) -> Any:
        """Use `factory(constraint)` for constraints of this class (a class or one of its instances); also a
        decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        """The transform onto a constraint; NotImplementedError if its class is not registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable:
    def register(factory: Callable) -> Callable:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater_than(constraint: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _to_less_than(constraint: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and low == 0 and isinstance(high, Number) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda constraint: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda constraint: transforms.PositiveDefiniteTransform())


def _register_composed(registry: ConstraintRegistry) -> None:
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    registry.register(
        constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)
    )
    registry.register(
        constraints.stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim)
    )


_register_composed(biject_to)
_register_composed(transform_to)
