"""Logical and bitwise operators, shifts, common divisors."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.ops.declare import TS, Promote, T, op
from torchlike._src.ops.elementwise import choose, rejects, zeros

LOGICAL = {"promote": Promote.ALWAYS_BOOL, "elementwise": True, "inplace": True, "differentiable": False}
BITWISE = {"promote": Promote.DEFAULT, "elementwise": True, "inplace": True, "differentiable": False}


@op(**LOGICAL)
def logical_not(input: T):
    """Whether an element is zero."""
    return input == 0


@op(**LOGICAL)
def logical_and(input: T, other: T):
    """Whether both are non-zero."""
    return (input != 0) & (other != 0)


@op(**LOGICAL)
def logical_or(input: T, other: T):
    """Whether one is non-zero."""
    return (input != 0) | (other != 0)


@op(**LOGICAL)
def logical_xor(input: T, other: T):
    """Whether exactly one is non-zero."""
    return (input != 0) ^ (other != 0)


@op(**BITWISE, dunders=("__invert__",), check=rejects("bitwise_not_cpu", "hfc"))
def bitwise_not(input: T):
    """~input; the logical negation for bool."""
    return lax.bitwise_not(input)


@op(**BITWISE, dunders=("__and__", "__rand__"), check=rejects("bitwise_and_cpu", "hfc"))
def bitwise_and(input: TS, other: TS):
    """input & other."""
    return input & other


@op(**BITWISE, dunders=("__or__", "__ror__"), check=rejects("bitwise_or_cpu", "hfc"))
def bitwise_or(input: TS, other: TS):
    """input | other."""
    return input | other


@op(**BITWISE, dunders=("__xor__", "__rxor__"), check=rejects("bitwise_xor_cpu", "hfc"))
def bitwise_xor(input: TS, other: TS):
    """input ^ other."""
    return input ^ other


@op(**BITWISE, dunders=("__lshift__", "__rlshift__"), check=rejects("lshift_cpu", "bhfc"))
def bitwise_left_shift(input: TS, other: TS):
    """input << other; 0 where other is negative or not less than the width."""
    return lax.shift_left(*jnp.broadcast_arrays(input, other))


@op(**BITWISE, dunders=("__rshift__", "__rrshift__"), check=rejects("rshift_cpu", "bhfc"))
def bitwise_right_shift(input: TS, other: TS):
    """input >> other, arithmetic for signed types."""
    a, b = jnp.broadcast_arrays(input, other)
    return lax.shift_right_logical(a, b) if a.dtype.kind == "u" else lax.shift_right_arithmetic(a, b)


# -- divisors -----------------------------------------------------------------------------------------------------


def _euclid(state: tuple) -> tuple:
    a, b = state
    going = b != 0
    rest = lax.rem(a, choose(going, b, 1))
    return choose(going, b, a), choose(going, rest, b)


def _euclid_going(state: tuple) -> Any:
    return jnp.any(state[1] != 0)


def greatest_common_divisor(a: Any, b: Any) -> Any:
    a, b = jnp.broadcast_arrays(a, b)
    if a.dtype.kind == "i":
        a, b = lax.abs(a), lax.abs(b)
    return lax.while_loop(_euclid_going, _euclid, (a, b))[0]


@op(**BITWISE, check=rejects("gcd_cpu", "bhfc"))
def gcd(input: T, other: T):
    """The greatest common divisor, by Euclid's algorithm."""
    return greatest_common_divisor(input, other)


@op(**BITWISE, check=rejects("lcm_cpu", "bhfc"))
def lcm(input: T, other: T):
    """The least common multiple."""
    dtype = input.dtype
    if dtype.itemsize < 4:  # as in C, where small integers are multiplied as int
        input, other = input.astype("int32"), other.astype("int32")
    divisor = greatest_common_divisor(input, other)
    safe = choose(divisor == 0, 1, divisor)
    product = lax.div(*jnp.broadcast_arrays(input, safe)) * other
    return choose(divisor == 0, zeros(product), lax.abs(product)).astype(dtype)
