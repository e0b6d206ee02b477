"""Error functions, logarithmic sums and products, entropy."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import int32
from torchlike._src.ops.declare import TS, Promote, T, op
from torchlike._src.ops.elementwise import choose, kind_of, rejects

WITH_SPECIAL = ("torch", "torch.special")
SPECIAL = ("torch.special",)
FLOAT = {"promote": Promote.INT_TO_FLOAT, "elementwise": True}
SQRT_HALF = math.sqrt(0.5)
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)

# -- the error function and its relatives -------------------------------------------------------------------------


@op(
    **FLOAT,
    inplace=True,
    namespaces=WITH_SPECIAL,
    check=rejects("erf_vml_cpu", "c"),
    vjp={"input": lambda g, input: g * TWO_OVER_SQRT_PI * lax.exp(-input * input)},
)
def erf(input: T):
    """The error function."""
    return lax.erf(input)


@op(
    **FLOAT,
    inplace=True,
    namespaces=WITH_SPECIAL,
    check=rejects("erfc_vml_cpu", "c"),
    vjp={"input": lambda g, input: g * -TWO_OVER_SQRT_PI * lax.exp(-input * input)},
)
def erfc(input: T):
    """1 - erf(input)."""
    return lax.erfc(input)


def _erfinv_gradient(g: Any, input: Any) -> Any:
    x = lax.erf_inv(input)
    return g * (0.5 * math.sqrt(math.pi)) * lax.exp(x * x)


@op(
    **FLOAT,
    inplace=True,
    namespaces=WITH_SPECIAL,
    check=rejects("erfinv_vml_cpu", "c"),
    vjp={"input": _erfinv_gradient},
)
def erfinv(input: T):
    """The inverse of erf."""
    return lax.erf_inv(input)


def scaled_erfc(x: Any) -> Any:
    """e ** (x²) * erfc(x): by its definition below 9, by the asymptotic series above."""
    dtype = x.dtype
    x = x.astype("float64")
    size = lax.abs(x)
    near = jnp.minimum(size, 9)
    direct = lax.exp(near * near) * lax.erfc(near)
    far = jnp.maximum(size, 9)
    step = -0.5 / (far * far)
    series = lax.full_like(x, 1)
    for k in range(14, 0, -1):
        series = 1 + series * step * (2 * k - 1)
    positive = choose(size < 9, direct, series / (far * math.sqrt(math.pi)))
    result = choose(x < 0, 2 * lax.exp(size * size) - positive, positive)
    return choose(x != x, jnp.nan, result).astype(dtype)


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    check=rejects("erfcx_cpu", "hc"),
    grad_name="SpecialErfcxBackward0",
    vjp={"input": lambda g, input, out: g * (2 * input * out - TWO_OVER_SQRT_PI)},
)
def erfcx(input: T):
    """e ** (input²) * erfc(input)."""
    return scaled_erfc(input)


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    check=rejects("erf_vml_cpu", "c"),
    half=lambda input: (1 + lax.erf(_times(input, SQRT_HALF))) * 0.5,
    grad_name="MulBackward1",
    vjp={"input": lambda g, input: g * (1 / math.sqrt(2 * math.pi)) * lax.exp(-0.5 * input * input)},
)
def ndtr(input: T):
    """The standard normal distribution function."""
    x = input * SQRT_HALF
    return choose(x < -1, 0.5 * lax.erfc(-x), 0.5 * (1 + lax.erf(x)))


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    check=rejects("ndtri_cpu", "hc"),
    grad_name="SpecialNdtriBackward0",
    vjp={"input": lambda g, out: g * math.sqrt(2 * math.pi) * lax.exp(0.5 * out * out)},
)
def ndtri(input: T):
    """The inverse of ndtr."""
    return jax.scipy.special.ndtri(input)


def _log_ndtr_gradient(g: Any, input: Any) -> Any:
    return g * math.sqrt(2 / math.pi) / scaled_erfc(-input * SQRT_HALF)


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    check=rejects("log_ndtr_cpu", "hc"),
    grad_name="SpecialLogNdtrBackward0",
    vjp={"input": _log_ndtr_gradient},
)
def log_ndtr(input: T):
    """log(ndtr(input)), exact far below zero."""
    t = input * SQRT_HALF
    below = lax.log(0.5 * scaled_erfc(-jnp.minimum(t, 0))) - t * t
    return choose(input < -1, below, lax.log1p(-0.5 * lax.erfc(t)))


# -- products and sums with logarithms ------------------------------------------------------------------------------


def _by_operands(plain: str) -> Any:
    """plain + 0 for two tensors, 1 where the first operand is a number, 2 where the second is."""

    def name(input: Any, other: Any) -> str:
        which = 1 if isinstance(input, type) else 2 if isinstance(other, type) else 0
        return f"{plain}Backward{which}"

    return name


def _times(x: Any, number: float) -> Any:
    """x times a float32 number, rounded to x' half type."""
    return (x.astype(jnp.float32) * np.float32(number)).astype(x.dtype)


def _xlogy(input: Any, other: Any, log: Any) -> Any:
    """x log(y) where the logarithm is rounded to the half type that the operands share."""
    half = other.dtype if other.dtype != jnp.float32 else input.dtype
    found = log(other.astype(jnp.float32)).astype(half)
    product = choose(input == 0, 0, input.astype(half) * found)
    return choose(other != other, jnp.nan, product)


def _xlogy_input(g: Any, input: Any, other: Any) -> Any:
    return choose((input == 0) & (other <= 0), 0, g * lax.log(other))


@op(
    **FLOAT,
    inplace=True,
    namespaces=WITH_SPECIAL,
    rounds_numbers=True,
    half=lambda input, other: _xlogy(input, other, jnp.log),
    grad_name=_by_operands("Xlogy"),
    check=rejects("xlogy_cpu", "c"),
    vjp={"input": _xlogy_input, "other": lambda g, input, other: g * input / other},
)
def xlogy(input: TS, other: TS):
    """input * log(other), 0 where input is 0; NaN where other is NaN."""
    product = choose(input == 0, 0, input * lax.log(other))
    return choose(other != other, jnp.nan, product)


def _xlog1py_input(g: Any, input: Any, other: Any) -> Any:
    return choose((input == 0) & (other <= -1), 0, g * lax.log1p(other))


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    rounds_numbers=True,
    half=lambda input, other: _xlogy(input, other, jnp.log1p),
    grad_name=_by_operands("SpecialXlog1Py"),
    check=rejects("xlog1py_cpu", "c"),
    vjp={"input": _xlog1py_input, "other": lambda g, input, other: g * input / (other + 1)},
)
def xlog1py(input: TS, other: TS):
    """input * log1p(other), 0 where input is 0; NaN where other is NaN."""
    product = choose(input == 0, 0, input * lax.log1p(other))
    return choose(other != other, jnp.nan, product)


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    check=rejects("entr_cpu", "c"),
    half=lambda input: choose(
        input < 0, -jnp.inf, choose(input == 0, 0, -input * lax.log(choose(input > 0, input, 1)))
    ),
    grad_name="SpecialEntrBackward0",
    vjp={"input": lambda g, input: g * (-lax.log(input) - 1)},
)
def entr(input: T):
    """-input * log(input); 0 at zero, -inf below."""
    inside = -input * lax.log(choose(input > 0, input, 1))
    return choose(input < 0, -jnp.inf, choose(input == 0, 0, inside))


def log_add_exp(a: Any, b: Any, base_log: float = 1.0) -> Any:
    """log(e ** a + e ** b) in the base with natural logarithm `base_log`."""
    if a.dtype.kind == "c":
        swap = jnp.real(a) < jnp.real(b)
        high, low = choose(swap, b, a), choose(swap, a, b)
        both = (high == low) & (lax.abs(jnp.real(high)) == jnp.inf)
        return choose(both, high, high + lax.log1p(lax.exp(choose(both, 0, low - high))))
    same_infinity = (a == b) & (lax.abs(a) == jnp.inf)
    gap = lax.abs(a - b)
    gap = gap if base_log == 1 else gap * base_log
    rest = lax.log1p(lax.exp(-gap))
    return choose(same_infinity, a, jnp.maximum(a, b) + (rest if base_log == 1 else rest / base_log))


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    check=rejects("logaddexp_cpu", "bi"),
    vjp={
        "input": lambda g, input, other: g * jnp.conj(1 / (1 + lax.exp(other - input))),
        "other": lambda g, input, other: g * jnp.conj(1 / (1 + lax.exp(input - other))),
    },
)
def logaddexp(input: T, other: T):
    """log(e ** input + e ** other)."""
    return log_add_exp(input, other)


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    check=rejects("logaddexp2_cpu", "bic"),
    vjp={
        "input": lambda g, input, other: g / (1 + lax.exp2(other - input)),
        "other": lambda g, input, other: g / (1 + lax.exp2(input - other)),
    },
)
def logaddexp2(input: T, other: T):
    """log2(2 ** input + 2 ** other)."""
    return log_add_exp(input, other, math.log(2))


# -- mantissa and exponent ------------------------------------------------------------------------------------------


def check_frexp(input: Aval) -> None:
    if kind_of(input.dtype) not in "hf":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")


def _two_to_the_minus(exponent: Any, dtype: Any) -> Any:
    return lax.exp2(-exponent.astype(dtype))


@op(
    check=check_frexp,
    outputs=("mantissa", "exponent"),
    shape=lambda input: (input, aval(input.shape, int32, input.device)),
    vjp={"input": lambda g0, out1: g0 * _two_to_the_minus(out1, g0.dtype)},
)
def frexp(input: T):
    """input = mantissa * 2 ** exponent with |mantissa| in [0.5, 1); exponent is int32."""
    wide = input if input.dtype.itemsize >= 4 else input.astype("float32")
    mantissa, exponent = jnp.frexp(wide)
    return mantissa.astype(input.dtype), exponent.astype("int32")
