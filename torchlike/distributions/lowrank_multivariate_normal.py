"""The multivariate normal distribution whose covariance is of low rank plus a diagonal."""

import math
from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions.distribution import Distribution
from torchlike.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv
from torchlike.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Any, D: Any) -> Any:
    """The Cholesky factor of I + Wᵀ D⁻¹ W: (..., n, m), (..., n) -> (..., m, m)."""
    capacitance = torch.matmul(W.mT / D.unsqueeze(-2), W)
    identity = torch.eye(W.size(-1), dtype=W.dtype, device=W.device)
    return torch.linalg.cholesky(capacitance + identity)


def _batch_lowrank_logdet(W: Any, D: Any, capacitance_tril: Any) -> Any:
    """log det(W Wᵀ + D), by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W: Any, D: Any, x: Any, capacitance_tril: Any) -> Any:
    """xᵀ (W Wᵀ + D)⁻¹ x, by the Woodbury identity."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean `loc` (..., n) and covariance W Wᵀ + diag(D): `cov_factor` W (..., n, m), `cov_diag` D
    (..., n)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            locs, self.cov_factor, diags = torch.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        self.loc = locs[..., 0]
        self.cov_diag = diags[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "LowRankMultivariateNormal":
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = torch.Size(batch_shape)
        shape = batch_shape + self.event_shape
        new.loc = self.loc.expand(shape)
        new.cov_diag = self.cov_diag.expand(shape)
        new.cov_factor = self.cov_factor.expand(shape + self.cov_factor.shape[-1:])
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        return self._finish(new, batch_shape, self.event_shape)

    def _parts(self) -> tuple:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def _matrix(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self) -> torch.Tensor:
        return self.loc

    @property
    def mode(self) -> torch.Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> torch.Tensor:  # type: ignore[override]
        """The diagonal of the covariance."""
        factor, diag = self._parts()
        return (factor.pow(2).sum(-1) + diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance, as D½ times that of I + D⁻½ W Wᵀ D⁻½, which is well conditioned."""
        factor, diag = self._parts()
        root = diag.sqrt().unsqueeze(-1)
        scaled = factor / root
        identity = torch.eye(self._event_shape[0], dtype=factor.dtype, device=factor.device)
        return self._matrix(root * torch.linalg.cholesky(torch.matmul(scaled, scaled.mT) + identity))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor, diag = self._parts()
        return self._matrix(torch.matmul(factor, factor.mT) + torch.diag_embed(diag))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        factor, diag = self._parts()
        half = torch.linalg.solve_triangular(self._capacitance_tril, factor.mT / diag.unsqueeze(-2), upper=False)
        return self._matrix(torch.diag_embed(diag.reciprocal()) - half.mT @ half)

    def rsample(self, sample_shape: Any = torch.Size()) -> torch.Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        factor, diag = self._parts()
        of_factor = shape[:-1] + self.cov_factor.shape[-1:]
        eps_factor = _standard_normal(of_factor, dtype=self.loc.dtype, device=self.loc.device)
        eps_diag = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(factor, eps_factor) + diag.sqrt() * eps_diag

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor, diag = self._parts()
        distance = _batch_lowrank_mahalanobis(factor, diag, value - self.loc, self._capacitance_tril)
        log_det = _batch_lowrank_logdet(factor, diag, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> torch.Tensor:
        factor, diag = self._parts()
        log_det = _batch_lowrank_logdet(factor, diag, self._capacitance_tril)
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
