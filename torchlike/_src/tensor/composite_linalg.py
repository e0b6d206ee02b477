"""torch.linalg and the linear algebra of torch: public signatures over the kernels."""

from collections.abc import Sequence
from typing import Any

from torchlike._src.core.errors import LinAlgError
from torchlike._src.ops.linalg import check_square
from torchlike._src.tensor.call import write_out
from torchlike._src.tensor.composite import expect, internal, names, public
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.publish import return_type
from torchlike._src.tensor.tensor import Tensor

LINALG = "torch.linalg"


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


def _checked(name: str, found: Sequence) -> Any:
    """The first of an operation's results; reading it raises LinAlgError if the last, its info, says that it failed."""
    return expect(found[0], found[-1], name)


# -- Cholesky -------------------------------------------------------------------------------------------------


@public(LINALG)
def cholesky(A, *, upper=False, out=None):
    """(..., n, n) -> L with A = L L^H. LinAlgError if A is not positive definite."""
    found = internal.linalg_cholesky(_tensor(A, "linalg_cholesky", "A", 1), bool(upper))
    return _finish("linalg_cholesky", _checked("linalg.cholesky", found), out)


@public(LINALG)
def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """(L, info): info is not 0 where A is not positive definite; with check_errors, that is a LinAlgError."""
    found, info = internal.linalg_cholesky(_tensor(A, "linalg_cholesky_ex", "A", 1), bool(upper))
    if check_errors:
        expect(found, info, "linalg.cholesky_ex")
    return _named("linalg_cholesky_ex", ("L", "info"), (found, info), out)


@method
@public("torch", name="cholesky")
def _torch_cholesky(input, upper=False, *, out=None):
    """The Cholesky factor (deprecated: torch.linalg.cholesky)."""
    check_square("cholesky", _tensor(input, "cholesky", "input", 1)._aval)
    return _finish("cholesky", _checked("cholesky", internal.linalg_cholesky(input, bool(upper))), out)


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
    """X with A X = B (X A = B with left=False). LinAlgError if A is singular."""
    A, B = _tensor(A, "linalg_solve", "A", 1), _tensor(B, "linalg_solve", "B", 2)
    return _finish("linalg_solve", _checked("torch.linalg.solve", internal.linalg_solve(A, B, bool(left))), out)


@public(LINALG)
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """(X, info): info is not 0 where A is singular."""
    x, info = internal.linalg_solve(A, B, bool(left))
    if check_errors:
        expect(x, info, "torch.linalg.solve_ex")
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
    """The inverse. LinAlgError if A is singular."""
    return _finish("linalg_inv", _checked("linalg.inv", internal.linalg_inv(_tensor(A, "linalg_inv", "A", 1))), out)


@public(LINALG)
def inv_ex(A, *, check_errors=False, out=None):
    """(inverse, info)."""
    found, info = internal.linalg_inv(A)
    if check_errors:
        expect(found, info, "linalg.inv_ex")
    return _named("linalg_inv_ex", ("inverse", "info"), (found, info), out)


@method
@public("torch")
def inverse(input, *, out=None):
    """The inverse of square matrices."""
    return _finish("inverse", _checked("linalg.inv", internal.linalg_inv(input)), out)


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
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{A.dtype} and other's dtype {B.dtype}"
        )
    m, n = A.shape[-2:]
    right = B.unsqueeze(-1) if vector else B
    solution = _pinv(A, rcond, None, False) @ right
    empty = torch.empty(0, dtype=A.dtype).real if A.dtype.is_complex else torch.empty(0, dtype=A.dtype)
    none = solution.flatten()[:0].abs()  # PyTorch's empty residuals are on the tape too
    rank = torch.empty(0, dtype=torch.int64) if driver == "gels" else _rank(A, rcond)
    full = driver == "gels" or not A.numel() or bool((rank == n).all())
    residuals = (
        (A @ solution - right).abs().square().sum(-2) if m > n and full and driver != "gelsy" and driver else none
    )
    singular = svdvals(A) if driver in ("gelsd", "gelss") else empty.clone()
    if vector:
        solution = solution.squeeze(-1)
    return _named(
        "linalg_lstsq", ("solution", "residuals", "rank", "singular_values"), (solution, residuals, rank, singular)
    )


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
    check_square("logdet", input._aval)
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
    if input.dim() < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.dim()} dimensions instead"
        )
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
    found = _factor(A, pivot)
    _checked("torch.linalg.lu_factor", found)
    return _named("linalg_lu_factor", ("LU", "pivots"), found[:2], out)


@public(LINALG)
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """(LU, pivots, info)."""
    found = _factor(A, pivot)
    if check_errors:
        _checked("torch.linalg.lu_factor_ex", found)
    return _named("linalg_lu_factor_ex", ("LU", "pivots", "info"), found, out)


@public("torch")
def lu(A, pivot=True, get_infos=False, out=None):
    """(LU, pivots) or (LU, pivots, info) (deprecated: torch.linalg.lu_factor)."""
    found = _factor(A, pivot)
    if get_infos:
        return _named("linalg_lu_factor_ex", ("LU", "pivots", "info"), found, out)
    found = found[:2]
    if out is None:
        return found
    return tuple(write_out(o, i, "lu", ()) for o, i in zip(out, found, strict=True))


Tensor.lu = lambda self, pivot=True, get_infos=False: lu(self, pivot, get_infos)


def _pivot_info(pivots: Any, rows: int) -> Any:
    """1 if a pivot is below 1, 2 if one is above `rows`, else 0; PyTorch looks in this order."""
    return torch.where((pivots < 1).any(), 1, torch.where((pivots > rows).any(), 2, 0))


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
    p = empty.clone()
    if unpack_pivots:
        p = expect(
            _permutation(LU_pivots, LU_data.shape[-2], LU_data.dtype),
            _pivot_info(LU_pivots, LU_data.shape[-2]),
            "lu_unpack",
        )
    return _named("lu_unpack", ("P", "L", "U"), (p, lower, upper), out)


@public(LINALG, name="lu")
def _linalg_lu(A, *, pivot=True, out=None):
    """(P, L, U) with A = P L U."""
    if A.dim() < 2:
        raise RuntimeError(f"linalg.lu: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    packed, pivots, _ = _factor(A, pivot)
    lower, upper = _triangles(packed)
    return _named("linalg_lu", ("P", "L", "U"), (_permutation(pivots, A.shape[-2], A.dtype), lower, upper), out)


def _lu_solve(packed: Any, pivots: Any, B: Any, left: bool, adjoint: bool) -> Any:
    lower, upper = _triangles(packed)
    p = _permutation(pivots, packed.shape[-2], packed.dtype)
    expect(p, _pivot_info(pivots, packed.shape[-2]), "lu_solve")
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
