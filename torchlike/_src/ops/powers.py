"""Powers: general, by a fixed exponent, and their relatives."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import complex128, float64, from_numpy
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.core.promotion import opmath, promote
from torchlike._src.ops.declare import TS, Promote, T, cast, op
from torchlike._src.ops.elementwise import choose, common_dtype, kind_of, rejects, zeros

# -- integer powers ---------------------------------------------------------------------------------------------


def _power_step(state: tuple) -> tuple:
    exponent, base, result = state
    odd = (exponent & 1) == 1
    return (
        lax.shift_right_logical(exponent, lax.full_like(exponent, 1)),
        base * base,
        choose(odd, result * base, result),
    )


def _power_going(state: tuple) -> Any:
    return jnp.any(state[0] > 0)


def integer_power(base: Any, exponent: Any) -> Any:
    """base ** exponent with wrap-around; a negative exponent gives 1 / base ** |exponent| rounded toward zero."""
    base, exponent = jnp.broadcast_arrays(base, exponent)
    one = lax.full_like(base, 1)
    state = (lax.max(exponent, zeros(exponent)), base, one)
    power = lax.while_loop(_power_going, _power_step, state)[2]
    if base.dtype.kind == "u":
        return power
    alternating = choose((exponent & 1) == 0, one, -one)
    inverse = choose(base == 1, one, choose(base == -1, alternating, zeros(base)))
    return choose(exponent < 0, inverse, power)


def _pow_input(g: Any, input: Any, exponent: Any) -> Any:
    zero = exponent == 0
    slope = exponent * jnp.power(input, exponent - 1)
    return choose(zero, 0, g * jnp.conj(slope))


def _pow_exponent(g: Any, input: Any, exponent: Any, out: Any) -> Any:
    if out.dtype.kind == "c":
        flat = (input == 0) & (jnp.real(exponent) >= 0)
    else:
        flat = (input == 0) & (exponent >= 0)
    return choose(flat, 0, g * jnp.conj(out * jnp.log(choose(flat, 1, input))))


def _pow_name(input: Any, exponent: Any) -> str:
    if isinstance(exponent, type):
        return "PowBackward0"
    return "PowBackward2" if isinstance(input, type) else "PowBackward1"


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__pow__", "__rpow__"),
    grad_name=_pow_name,
    check=rejects("pow", "b"),
    vjp={"input": _pow_input, "exponent": _pow_exponent},
)
def pow(input: TS, exponent: TS):
    """input ** exponent. Numbers that have a cheaper form go to `_pow_static`."""
    if input.dtype.kind in "iu":
        return integer_power(input, exponent)
    return jnp.power(input, exponent)


def _float_power_dtype(input: Any, exponent: Any) -> DType:
    wide = common_dtype(input, exponent).is_complex
    return complex128 if wide else float64


def _float_power_out(input: Any, exponent: Any) -> Aval:
    shaped = [o for o in (input, exponent) if isinstance(o, Aval)]
    shape = broadcast_shapes(*[o.shape for o in shaped])
    return aval(shape, _float_power_dtype(input, exponent), shaped[0].device)


def _wide(*arrays: Any) -> list:
    wide = "complex128" if any(a.dtype.kind == "c" for a in arrays) else "float64"
    return [a.astype(wide) for a in arrays]


def _float_power_input(g: Any, input: Any, exponent: Any) -> Any:
    return _pow_input(g, *_wide(input, exponent))


def _float_power_exponent(g: Any, input: Any, exponent: Any, out: Any) -> Any:
    input, exponent = _wide(input, exponent)
    return _pow_exponent(g, input, exponent, out)


@op(
    elementwise=True,
    inplace=True,
    grad_name=_pow_name,
    namespaces=(),
    shape=_float_power_out,
    vjp={"input": _float_power_input, "exponent": _float_power_exponent},
)
def _float_power(input: TS, exponent: TS):
    """input ** exponent in float64, or in complex128 if an operand is complex."""
    return jnp.power(*_wide(input, exponent))


# -- a fixed exponent -------------------------------------------------------------------------------------------


def fixed_power(x: Any, exponent: Any) -> Any:
    """x ** exponent for a Python number."""
    if exponent == 0:
        return lax.full_like(x, 1)
    if exponent == 1:
        return x
    if exponent == 2:
        return x * x
    if exponent == 3:
        return x * x * x
    if x.dtype.kind in "iu":
        return integer_power(x, lax.full_like(x, int(exponent)))
    if exponent == 0.5:
        return jnp.sqrt(x)
    if exponent == -0.5:
        return 1 / jnp.sqrt(x) if x.dtype.kind == "c" else lax.rsqrt(x)
    if exponent == -1:
        return 1 / x
    if exponent == -2:
        return 1 / (x * x)
    return jnp.power(x, lax.full_like(x, exponent))


def _static_dtypes(d: DType, ndim: int, exponent: Any) -> tuple[DType, DType]:
    """(compute dtype, result dtype)."""
    return promote(Promote.DEFAULT, [(d, ndim), type(exponent)])


def _pow_static_out(input: Aval, exponent: Any) -> Aval:
    return input.with_dtype(_static_dtypes(input.dtype, input.ndim, exponent)[1])


def check_pow_static(input: Aval, exponent: Any) -> None:
    kind = kind_of(_pow_static_out(input, exponent).dtype)
    if kind == "b" and exponent not in (0, 1):
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if kind == "i" and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _pow_static_input(g: Any, input: Any, exponent: Any) -> Any:
    if exponent == 0:
        return zeros(g)
    compute = opmath(from_numpy(g.dtype)).np
    return cast(g, compute) * jnp.conj(exponent * fixed_power(cast(input, compute), exponent - 1))


@op(
    elementwise=True,
    inplace=True,
    namespaces=(),
    check=check_pow_static,
    shape=_pow_static_out,
    grad_name="PowBackward0",
    vjp={"input": _pow_static_input},
)
def _pow_static(input: T, *, exponent):
    """input ** exponent for a Python number that is part of the program: x * x, sqrt(x), 1 / x, …"""
    compute, result = _static_dtypes(from_numpy(input.dtype), input.ndim, exponent)
    if input.dtype.name == "bfloat16":  # PyTorch rounds between the products of this type, not of float16
        if exponent == 3:
            return input * input * input
        if exponent == -2:
            return 1 / (input * input)
    return cast(fixed_power(cast(input, compute.np), exponent), result.np)


@op(
    promote=Promote.BOOL_TO_LONG,
    elementwise=True,
    inplace=True,
    grad_name="PowBackward0",
    vjp={"input": lambda g, input: g * jnp.conj(2 * input)},
)
def square(input: T):
    """input * input."""
    return input * input


# -- square roots -----------------------------------------------------------------------------------------------


@op(
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    vjp={"input": lambda g, out: g / (2 * jnp.conj(out))},
)
def sqrt(input: T):
    """The square root."""
    return lax.sqrt(input)


@op(
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    vjp={"input": lambda g, out: -0.5 * g * jnp.conj(out * out * out)},
)
def rsqrt(input: T):
    """1 / sqrt(input)."""
    return 1 / lax.sqrt(input) if input.dtype.kind == "c" else lax.rsqrt(input)


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=rejects("hypot_cpu", "bic"),
    vjp={"input": lambda g, input, out: g * (input / out), "other": lambda g, other, out: g * (other / out)},
)
def hypot(input: T, other: T):
    """sqrt(input² + other²) without overflow."""
    a, b = jnp.broadcast_arrays(lax.abs(input), lax.abs(other))
    large, small = lax.max(a, b), lax.min(a, b)
    ratio = small / choose(large == 0, 1, large)
    length = large * lax.sqrt(1 + ratio * ratio)
    infinite = (a == jnp.inf) | (b == jnp.inf)
    return choose(infinite, jnp.inf, length)


@op(
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    vjp={
        "input": lambda g, other: g * jnp.conj(two_to(other)),
        "other": lambda g, out: g * jnp.conj(out) * 0.6931471805599453,
    },
)
def ldexp(input: T, other: T):
    """input * 2 ** other."""
    return input * two_to(other)


def two_to(x: Any) -> Any:
    """2 ** x, exact for whole x."""
    return jnp.power(lax.full_like(x, 2), x)
