"""Ready-made parametrizations: orthogonal, weight_norm, spectral_norm."""

from enum import Enum, auto
from typing import Any

from torchlike._src.tensor.namespace import linalg, torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.modules.module import Module
from torchlike.nn.utils import parametrize
from torchlike.nn.utils._weight import as_matrix, default_dim, norm_except_dim, random_unit, unit, weight_normalized

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _is_orthogonal(q: Tensor, eps: float | None = None) -> bool:
    n, k = q.size(-2), q.size(-1)
    identity = torch.eye(k, dtype=q.dtype, device=q.device)
    # A reasonable eps, but not too large.
    tolerance = 10.0 * n * torch.finfo(q.dtype).eps if eps is None else eps
    return torch.allclose(q.mH @ q, identity, atol=tolerance)


def _make_orthogonal(a: Tensor) -> Tensor:
    """The orthogonal factor of a, unique because the other one gets a positive diagonal."""
    reflectors, tau = torch.geqrf(a)
    q = linalg.householder_product(reflectors, tau)
    return q * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Maps any matrix to one with orthonormal columns (or rows)."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map == _OrthMaps.householder:
            a = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = linalg.householder_product(a, tau)
            # The diagonal of X holds signs.
            q = q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = torch.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
            skew = X - X.mH
            if self.orthogonal_map == _OrthMaps.matrix_exp:
                q = torch.matrix_exp(skew)
            else:
                identity = torch.eye(n, dtype=skew.dtype, device=skew.device)
                q = linalg.solve(torch.add(identity, skew, alpha=-0.5), torch.add(identity, skew, alpha=0.5))
            if n != k:
                q = q[..., :k]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if transposed else q

    def right_inverse(self, Q: Tensor) -> Tensor:
        with torch.no_grad():
            return self._right_inverse(Q)

    def _right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        start = Q
        n, k = Q.size(-2), Q.size(-1)
        transposed = n < k
        if transposed:
            Q = Q.mT
            n, k = k, n
        if hasattr(self, "base"):
            # The whole matrix goes into `base`; the free matrix starts where the map is the identity.
            if n == k:
                Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
            else:
                more = torch.randn(*(*Q.size()[:-2], n, n - k), dtype=Q.dtype, device=Q.device)
                Q = _make_orthogonal(torch.cat([Q, more], dim=-1))
            self.base = Q
            negative = torch.zeros_like(start)
            negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return negative
        if self.orthogonal_map != _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        a, tau = torch.geqrf(Q)
        diagonal = a.diagonal(dim1=-2, dim2=-1)
        diagonal.copy_(torch.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
        return a.mT if transposed else a


def _weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix (or a batch of them) orthogonal: its columns, or rows if there are fewer, are orthonormal.

    orthogonal_map: "matrix_exp" (default for square or complex matrices), "cayley" or "householder" (otherwise).

    ValueError: no such tensor, not a matrix, or an unknown map."""
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_normalized(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into norms (parametrizations.{name}.original0) and directions (original1).

    dim: over which dimension norms are separate; None: one norm for all. States of the older form can be loaded."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def load_older(state_dict: dict, prefix: str, *unused: Any) -> None:
        keys = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in keys):
            for k, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{k}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(load_older)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            rows, columns = matrix.size()
            # Both are drawn before they are normalized: one after the other gives the same draws.
            self.register_buffer("_u", random_unit(matrix, rows, eps))
            self.register_buffer("_v", random_unit(matrix, columns, eps))
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Tensor, n_power_iterations: int) -> None:
        with torch.no_grad():
            for _ in range(n_power_iterations):
                self._u.copy_(unit(torch.mv(matrix, self._v), self.eps))
                self._v.copy_(unit(torch.mv(matrix.mH, self._u), self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Backward needs the values of now, and the next call will change the buffers.
        u, v = self._u.clone(), self._v.clone()
        return weight / torch.vdot(u, torch.mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        # The weight is scaled to norm 1 anyway.
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a weight by its largest singular value, found by power iteration in each training forward.

    dim: the dimension of outputs, 0, or 1 for transposed convolutions. ValueError: no such tensor."""
    weight = _weight(module, name)
    dim = default_dim(module) if dim is None else dim
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module
