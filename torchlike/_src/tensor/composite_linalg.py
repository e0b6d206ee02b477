"""torch.linalg and the linear algebra of torch: public signatures over the kernels."""

import math
from collections.abc import Sequence
from typing import Any

from torchlike._src.core.errors import canonical_dim, shape_text
from torchlike._src.ops.declare import OPS
from torchlike._src.tensor.call import write_out
from torchlike._src.tensor.composite import internal, names, public
from torchlike._src.tensor.namespace import linalg, torch
from torchlike._src.tensor.publish import return_type
from torchlike._src.tensor.tensor import Tensor

LINALG = "torch.linalg"


class LinAlgError(RuntimeError):
    """What PyTorch raises for matrices that cannot be factorised."""


LinAlgError.__module__ = "torch._C"
LinAlgError.__qualname__ = LinAlgError.__name__ = "_LinAlgError"
names(LINALG)["LinAlgError"] = LinAlgError


def _finish(name: str, result: Any, out: Any) -> Any:
    """The result, stored in `out` if there is one."""
    return result if out is None else write_out(out, result, name, ())


def _named(name: str, fields: Sequence[str], items: Sequence, out: Any = None) -> Any:
    if out is not None:
        items = [write_out(o, i, name, ()) for o, i in zip(out, items, strict=True)]
    return return_type(name, tuple(fields))(list(items))


def method(function: Any, name: str | None = None) -> Any:
    """Also a Tensor method (and in torch)."""
    setattr(Tensor, name or function.__name__, function)
    return function


def _tensor(value: Any, function: str, argument: str, position: int) -> Any:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )
    return value


# -- Cholesky -------------------------------------------------------------------------------------------------


@public(LINALG)
def cholesky(A, *, upper=False, out=None):
    """(..., n, n) -> L with A = L L^H. A matrix that is not positive definite gives NaN."""
    return _finish("linalg_cholesky", internal.linalg_cholesky(_tensor(A, "linalg_cholesky", "A", 1), bool(upper))[0], out)


@public(LINALG)
def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """(L, info): info is not 0 where A is not positive definite; check_errors reads it and raises LinAlgError."""
    found, info = internal.linalg_cholesky(_tensor(A, "linalg_cholesky_ex", "A", 1), bool(upper))
    if check_errors and bool((info != 0).any()):
        raise LinAlgError(
            "linalg.cholesky_ex: The factorization could not be completed because the input is not positive-definite (the "
            f"leading minor of order {int(info.max())} is not positive-definite)."
        )
    return _named("linalg_cholesky_ex", ("L", "info"), (found, info), out)


@method
@public("torch", name="cholesky")
def _torch_cholesky(input, upper=False, *, out=None):
    """The Cholesky factor (deprecated: torch.linalg.cholesky)."""
    return _finish("cholesky", internal.linalg_cholesky(_tensor(input, "cholesky", "input", 1), bool(upper))[0], out)


Tensor.cholesky = _torch_cholesky


@method
@public("torch")
def cholesky_solve(B, L, upper=False, *, out=None):
    """X with L L^H X = B."""
    return _finish("cholesky_solve", internal.cholesky_solve(B, L, bool(upper)), out)


@method
@public("torch")
def cholesky_inverse(L, upper=False, *, out=None):
    """The inverse of L L^H."""
    return _finish("cholesky_inverse", internal.cholesky_inverse(L, bool(upper)), out)


# -- solving and inverting ------------------------------------------------------------------------------------


@public(LINALG)
def solve(A, B, *, left=True, out=None):
    """X with A X = B (X A = B with left=False). A singular A gives inf or NaN."""
    A, B = _tensor(A, "linalg_solve", "A", 1), _tensor(B, "linalg_solve", "B", 2)
    return _finish("linalg_solve", internal.linalg_solve(A, B, bool(left))[0], out)


@public(LINALG)
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """(X, info): info is not 0 where A is singular."""
    x, info = internal.linalg_solve(A, B, bool(left))
    if check_errors and bool((info != 0).any()):
        raise LinAlgError("torch.linalg.solve_ex: The solver failed because the input matrix is singular.")
    return _named("linalg_solve_ex", ("result", "info"), (x, info), out)


@public(LINALG)
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """X with A X = B for a triangular A."""
    found = internal.linalg_solve_triangular(A, B, bool(upper), bool(left), bool(unitriangular))
    return _finish("linalg_solve_triangular", found, out)


@method
@public("torch")
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """(X with A X = b, a copy of A) (deprecated: torch.linalg.solve_triangular)."""
    matrix = A.mT if transpose else A
    x = internal.linalg_solve_triangular(matrix, b, bool(upper) != bool(transpose), True, bool(unitriangular))
    return _named("triangular_solve", ("solution", "cloned_coefficient"), (x, A.clone()), out)


@public(LINALG)
def inv(A, *, out=None):
    """The inverse; inf or NaN for a singular matrix."""
    return _finish("linalg_inv", internal.linalg_inv(_tensor(A, "linalg_inv", "A", 1))[0], out)


@public(LINALG)
def inv_ex(A, *, check_errors=False, out=None):
    """(inverse, info)."""
    found, info = internal.linalg_inv(A)
    if check_errors and bool((info != 0).any()):
        raise LinAlgError(
            "linalg.inv_ex: The diagonal element 1 is zero, the inversion could not be completed because the input matrix "
            "is singular."
        )
    return _named("linalg_inv_ex", ("inverse", "info"), (found, info), out)


@method
@public("torch")
def inverse(input, *, out=None):
    """The inverse of square matrices."""
    return _finish("inverse", internal.linalg_inv(input)[0], out)


@public(LINALG)
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as zero."""
    return _finish("linalg_pinv", _pinv(A, rtol if rcond is None else rcond, atol, hermitian), out)


def _pinv(A: Any, rtol: Any, atol: Any, hermitian: bool) -> Any:
    number = [None if v is None else float(v) for v in (rtol, atol)]
    return internal.linalg_pinv(A, number[0], number[1] or 0.0, bool(hermitian))


@method
@public("torch")
def pinverse(input, rcond=1e-15):
    """The Moore-Penrose inverse."""
    return _pinv(input, rcond, None, False)


@public(LINALG)
def lstsq(A, B, rcond=None, *, driver=None):
    """(solution, residuals, rank, singular_values) of the least squares problem A X = B."""
    if A.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.dim() < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss) but got " + str(driver)
        )
    vector = A.dim() - 1 == B.dim() and tuple(A.shape[:-1]) == tuple(B.shape)
    rows = B.shape[-1] if vector else B.shape[-2]
    if A.shape[-2] != rows:
        which = "-1" if vector else "-2"
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({which})")
    if A.dtype != B.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{A.dtype} and other's dtype {B.dtype}")
    m, n = A.shape[-2:]
    right = B.unsqueeze(-1) if vector else B
    solution = _pinv(A, rcond, None, False) @ right
    empty = torch.empty(0, dtype=A.dtype).real if A.dtype.is_complex else torch.empty(0, dtype=A.dtype)
    rank = torch.empty(0, dtype=torch.int64) if driver == "gels" else _rank(A, rcond)
    full = driver == "gels" or not A.numel() or bool((rank == n).all())
    residuals = (A @ solution - right).abs().square().sum(-2) if m > n and full and driver != "gelsy" and driver else empty
    singular = svdvals(A) if driver in ("gelsd", "gelss") else empty.clone()
    if vector:
        solution = solution.squeeze(-1)
    return _named("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"), (solution, residuals, rank, singular))


def _rank(A: Any, rcond: Any) -> Any:
    return internal.matrix_rank(A, None if rcond is None else float(rcond), None, False)


# -- determinants ---------------------------------------------------------------------------------------------


@public(LINALG)
def det(A, *, out=None):
    """The determinant."""
    return _finish("linalg_det", internal.linalg_det(A), out)


@method
@public("torch", name="det")
def _torch_det(input):
    """The determinant."""
    return internal.linalg_det(input)


Tensor.det = _torch_det


@public(LINALG, name="slogdet")
def _linalg_slogdet(A, *, out=None):
    """(sign, log of the determinant's absolute value)."""
    return _named("linalg_slogdet", ("sign", "logabsdet"), internal.linalg_slogdet(A), out)


@method
@public("torch")
def slogdet(input, *, out=None):
    """(sign, log of the determinant's absolute value)."""
    return _named("slogdet", ("sign", "logabsdet"), internal.linalg_slogdet(input), out)


@method
@public("torch")
def logdet(input):
    """The logarithm of the determinant; NaN where it is negative."""
    sign, log = internal.linalg_slogdet(input)
    if input.dtype.is_complex:
        return sign.log() + log
    return torch.where(sign == -1.0, torch.full_like(log, float("nan")), log)


# -- factorisations -------------------------------------------------------------------------------------------


@public(LINALG)
def qr(A, mode="reduced", *, out=None):
    """(Q, R)."""
    return _named("linalg_qr", ("Q", "R"), internal.linalg_qr(A, mode), out)


@method
@public("torch", name="qr")
def _torch_qr(input, some=True, *, out=None):
    """(Q, R) (deprecated: torch.linalg.qr)."""
    return _named("qr", ("Q", "R"), internal.linalg_qr(input, "reduced" if some else "complete"), out)


Tensor.qr = _torch_qr


@public(LINALG)
def svd(A, full_matrices=True, *, driver=None, out=None):
    """(U, S, V^H), singular values in descending order."""
    return _named("linalg_svd", ("U", "S", "Vh"), internal.linalg_svd(A, bool(full_matrices)), out)


@public(LINALG)
def svdvals(A, *, driver=None, out=None):
    """The singular values in descending order."""
    return _finish("linalg_svdvals", internal.linalg_svd(A, False)[1], out)


@method
@public("torch", name="svd")
def _torch_svd(input, some=True, compute_uv=True, *, out=None):
    """(U, S, V) (deprecated: torch.linalg.svd)."""
    u, s, vh = internal.linalg_svd(input, not some)
    if not compute_uv:
        m, n = input.shape[-2:]
        u = torch.zeros((*input.shape[:-2], m, m), dtype=input.dtype)
        return _named("svd", ("U", "S", "V"), (u, s, torch.zeros((*input.shape[:-2], n, n), dtype=input.dtype)), out)
    return _named("svd", ("U", "S", "V"), (u, s, vh.mH), out)


Tensor.svd = _torch_svd


@public(LINALG)
def eigh(A, UPLO="L", *, out=None):
    """(ascending eigenvalues, eigenvectors) of Hermitian matrices."""
    return _named("linalg_eigh", ("eigenvalues", "eigenvectors"), internal.linalg_eigh(A, UPLO), out)


@public(LINALG)
def eigvalsh(A, UPLO="L", *, out=None):
    """The ascending eigenvalues of Hermitian matrices."""
    return _finish("linalg_eigvalsh", internal.linalg_eigh(A, UPLO)[0], out)


@public(LINALG)
def eig(A, *, out=None):
    """(eigenvalues, eigenvectors), complex."""
    return _named("linalg_eig", ("eigenvalues", "eigenvectors"), internal.linalg_eig(A), out)


@public(LINALG)
def eigvals(A, *, out=None):
    """The eigenvalues, complex."""
    return _finish("linalg_eigvals", internal.linalg_eig(A)[0], out)


def _factor(A: Any, pivot: bool) -> tuple:
    return tuple(internal.linalg_lu_factor(A, bool(pivot)))


@public(LINALG)
def lu_factor(A, *, pivot=True, out=None):
    """(LU, pivots): the compact LU factorisation with 1-based row swaps."""
    return _named("linalg_lu_factor", ("LU", "pivots"), _factor(A, pivot)[:2], out)


@public(LINALG)
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """(LU, pivots, info)."""
    found = _factor(A, pivot)
    if check_errors and bool((found[2] != 0).any()):
        raise LinAlgError(
            f"torch.linalg.lu_factor_ex: U[{int(found[2].max())},{int(found[2].max())}] is zero and using it on lu_solve would "
            "result in a division by zero."
        )
    return _named("linalg_lu_factor_ex", ("LU", "pivots", "info"), found, out)


@public("torch")
def lu(A, pivot=True, get_infos=False, out=None):
    """(LU, pivots) or (LU, pivots, info) (deprecated: torch.linalg.lu_factor)."""
    found = _factor(A, pivot)
    found = found if get_infos else found[:2]
    if out is None:
        return found
    return tuple(write_out(o, i, "lu", ()) for o, i in zip(out, found, strict=True))


Tensor.lu = lambda self, pivot=True, get_infos=False: lu(self, pivot, get_infos)


def _permutation(pivots: Any, rows: int, dtype: Any) -> Any:
    """(..., rows, rows) with A = P L U."""
    order = internal.pivots_to_permutation(pivots, rows)
    return (torch.arange(rows).unsqueeze(-1) == order.unsqueeze(-2)).to(dtype)


def _triangles(packed: Any) -> tuple[Any, Any]:
    m, n = packed.shape[-2:]
    k = min(m, n)
    lower = torch.tril(packed[..., :, :k], -1) + torch.eye(m, k, dtype=packed.dtype)
    return lower, torch.triu(packed[..., :k, :])


@public("torch")
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """(P, L, U) from lu_factor's result."""
    empty = torch.empty(0, dtype=LU_data.dtype)
    lower, upper = _triangles(LU_data) if unpack_data else (empty, empty.clone())
    p = _permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype) if unpack_pivots else empty.clone()
    return _named("lu_unpack", ("P", "L", "U"), (p, lower, upper), out)


@public(LINALG, name="lu")
def _linalg_lu(A, *, pivot=True, out=None):
    """(P, L, U) with A = P L U."""
    packed, pivots, _ = _factor(A, pivot)
    lower, upper = _triangles(packed)
    return _named("linalg_lu", ("P", "L", "U"), (_permutation(pivots, A.shape[-2], A.dtype), lower, upper), out)


def _lu_solve(packed: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Any:
    lower, upper = _triangles(packed)
    p = _permutation(pivots, packed.shape[-2], packed.dtype)
    solve_with = internal.linalg_solve_triangular
    if not left:  # X A = B is A^H X^H = B^H
        return _lu_solve(packed, pivots, B.mH, True, not adjoint).mH
    if adjoint:  # A^H = U^H L^H P^T
        y = solve_with(upper.mH, B, False, True, False)
        return p @ solve_with(lower.mH, y, True, True, True)
    y = solve_with(lower, p.mT @ B, False, True, True)
    return solve_with(upper, y, True, True, False)


@public(LINALG, name="lu_solve")
def _linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """X with A X = B from lu_factor's result."""
    return _finish("linalg_lu_solve", _lu_solve(LU, pivots, B, left, adjoint), out)


@method
@public("torch")
def lu_solve(b, LU_data, LU_pivots, *, out=None):
    """X with A X = b from lu_factor's result (deprecated: torch.linalg.lu_solve)."""
    return _finish("lu_solve", _lu_solve(LU_data, LU_pivots, b, True, False), out)


@public(LINALG)
def householder_product(A, tau, *, out=None):
    """The first columns of a product of Householder reflections."""
    return _finish("linalg_householder_product", internal.linalg_householder_product(A, tau), out)


@method
@public("torch")
def orgqr(input, tau, *, out=None):
    """householder_product."""
    return _finish("orgqr", internal.linalg_householder_product(input, tau), out)


@method
@public("torch")
def ormqr(input, tau, other, left=True, transpose=False, *, out=None):
    """other multiplied by the Q of Householder reflections (input, tau)."""
    return _finish("ormqr", internal.ormqr(input, tau, other, bool(left), bool(transpose)), out)


@method
@public("torch")
def geqrf(input, *, out=None):
    """(a, tau): the packed QR factorisation."""
    return _named("geqrf", ("a", "tau"), internal.geqrf(input), out)


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
    return _finish("linalg_matrix_power", _power(A, int(n)), out)


def _power(A: Any, n: int) -> Any:
    if n == 0:
        return A.clone().copy_(torch.eye(A.shape[-1], dtype=A.dtype))
    if n < 0:
        A, n = internal.linalg_inv(A)[0], -n
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
    return _finish("linalg_matrix_rank", internal.matrix_rank(A, values[0], values[1], bool(hermitian)), out)


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
    return _finish("linalg_matrix_norm", _matrix_norm(A, ord, a, b, keepdim), out)


def _matrix_norm(A: Any, ord: Any, a: int, b: int, keepdim: bool) -> Any:
    if ord == "fro":
        return linalg.vector_norm(A, 2, (a, b), keepdim)
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
        return _finish("linalg_norm", found, out)
    if ord is None:
        return _finish("linalg_norm", linalg.vector_norm(A, 2, None, keepdim, dtype=dtype), out)
    if A.dim() not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " f"{A.dim()}D."
        )
    if isinstance(ord, str) or A.dim() == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype, out=out)
    return _finish("linalg_norm", linalg.vector_norm(A, ord, 0, keepdim, dtype=dtype), out)


@public(LINALG)
def cond(A, p=None, *, out=None):
    """The condition number with respect to a matrix norm."""
    if A.dim() < 2:
        raise RuntimeError("linalg.cond: The input tensor A must have at least 2 dimensions.")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        s = svdvals(A)
        largest, smallest = s[..., :1], s[..., -1:]
        found = (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
        return _finish("linalg_cond", found, out)
    label = f"linalg.cond(ord={p if isinstance(p, str) else f'{p:g}'})"
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{label}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    product = matrix_norm(A, p) * matrix_norm(internal.linalg_inv(A)[0], p)
    return _finish("linalg_cond", torch.nan_to_num(product, nan=math.inf, posinf=math.inf, neginf=-math.inf), out)


@public(LINALG)
def vecdot(x, y, *, dim=-1, out=None):
    """The sum of conj(x) * y along dim."""
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {x.dtype.scalar_name}"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected vectors of same dtype, but found {x.dtype} and {y.dtype}"
        )
    return _finish("linalg_vecdot", ((x.conj() if x.dtype.is_complex else x) * y).sum(dim), out)


@public(LINALG)
def tensorinv(A, ind=2, *, out=None):
    """The inverse of `A` under tensordot over its first `ind` dims."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = tuple(A.shape)
    front, back = math.prod(shape[:ind]), math.prod(shape[ind:])
    if front != back:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {back} != {front}"
        )
    found = internal.linalg_inv(A.reshape(front, back))[0].reshape(shape[ind:] + shape[:ind])
    return _finish("linalg_tensorinv", found, out)


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
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{columns} != {rows}"
        )
    found = internal.linalg_solve(A.reshape(rows, columns), B.flatten(), True)[0].reshape(shape)
    return _finish("linalg_tensorsolve", found, out)


@public(LINALG, name="vander")
def _linalg_vander(x, *, N=None):
    """(..., n) -> (..., n, N): the powers 0 to N - 1."""
    if x.dtype.name == "bool":
        raise RuntimeError("linalg.vander: Expected integral, floating, or complex input, got Bool")
    if x.dim() < 1:
        raise RuntimeError("linalg.vander: The input tensor x must have at least one dimension.")
    n = x.shape[-1] if N is None else int(N)
    if n <= 1:
        if N is not None:
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
    powers = torch.ones((x.shape[0], n), dtype=torch.int64 if not x.dtype.is_floating_point and not x.dtype.is_complex else x.dtype)
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


Tensor.pinverse = pinverse
names(LINALG)["matmul"] = lambda input, other, *, out=None: torch.matmul(input, other, out=out)
_ = OPS, shape_text
