"""Functions of one variable: exponentials, logarithms, trigonometry, rounding, magnitude and sign."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.ops.arithmetic import truncate
from torchlike._src.ops.declare import Promote, T, op
from torchlike._src.ops.elementwise import choose, kind_of, no_gradient, rejects

FLOAT = {"promote": Promote.INT_TO_FLOAT, "elementwise": True, "inplace": True}
WITH_SPECIAL = ("torch", "torch.special")
LOG_2 = math.log(2)
LOG_10 = math.log(10)


# -- exponentials and logarithms ----------------------------------------------------------------------------------


@op(**FLOAT, vjp={"input": lambda g, out: g * jnp.conj(out)})
def exp(input: T):
    """e ** input."""
    return lax.exp(input)


@op(**FLOAT, namespaces=WITH_SPECIAL, vjp={"input": lambda g, out: g * jnp.conj(out) * LOG_2})
def exp2(input: T):
    """2 ** input."""
    return lax.exp(input * LOG_2) if input.dtype.kind == "c" else lax.exp2(input)


@op(**FLOAT, namespaces=WITH_SPECIAL, vjp={"input": lambda g, out: g * jnp.conj(out + 1)})
def expm1(input: T):
    """e ** input - 1, exact near zero."""
    return lax.expm1(input)


@op(**FLOAT, vjp={"input": lambda g, input: g / jnp.conj(input)})
def log(input: T):
    """The natural logarithm."""
    return lax.log(input)


@op(**FLOAT, vjp={"input": lambda g, input: g / jnp.conj(input * LOG_2)})
def log2(input: T):
    """The logarithm to base 2."""
    return whole_log(input, LOG_2, 2)


@op(**FLOAT, vjp={"input": lambda g, input: g / jnp.conj(input * LOG_10)})
def log10(input: T):
    """The logarithm to base 10."""
    return whole_log(input, LOG_10, 10)


def whole_log(x: Any, log_base: float, base: int) -> Any:
    """log(x) / log(base), exact where x is a power of the base: a quotient that misses a whole number by rounding
    would change floor(log2(x))."""
    quotient = lax.log(x) / log_base
    if x.dtype.kind == "c":
        return quotient
    near = lax.round(quotient, lax.RoundingMethod.TO_NEAREST_EVEN)
    return choose(jnp.power(lax.full_like(x, base), near) == x, near, quotient)


@op(
    **FLOAT,
    namespaces=WITH_SPECIAL,
    grad_name="Log1PBackward0",
    vjp={"input": lambda g, input: g / jnp.conj(input + 1)},
)
def log1p(input: T):
    """log(1 + input), exact near zero."""
    return lax.log1p(input)


def _logit_gradient(g: Any, input: Any, eps: Any) -> Any:
    slope = g / (input * (1 - input))
    if eps is None:
        return choose((input < 0) | (input > 1), jnp.nan, slope)
    return choose((input < eps) | (input > 1 - eps), 0, slope)


def _clamped(x: Any, eps: float | None) -> Any:
    return x if eps is None else choose(x < eps, eps, choose(x > 1 - eps, 1 - eps, x))


@op(
    **FLOAT,
    namespaces=("torch", "torch.special"),
    check=rejects("logit_cpu", "c", of=("input",)),
    half=lambda input, eps: lax.log((x := _clamped(input, eps)) / (1 - x)),
    vjp={"input": _logit_gradient},
)
def logit(input: T, eps=None):
    """log(input / (1 - input)), input first clamped to [eps, 1 - eps] if eps is given."""
    input = _clamped(input, eps)
    return lax.log(input / (1 - input))


@op(**FLOAT, vjp={"input": lambda g, out: g * jnp.conj(out * (1 - out))})
def sigmoid(input: T):
    """1 / (1 + e ** -input)."""
    return 1 / (1 + lax.exp(-input)) if input.dtype.kind == "c" else lax.logistic(input)


# -- trigonometry -------------------------------------------------------------------------------------------------


@op(**FLOAT, vjp={"input": lambda g, input: g * jnp.conj(lax.cos(input))})
def sin(input: T):
    """The sine."""
    return lax.sin(input)


@op(**FLOAT, vjp={"input": lambda g, input: -g * jnp.conj(lax.sin(input))})
def cos(input: T):
    """The cosine."""
    return lax.cos(input)


@op(**FLOAT, vjp={"input": lambda g, out: g * jnp.conj(1 + out * out)})
def tan(input: T):
    """The tangent."""
    return lax.tan(input)


@op(**FLOAT, aliases=("arcsin",), vjp={"input": lambda g, input: g * jnp.conj(lax.rsqrt(1 - input * input))})
def asin(input: T):
    """The inverse sine."""
    return lax.asin(input)


@op(**FLOAT, aliases=("arccos",), vjp={"input": lambda g, input: -g * jnp.conj(lax.rsqrt(1 - input * input))})
def acos(input: T):
    """The inverse cosine."""
    return lax.acos(input)


@op(**FLOAT, aliases=("arctan",), vjp={"input": lambda g, input: g / jnp.conj(1 + input * input)})
def atan(input: T):
    """The inverse tangent."""
    return lax.atan(input)


@op(**FLOAT, vjp={"input": lambda g, input: g * jnp.conj(lax.cosh(input))})
def sinh(input: T):
    """The hyperbolic sine."""
    return lax.sinh(input)


@op(**FLOAT, vjp={"input": lambda g, input: g * jnp.conj(lax.sinh(input))})
def cosh(input: T):
    """The hyperbolic cosine."""
    return lax.cosh(input)


@op(**FLOAT, vjp={"input": lambda g, out: g * jnp.conj(1 - out * out)})
def tanh(input: T):
    """The hyperbolic tangent."""
    return lax.tanh(input)


@op(**FLOAT, aliases=("arcsinh",), vjp={"input": lambda g, input: g * jnp.conj(lax.rsqrt(input * input + 1))})
def asinh(input: T):
    """The inverse hyperbolic sine."""
    return lax.asinh(input)


@op(
    **FLOAT,
    aliases=("arccosh",),
    vjp={"input": lambda g, input: g * jnp.conj(lax.rsqrt(input - 1) * lax.rsqrt(input + 1))},
)
def acosh(input: T):
    """The inverse hyperbolic cosine."""
    return lax.acosh(input)


@op(**FLOAT, aliases=("arctanh",), vjp={"input": lambda g, input: g / jnp.conj(1 - input * input)})
def atanh(input: T):
    """The inverse hyperbolic tangent."""
    return lax.atanh(input)


@op(
    **FLOAT,
    aliases=("arctan2",),
    check=rejects("atan2_cpu", "c"),
    vjp={
        "input": lambda g, input, other: _over_square(g * other, input, other),
        "other": lambda g, input, other: _over_square(-g * input, input, other),
    },
)
def atan2(input: T, other: T):
    """The angle of the point (other, input)."""
    return lax.atan2(*jnp.broadcast_arrays(input, other))


def _over_square(numerator: Any, a: Any, b: Any) -> Any:
    square = a * a + b * b
    return choose(square == 0, 0, numerator / choose(square == 0, 1, square))


def _sinc_gradient(g: Any, input: Any) -> Any:
    x = input * math.pi
    slope = (lax.cos(x) * x - lax.sin(x)) / (x * input)
    return choose(input == 0, 0, g * jnp.conj(slope))


@op(**FLOAT, namespaces=("torch", "torch.special"), vjp={"input": _sinc_gradient})
def sinc(input: T):
    """sin(πx) / (πx), 1 at zero."""
    zero = input == 0
    x = choose(zero, 1, input * math.pi)
    return choose(zero, 1, lax.sin(x) / x)


@op(
    **FLOAT,
    grad_name="Deg2RadBackward0",
    vjp={"input": lambda g: g * (math.pi / 180)},
    check=rejects("deg2rad", "c", error=RuntimeError, text="deg2rad is not supported for complex tensors."),
)
def deg2rad(input: T):
    """Degrees to radians."""
    return input * (math.pi / 180)


@op(
    **FLOAT,
    grad_name="Rad2DegBackward0",
    vjp={"input": lambda g: g * (180 / math.pi)},
    check=rejects("rad2deg", "c", error=RuntimeError, text="rad2deg is not supported for complex tensors."),
)
def rad2deg(input: T):
    """Radians to degrees."""
    return input * (180 / math.pi)


# -- rounding -----------------------------------------------------------------------------------------------------


def _rounding_check(name: str) -> Any:
    def check(input: Aval, **_: Any) -> None:
        kind = kind_of(input.dtype)
        if kind == "c" and name != "round":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        if kind in "bc":
            raise NotImplementedError(f"\"{name}_vml_cpu\" not implemented for '{input.dtype.scalar_name}'")

    return check


ROUNDING = {"promote": Promote.NO_OPMATH, "elementwise": True, "inplace": True, "vjp": {"input": no_gradient}}


@op(**ROUNDING, check=_rounding_check("floor"))
def floor(input: T):
    """Rounded down."""
    return input if input.dtype.kind in "iu" else lax.floor(input)


@op(**ROUNDING, check=_rounding_check("ceil"))
def ceil(input: T):
    """Rounded up."""
    return input if input.dtype.kind in "iu" else lax.ceil(input)


@op(**ROUNDING, aliases=("fix",), check=_rounding_check("trunc"))
def trunc(input: T):
    """Rounded toward zero."""
    return input if input.dtype.kind in "iu" else truncate(input)


def check_round(input: Aval, decimals: int) -> None:
    if decimals != 0 and kind_of(input.dtype) in "bic":
        raise NotImplementedError(f"\"round_cpu\" not implemented for '{input.dtype.scalar_name}'")
    _rounding_check("round")(input)


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    vjp={"input": no_gradient},
    check=check_round,
    namespaces=("torch", "torch.special"),
    grad_name=lambda decimals, **_: "RoundBackward1" if decimals else "RoundBackward0",
)
def round(input: T, *, decimals=0):
    """Rounded to `decimals` places, halves to even."""
    if input.dtype.kind in "iu":
        return input
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if decimals == 0:
        return lax.round(input, even)
    scale = float(10 ** (decimals if decimals > 0 else -decimals))
    return lax.round(input * scale, even) / scale if decimals > 0 else lax.round(input / scale, even) * scale


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    vjp={"input": lambda g: g},
    check=rejects("frac_cpu", "bic"),
)
def frac(input: T):
    """input - trunc(input)."""
    return input - truncate(input)


# -- magnitude and sign -------------------------------------------------------------------------------------------


def signum(x: Any) -> Any:
    """x / |x|, 0 at zero; for unsigned types 0 or 1."""
    if x.dtype.kind in "bu":
        return (x != 0).astype(x.dtype)
    if x.dtype.kind in "ic":
        return lax.sign(x)
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)  # NaN gives 0, as in PyTorch


@op(
    promote=Promote.COMPLEX_TO_FLOAT,
    elementwise=True,
    inplace=True,
    aliases=("absolute",),
    dunders=("__abs__",),
    check=rejects("abs_cpu", "b"),
    vjp={"input": lambda g, input: g * signum(input)},
)
def abs(input: T):
    """The magnitude."""
    return input if input.dtype.kind == "u" else lax.abs(input)


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    vjp={"input": no_gradient},
    check=rejects(
        "sign",
        "c",
        text="Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
)
def sign(input: T):
    """-1, 0 or 1."""
    return signum(input)


def _sgn_gradient(g: Any, input: Any) -> Any:
    if input.dtype.kind != "c":
        return no_gradient(g)
    size = lax.abs(input)
    zero = size == 0
    unit = input / choose(zero, 1, size).astype(input.dtype)
    along = jnp.real(g * jnp.conj(unit)).astype(input.dtype)
    return choose(zero, 0, (g - along * unit) / choose(zero, 1, size).astype(input.dtype))


@op(promote=Promote.NO_OPMATH, elementwise=True, inplace=True, vjp={"input": _sgn_gradient})
def sgn(input: T):
    """input / |input|, 0 at zero; the sign for real types."""
    return signum(input)


# -- repair -------------------------------------------------------------------------------------------------------


def _replacements(nan: Any, posinf: Any, neginf: Any, dtype: Any) -> tuple:
    limits = jnp.finfo(dtype)
    return (
        0.0 if nan is None else nan,
        float(limits.max) if posinf is None else posinf,
        float(limits.min) if neginf is None else neginf,
    )


def _repair(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    nan, posinf, neginf = _replacements(nan, posinf, neginf, x.dtype)
    nan, posinf, neginf = (np.asarray(v, np.float64).astype(x.dtype).item() for v in (nan, posinf, neginf))
    x = choose(x != x, nan, x)
    return choose(x == jnp.inf, posinf, choose(x == -jnp.inf, neginf, x))


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    vjp={"input": lambda g, input: choose(_finite(input), g, 0)},
)
def nan_to_num(input: T, nan=None, posinf=None, neginf=None):
    """NaN and infinities replaced by nan, posinf and neginf: by default 0 and the dtype's largest and smallest."""
    if input.dtype.kind in "biu":
        return input
    if input.dtype.kind == "c":
        return lax.complex(_repair(jnp.real(input), nan, posinf, neginf), _repair(jnp.imag(input), nan, posinf, neginf))
    return _repair(input, nan, posinf, neginf)


def _finite(x: Any) -> Any:
    if x.dtype.kind == "c":
        return lax.is_finite(jnp.real(x)) & lax.is_finite(jnp.imag(x))
    return lax.is_finite(x)
