"""Linear algebra kernels: factorisations, solves, determinants, matrix functions.

They run on JAX's LAPACK bindings. Gradient rules are stated in PyTorch's convention for complex values. A matrix that
is singular, or not positive definite, gives inf or NaN; ops/faults.py makes it an error.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import by_name
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.ops.declare import T, op

INT32, INT64 = by_name("int32"), by_name("int64")


def adjoint(a: Any) -> Any:
    a = jnp.swapaxes(a, -1, -2)
    return jnp.conj(a) if a.dtype.kind == "c" else a


def _diag_of(a: Any) -> Any:
    return jnp.diagonal(a, axis1=-2, axis2=-1)


def _as_diag(v: Any) -> Any:
    return v[..., :, None] * jnp.eye(v.shape[-1], dtype=v.dtype)


# -- checks ---------------------------------------------------------------------------------------------------


def check_floating(name: str, a: Aval, low_precision: bool = False) -> None:
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {a.dtype.scalar_name}")
    if not low_precision and a.dtype.name in ("float16", "bfloat16"):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {a.dtype.scalar_name}")


def check_matrix(name: str, a: Aval, label: str = "A") -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {label} must have at least 2 dimensions.")


def check_square(name: str, a: Aval, label: str = "A") -> None:
    check_matrix(name, a, label)
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: {label} must be batches of square matrices, but they are {a.shape[-2]} by {a.shape[-1]} matrices"
        )


def _supported(kernel: str, a: Aval) -> None:
    if a.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{a.dtype.scalar_name}'")


def square_check(name: str) -> Any:
    def check(A: Aval, **_: Any) -> None:
        check_square(name, A)
        check_floating(name, A)

    return check


def matrix_check(name: str) -> Any:
    def check(A: Aval, **_: Any) -> None:
        check_matrix(name, A)
        check_floating(name, A)

    return check


def internal(**options: Any) -> Any:
    """Options of a kernel that a composite publishes."""
    return {"namespaces": (), "method": False, "out": False, "autocast": "float32", **options}


def _zero_info(a: Any) -> Any:
    return jnp.zeros(a.shape[:-2], jnp.int32)


def zero_diagonal(a: Any) -> Any:
    """(...,) int32: the place, from 1, of the first zero on each matrix' diagonal; 0 where there is none."""
    zero = _diag_of(a) == 0
    return jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0).astype(jnp.int32)


def _pivot_info(A: Any) -> Any:
    """LAPACK's info of the LU factorisation of A. XLA makes one of it and the factorisation that a solver does."""
    return _zero_info(A) if A.size == 0 else zero_diagonal(lax.linalg.lu(A)[0])


def _minor_info(A: Any, lower: Any) -> Any:
    """LAPACK's info of the Cholesky factorisation: the order of the first leading minor that is not positive.
    Worked out where the factorisation has failed."""
    failed = ~jnp.isfinite(lower).all((-2, -1))
    return lax.cond(failed.any(), lambda: jnp.where(failed, _first_minor(A), 0), lambda: _zero_info(A))


def _first_minor(A: Any) -> Any:
    """Eliminates column by column until a pivot is not positive; reads the lower triangle."""
    rows = lax.iota(jnp.int32, A.shape[-1])

    def step(j: Any, state: tuple) -> tuple:
        a, order = state
        column = jnp.where(rows >= j, lax.dynamic_index_in_dim(a, j, a.ndim - 1, keepdims=False), 0)
        pivot = lax.dynamic_index_in_dim(column, j, column.ndim - 1, keepdims=False).real
        good = pivot > 0
        order = jnp.where((order == 0) & ~good, j.astype(jnp.int32) + 1, order)
        below = jnp.where(rows > j, column, 0)
        outer = below[..., :, None] * jnp.conj(below)[..., None, :]
        return a - outer / jnp.where(good, pivot, 1)[..., None, None], order

    return lax.fori_loop(0, A.shape[-1], step, (A, _zero_info(A)))[1]


# -- Cholesky -------------------------------------------------------------------------------------------------


def cholesky_grad(g0: Any, out0: Any, upper: bool) -> Any:
    """L^-H sym(tril(L^H gL)) L^-1."""
    lower = adjoint(out0) if upper else out0
    g = adjoint(g0) if upper else g0
    inner = jnp.tril(adjoint(lower) @ g)
    inner = (inner + adjoint(jnp.tril(inner, -1))) / 2
    d = _tri(lower, inner, lower=True, adjoint_a=True)
    return _tri(lower, d, lower=True, left=False)


def _hermitian(d: Any) -> Any:
    return (d + adjoint(d)) / 2


def _tri(a: Any, b: Any, *, lower: bool, left: bool = True, adjoint_a: bool = False, unit: bool = False) -> Any:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    if a.size == 0 or b.size == 0:
        return jnp.zeros(b.shape, b.dtype)
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=left,
        lower=lower,
        transpose_a=adjoint_a,
        conjugate_a=adjoint_a and a.dtype.kind == "c",
        unit_diagonal=unit,
    )


@op(
    **internal(
        outputs=("L", "info"),
        check=square_check("linalg.cholesky"),
        grad_name="LinalgCholeskyExBackward0",
        shape=lambda A, upper: (A, aval(A.shape[:-2], INT32, A.device)),
        vjp={"A": cholesky_grad},
    )
)
def _linalg_cholesky(A: T, upper: bool = False):
    """(..., n, n) -> (its Cholesky factor, info); reads one triangle."""
    if A.size == 0:
        return A, _zero_info(A)
    source = adjoint(A) if upper else A
    lower = jnp.tril(lax.linalg.cholesky(source, symmetrize_input=False))
    return (adjoint(lower) if upper else lower), _minor_info(source, lower)


def check_cholesky_solve(B: Aval, L: Aval, upper: bool) -> None:
    if B.ndim < 2:
        raise RuntimeError(f"b should have at least 2 dimensions, but has {B.ndim} dimensions instead")
    if L.ndim < 2:
        raise RuntimeError(f"u should have at least 2 dimensions, but has {L.ndim} dimensions instead")
    if L.shape[-1] != L.shape[-2] or L.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    _check_solve_shapes("cholesky_solve", L, B, True)


def _two_solves(B: Any, L: Any, upper: bool) -> Any:
    y = _tri(L, B, lower=not upper, adjoint_a=upper)
    return _tri(L, y, lower=not upper, adjoint_a=not upper)


def _factor_gradient(L: Any, term: Any, upper: bool) -> Any:
    """The gradient of a factor as PyTorch gives it: for the whole matrix, not for one triangle."""
    term = term + adjoint(term)
    return -(L @ term) if upper else -(term @ L)


@op(
    **internal(
        check=check_cholesky_solve,
        grad_name="CholeskySolveBackward0",
        vjp={
            "B": lambda g, L, upper: _two_solves(g, L, upper),
            "L": lambda g, L, out, upper: _factor_gradient(L, _two_solves(g, L, upper) @ adjoint(out), upper),
        },
    )
)
def _cholesky_solve(B: T, L: T, upper: bool = False):
    """X with L L^H X = B (U^H U X = B for an upper factor)."""
    return _two_solves(B, L, upper)


@op(
    **internal(
        check=square_check("cholesky_inverse"),
        grad_name="CholeskyInverseBackward0",
        vjp={"A": lambda g, A, out, upper: _factor_gradient(A, out @ g @ out, upper)},
    )
)
def _cholesky_inverse(A: T, upper: bool = False):
    """The inverse of L L^H from L (U^H U from U)."""
    eye = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    inverse = _tri(A, eye, lower=not upper)
    return inverse @ adjoint(inverse) if upper else adjoint(inverse) @ inverse


# -- solving --------------------------------------------------------------------------------------------------


def is_vector(A: Aval, B: Aval) -> bool:
    """Whether `solve` takes B as (a batch of) right-hand vectors."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _check_solve_shapes(name: str, A: Aval, B: Aval, left: bool) -> None:
    check_square(name, A)
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {A.dtype.scalar_name} and B of type "
            f"{B.dtype.scalar_name} instead"
        )
    shape = B.shape if B.ndim > 1 else (*B.shape, 1)
    side = -2 if left else -1
    if A.shape[side] != shape[side]:
        equation = "AX" if left else "XA"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} = B ({A.shape[-2]}x{A.shape[-1]} and "
            f"{shape[-2]}x{shape[-1]})"
        )
    broadcast_shapes(A.shape[:-2], shape[:-2])


def check_solve(A: Aval, B: Aval, left: bool) -> None:
    check_square("linalg.solve", A)
    check_floating("linalg.solve", A)
    if is_vector(A, B):
        B = B.with_shape((*B.shape, 1))
        if not left:
            raise RuntimeError(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                "linalg.solve is equivalent to B / A.squeeze(-1)"
            )
    _check_solve_shapes("linalg.solve", A, B, left)


def _solve(A: Any, B: Any, left: bool) -> Any:
    """A X = B or X A = B, batches broadcast."""
    if not left:
        return jnp.swapaxes(_solve(jnp.swapaxes(A, -1, -2), jnp.swapaxes(B, -1, -2), True), -1, -2)
    batch = jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    B = jnp.broadcast_to(B, (*batch, *B.shape[-2:]))
    if A.size == 0 or B.size == 0:
        return jnp.zeros(B.shape, B.dtype)
    return jnp.linalg.solve(jnp.broadcast_to(A, (*batch, *A.shape[-2:])), B)


def _columns(A: Any, B: Any) -> tuple[Any, bool]:
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    return (B[..., None] if vector else B), vector


def solve_grad_B(g0: Any, A: Any, B_aval: Aval, left: bool) -> Any:
    vector = B_aval.ndim == 1 or (A.ndim - 1 == B_aval.ndim and B_aval.shape == A.shape[:-1])
    g = g0[..., None] if vector else g0
    d = _solve(adjoint(A), g, left)
    return d[..., 0] if vector else d


def solve_grad_A(g0: Any, A: Any, B_aval: Aval, out0: Any, left: bool) -> Any:
    vector = B_aval.ndim == 1 or (A.ndim - 1 == B_aval.ndim and B_aval.shape == A.shape[:-1])
    g, x = (g0[..., None], out0[..., None]) if vector else (g0, out0)
    d = _solve(adjoint(A), g, left)
    return -(d @ adjoint(x)) if left else -(adjoint(x) @ d)


@op(
    **internal(
        outputs=("result", "info"),
        check=check_solve,
        grad_name="LinalgSolveExBackward0",
        vjp={"A": solve_grad_A, "B": solve_grad_B},
    )
)
def _linalg_solve(A: T, B: T, left: bool = True):
    """(X, info) with A X = B, or X A = B with left=False."""
    b, vector = _columns(A, B)
    x = _solve(A, b, left)
    return (x[..., 0] if vector else x), _pivot_info(A)


@op(
    **internal(
        outputs=("inverse", "info"),
        check=square_check("linalg.inv"),
        grad_name="LinalgInvExBackward0",
        shape=lambda A: (A, aval(A.shape[:-2], INT32, A.device)),
        vjp={"A": lambda g0, out0: -(adjoint(out0) @ g0 @ adjoint(out0))},
    )
)
def _linalg_inv(A: T):
    """(the inverse, info)."""
    if A.size == 0:
        return A, _zero_info(A)
    inverse = _solve(A, jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape), True)
    return inverse, _pivot_info(A)


def check_solve_triangular(A: Aval, B: Aval, upper: bool, left: bool, unitriangular: bool) -> None:
    name = "linalg.solve_triangular"
    check_matrix(name, A)
    check_matrix(name, B, "B")
    check_floating(name, A)
    _check_solve_shapes(name, A, B, left)


def tri_grad_B(g: Any, A: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    return _tri(A, g, lower=not upper, left=left, adjoint_a=True, unit=unitriangular)


def tri_grad_A(g: Any, A: Any, out: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    d = tri_grad_B(g, A, upper, left, unitriangular)
    d = -(d @ adjoint(out)) if left else -(adjoint(out) @ d)
    k = int(unitriangular)
    return jnp.triu(d, k) if upper else jnp.tril(d, -k)


@op(
    **internal(
        check=check_solve_triangular,
        grad_name="LinalgSolveTriangularBackward0",
        vjp={"A": tri_grad_A, "B": tri_grad_B},
    )
)
def _linalg_solve_triangular(A: T, B: T, upper: bool, left: bool = True, unitriangular: bool = False):
    """X with A X = B (X A = B) for a triangular A; only that triangle is read."""
    return _tri(A, B, lower=not upper, left=left, unit=unitriangular)


# -- determinants ---------------------------------------------------------------------------------------------


@op(
    **internal(
        check=square_check("linalg.det"),
        grad_name="LinalgDetBackward0",
        shape=lambda A: A.with_shape(A.shape[:-2]),
    )
)
def _linalg_det(A: T):
    """(..., n, n) -> (...): the determinant. JAX's gradient of it holds for singular matrices too."""
    return jnp.linalg.det(A) if A.size else jnp.ones(A.shape[:-2], A.dtype)


def slogdet_grad(g0: Any, g1: Any, A: Any, out0: Any) -> Any:
    inverse = adjoint(_solve(A, jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape), True))
    if A.dtype.kind == "c":
        phase = 1j * jnp.imag(jnp.conj(g0) * out0)
        factor = g1.astype(A.dtype) - phase
    else:
        factor = g1
    return factor[..., None, None] * inverse


@op(
    **internal(
        outputs=("sign", "logabsdet"),
        check=square_check("linalg.slogdet"),
        grad_name="LinalgSlogdetBackward0",
        vjp={"A": slogdet_grad},
    )
)
def _linalg_slogdet(A: T):
    """(sign, log|det|)."""
    if A.size == 0:
        real = jnp.finfo(A.dtype).dtype
        return jnp.ones(A.shape[:-2], A.dtype), jnp.zeros(A.shape[:-2], real)
    sign, log = jnp.linalg.slogdet(A)
    return sign, log


# -- factorisations -------------------------------------------------------------------------------------------


def check_qr(A: Aval, mode: str) -> None:
    check_matrix("linalg.qr", A)
    check_floating("linalg.qr", A)
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )


def qr_grad(g0: Any, g1: Any, A_aval: Aval, out0: Any, out1: Any, mode: str) -> Any:
    m, n = A_aval.shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    q, r = out0, out1
    square = r[..., :, : min(m, n)]
    gq, gr = g0, g1[..., :, : min(m, n)]
    if m < n:  # the trailing columns are Q V: their gradient reaches Q too
        gv = g1[..., :, m:]
        gq = gq + q @ (r[..., :, m:] @ adjoint(gv))
    inner = _copy_lower(jnp.tril(square @ adjoint(gr) - adjoint(gq) @ q))
    d = _tri(square, gq + q @ inner, lower=False, left=False, adjoint_a=True)
    return d if m >= n else jnp.concatenate([d, q @ gv], -1)


def _copy_lower(lower: Any) -> Any:
    """tril(X) and its adjoint above the diagonal, the diagonal real."""
    strict = jnp.tril(lower, -1)
    d = _diag_of(lower)
    d = jnp.real(d).astype(lower.dtype) if lower.dtype.kind == "c" else d
    return strict + adjoint(strict) + _as_diag(d)


@op(**internal(outputs=("Q", "R"), check=check_qr, grad_name="LinalgQrBackward0", vjp={"A": qr_grad}))
def _linalg_qr(A: T, mode: str = "reduced"):
    """(Q, R); mode "r" gives an empty Q."""
    m, n = A.shape[-2:]
    if A.size == 0:
        k = m if mode == "complete" else min(m, n)
        q = jnp.broadcast_to(jnp.eye(m, k, dtype=A.dtype), (*A.shape[:-2], m, k))
        r = jnp.zeros((*A.shape[:-2], k, n), A.dtype)
    else:
        q, r = lax.linalg.qr(A, full_matrices=mode == "complete")
    return (jnp.zeros((0,), A.dtype) if mode == "r" else q), r


def svd_grad(g0: Any, g1: Any, g2: Any, out0: Any, out1: Any, out2: Any, A_aval: Aval, full_matrices: bool) -> Any:
    m, n = A_aval.shape[-2:]
    k = min(m, n)
    u, s, vh = out0[..., :, :k], out1, out2[..., :k, :]
    gu, gs, gv = g0[..., :, :k], g1, adjoint(g2[..., :k, :])
    v = adjoint(vh)
    squares = s * s
    gap = squares[..., None, :] - squares[..., :, None]
    eye = jnp.eye(k, dtype=bool)
    gap = jnp.where(gap == 0, jnp.ones((), gap.dtype), gap)  # equal values: no unique vectors, any finite number
    safe = jnp.where(s == 0, jnp.ones((), s.dtype), s)
    ugu, vgv = adjoint(u) @ gu, adjoint(v) @ gv
    skew_u = jnp.where(eye, 0, (ugu - adjoint(ugu)) / gap)
    skew_v = jnp.where(eye, 0, (vgv - adjoint(vgv)) / gap)
    inner = skew_u * s[..., None, :] + s[..., :, None] * skew_v + _as_diag(gs.astype(skew_u.dtype))
    if inner.dtype.kind == "c":
        inner = inner + _as_diag(1j * jnp.imag(_diag_of(ugu)) / safe)
    left = u @ inner
    if m > k:
        left = left + (gu - u @ ugu) / safe[..., None, :]
    d = left @ vh
    if n > k:
        right = (u / safe[..., None, :]) @ adjoint(gv - v @ vgv)
        d = d + right
    return d


@op(
    **internal(
        outputs=("U", "S", "Vh"),
        check=matrix_check("linalg.svd"),
        grad_name="LinalgSvdBackward0",
        vjp={"A": svd_grad},
    )
)
def _linalg_svd(A: T, full_matrices: bool = True):
    """(U, S, V^H), singular values in descending order."""
    m, n = A.shape[-2:]
    k = min(m, n)
    if A.size == 0:
        a, b = (m, n) if full_matrices else (k, k)
        lead = A.shape[:-2]
        u = jnp.broadcast_to(jnp.eye(m, a, dtype=A.dtype), (*lead, m, a))
        return (
            u,
            jnp.zeros((*lead, k), jnp.finfo(A.dtype).dtype),
            jnp.broadcast_to(jnp.eye(b, n, dtype=A.dtype), (*lead, b, n)),
        )
    u, s, vh = lax.linalg.svd(A, full_matrices=full_matrices)
    return u, s, vh


def eigh_grad(g0: Any, g1: Any, out0: Any, out1: Any) -> Any:
    gap = out0[..., None, :] - out0[..., :, None]
    eye = jnp.eye(out0.shape[-1], dtype=bool)
    rotated = adjoint(out1) @ g1 / jnp.where(gap == 0, jnp.ones((), gap.dtype), gap)
    inner = jnp.where(eye, g0[..., None].astype(rotated.dtype), rotated)
    return _hermitian(out1 @ inner @ adjoint(out1))


def check_eigh(A: Aval, UPLO: str) -> None:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_square("linalg.eigh", A)
    _supported("linalg_eigh_cpu", A)


@op(
    **internal(
        outputs=("eigenvalues", "eigenvectors"),
        check=check_eigh,
        grad_name="LinalgEighBackward0",
        vjp={"A": eigh_grad},
    )
)
def _linalg_eigh(A: T, UPLO: str = "L"):
    """(ascending eigenvalues, eigenvectors) of a Hermitian matrix of which one triangle is read."""
    if A.size == 0:
        return jnp.zeros(A.shape[:-1], jnp.finfo(A.dtype).dtype), A
    vectors, values = lax.linalg.eigh(A, lower=UPLO.upper() == "L", symmetrize_input=False)
    return values, vectors


def check_eig(A: Aval) -> None:
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(f"Unknown Complex ScalarType for {A.dtype.scalar_name}")
    square_check("linalg.eig")(A)


def eig_grad(g0: Any, g1: Any, out0: Any, out1: Any, A_aval: Aval) -> Any:
    vh = adjoint(out1)
    gap = jnp.conj(out0[..., None, :] - out0[..., :, None])
    eye = jnp.eye(out0.shape[-1], dtype=bool)
    vhg = vh @ g1
    norm = jnp.real(_diag_of(vhg)).astype(vhg.dtype)
    inner = (vhg - (vh @ out1) * norm[..., None, :]) / jnp.where(eye, 1, gap)
    inner = jnp.where(eye, g0[..., None], inner)
    d = _solve(vh, inner @ vh, True)
    return jnp.real(d) if not A_aval.dtype.is_complex else d


@op(
    **internal(
        outputs=("eigenvalues", "eigenvectors"),
        check=check_eig,
        grad_name="LinalgEigBackward0",
        vjp={"A": eig_grad},
    )
)
def _linalg_eig(A: T):
    """(complex eigenvalues, eigenvectors) of any square matrix. CPU only, as in JAX."""
    if A.size == 0:
        c = jnp.result_type(A.dtype, jnp.complex64)
        return jnp.zeros(A.shape[:-1], c), A.astype(c)
    values, vectors = lax.linalg.eig(A, compute_left_eigenvectors=False)
    return values, vectors


def lu_shape(A: Aval, pivot: bool) -> tuple:
    return A, aval((*A.shape[:-2], min(A.shape[-2:])), INT32, A.device), aval(A.shape[:-2], INT32, A.device)


def check_lu(A: Aval, pivot: bool) -> None:
    if A.ndim < 2:
        raise RuntimeError(
            f"torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    _supported("lu_cpu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


@op(
    **internal(
        outputs=("LU", "pivots", "info"),
        check=check_lu,
        shape=lu_shape,
        grad_name="LinalgLuFactorExBackward0",
    )
)
def _linalg_lu_factor(A: T, pivot: bool = True):
    """(L and U in one matrix, 1-based pivots, info)."""
    if A.size == 0:
        k = min(A.shape[-2:])
        return A, jnp.zeros((*A.shape[:-2], k), jnp.int32), _zero_info(A)
    lu, pivots, _ = lax.linalg.lu(A)
    return lu, pivots.astype(jnp.int32) + 1, zero_diagonal(lu)


@op(**internal(differentiable=False))
def _pivots_to_permutation(pivots: T, rows: int):
    """(..., k) 1-based pivots -> (..., rows): the row that comes to each place."""
    order = jnp.broadcast_to(jnp.arange(rows, dtype=jnp.int32), (*pivots.shape[:-1], rows))
    if pivots.size == 0:
        return order.astype(jnp.int64)

    def swap(i: Any, order: Any) -> Any:
        j = lax.dynamic_index_in_dim(pivots, i, pivots.ndim - 1, keepdims=True) - 1
        a = lax.dynamic_index_in_dim(order, i, order.ndim - 1, keepdims=True)
        b = jnp.take_along_axis(order, j, -1)
        places = lax.broadcasted_iota(jnp.int32, order.shape, order.ndim - 1)
        order = jnp.where(places == j, a, order)
        return jnp.where(places == i, b, order)

    return lax.fori_loop(0, pivots.shape[-1], swap, order).astype(jnp.int64)
