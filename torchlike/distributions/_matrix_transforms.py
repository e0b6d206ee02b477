"""Transforms of vectors and matrices, and of parts of tensors."""

import math
from collections.abc import Sequence
from typing import Any

import torchlike as torch
from torchlike.distributions import constraints
from torchlike.distributions._transform_base import TOO_FEW, Transform, _SameClassEqual
from torchlike.distributions.utils import _sum_rightmost, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix
from torchlike.nn import functional as F


def _clipped_sigmoid(x: Any) -> Any:
    finfo = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=finfo.tiny, max=1.0 - finfo.eps)


class CorrCholeskyTransform(Transform):
    """A vector of D(D-1)/2 numbers -> the Cholesky factor (D, D) of a correlation matrix: tanh, then each row by
    breaking a stick."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = torch.tanh(x)
        eps = torch.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        rest = (1 - r**2).sqrt().cumprod(-1)  # the length left in each row
        r = r + torch.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(rest[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = F.pad((1 - torch.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        stick = 0.5 * left.log().sum(-1)
        return stick - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(TOO_FEW)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(TOO_FEW)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + (d * (d - 1) // 2,)


class _OnVectors(_SameClassEqual):
    """Transforms of vectors that change their length by `_grows`."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    _grows = 0
    _same = object

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(TOO_FEW)
        return shape[:-1] + (shape[-1] + self._grows,)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(TOO_FEW)
        return shape[:-1] + (shape[-1] - self._grows,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))

    __hash__ = None  # type: ignore[assignment]


class SoftmaxTransform(_OnVectors):
    """y = exp(x), normalised: not a bijection, but stable."""

    def _call(self, x: Any) -> Any:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()


class StickBreakingTransform(_OnVectors):
    """A vector -> a point of the simplex with one entry more, by breaking a stick at sigmoids."""

    bijective = True
    _grows = 1

    def _call(self, x: Any) -> Any:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        z = _clipped_sigmoid(x - offset.log())
        return F.pad(z, [0, 1], value=1) * F.pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        offset = y.shape[-1] - y.new_ones(head.shape[-1]).cumsum(-1)
        left = torch.clamp(1 - head.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return head.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        x = x - offset.log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)


class LowerCholeskyTransform(_SameClassEqual):
    """A matrix -> lower triangular with a positive diagonal (the exponential of it)."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_SameClassEqual):
    """A matrix -> a positive definite matrix, by way of its Cholesky factor."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class _Along(Transform):
    """Several transforms along a dim."""

    transforms: list
    dim: int

    def _set(self, tseq: Sequence, dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _check(self, z: Any, what: str, name: str) -> None:
        if not -z.dim() <= self.dim < z.dim():
            raise AssertionError(f"dim {self.dim} out of range for {what} with {z.dim()} dimensions")
        if z.size(self.dim) != self._total():
            raise AssertionError(f"{name}.size({self.dim}) = {z.size(self.dim)} must equal {self._total_name()}")

    def _total(self) -> int:
        raise NotImplementedError

    def _total_name(self) -> str:
        raise NotImplementedError

    def _parts(self, z: Any) -> list:
        raise NotImplementedError

    def _join(self, parts: list) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        self._check(x, "tensor", "x")
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        self._check(y, "tensor", "y")
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)])

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)


class CatTransform(_Along):
    """A transform for each part, of the given lengths, of the dim."""

    def __init__(self, tseq: Sequence, dim: int = 0, lengths: Sequence | None = None, cache_size: int = 0) -> None:
        self._set(tseq, dim, cache_size)
        super().__init__(cache_size=cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The length of the dim."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _total(self) -> int:
        return self.length

    def _total_name(self) -> str:
        return f"length {self.length}"

    def _parts(self, z: Any) -> list:
        parts = []
        start = 0
        for length in self.lengths:
            parts.append(z.narrow(self.dim, start, length))
            start += length
        return parts

    def _join(self, parts: list) -> Any:
        return torch.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        self._check(x, "x", "x")
        self._check(y, "y", "y")
        terms = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim) if t.event_dim < self.event_dim else term)
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return torch.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Along):
    """A transform for each slice along the dim."""

    def __init__(self, tseq: Sequence, dim: int = 0, cache_size: int = 0) -> None:
        self._set(tseq, dim, cache_size)
        super().__init__(cache_size=cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _total(self) -> int:
        return len(self.transforms)

    def _total_name(self) -> str:
        return f"len(transforms) {len(self.transforms)}"

    def _parts(self, z: Any) -> list:
        return [z.select(self.dim, i) for i in range(z.size(self.dim))]

    def _join(self, parts: list) -> Any:
        return torch.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        self._check(x, "tensor", "x")
        self._check(y, "tensor", "y")
        parts = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return self._join([t.log_abs_det_jacobian(before, after) for t, before, after in parts])

    @constraints.dependent_property
    def domain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
