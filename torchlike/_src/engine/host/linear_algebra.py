"""Decompositions and triangular solves by NumPy and LAPACK, matrix by matrix where there is no batched routine.

Where a matrix has no decomposition XLA returns NaN and NumPy raises; these functions return NaN.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, Shape, aval_of, rule


def _scipy() -> Any:
    """scipy.linalg, imported when first wanted, because the import takes 0.1 s."""
    return importlib.import_module("scipy.linalg")


def _each(function: Callable[..., Any], outs: Sequence[tuple[Shape, np.dtype]], ranks: Sequence[int]) -> Any:
    """Apply a function of matrices over the leading dimensions; NaN (or 0) where it fails."""

    def run(*arrays: Any) -> list[np.ndarray]:
        results = [np.empty(shape, dtype) for shape, dtype in outs]
        batch = outs[0][0][: len(outs[0][0]) - ranks[0]]
        flat_in = [a.reshape((-1,) + a.shape[len(batch) :]) for a in arrays]
        flat_out = [r.reshape((-1,) + r.shape[len(batch) :]) for r in results]
        for i in range(math.prod(batch)):
            try:
                values = function(*(a[i] for a in flat_in))
            except (np.linalg.LinAlgError, ValueError):
                values = [np.nan if d.kind in "fc" else 0 for _, d in outs]
            for out, value in zip(flat_out, values):
                out[i] = value
        return results

    run.__name__ = function.__name__
    return run


def _put(em: Emitter, eqn: Any, function: Callable[..., Any], ranks: Sequence[int], *refs: Ref) -> list[Ref]:
    outs = [aval_of(v) for v in eqn.outvars]
    if any(r.dtype.name not in ("float32", "float64", "complex64", "complex128") for r in refs):
        raise HostUnsupported(eqn.primitive.name, refs[0].dtype.name)
    run = _each(function, outs, ranks)
    return em.put_many(f"{em.fn(run)}({', '.join(r.name for r in refs)})", outs, pins=True)


@rule("cholesky")
def _cholesky(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    def cholesky(a: np.ndarray) -> list[np.ndarray]:
        return [np.linalg.cholesky(a)]

    return _put(em, eqn, cholesky, [2], x)


@rule("triangular_solve")
def _triangular_solve(em: Emitter, eqn: Any, a: Ref, b: Ref) -> list[Ref]:
    p = eqn.params
    left, lower, unit = bool(p["left_side"]), bool(p["lower"]), bool(p["unit_diagonal"])
    operation = 2 if p["transpose_a"] and p["conjugate_a"] else 1 if p["transpose_a"] else 0
    conjugate = bool(p["conjugate_a"]) and not p["transpose_a"]
    (trsm,) = _scipy().blas.get_blas_funcs(("trsm",), dtype=a.dtype)

    def triangular_solve(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        if b.size == 0:
            return [b]
        return [trsm(1.0, a.conj() if conjugate else a, b, not left, lower, operation, unit)]

    return _put(em, eqn, triangular_solve, [2], a, b)


@rule("lu")
def _lu(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    (getrf,) = _scipy().lapack.get_lapack_funcs(("getrf",), dtype=x.dtype)
    rows = x.shape[-2]

    def lu(a: np.ndarray) -> list[np.ndarray]:
        factors, pivots, _ = getrf(a)
        return [factors, pivots, _permutation(pivots, rows)]

    return _put(em, eqn, lu, [2, 1, 1], x)


def _permutation(pivots: Any, size: int) -> np.ndarray:
    """The permutation that a sequence of row exchanges amounts to."""
    order = np.arange(size)
    for i, j in enumerate(pivots):
        order[i], order[j] = order[j], order[i]
    return order


@rule("lu_pivots_to_permutation")
def _pivots(em: Emitter, eqn: Any, pivots: Ref) -> list[Ref]:
    size = int(eqn.params["permutation_size"])
    outs = [aval_of(v) for v in eqn.outvars]

    def pivots_to_permutation(p: Any) -> list[np.ndarray]:
        return [_permutation(p, size)]

    return em.put_many(f"{em.fn(_each(pivots_to_permutation, outs, [1]))}({pivots.name})", outs, pins=True)


@rule("qr")
def _qr(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    if eqn.params.get("pivoting"):
        raise HostUnsupported("qr", "pivoting")
    mode: Any = "complete" if eqn.params["full_matrices"] else "reduced"

    def qr(a: np.ndarray) -> Any:
        return np.linalg.qr(a, mode)

    return _put(em, eqn, qr, [2, 2], x)


@rule("eigh")
def _eigh(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    if eqn.params.get("subset_by_index") is not None:
        raise HostUnsupported("eigh", "subset_by_index")
    uplo: Any = "L" if eqn.params["lower"] else "U"
    vectors_first = len(aval_of(eqn.outvars[0])[0]) == len(x.shape)

    def eigh(a: np.ndarray) -> Any:
        values, vectors = np.linalg.eigh(a, uplo)
        return (vectors, values) if vectors_first else (values, vectors)

    return _put(em, eqn, eigh, [2, 1] if vectors_first else [1, 2], x)


@rule("svd")
def _svd(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    params = eqn.params
    if params.get("subset_by_index") is not None:
        raise HostUnsupported("svd", "subset_by_index")
    full, vectors = bool(params["full_matrices"]), bool(params["compute_uv"])

    def svd(a: np.ndarray) -> Any:
        if not vectors:
            return [np.linalg.svd(a, compute_uv=False)]
        u, s, vh = np.linalg.svd(a, full)
        return s, u, vh

    return _put(em, eqn, svd, [1, 2, 2][: len(eqn.outvars)], x)


@rule("eig")
def _eig(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    left, right = bool(eqn.params["compute_left_eigenvectors"]), bool(eqn.params["compute_right_eigenvectors"])

    scipy_eig = _scipy().eig

    def eig(a: np.ndarray) -> Any:
        if not left and not right:
            return [np.linalg.eigvals(a)]
        values, *vectors = scipy_eig(a, left=left, right=right)
        return values, *vectors

    return _put(em, eqn, eig, [1, 2, 2][: len(eqn.outvars)], x)


@rule("schur")
def _schur(em: Emitter, eqn: Any, x: Ref) -> list[Ref]:
    if eqn.params.get("sort_eig_vals") or eqn.params.get("select_callable") is not None:
        raise HostUnsupported("schur", "sorting")
    vectors = bool(eqn.params["compute_schur_vectors"])

    scipy_schur = _scipy().schur

    def schur(a: np.ndarray) -> Any:
        t, z = scipy_schur(a, output="complex" if a.dtype.kind == "c" else "real")
        return (t, z) if vectors else (t,)

    return _put(em, eqn, schur, [2, 2][: len(eqn.outvars)], x)


@rule("householder_product")
def _householder_product(em: Emitter, eqn: Any, a: Ref, taus: Ref) -> list[Ref]:
    name = "orgqr" if a.dtype.kind == "f" else "ungqr"
    (orgqr,) = _scipy().lapack.get_lapack_funcs((name,), dtype=a.dtype)

    def householder_product(a: np.ndarray, taus: np.ndarray) -> list[np.ndarray]:
        q, _, _ = orgqr(a, taus)
        return [q]

    return _put(em, eqn, householder_product, [2], a, taus)


@rule("geqrf")
def _geqrf(em: Emitter, eqn: Any, a: Ref) -> list[Ref]:
    (geqrf,) = _scipy().lapack.get_lapack_funcs(("geqrf",), dtype=a.dtype)

    def factor(a: np.ndarray) -> Any:
        qr, tau, _, _ = geqrf(a)
        return qr, tau

    return _put(em, eqn, factor, [2, 1], a)
