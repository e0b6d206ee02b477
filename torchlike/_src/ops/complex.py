"""Complex numbers from parts, their angle and conjugate."""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.dtype import from_numpy
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.core.promotion import promote
from torchlike._src.ops.declare import Promote, T, op
from torchlike._src.ops.elementwise import choose, no_gradient


def _check_parts(first: Aval, second: Aval) -> None:
    names = ("Half", "Float", "Double")
    if first.dtype.scalar_name not in names or second.dtype.scalar_name not in names:
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{first.dtype.scalar_name} and {second.dtype.scalar_name}"
        )
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {first.dtype.scalar_name} but got scalar type "
            f"{second.dtype.scalar_name} for second argument"
        )
    if first.dtype.itemsize == 2:
        raise NotImplementedError("complex32 tensors are not implemented")


def _complex_shape(first: Aval, second: Aval) -> Aval:
    return aval(broadcast_shapes(first.shape, second.shape), first.dtype.to_complex(), first.device)


def check_complex(real: Aval, imag: Aval) -> None:
    _check_parts(real, imag)


def check_polar(abs: Aval, angle: Aval) -> None:
    if abs.dtype.scalar_name == "Half" and angle.dtype is abs.dtype:
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    _check_parts(abs, angle)


@op(
    method=False,
    check=check_complex,
    shape=lambda real, imag: _complex_shape(real, imag),
    vjp={"real": lambda g: jnp.real(g), "imag": lambda g: jnp.imag(g)},
)
def complex(real: T, imag: T):
    """real + i * imag: (…), (…) -> (…); float32 gives complex64, float64 complex128."""
    return lax.complex(*jnp.broadcast_arrays(real, imag))


def _polar(size: Any, angle: Any) -> Any:
    return lax.complex(*jnp.broadcast_arrays(size * lax.cos(angle), size * lax.sin(angle)))


@op(
    method=False,
    check=check_polar,
    shape=lambda abs, angle: _complex_shape(abs, angle),
    vjp={
        "abs": lambda g, out: jnp.real(g * jnp.conj(lax.sign(out))),
        "angle": lambda g, out: jnp.imag(g * jnp.conj(out)),
    },
)
def polar(abs: T, angle: T):
    """abs * (cos(angle) + i * sin(angle))."""
    return _polar(abs, angle)


def _angle_gradient(g: Any, input: Any) -> Any:
    if input.dtype.kind != "c":
        return no_gradient(g)
    a, b = jnp.real(input), jnp.imag(input)
    square = a * a + b * b
    slope = lax.complex(-b, a) / choose(square == 0, 1, square).astype(input.dtype)
    return choose(square == 0, 0, g * slope)


def _angle_shape(input: Aval) -> Aval:
    return input.with_dtype(_angle_dtype(input.dtype))


def _angle_dtype(d: DType) -> DType:
    return d.to_real() if d.is_complex else promote(Promote.INT_TO_FLOAT, [(d, 1)])[1]


@op(shape=_angle_shape, vjp={"input": _angle_gradient})
def angle(input: T):
    """The angle of a complex number; for real types π below zero, else 0."""
    if input.dtype.kind == "c":
        return lax.atan2(jnp.imag(input), jnp.real(input))
    input = input.astype(_angle_dtype(from_numpy(input.dtype)).np)
    return choose(input < 0, math.pi, choose(input != input, input, 0))


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    vjp={"input": lambda g: jnp.conj(g)},
)
def conj_physical(input: T):
    """The complex conjugate, as a new tensor."""
    return jnp.conj(input)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.NO_OPMATH,
    elementwise=True,
    grad_name="ConjBackward0",
    vjp={"input": lambda g: jnp.conj(g)},
)
def _conj(input: T):
    """The complex conjugate, as torch.conj computes it: its own node on the tape."""
    return jnp.conj(input)
