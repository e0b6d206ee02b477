"""torch.linalg's matrix functions and norms, tensor equations, low-rank approximations."""

import math
from typing import Any

from torchlike._src.core.errors import canonical_dim
from torchlike._src.tensor.composite import expect, internal, names, public
from torchlike._src.tensor.composite_linalg import LINALG, inv, qr, solve, svdvals
from torchlike._src.tensor.composite_linalg import _finish as finish
from torchlike._src.tensor.namespace import linalg, torch
from torchlike._src.tensor.tensor import Tensor

# -- matrix functions and norms -------------------------------------------------------------------------------


@public(LINALG)
def matrix_exp(A):
    """The matrix exponential."""
    return internal.linalg_matrix_exp(A)


public("torch")(matrix_exp)
Tensor.matrix_exp = matrix_exp


@public(LINALG, "torch")
def matrix_power(A, n, *, out=None):
    """The n-th power of square matrices by repeated squaring; the inverse's for negative n."""
    from_name = "linalg.matrix_power"
    if A.dim() < 2:
        raise RuntimeError(f"{from_name}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{from_name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    return finish("linalg_matrix_power", _power(A, int(n)), out)


def _power(A: Any, n: int) -> Any:
    if n == 0:
        never = torch.zeros((), dtype=torch.bool)
        return torch.where(never, A, torch.eye(A.shape[-1], dtype=A.dtype))
    if n < 0:
        A, n = inv(A), -n
        if n == 1:
            return A
    if n == 1:
        return A.clone()
    if n == 2:
        return torch.matmul(A, A)
    if n == 3:
        return torch.matmul(torch.matmul(A, A), A)
    square = result = None
    while n:
        square = A if square is None else torch.matmul(square, square)
        if n % 2:
            result = square if result is None else torch.matmul(result, square)
        n //= 2
    return result


Tensor.matrix_power = lambda self, n: matrix_power(self, n)


@public(LINALG)
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The number of singular values above max(atol, rtol * largest)."""
    atol = tol if tol is not None else atol
    values = [None if v is None else float(v) for v in (rtol, atol)]
    if tol is not None:
        values[0] = 0.0
    return finish("linalg_matrix_rank", internal.matrix_rank(A, values[0], values[1], bool(hermitian)), out)


def _matrix_dims(A: Any, dim: Any) -> tuple[int, int]:
    name = "linalg.matrix_norm"
    if A.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dims))}")
    a, b = (canonical_dim(d, A.dim()) for d in dims)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    return a, b


@public(LINALG)
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """fro, nuc, inf, -inf, 1, -1, 2 or -2 norm of matrices."""
    a, b = _matrix_dims(A, dim)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}"
        )
    if dtype is not None:
        A = A.to(dtype)
    return finish("linalg_matrix_norm", _matrix_norm(A, ord, a, b, keepdim), out)


def _matrix_norm(A: Any, ord: Any, a: int, b: int, keepdim: bool) -> Any:
    if ord == "fro":
        return linalg.vector_norm(A, 2, (a, b), keepdim)
    if ord != "nuc" and ord > 0 and 0 in (A.shape[a], A.shape[b]):
        return linalg.vector_norm(A, 2, (a, b), keepdim)  # zeros
    if ord == "nuc" or abs(ord) == 2:
        s = svdvals(A.movedim((a, b), (-2, -1)))
        found = s.sum(-1) if ord == "nuc" else (s.amax(-1) if ord > 0 else s.amin(-1))
        if keepdim:
            found = found.unsqueeze(-1).unsqueeze(-1).movedim((-2, -1), (a, b))
        return found
    if abs(ord) == math.inf:
        a, b = b, a
    sums = linalg.vector_norm(A, 1, a, keepdim)
    at = b - 1 if b > a and not keepdim else b
    return sums.amax(at, keepdim) if ord > 0 else sums.amin(at, keepdim)


@public(LINALG)
def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """A vector norm, or a matrix norm where `dim` has two dims or A has two and `ord` is given."""
    if dim is not None:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if isinstance(ord, str) or (ord is not None and len(dims) == 2):
            return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
        found = linalg.vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype)
        return finish("linalg_norm", found, out)
    if ord is None:
        return finish("linalg_norm", linalg.vector_norm(A, 2, None, keepdim, dtype=dtype), out)
    if A.dim() not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D."
        )
    if isinstance(ord, str) or A.dim() == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype, out=out)
    return finish("linalg_norm", linalg.vector_norm(A, ord, 0, keepdim, dtype=dtype), out)


@public(LINALG)
def cond(A, p=None, *, out=None):
    """The condition number with respect to a matrix norm."""
    if A.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        s = svdvals(A)
        largest, smallest = s[..., :1], s[..., -1:]
        found = (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
        return finish("linalg_cond", found, out)
    label = f"linalg.cond(ord={p if isinstance(p, str) else f'{p:g}'})"
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{label}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    product = matrix_norm(A, p) * matrix_norm(internal.linalg_inv(A)[0], p)
    return finish("linalg_cond", torch.nan_to_num(product, nan=math.inf, posinf=math.inf, neginf=-math.inf), out)


@public(LINALG)
def vecdot(x, y, *, dim=-1, out=None):
    """The sum of conj(x) * y along dim."""
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected vectors of same dtype, but found {x.dtype} and {y.dtype}")
    return finish("linalg_vecdot", ((x.conj() if x.dtype.is_complex else x) * y).sum(dim), out)


@public(LINALG)
def tensorinv(A, ind=2, *, out=None):
    """The inverse of `A` under tensordot over its first `ind` dims."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = tuple(A.shape)
    front, back = math.prod(shape[:ind]), math.prod(shape[ind:])
    if front != back:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{back} != {front}"
        )
    inverse, info = internal.linalg_inv(A.reshape(front, back))
    found = expect(inverse, info, "inv").reshape(shape[ind:] + shape[:ind])
    return finish("linalg_tensorinv", found, out)


@public(LINALG)
def tensorsolve(A, B, dims=None, *, out=None):
    """X with tensordot(A, X, X.dim()) = B."""
    if dims is not None:
        moved = [d % A.dim() for d in dims]
        A = A.permute([d for d in range(A.dim()) if d not in moved] + moved)
    shape = tuple(A.shape)[B.dim() :]
    rows, columns = math.prod(tuple(A.shape)[: B.dim()]), math.prod(shape)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            "prod(self.shape[:other.ndim]), but got "
            f"{columns} != {rows}"
        )
    found = solve(A.reshape(rows, columns), B.flatten()).reshape(shape)
    return finish("linalg_tensorsolve", found, out)


@public(LINALG, name="vander")
def _linalg_vander(x, *, N=None):
    """(..., n) -> (..., n, N): the powers 0 to N - 1."""
    if x.dtype.name == "bool":
        raise RuntimeError("linalg.vander: Expected integral, floating, or complex input, got Bool")
    if x.dim() == 0:
        x = x.unsqueeze(-1)
    n = x.shape[-1] if N is None else int(N)
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    wide = x.unsqueeze(-1).expand(*x.shape, n - 1)
    ones = torch.ones((*x.shape, 1), dtype=x.dtype, device=x.device)
    return torch.cumprod(torch.cat([ones, wide], -1), -1)


@public("torch")
def vander(x, N=None, increasing=False):
    """(n,) -> (n, N): the powers N - 1 to 0, or 0 to N - 1."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[0] if N is None else int(N)
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = torch.ones(
        (x.shape[0], n), dtype=torch.int64 if not x.dtype.is_floating_point and not x.dtype.is_complex else x.dtype
    )
    if n > 1:
        columns = torch.cumprod(x.unsqueeze(1).expand(x.shape[0], n - 1), 1)
        powers = torch.cat([powers[:, :1], columns.to(powers.dtype)], 1)
    return powers if increasing else powers.flip(1)


# -- randomised factorisations --------------------------------------------------------------------------------


def _range_basis(A: Any, q: int, niter: int, M: Any) -> Any:
    """An orthonormal basis of A's range, nearly (Halko et al., 2009, algorithm 4.4)."""
    R = torch.randn(A.shape[-1], q, dtype=A.dtype)
    X = A @ R if M is None else A @ R - M @ R
    Q = qr(X)[0]
    for _ in range(niter):
        X = A.mH @ Q if M is None else A.mH @ Q - M.mH @ Q
        Q = qr(X)[0]
        X = A @ Q if M is None else A @ Q - M @ Q
        Q = qr(X)[0]
    return Q


@public("torch")
def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) of a low-rank approximation of A - M."""
    m, n = A.shape[-2:]
    M = None if M is None else M.broadcast_to(A.shape)
    if m < n:
        A, M = A.mH, None if M is None else M.mH
    Q = _range_basis(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ A - Q.mH @ M
    u, s, vh = internal.linalg_svd(B, False)
    u, v = Q @ u, vh.mH
    return (v, s, u) if m < n else (u, s, v)


@public("torch")
def pca_lowrank(A, q=None, center=True, niter=2):
    """(U, S, V): linear principal component analysis of the rows of A."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(A, q, niter=niter)
    return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter=niter)


names(LINALG)["matmul"] = lambda input, other, *, out=None: torch.matmul(input, other, out=out)


@public(LINALG)
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """The diagonal of the last two dims, a view."""
    return torch.diagonal(A, offset, dim1, dim2)
