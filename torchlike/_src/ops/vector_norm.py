"""Vector norms and what is made of them: dist, renorm; the cross product."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import broadcast_shapes, canonical_dim
from torchlike._src.core.promotion import Promote
from torchlike._src.ops.declare import T, cast, op
from torchlike._src.ops.reduction import add_up, finish, keep, reduce_dims, reduce_shape, widen

# -- vector norms ----------------------------------------------------------------------------------------------


def order(p: Any) -> float:
    return 2.0 if p is None or p == "fro" else float(p)


def _norm_text(p: float) -> str:
    return "inf" if p == math.inf else "-inf" if p == -math.inf else f"{p:g}"


def _narrows(given: dt.dtype, to: dt.dtype) -> bool:
    return to.itemsize < given.itemsize or (to.itemsize == given.itemsize and to is not given)


def _dtype_check(input: Aval, dtype: dt.dtype) -> None:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"linalg.vector_norm: dtype should be floating point or complex, but got {dtype.scalar_name}"
        )
    if input.dtype.is_complex != dtype.is_complex:
        kind = "complex" if input.dtype.is_complex else "real"
        raise RuntimeError(f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {dtype.scalar_name}")
    if _narrows(input.dtype, dtype):
        raise RuntimeError(
            f"linalg.vector_norm: the dtype of the input ({input.dtype.scalar_name}) should be convertible without "
            f"narrowing to the specified dtype ({dtype.scalar_name})"
        )


def _norm_check(input: Aval, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> None:
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.scalar_name}"
        )
    if dtype is not None:
        _dtype_check(input, dtype)
    p = order(ord)
    dims = reduce_dims(dim, input.ndim)
    if input.numel or not (p < 0 or p == math.inf):
        return
    name = f"linalg.vector_norm cannot compute the {_norm_text(p)} norm on "
    if dim is None or dim == ():
        raise RuntimeError(f"{name}an empty tensor because the operation does not have an identity")
    for d, shown in zip(dims, dim if isinstance(dim, tuple) else (dim,), strict=False):
        if input.shape[d] == 0:
            raise RuntimeError(
                f"{name}the dimension {shown}because this dimension is empty and the operation does not have an "
                "identity"
            )


def _norm_aval(input: Aval, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Aval:
    return aval(reduce_shape(input.shape, dim, keepdim), (dtype or input.dtype).to_real(), input.device)


def norm_over(x: Any, p: float, dims: tuple) -> Any:
    """The p-norm over `dims`, which go. x is wide; the result is real."""
    if p == 2:
        square = x * x if x.dtype.kind != "c" else lax.square(lax.real(x)) + lax.square(lax.imag(x))
        return jnp.sqrt(add_up(square, dims))
    size = jnp.abs(x)
    if p == 1:
        return add_up(size, dims)
    if p == 0:
        return add_up((x != 0).astype(size.dtype), dims)
    if p == math.inf:
        return lax.reduce_max(size, dims) if dims else size
    if p == -math.inf:
        return lax.reduce_min(size, dims) if dims else size
    return add_up(size ** np.asarray(p, size.dtype), dims) ** np.asarray(1 / p, size.dtype)


def _sign(x: Any) -> Any:
    """x / |x|, zero at zero (NaN stays NaN)."""
    if x.dtype.kind != "c":
        return jnp.sign(x)
    size = jnp.abs(x)
    return jnp.where(size == 0, 0, x / size)


def norm_pull(g: Any, x: Any, out: Any, p: float, dims: tuple) -> Any:
    """The gradient of norm_over; g and out have the reduced dims as size 1. Zero where the norm has a corner at 0."""
    if p == 0:
        return jnp.zeros(x.shape, x.dtype)
    if p == 1:
        return _sign(x) * g
    if p == 2:
        return jnp.where(out == 0, 0, x / out) * g
    size = jnp.abs(x)
    if abs(p) == math.inf:
        hits = size == out
        counts = finish(add_up(hits.astype(size.dtype), dims), dims, True)
        return _sign(x) * (hits / counts * g)
    steps = np.asarray(p - 1, size.dtype)
    if p < 1:
        safe = jnp.where(x == 0, 1, size)
        return jnp.where(x == 0, 0, _sign(x) * safe**steps) * (g * out ** (-steps))
    scale = g / jnp.where(out == 0, 1, out) ** steps
    if p < 2:
        return jnp.where(out == 0, 0, _sign(x) * size**steps * scale)
    return x * jnp.where(out == 0, 0, size ** np.asarray(p - 2, size.dtype) * scale)


def _norm_rule(g: Any, input: Any, out: Any, ord: Any, dim: Any, keepdim: bool) -> Any:
    dims = reduce_dims(dim, input.ndim)
    g, out = (keep(widen(a), input.ndim, dim, keepdim) for a in (g, out))
    x = widen(input)
    return norm_pull(g, cast(x, jnp.promote_types(x.dtype, g.dtype)), out, order(ord), dims)


_NORM = {
    "check": _norm_check,
    "shape": _norm_aval,
    "vjp": {"input": _norm_rule},
    "grad_name": "LinalgVectorNormBackward0",
    "method": False,
    "autocast": "float32",
}


def _vector_norm(input: T, ord=2, dim=None, keepdim=False, *, dtype=None):
    """The vector norm of order `ord` over `dim` (None: all of the flattened tensor); real.

    RuntimeError for integers, a narrowing `dtype`, or an empty dim where the norm has no identity."""
    x = input if dtype is None else cast(input, dtype.np)
    wide = widen(x)
    dims = reduce_dims(dim, x.ndim)
    out = finish(norm_over(wide, order(ord), dims), dims, keepdim)
    return out.astype(dt.from_numpy(x.dtype).to_real().np)


op(name="vector_norm", namespaces=("torch.linalg",), **_NORM)(_vector_norm)
op(name="_vector_norm", namespaces=(), **_NORM)(_vector_norm)


# -- dist ------------------------------------------------------------------------------------------------------


def _dist_check(input: Aval, other: Aval, p: Any) -> None:
    broadcast_shapes(input.shape, other.shape)
    if not any(a.dtype.is_floating_point or a.dtype.is_complex for a in (input, other)):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {input.dtype.scalar_name} instead."
        )


def _dist_pull(sign: int) -> Any:
    def pull(g: Any, input: Any, other: Any, out: Any, p: Any) -> Any:
        x = widen(input) - widen(other)
        return norm_pull(widen(g), x, widen(out), order(p), tuple(range(x.ndim))) * sign

    return pull


@op(
    promote=Promote.COMPLEX_TO_FLOAT,
    check=_dist_check,
    vjp={"input": _dist_pull(1), "other": _dist_pull(-1)},
    out=False,
)
def dist(input: T, other: T, p=2):
    """The p-norm of input - other, broadcast."""
    x = widen(input) - widen(other)
    return norm_over(x, order(p), tuple(range(x.ndim)))


# -- renorm ----------------------------------------------------------------------------------------------------


def _renorm_check(input: Aval, p: Any, dim: int, maxnorm: Any) -> None:
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {_norm_text(maxnorm)}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    canonical_dim(dim, input.ndim)
    _norm_check(input, p, None, False, None)


def _renorm_scale(norm: Any, maxnorm: float) -> Any:
    return jnp.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1)


def _renorm_norms(x: Any, p: float, dim: int) -> tuple[Any, tuple]:
    dims = tuple(k for k in range(x.ndim) if k != dim % x.ndim)
    return finish(norm_over(x, p, dims), dims, True), dims


def _renorm_pull(g: Any, input: Any, p: Any, dim: int, maxnorm: Any) -> Any:
    x, g = widen(input), widen(g)
    norm, dims = _renorm_norms(x, float(p), dim)
    inner = finish(add_up(jnp.conj(x) * g, dims), dims, True)
    inner = lax.real(inner) if x.dtype.kind == "c" else inner
    through = -maxnorm * norm_pull(inner, x, norm, float(p), dims) / (norm + 1e-7) ** 2
    return jnp.where(norm > maxnorm, through + g * _renorm_scale(norm, maxnorm), g)


@op(check=_renorm_check, shape=lambda input, **_: input, inplace=True, vjp={"input": _renorm_pull})
def renorm(input: T, p, dim, maxnorm):
    """`input` with each slice along `dim` whose p-norm exceeds `maxnorm` scaled down to it."""
    x = widen(input)
    norm, _ = _renorm_norms(x, float(p), dim)
    return (x * _renorm_scale(norm, maxnorm).astype(norm.dtype)).astype(input.dtype)


# -- the cross product -----------------------------------------------------------------------------------------


def _cross_check(input: Aval, other: Aval, dim: Any) -> None:
    if dim is None and 3 not in input.shape:
        raise RuntimeError("no dimension of size 3 in input")
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    dim = _axis(input, dim)
    axis = canonical_dim(dim, input.ndim)
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[axis]} and {other.shape[axis]}"
        )
    broadcast_shapes(input.shape, other.shape)


def _axis(input: Any, dim: Any) -> int:
    return dim if dim is not None else input.shape.index(3)


def _cross_arrays(a: Any, b: Any, dim: int) -> Any:
    axis = dim % a.ndim

    def part(x: Any, k: int) -> Any:
        return lax.slice_in_dim(x, k, k + 1, axis=axis)

    return lax.concatenate(
        [part(a, i) * part(b, j) - part(a, j) * part(b, i) for i, j in ((1, 2), (2, 0), (0, 1))], axis
    )


_CROSS = {
    "promote": Promote.DEFAULT,
    "half": lambda input, other, dim: _cross_arrays(input, other, _axis(input, dim)),
    "check": _cross_check,
    "vjp": {
        "input": lambda g, other, dim, input_aval: _cross_arrays(jnp.conj(other), g, _axis(input_aval, dim)),
        "other": lambda g, input, dim: _cross_arrays(g, jnp.conj(input), _axis(input, dim)),
    },
    "grad_name": "LinalgCrossBackward0",
}


@op(**_CROSS)
def cross(input: T, other: T, dim=None):
    """The cross product along `dim` (the first of size 3 by default); other dims broadcast."""
    return _cross_arrays(input, other, _axis(input, dim))


@op(**_CROSS, namespaces=())
def _linalg_cross(input: T, other: T, *, dim=-1):
    """torch.linalg.cross: the cross product along `dim`."""
    return _cross_arrays(input, other, dim)
