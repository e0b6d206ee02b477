"""The chi-squared distribution."""

from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution of `df` degrees of freedom."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)
        if self._unchecked:
            self._check_given(df, lambda x: (x > 0).all())

    def expand(self, batch_shape: Any, _instance: Any = None) -> "Chi2":
        return super().expand(batch_shape, self._get_checked_instance(Chi2, _instance))  # type: ignore[return-value]

    @property
    def df(self) -> torch.Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
