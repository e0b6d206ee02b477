"""Contractions of tensors: tensordot, kron, einsum."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import canonical_dim
from torchlike._src.ops.declare import TL, Promote, T, op
from torchlike._src.ops.matmul import HALF, conj, dot, no_bool

# -- tensor contractions --------------------------------------------------------------------------------------


def check_tensordot(a: Aval, b: Aval, dims_a: tuple, dims_b: tuple) -> None:
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    for p, q in zip(dims_a, dims_b, strict=True):
        m, n = a.shape[canonical_dim(p, a.ndim)], b.shape[canonical_dim(q, b.ndim)]
        if m != n and m != 1 and n != 1:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {p} and second has size {n} in "
                f"dim {q}"
            )
    no_bool("addmm_impl_cpu_", a)


def _sum_unmatched(a: Any, b: Any, dims_a: tuple, dims_b: tuple) -> tuple:
    """A contracted dim of size 1 is broadcast: the other operand is summed along it."""
    da = tuple(d % a.ndim for d in dims_a)
    db = tuple(d % b.ndim for d in dims_b)
    for p, q in zip(da, db, strict=True):
        if a.shape[p] == 1 and b.shape[q] != 1:
            b = b.sum(q, keepdims=True, dtype=b.dtype)
        elif b.shape[q] == 1 and a.shape[p] != 1:
            a = a.sum(p, keepdims=True, dtype=a.dtype)
    return a, b, da, db


def _from_order(d: Any, free: tuple, contracted: tuple) -> Any:
    """A gradient whose dims come as (free..., contracted...) back in the operand's own order."""
    order = (*free, *contracted)
    return d.transpose([order.index(k) for k in range(d.ndim)])


def tensordot_grad(g: Any, this_aval: Aval, other: Any, dims: tuple, other_dims: tuple, first: bool) -> Any:
    this_ndim = this_aval.ndim
    dims = tuple(d % this_ndim for d in dims)
    other_dims = tuple(d % other.ndim for d in other_dims)
    for p, q in zip(dims, other_dims, strict=True):
        if this_aval.shape[p] == 1 and other.shape[q] != 1:
            other = other.sum(q, keepdims=True, dtype=other.dtype)
    free = tuple(k for k in range(this_ndim) if k not in dims)
    other_free = tuple(k for k in range(other.ndim) if k not in other_dims)
    g_axes = tuple(range(len(free), g.ndim)) if first else tuple(range(len(other_free)))
    d = dot(g, conj(other), (g_axes, other_free))
    left = sorted(other_dims)  # what is left of `other`, in its order, after the free dims
    contracted = tuple(dims[other_dims.index(k)] for k in left)
    return _from_order(d, free, contracted)


@op(
    namespaces=(),
    method=False,
    check=check_tensordot,
    grad_name="ViewBackward0",
    vjp={
        "a": lambda g, b, a_aval, dims_a, dims_b: tensordot_grad(g, a_aval, b, dims_a, dims_b, True),
        "b": lambda g, a, b_aval, dims_a, dims_b: tensordot_grad(g, b_aval, a, dims_b, dims_a, False),
    },
)
def _tensordot(a: T, b: T, dims_a: tuple, dims_b: tuple):
    """The contraction of `dims_a` with `dims_b`: a's free dims, then b's."""
    a, b, da, db = _sum_unmatched(a, b, dims_a, dims_b)
    return dot(a, b, (da, db))


def kron_grad(g: Any, this_aval: Aval, other: Any, first: bool) -> Any:
    ndim = max(this_aval.ndim, other.ndim)
    mine = (1,) * (ndim - this_aval.ndim) + this_aval.shape
    theirs = (1,) * (ndim - other.ndim) + other.shape
    pairs = zip(mine, theirs, strict=True) if first else zip(theirs, mine, strict=True)
    g = g.reshape([n for pair in pairs for n in pair])
    axes = tuple(range(1, 2 * ndim, 2)) if first else tuple(range(0, 2 * ndim, 2))
    return dot(g, conj(other).reshape(theirs), (axes, tuple(range(ndim)))).reshape(this_aval.shape)


@op(
    grad_name="UnsafeViewBackward0",
    promote=Promote.DEFAULT,
    vjp={
        "input": lambda g, other, input_aval: kron_grad(g, input_aval, other, True),
        "other": lambda g, input, other_aval: kron_grad(g, other_aval, input, False),
    },
)
def kron(input: T, other: T):
    """The Kronecker product: sizes multiply dim by dim (missing leading dims count as 1)."""
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + input.shape
    b = (1,) * (ndim - other.ndim) + other.shape
    x = input.reshape([n for k in a for n in (k, 1)])
    y = other.reshape([n for k in b for n in (1, k)])
    product = x & y if x.dtype.kind == "b" else x * y
    return product.reshape([m * n for m, n in zip(a, b, strict=True)])


def check_einsum(equation: str, operands: tuple) -> None:
    first = operands[0]
    for other in operands[1:]:
        if other.dtype is not first.dtype:
            raise RuntimeError(f"expected scalar type {first.dtype.scalar_name} but found {other.dtype.scalar_name}")
    if len(operands) > 1:
        no_bool("bmm", first)


def _sums(equation: str) -> bool:
    """Whether the equation of one operand sums over a letter."""
    letters, result = equation.split("->")
    return not set(letters) <= set(result)


@op(
    namespaces=(),
    method=False,
    check=check_einsum,
    autocast="lower",
    grad_name=lambda equation, operands: "PermuteBackward0" if len(operands) == 1 else "ViewBackward0",
)
def _einsum(equation: str, operands: TL):
    """`equation` is complete: explicit output, no spaces, no ellipsis (the composite rewrites those)."""
    if len(operands) == 1 and operands[0].dtype.kind == "b":
        counts = jnp.einsum(equation, operands[0].astype(jnp.int64))
        return counts if _sums(equation) else counts != 0
    if len(operands) == 1 and operands[0].dtype.kind in "iu" and _sums(equation):
        return jnp.einsum(equation, operands[0].astype(jnp.int64))  # a sum of integers
    if operands[0].dtype.name in HALF:
        out = jnp.einsum(equation, *operands, preferred_element_type=jnp.float32)
        return out.astype(operands[0].dtype)
    return jnp.einsum(equation, *operands)
