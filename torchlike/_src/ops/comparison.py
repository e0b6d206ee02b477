"""Comparisons, extrema, bounds and selection."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import BOOL, bool_, uint8
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.ops.declare import TS, Promote, S, T, op
from torchlike._src.ops.elementwise import choose, common_dtype, kind_of, no_gradient, rejects

# -- comparisons ------------------------------------------------------------------------------------------------

COMPARISON: dict[str, Any] = {
    "promote": Promote.ALWAYS_BOOL,
    "elementwise": True,
    "inplace": True,
    "differentiable": False,
    "rounds_numbers": True,
}


@op(**COMPARISON, dunders=("__eq__",))
def eq(input: T, other: TS):
    """input == other."""
    return input == other


@op(**COMPARISON, dunders=("__ne__",), aliases=("not_equal",))
def ne(input: T, other: TS):
    """input != other."""
    return input != other


@op(**COMPARISON, dunders=("__lt__",), aliases=("less",), check=rejects("lt_cpu", "c"))
def lt(input: T, other: TS):
    """input < other."""
    return input < other


@op(**COMPARISON, dunders=("__le__",), aliases=("less_equal",), check=rejects("le_cpu", "c"))
def le(input: T, other: TS):
    """input <= other."""
    return input <= other


@op(**COMPARISON, dunders=("__gt__",), aliases=("greater",), check=rejects("gt_cpu", "c"))
def gt(input: T, other: TS):
    """input > other."""
    return input > other


@op(**COMPARISON, dunders=("__ge__",), aliases=("greater_equal",), check=rejects("ge_cpu", "c"))
def ge(input: T, other: TS):
    """input >= other."""
    return input >= other


def check_isclose(input: Aval, other: Aval, **_: Any) -> None:
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}")


def _bool_shape(input: Aval, other: Aval, **_: Any) -> Aval:
    return aval(broadcast_shapes(input.shape, other.shape), bool_, input.device)


@op(elementwise=True, differentiable=False, out=False, check=check_isclose, shape=_bool_shape)
def isclose(input: T, other: T, rtol: S = 1e-05, atol: S = 1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol * |other|; equal infinities are close."""
    same = input == other
    if input.dtype.kind in "biu":
        input, other = input.astype("float32"), other.astype("float32")
    elif equal_nan:
        same = same | ((input != input) & (other != other))
    real = jnp.real(other).dtype
    error = lax.abs(input - other)
    allowed = atol.astype(real) + lax.abs(rtol.astype(other.dtype) * other)
    return same | (jnp.isfinite(error) & (error <= allowed))


# -- classes of values --------------------------------------------------------------------------------------------


CLASS_OF_VALUE = {"promote": Promote.ALWAYS_BOOL, "elementwise": True, "differentiable": False}


@op(**CLASS_OF_VALUE, out=False)
def isnan(input: T):
    """Whether an element is not a number."""
    return input != input


@op(**CLASS_OF_VALUE, out=False)
def isinf(input: T):
    """Whether an element (or a part of it) is infinite."""
    if input.dtype.kind in "biu":
        return lax.full(input.shape, False)
    if input.dtype.kind == "c":
        return (lax.abs(jnp.real(input)) == jnp.inf) | (lax.abs(jnp.imag(input)) == jnp.inf)
    return lax.abs(input) == jnp.inf


@op(**CLASS_OF_VALUE, out=False)
def isfinite(input: T):
    """Whether an element is neither infinite nor NaN."""
    if input.dtype.kind in "biu":
        return lax.full(input.shape, True)
    if input.dtype.kind == "c":
        return lax.is_finite(jnp.real(input)) & lax.is_finite(jnp.imag(input))
    return lax.is_finite(input)


@op(
    **CLASS_OF_VALUE,
    check=rejects("isneginf", "c", error=RuntimeError, text="isneginf does not support complex inputs."),
)
def isneginf(input: T):
    """Whether an element is minus infinity."""
    return lax.full(input.shape, False) if input.dtype.kind in "biu" else input == -jnp.inf


@op(
    **CLASS_OF_VALUE,
    check=rejects("isposinf", "c", error=RuntimeError, text="isposinf does not support complex inputs."),
)
def isposinf(input: T):
    """Whether an element is plus infinity."""
    return lax.full(input.shape, False) if input.dtype.kind in "biu" else input == jnp.inf


@op(**CLASS_OF_VALUE, out=False)
def isreal(input: T):
    """Whether an element's imaginary part is zero."""
    return jnp.imag(input) == 0 if input.dtype.kind == "c" else lax.full(input.shape, True)


@op(
    **CLASS_OF_VALUE,
    check=rejects("signbit", "c", text="signbit is not implemented for complex tensors."),
)
def signbit(input: T):
    """Whether the sign bit is set: also for -0.0."""
    if input.dtype.kind == "f":
        integer = jnp.dtype(f"int{8 * input.dtype.itemsize}")
        return lax.bitcast_convert_type(input, integer) < 0
    return input < 0 if input.dtype.kind == "i" else lax.full(input.shape, False)


# -- extrema ------------------------------------------------------------------------------------------------------


def _no_complex(name: str) -> Any:
    return rejects(name, "c", error=RuntimeError, text=f"{name} not implemented for complex tensors.")


def _shared(g: Any, wins: Any, ties: Any) -> Any:
    """The gradient of an extremum: all where this side wins, half on ties."""
    return choose(ties, g / 2, choose(wins, g, 0))


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    check=_no_complex("maximum"),
    vjp={
        "input": lambda g, input, other: _shared(g, ~(input < other), input == other),
        "other": lambda g, input, other: _shared(g, ~(other < input), input == other),
    },
)
def maximum(input: T, other: T):
    """The larger element; NaN wins."""
    return jnp.maximum(input, other)


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    check=_no_complex("minimum"),
    vjp={
        "input": lambda g, input, other: _shared(g, ~(input > other), input == other),
        "other": lambda g, input, other: _shared(g, ~(other > input), input == other),
    },
)
def minimum(input: T, other: T):
    """The smaller element; NaN wins."""
    return jnp.minimum(input, other)


def _nan(x: Any) -> Any:
    return x != x


def _is_fmax(input: Any, other: Any) -> Any:
    return (input >= other) | _nan(other)


def _is_fmin(input: Any, other: Any) -> Any:
    return (input <= other) | _nan(other)


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    check=_no_complex("fmax"),
    vjp={
        "input": lambda g, input, other: choose(_is_fmax(input, other), g, 0),
        "other": lambda g, input, other: choose(_is_fmax(input, other), 0, g),
    },
)
def fmax(input: T, other: T):
    """The larger element; a number wins over NaN."""
    return choose(_nan(input), other, choose(_nan(other), input, jnp.maximum(input, other)))


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    check=_no_complex("fmin"),
    vjp={
        "input": lambda g, input, other: choose(_is_fmin(input, other), g, 0),
        "other": lambda g, input, other: choose(_is_fmin(input, other), 0, g),
    },
)
def fmin(input: T, other: T):
    """The smaller element; a number wins over NaN."""
    return choose(_nan(input), other, choose(_nan(other), input, jnp.minimum(input, other)))


# -- bounds -------------------------------------------------------------------------------------------------------


def check_clamp(input: Any, min: Any = None, max: Any = None) -> None:
    operands = [o for o in (input, min, max) if o is not None]
    if any(o is complex or (isinstance(o, Aval) and o.dtype.is_complex) for o in operands):
        raise NotImplementedError("clamp is not supported for complex types")
    if all(o is bool or (isinstance(o, Aval) and o.dtype.category == BOOL) for o in operands):
        by_number = all(isinstance(o, type) for o in operands[1:])
        kernel = "clamp_scalar_cpu" if by_number else "clamp_cpu"
        if len(operands) == 2:
            if not by_number:  # a lone bound is a maximum or a minimum
                return
            kernel = "clamp_min_scalar_cpu" if min is not None else "clamp_max_scalar_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def check_clamp_one(input: Any, min: Any = None, max: Any = None) -> None:
    bound = max if min is None else min
    found = common_dtype(input, bound)
    if isinstance(bound, Aval) and found.is_complex:
        kernel = "minimum_cpu" if min is None else "maximum_cpu"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{found.scalar_name}'")
    check_clamp(input, min, max)


def _clamp_name(input: Any, min: Any = float, max: Any = float) -> str:
    return "ClampBackward1" if isinstance(min, type) and isinstance(max, type) else "ClampBackward0"


def _clamp_name_one(plain: str, bound: str) -> Any:
    """ClampMinBackward0 for a number, ClampMinBackward1 for a tensor."""

    def name(**arguments: Any) -> str:
        return plain + ("Backward0" if isinstance(arguments[bound], type) else "Backward1")

    return name


ABOVE = {
    "input": lambda g, input, min: choose(input >= min, g, 0),
    "min": lambda g, input, min: choose(input < min, g, 0),
}
BELOW = {
    "input": lambda g, input, max: choose(input <= max, g, 0),
    "max": lambda g, input, max: choose(input > max, g, 0),
}
BOUND = {"promote": Promote.NO_OPMATH, "elementwise": True, "inplace": True}


@op(**BOUND, check=check_clamp_one, grad_name=_clamp_name_one("ClampMin", "min"), vjp=ABOVE)
def clamp_min(input: T, min: TS):
    """input, at least min."""
    return jnp.maximum(input, min)


@op(**BOUND, check=check_clamp_one, grad_name=_clamp_name_one("ClampMax", "max"), vjp=BELOW)
def clamp_max(input: T, max: TS):
    """input, at most max."""
    return jnp.minimum(input, max)


@op(**BOUND, namespaces=(), check=check_clamp, grad_name=_clamp_name, vjp=ABOVE)
def _clamp_above(input: T, min: TS):
    """`clamp` with a lower bound only."""
    return jnp.maximum(input, min)


@op(**BOUND, namespaces=(), check=check_clamp, grad_name=_clamp_name, vjp=BELOW)
def _clamp_below(input: T, max: TS):
    """`clamp` with an upper bound only."""
    return jnp.minimum(input, max)


@op(
    **BOUND,
    namespaces=(),
    check=check_clamp,
    grad_name=_clamp_name,
    vjp={
        "input": lambda g, input, min, max: choose((input >= min) & (input <= max), g, 0),
        "min": lambda g, input, min, max: choose((min < max) & (input < min), g, 0),
        "max": lambda g, input, min, max: choose((max < min) | (input > max), g, 0),
    },
)
def _clamp(input: T, min: TS, max: TS):
    """input between min and max; max where they cross."""
    return jnp.minimum(jnp.maximum(input, min), max)


# -- selection ----------------------------------------------------------------------------------------------------


def check_where(condition: Aval, **_: Any) -> None:
    if condition.dtype.category != BOOL and condition.dtype is not uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            + condition.dtype.scalar_name
        )


def _as_bool(condition: Any) -> Any:
    return condition if condition.dtype.kind == "b" else condition != 0


@op(
    promote=Promote.NO_OPMATH,
    promote_args=("input", "other"),
    elementwise=True,
    check=check_where,
    vjp={
        "input": lambda g, condition: choose(_as_bool(condition), g, 0),
        "other": lambda g, condition: choose(_as_bool(condition), 0, g),
    },
)
def where(condition: T, input: TS, other: TS):
    """input where condition holds, else other."""
    return choose(_as_bool(condition), input, other)


# -- signs --------------------------------------------------------------------------------------------------------


def _copysign_input(g: Any, input: Any, other: Any) -> Any:
    flip = _negative(input) != _negative(other)
    return choose(input == 0, 0, choose(flip, -g, g))


def _negative(x: Any) -> Any:
    integer = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    return lax.bitcast_convert_type(x, integer) < 0


@op(
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    check=rejects("copysign_cpu", "c"),
    grad_name=lambda other, **_: "CopysignBackward1" if isinstance(other, type) else "CopysignBackward0",
    vjp={"input": _copysign_input, "other": lambda g: lax.full_like(g, 0)},
)
def copysign(input: T, other: TS):
    """The magnitude of input with the sign of other."""
    size = lax.abs(input)
    return choose(_negative(other), -size, size)


def check_heaviside(input: Aval, values: Aval) -> None:
    if "c" in (kind_of(input.dtype), kind_of(values.dtype)):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    check=check_heaviside,
    grad_name="torch::autograd::NotImplemented",
    vjp={},
)
def heaviside(input: T, values: T):
    """0 below zero, values at zero, 1 above."""
    return choose(input == 0, values, (input > 0).astype(values.dtype))


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    check=rejects("nextafter_cpu", "bic"),
    vjp={
        "input": lambda g, input, other: choose(input == other, 0, g),
        "other": no_gradient,
    },
)
def nextafter(input: T, other: T):
    """The next representable number after input toward other."""
    return lax.nextafter(*jnp.broadcast_arrays(input, other))
