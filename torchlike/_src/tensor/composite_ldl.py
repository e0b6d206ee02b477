"""torch.linalg.ldl_*: LDL factors of symmetric and Hermitian matrices, by LAPACK on the host. They read their input."""

from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.ops.linalg import check_square
from torchlike._src.tensor.call import write_out
from torchlike._src.tensor.composite import public
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.publish import return_type
from torchlike._src.tensor.tensor import Tensor

LINALG = "torch.linalg"


def _routine(name: str, array: np.ndarray, hermitian: bool) -> Any:
    from scipy.linalg import lapack  # which JAX needs, too

    letter = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}.get(array.dtype.name)
    if letter is None:
        raise RuntimeError(f"torch.linalg.ldl_{name}: unsupported dtype {array.dtype.name}")
    return getattr(lapack, letter + ("he" if hermitian and array.dtype.kind == "c" else "sy") + name)


def _no_gradient(name: str, *tensors: Tensor) -> None:
    if MODE.enabled and any(t._rg for t in tensors):
        raise NotImplementedError(f"torchlike: the derivative of linalg.{name} (PyTorch has none either)")


def _factor(name: str, A: Tensor, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = A._aval
    check_square("torch.linalg.ldl_factor_ex", a)
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        raise RuntimeError(
            "torch.linalg.ldl_factor_ex: Expected a floating point or complex tensor as input. Got "
            f"{a.dtype.scalar_name}"
        )
    _no_gradient(name, A)
    array = A._host()
    batch, n = array.shape[:-2], array.shape[-1]
    factors, pivots, info = (
        np.zeros(array.shape, array.dtype),
        np.zeros((*batch, n), np.int32),
        np.zeros(batch, np.int32),
    )
    run = _routine("trf", array, hermitian)
    for at in np.ndindex(*batch) if n else ():
        found, ipiv, status = run(array[at], lower=1)
        factors[at] = np.tril(found)
        pivots[at], info[at] = ipiv, status
    return factors, pivots, info


def _result(name: str, fields: tuple[str, ...], arrays: tuple, out: Any) -> Any:
    items = [from_array(x) for x in arrays]
    if out is not None:
        items = [write_out(o, i, name, ()) for o, i in zip(out, items, strict=True)]
    return return_type(name, fields)(items)


@public(LINALG)
def ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None):
    """(..., n, n) -> (LD, pivots, info), in LAPACK's compact form; info is not 0 where D is singular."""
    factors, pivots, info = _factor("ldl_factor_ex", A, hermitian)
    if check_errors and info.any():
        raise RuntimeError(f"torch.linalg.ldl_factor_ex: Unknown error code: {int(info[info != 0].flat[0])}.")
    return _result("linalg_ldl_factor_ex", ("LD", "pivots", "info"), (factors, pivots, info), out)


@public(LINALG)
def ldl_factor(A, *, hermitian=False, out=None):
    """(..., n, n) -> (LD, pivots), in LAPACK's compact form; RuntimeError where D is singular."""
    factors, pivots, info = _factor("ldl_factor", A, hermitian)
    if info.any():
        raise RuntimeError(f"torch.linalg.ldl_factor: Unknown error code: {int(info[info != 0].flat[0])}.")
    return _result("linalg_ldl_factor", ("LD", "pivots"), (factors, pivots), out)


@public(LINALG)
def ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """X of A X = B, from ldl_factor(A): (..., n, n), (..., n), (..., n, k) -> (..., n, k)."""
    a, b = LD._aval, B._aval
    check_square("torch.linalg.ldl_solve", a)
    if b.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {b.ndim} dimensions instead"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {a.shape[-1]} by {a.shape[-1]} "
            f"but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {b.dtype.type_name[6:-6]} and A of type "
            f"{a.dtype.type_name[6:-6]} instead."
        )
    if pivots._aval.shape != a.shape[:-1]:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots._aval.shape)} instead"
        )
    _no_gradient("ldl_solve", LD, B)
    factors, order, right = LD._host(), pivots._host().astype(np.int32), B._host()
    batch = np.broadcast_shapes(factors.shape[:-2], right.shape[:-2])
    n, k = right.shape[-2:]
    factors, order = np.broadcast_to(factors, (*batch, n, n)), np.broadcast_to(order, (*batch, n))
    right = np.broadcast_to(right, (*batch, n, k))
    found = np.zeros(right.shape, right.dtype)
    run = _routine("trs", factors, hermitian)
    for at in np.ndindex(*batch) if n and k else ():
        found[at], _ = run(factors[at], order[at], right[at], lower=1)
    result = from_array(found)
    return result if out is None else write_out(out, result, "linalg_ldl_solve", (LD, B))
