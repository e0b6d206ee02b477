"""The multivariate normal distribution."""

import math
from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Any, bvec: Any) -> Any:
    """(..., n, m) @ (..., m), batch dims broadcast."""
    return torch.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Any, bx: Any) -> Any:
    """The squared length of L⁻¹ x: (b..., n, n), (..., b'..., n) -> (..., b'...), each b' a multiple of its b (1 or
    equal in practice). Vectors that share a factor are solved for together."""
    n = bx.size(-1)
    batch = bx.shape[:-1]
    inner = bL.dim() - 2
    outer = len(batch) - inner
    # split each inner dim of x into (repeats, the factor's dim), and bring the repeats to the front
    split = bx.shape[:outer]
    for of_factor, of_x in zip(bL.shape[:-2], bx.shape[outer:-1], strict=False):
        split += (of_x // of_factor, of_factor)
    repeats = list(range(outer, outer + 2 * inner, 2))
    own = list(range(outer + 1, outer + 2 * inner, 2))
    bx = bx.reshape(split + (n,)).permute([*range(outer), *repeats, *own, outer + 2 * inner])
    factors = bL.reshape(-1, n, n)
    vectors = bx.reshape(-1, factors.size(0), n).permute(1, 2, 0)
    squares = torch.linalg.solve_triangular(factors, vectors, upper=False).pow(2).sum(-2).t()
    back = list(range(outer))
    for k in range(inner):
        back += [outer + k, outer + inner + k]
    return squares.reshape(bx.shape[:-1]).permute(back).reshape(batch)


def _precision_to_scale_tril(P: Any) -> Any:
    """The Cholesky factor of the inverse of P, from the factor of P with its axes reversed: no matrix is inverted."""
    reversed_factor = torch.linalg.cholesky(torch.flip(P, (-2, -1)))
    inverse_factor = torch.transpose(torch.flip(reversed_factor, (-2, -1)), -2, -1)
    identity = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return torch.linalg.solve_triangular(inverse_factor, identity, upper=False)


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc` (..., n) and one of `covariance_matrix`, `precision_matrix` (its inverse) and
    `scale_tril` (its Cholesky factor), each (..., n, n)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = [
            (name, matrix)
            for name, matrix in (
                ("scale_tril", scale_tril),
                ("covariance_matrix", covariance_matrix),
                ("precision_matrix", precision_matrix),
            )
            if matrix is not None
        ]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            shown = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{shown} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "MultivariateNormal":
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = torch.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape + self.event_shape + self.event_shape)
        return self._finish(new, batch_shape, self.event_shape)

    def _matrix(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        return self._matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        return self._matrix(torch.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        return self._matrix(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> torch.Tensor:
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        return self.loc

    @property
    def variance(self) -> torch.Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self) -> torch.Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
