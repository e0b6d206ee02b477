"""Distances between vectors: cosine_similarity, pairwise_distance, cdist, pdist. A norm's gradient at zero is 0."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import broadcast_shapes, canonical_dim
from torchlike._src.ops.declare import Promote, T, op

# -- norms of differences -------------------------------------------------------------------------------------


def norm_of(d: Any, p: float, axis: int) -> Any:
    """The p-norm along `axis`."""
    a = abs(d)
    if p == 0:
        return (a != 0).astype(a.dtype).sum(axis)
    if p == 1:
        return a.sum(axis)
    if p == 2:
        return jnp.sqrt((a * a).sum(axis))
    if p == math.inf:
        return a.max(axis) if d.shape[axis] else jnp.zeros(a.sum(axis).shape, a.dtype)
    if p == -math.inf:
        return a.min(axis)
    return (a**p).sum(axis) ** (1.0 / p)


def norm_slope(d: Any, norm: Any, p: float) -> Any:
    """d norm / d d, elementwise; `norm` has the reduced dim as 1."""
    zero = jnp.zeros((), d.dtype)
    if p == 0:
        return jnp.zeros(d.shape, d.dtype)
    if p == 1:
        return jnp.sign(d)
    if p == 2:
        return jnp.where(norm == 0, zero, d / jnp.where(norm == 0, 1, norm))
    if abs(p) == math.inf:
        return jnp.sign(d) * (abs(d) == norm).astype(d.dtype)
    safe = jnp.where(norm == 0, 1, norm)
    power = jnp.where(d == 0, zero, jnp.sign(d) * jnp.where(d == 0, 1, abs(d)) ** (p - 1))
    return jnp.where(norm == 0, zero, power / safe ** (p - 1))


# -- pairs ----------------------------------------------------------------------------------------------------


def _cosine_parts(x1: Any, x2: Any, dim: int, eps: float) -> tuple:
    dim = dim % max(x1.ndim, x2.ndim, 1)
    x1, x2 = jnp.broadcast_arrays(x1, x2)
    if x1.ndim == 0:
        x1, x2 = x1.reshape(1), x2.reshape(1)
    n1 = jnp.sqrt((x1 * x1).sum(dim, keepdims=True))
    n2 = jnp.sqrt((x2 * x2).sum(dim, keepdims=True))
    low = jnp.asarray(eps, x1.dtype)
    return x1, x2, jnp.maximum(n1, low), jnp.maximum(n2, low), dim


def _half_cosine(x1: Any, x2: Any, dim: int, eps: float) -> Any:
    """Norms, quotients and products are rounded."""
    half = x1.dtype
    _, _, n1, n2, axis = _cosine_parts(x1.astype(jnp.float32), x2.astype(jnp.float32), dim, eps)
    x1, x2, *_ = jnp.broadcast_arrays(x1, x2)
    if x1.ndim == 0:
        x1, x2 = x1.reshape(1), x2.reshape(1)
    product = (x1 / n1.astype(half)) * (x2 / n2.astype(half))
    return product.astype(jnp.float32).sum(axis).astype(half)


def cosine_grad(g: Any, mine: Any, other: Any, dim: int, eps: float) -> Any:
    """other / (n1 n2) - cos * mine / n1²; the clamp at eps lets the norm's gradient through, as PyTorch's does."""
    x1, x2, n1, n2, dim = _cosine_parts(mine, other, dim, eps)
    cosine = (x1 * x2).sum(dim, keepdims=True) / (n1 * n2)
    return jnp.expand_dims(g, dim) * (x2 / (n1 * n2) - cosine * x1 / (n1 * n1))


def check_cosine(x1: Aval, x2: Aval, dim: int, eps: float) -> None:
    shape = broadcast_shapes(x1.shape, x2.shape)
    canonical_dim(dim, len(shape))
    if not (x1.dtype.is_floating_point or x2.dtype.is_floating_point):
        raise RuntimeError("expected common dtype to be floating point, yet common dtype is " + x1.dtype.scalar_name)


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=check_cosine,
    half=_half_cosine,
    grad_name="SumBackward1",
    vjp={
        "x1": lambda g, x1, x2, dim, eps: cosine_grad(g, x1, x2, dim, eps),
        "x2": lambda g, x1, x2, dim, eps: cosine_grad(g, x2, x1, dim, eps),
    },
)
def cosine_similarity(x1: T, x2: T, dim=1, eps=1e-08):
    """x1 · x2 / (|x1| |x2|) along dim, norms not below eps."""
    x1, x2, n1, n2, dim = _cosine_parts(x1, x2, dim, eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def _half_pairwise(x1: Any, x2: Any, p: float, eps: float, keepdim: bool) -> Any:
    """The difference is rounded, and again when eps is on it."""
    d = (x1 - x2).astype(jnp.float32) + np.float32(eps).astype(x1.dtype).astype(jnp.float32)
    norm = norm_of(d.astype(x1.dtype).astype(jnp.float32), p, d.ndim - 1)
    return norm[..., None] if keepdim else norm


def pairwise_grad(g: Any, x1: Any, x2: Any, p: float, eps: float, keepdim: bool, sign: int) -> Any:
    d = x1 - x2 + jnp.asarray(eps, x1.dtype)
    norm = jnp.expand_dims(norm_of(d, p, d.ndim - 1), -1)
    g = g if keepdim else g[..., None]
    return sign * g * norm_slope(d, norm, p)


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    promote=Promote.INT_TO_FLOAT,
    check=lambda x1, x2, p, eps, keepdim: broadcast_shapes(x1.shape, x2.shape),
    half=_half_pairwise,
    grad_name="NormBackward1",
    vjp={
        "x1": lambda g, x1, x2, p, eps, keepdim: pairwise_grad(g, x1, x2, p, eps, keepdim, 1),
        "x2": lambda g, x1, x2, p, eps, keepdim: pairwise_grad(g, x1, x2, p, eps, keepdim, -1),
    },
)
def pairwise_distance(x1: T, x2: T, p=2.0, eps=1e-06, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dim."""
    d = x1 - x2 + jnp.asarray(eps, x1.dtype)
    if d.dtype.kind == "c":
        d = abs(d)
    norm = norm_of(d, p, d.ndim - 1)
    return norm[..., None] if keepdim else norm


# -- all pairs ------------------------------------------------------------------------------------------------


def check_cdist(x1: Aval, x2: Aval, p: float, compute_mode: Any) -> None:
    for name, a in (("X1", x1), ("X2", x2)):
        if not a.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {a.dtype.scalar_name}")
        if a.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {a.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    broadcast_shapes(x1.shape[:-2], x2.shape[:-2])


def _by_product(x1_shape: tuple, x2_shape: tuple, p: float, compute_mode: Any) -> bool:
    """Whether |x - y|² is expanded into one matrix product, as PyTorch does for large inputs."""
    mode = 0 if compute_mode is None else compute_mode
    if p != 2 or mode in (2, "donot_use_mm_for_euclid_dist"):
        return False
    if mode in (1, "use_mm_for_euclid_dist"):
        return True
    return x1_shape[-2] > 25 or x2_shape[-2] > 25


def _batch(x1: Any, x2: Any) -> tuple:
    lead = jnp.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return jnp.broadcast_to(x1, (*lead, *x1.shape[-2:])), jnp.broadcast_to(x2, (*lead, *x2.shape[-2:]))


def _product(a: Any, b: Any) -> Any:
    """(..., n, k), (..., m, k) -> (..., n, m)."""
    batch = tuple(range(a.ndim - 2))
    return lax.dot_general(a, b, (((a.ndim - 1,), (b.ndim - 1,)), (batch, batch)))


def _distances(x1: Any, x2: Any, p: float, compute_mode: Any) -> Any:
    a, b = _batch(x1, x2)
    if _by_product(x1.shape, x2.shape, p, compute_mode):
        squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :] - 2 * _product(a, b)
        return jnp.sqrt(jnp.maximum(squares, 0))
    return norm_of(a[..., :, None, :] - b[..., None, :, :], p, a.ndim)


def cdist_grad(g: Any, out: Any, mine: Any, other: Any, p: float) -> Any:
    """Sum over the other's rows; for p = 2 as a product, so that no (n, m, k) array is formed."""
    a, b = _batch(mine, other)
    if p == 2:
        ratio = jnp.where(out == 0, 0, g / jnp.where(out == 0, 1, out))
        batch = tuple(range(ratio.ndim - 2))
        pulled = lax.dot_general(ratio, b, (((ratio.ndim - 1,), (b.ndim - 2,)), (batch, batch)))
        return a * ratio.sum(-1)[..., None] - pulled
    d = a[..., :, None, :] - b[..., None, :, :]
    return (g[..., None] * norm_slope(d, out[..., None], p)).sum(-2)


def _swap(a: Any) -> Any:
    return jnp.swapaxes(a, -1, -2)


@op(
    out=False,
    method=False,
    promote=Promote.DEFAULT,
    check=check_cdist,
    autocast="float32",
    grad_name=lambda x1, x2, p, compute_mode: (
        "ViewBackward0" if _by_product(x1.shape, x2.shape, p, compute_mode) else "CdistBackward0"
    ),
    vjp={
        "x1": lambda g, x1, x2, p, out: cdist_grad(g, out, x1, x2, p),
        "x2": lambda g, x1, x2, p, out: cdist_grad(_swap(g), _swap(out), x2, x1, p),
    },
)
def cdist(x1: T, x2: T, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """(..., n, k), (..., m, k) -> (..., n, m): the p-norm distance of every pair of rows."""
    return _distances(x1, x2, p, compute_mode)


def check_pdist(input: Aval, p: float) -> None:
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")


def _pairs(n: int) -> tuple:
    first, second = np.triu_indices(n, 1)
    return jnp.asarray(first), jnp.asarray(second)


def pdist_grad(g: Any, out: Any, input: Any, p: float) -> Any:
    n = input.shape[0]
    first, second = _pairs(n)
    zeros = jnp.zeros((n, n), g.dtype)
    full_g, full_out = zeros.at[first, second].set(g), zeros.at[first, second].set(out)
    return cdist_grad(full_g + full_g.T, full_out + full_out.T, input, input, p)


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=check_pdist,
    autocast="float32",
    vjp={"input": lambda g, out, input, p: pdist_grad(g, out, input, p)},
)
def pdist(input: T, p=2.0):
    """(n, k) -> (n * (n - 1) / 2,): the p-norm distance of every two rows."""
    first, second = _pairs(input.shape[0])
    return norm_of(jnp.take(input, first, axis=0) - jnp.take(input, second, axis=0), p, 1)
