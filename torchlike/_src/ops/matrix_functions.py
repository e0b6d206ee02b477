"""Functions of matrices: exponential, pseudo-inverse, rank, products of Householder reflections."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.ops.declare import T, op
from torchlike._src.ops.linalg import _supported as supported
from torchlike._src.ops.linalg import adjoint, check_floating, check_matrix, check_square, internal

# -- matrix functions -----------------------------------------------------------------------------------------


def check_matrix_exp(A: Aval) -> None:
    check_square("linalg.matrix_exp", A)
    check_floating("linalg.matrix_exp", A, low_precision=True)


@op(**internal(check=check_matrix_exp, shape=lambda A: A, grad_name="LinalgMatrixExpBackward0"))
def _linalg_matrix_exp(A: T):
    """The matrix exponential, by scaling and squaring."""
    if A.size == 0:
        return A
    wide = A.astype(jnp.float32) if A.dtype.name in ("float16", "bfloat16") else A
    return jax.scipy.linalg.expm(wide).astype(A.dtype)


def _pinv(A: Any, rtol: float | None, atol: float, hermitian: bool) -> Any:
    m, n = A.shape[-2:]
    eps = float(np.finfo(A.dtype).eps)
    relative = (max(m, n) * eps if atol == 0.0 else 0.0) if rtol is None else rtol
    if hermitian:
        vectors, values = lax.linalg.eigh(A, symmetrize_input=False)
        size = abs(values)
        limit = jnp.maximum(atol, relative * size.max(-1, keepdims=True))
        inverse = jnp.where(size > limit, 1 / jnp.where(size > limit, values, 1), 0)
        return (vectors * inverse[..., None, :].astype(vectors.dtype)) @ adjoint(vectors)
    u, s, vh = lax.linalg.svd(A, full_matrices=False)
    limit = jnp.maximum(atol, relative * s.max(-1, keepdims=True))
    inverse = jnp.where(s > limit, 1 / jnp.where(s > limit, s, 1), 0)
    return (adjoint(vh) * inverse[..., None, :].astype(vh.dtype)) @ adjoint(u)


def pinv_grad(g: Any, A: Any, out: Any) -> Any:
    """The adjoint of dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P."""
    p, gh = out, adjoint(g)
    ph = adjoint(p)
    m, n = A.shape[-2:]
    rows = jnp.eye(m, dtype=A.dtype) - A @ p
    columns = jnp.eye(n, dtype=A.dtype) - p @ A
    return -(ph @ g @ ph) + rows @ gh @ (p @ ph) + (ph @ p) @ gh @ columns


def check_pinv(A: Aval, **_: Any) -> None:
    if A.ndim < 2 or not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(
            f"linalg.pinv({A.dtype.scalar_name}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )


@op(
    **internal(
        check=check_pinv,
        grad_name="LinalgPinvBackward0",
        shape=lambda A, rtol, atol, hermitian: A.with_shape((*A.shape[:-2], A.shape[-1], A.shape[-2])),
        vjp={"A": pinv_grad},
    )
)
def _linalg_pinv(A: T, rtol: float | None = None, atol: float = 0.0, hermitian: bool = False):
    """(..., m, n) -> (..., n, m): the Moore-Penrose inverse; singular values up to max(atol, rtol * largest) are 0."""
    if A.size == 0:
        return jnp.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    return _pinv(A, rtol, atol, hermitian)


def check_householder(A: Aval, tau: Aval) -> None:
    name = "torch.linalg.householder_product"
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if A.shape[-2] < A.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if A.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if A.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {A.ndim}"
        )
    if tau.shape[:-1] != A.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.dtype is not A.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.scalar_name} does not match input dtype {A.dtype.scalar_name}"
        )


def _reflectors(A: Any) -> Any:
    """Unit lower trapezoidal: the vectors of the elementary reflectors."""
    m, n = A.shape[-2:]
    return jnp.tril(A, -1) + jnp.eye(m, n, dtype=A.dtype)


def _apply_reflectors(V: Any, tau: Any, x: Any, transpose: bool) -> Any:
    """H_1 H_2 … H_k x, or its adjoint, H_i = 1 - tau_i v_i v_i^H."""
    k = tau.shape[-1]
    order = range(k) if transpose else reversed(range(k))
    for i in order:
        v = V[..., :, i : i + 1]
        t = tau[..., i, None, None]
        t = jnp.conj(t) if transpose and t.dtype.kind == "c" else t
        x = x - t * (v @ (adjoint(v) @ x))
    return x


@op(**internal(check=check_householder, grad_name="LinalgHouseholderProductBackward0", shape=lambda A, tau: A))
def _linalg_householder_product(A: T, tau: T):
    """(..., m, n), (..., k) -> (..., m, n): the first columns of a product of Householder reflections."""
    m, n = A.shape[-2:]
    eye = jnp.broadcast_to(jnp.eye(m, n, dtype=A.dtype), A.shape)
    return _apply_reflectors(_reflectors(A), tau, eye, False)


def _check_ormqr(A: Aval, tau: Aval, other: Aval, left: bool, transpose: bool) -> None:
    for name, a in (("input", A), ("other", other)):
        if a.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    side = -2 if left else -1
    if tau.ndim and tau.shape[-1] > A.shape[-1]:
        raise RuntimeError(
            "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])"
            if left
            else "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-1], input.shape[-1])"
        )
    if tau.shape[-1:] != (min(other.shape[side], A.shape[-1]),):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
            if other.shape[side] == A.shape[-2]
            else f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]"
        )
    if other.shape[side] != A.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if A.ndim - tau.ndim != 1:
        raise RuntimeError(
            "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to "
            f"{tau.ndim} and input.ndim is equal to {A.ndim}"
        )
    if A.ndim != other.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{other.ndim} and input.ndim is equal to {A.ndim}"
        )
    for name, a in (("tau", tau), ("other", other)):
        if a.dtype is not A.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype"
                f"{A.dtype.scalar_name} and {name} has dtype {a.dtype.scalar_name}"
            )


@op(**internal(grad_name="OrmqrBackward0", check=_check_ormqr))
def _ormqr(A: T, tau: T, other: T, left: bool = True, transpose: bool = False):
    """Q @ other (or Q^H @, or from the right) for the Q of reflectors A, tau."""
    if left:
        return _apply_reflectors(_reflectors(A), tau, other, transpose)
    return adjoint(_apply_reflectors(_reflectors(A), tau, adjoint(other), not transpose))


def _check_geqrf(A: Aval) -> None:
    if A.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    supported("geqrf_cpu", A)


@op(**internal(differentiable=False, outputs=("a", "tau"), check=_check_geqrf))
def _geqrf(A: T):
    """LAPACK's packed QR factorisation: (R above reflectors, tau)."""
    return lax.linalg.geqrf(A) if hasattr(lax.linalg, "geqrf") else _geqrf_by_hand(A)


def _geqrf_by_hand(A: Any) -> tuple[Any, Any]:
    m, n = A.shape[-2:]
    taus = []
    for i in range(min(m, n)):
        column = A[..., i:, i]
        alpha = column[..., 0]
        rest = jnp.sqrt((abs(column[..., 1:]) ** 2).sum(-1))
        imag = jnp.imag(alpha) if A.dtype.kind == "c" else jnp.zeros((), A.dtype)
        real = jnp.real(alpha) if A.dtype.kind == "c" else alpha
        trivial = (rest == 0) & (imag == 0)
        beta = -jnp.where(real >= 0, 1, -1) * jnp.sqrt(abs(alpha) ** 2 + rest**2)
        beta = jnp.where(trivial, real, beta).astype(real.dtype)
        tau = jnp.where(trivial, 0, (beta - alpha) / jnp.where(trivial, 1, beta)).astype(A.dtype)
        scale = jnp.where(trivial, 1, alpha - beta)
        v = jnp.concatenate([jnp.ones_like(alpha)[..., None], column[..., 1:] / scale[..., None]], -1)
        block = A[..., i:, i:]
        conj_tau = jnp.conj(tau) if A.dtype.kind == "c" else tau
        block = block - conj_tau[..., None, None] * v[..., :, None] * (adjoint(v[..., :, None]) @ block)
        A = A.at[..., i:, i:].set(block)
        A = A.at[..., i + 1 :, i].set(v[..., 1:])
        taus.append(tau)
    k = len(taus)
    tau = jnp.stack(taus, -1) if k else jnp.zeros((*A.shape[:-2], 0), A.dtype)
    return A, tau


def _check_rank(A: Aval, **_: Any) -> None:
    check_matrix("torch.linalg.matrix_rank", A, "input")
    check_floating("linalg.svd", A)


@op(**internal(differentiable=False, check=_check_rank))
def _matrix_rank(A: T, rtol: float | None = None, atol: float | None = None, hermitian: bool = False):
    """How many singular values exceed max(atol, rtol * largest); int64."""
    m, n = A.shape[-2:]
    if A.size == 0:
        return jnp.zeros(A.shape[:-2], jnp.int64)
    if hermitian:
        s = abs(lax.linalg.eigh(A, symmetrize_input=False)[1])
    else:
        s = lax.linalg.svd(A, full_matrices=False, compute_uv=False)
    eps = max(m, n) * float(np.finfo(A.dtype).eps)
    relative = (eps if not atol else 0.0) if rtol is None else rtol
    limit = jnp.maximum(atol or 0.0, relative * s.max(-1, keepdims=True))
    return (s > limit).sum(-1, dtype=jnp.int64)
