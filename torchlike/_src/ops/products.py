"""Matrix products and column sums in the forms that XLA's CPU backend computes quickly.

Measured with jaxlib 0.10 on two cores with the operands out of the caches, as in a training step: a product that
contracts the last dim of its second operand (PyTorch's `x @ weight.T`) takes up to six times as long as one that
contracts the first, and summing columns takes five to ten times as long as a product with ones. Barriers keep XLA from
folding the transposes back into the products. Those of float32 are YNNPACK's (`engine.backend.CPU_OPTIONS`), which
takes products of few rows as they are."""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.build_target import on_cpu

HALF = ("float16", "bfloat16")
FLOATS = ("float32", "float64")
LARGE_MATRIX = 1 << 14
LARGE_SUM = 1 << 12
"""Elements below which the plain forms are as good."""


def barrier(g: Any) -> Any:
    """The array, computed before what follows is fused."""
    return lax.optimization_barrier(g)


def dot(a: Any, b: Any, contract: tuple, batch: tuple = ((), ())) -> Any:
    """`lax.dot_general` that accumulates half types in float32 and returns the operands' dtype."""
    numbers = (contract, batch)
    if a.dtype.name in HALF:
        return lax.dot_general(a, b, numbers, preferred_element_type=jnp.float32).astype(a.dtype)
    return lax.dot_general(a, b, numbers)


def form(rows: int, outs: int, inner: int, dtype: Any) -> str:
    """How Eigen and NumPy multiply (rows, inner) with the transpose of (outs, inner): "plain", "transposed" (the second
    operand is copied), or "swapped" (the first operand and the result are, which is less if there are few rows)."""
    if rows < 2 or outs * inner < LARGE_MATRIX or dtype.name not in FLOATS or not on_cpu():
        return "plain"
    return "swapped" if rows * (outs + inner) <= 2 * outs * inner else "transposed"


def last_with_last(a: Any, b: Any) -> Any:
    """(..., k), (n, k) -> (..., n): a @ b.T."""
    shape = (*a.shape[:-1], b.shape[0])
    rows = math.prod(a.shape[:-1])
    chosen = form(rows, b.shape[0], b.shape[1], a.dtype)
    if chosen == "plain" or (chosen == "swapped" and a.dtype.name == "float32"):
        return dot(a, b, ((a.ndim - 1,), (1,)))
    a = a.reshape(rows, -1)
    if chosen == "swapped":
        return barrier(dot(b, barrier(a.T), ((1,), (0,)))).T.reshape(shape)
    return dot(a, barrier(b.T), ((1,), (0,))).reshape(shape)


def untransposed(b: Any) -> Any:
    """A product's second operand, behind a barrier if it is large: `w.T` is copied and not folded into the product."""
    large = b.ndim == 2 and b.size >= LARGE_MATRIX and b.dtype.name in FLOATS and on_cpu()
    return barrier(b) if large else b


def sums_by_product(rows: int, columns: int, dtype: Any) -> bool:
    """Whether `column_sum` is a product with ones."""
    return rows >= 16 and rows * columns >= LARGE_SUM and dtype.name in FLOATS and on_cpu()


def column_sum(g: Any, keep: int = 1) -> Any:
    """The sum over all but the last `keep` dims, half types in float32: a bias gradient."""
    axes = tuple(range(g.ndim - keep))
    rows = math.prod(g.shape[: g.ndim - keep])
    if axes and keep and sums_by_product(rows, g.size // max(rows, 1), g.dtype):
        left = barrier(g.reshape(rows, -1))
        return dot(jnp.ones((rows,), g.dtype), left, ((0,), (0,))).reshape(g.shape[g.ndim - keep :])
    if g.dtype.name in HALF:
        return g.astype(jnp.float32).sum(axes).astype(g.dtype)
    return g.sum(axes)
