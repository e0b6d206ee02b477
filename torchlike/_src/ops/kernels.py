"""Kernels that the library itself needs and that no public function names."""

import jax.numpy as jnp
from jax import Array

from torchlike._src.core.aval import Aval
from torchlike._src.ops.declare import RawOp, cast, infer_by_tracing

__all__ = ["ADD", "CAST", "COPY_INTO", "FILL", "ONES", "ZEROS"]


def _add(a: Array, b: Array) -> Array:
    return a + b


def _ones(aval: Aval) -> Array:
    return jnp.ones(aval.shape, aval.dtype.np)


def _zeros(aval: Aval) -> Array:
    return jnp.zeros(aval.shape, aval.dtype.np)


def _cast(a: Array, dtype: object) -> Array:
    return cast(a, dtype.np)  # type: ignore[attr-defined]


def _fill(number: Array, aval: Aval) -> Array:
    return jnp.full(aval.shape, cast(number, aval.dtype.np))


def _copy_into(new: Array, aval: Aval) -> Array:
    """`new` as it is stored in a tensor like `aval`: cast and broadcast."""
    return jnp.broadcast_to(cast(new, aval.dtype.np), aval.shape)


ADD = RawOp(_add, "add", linear=True)
ONES = RawOp(_ones, "ones")
ZEROS = RawOp(_zeros, "zeros")
CAST = RawOp(_cast, "cast", linear=True, grad_name="ToCopyBackward0")
FILL = RawOp(_fill, "fill")
COPY_INTO = RawOp(_copy_into, "copy", linear=True, grad_name="CopyBackwards")


def _infer_aval(self: RawOp, static: tuple, specs: tuple) -> tuple[Aval, ...]:
    return (dict(static)["aval"],)


for _op in (ONES, ZEROS, FILL, COPY_INTO):
    _op.infer = _infer_aval.__get__(_op)  # type: ignore[method-assign]


def _infer_sum(self: RawOp, static: tuple, specs: tuple) -> tuple[Aval, ...]:
    return specs[:1] if specs[0] is specs[1] else infer_by_tracing(self, static, specs)


ADD.infer = _infer_sum.__get__(ADD)  # type: ignore[method-assign]
