"""Bessel and Airy functions.

Computed in float64 by methods that need no tables: power series near zero, Miller's backward recurrence with
Neumann's series in the middle, Hankel's asymptotic series far out; the modified functions of the second kind by
the trapezoidal rule on ∫ exp(-x (cosh t - 1)) cosh(nt) dt, which converges exponentially. Watson, "A Treatise on
the Theory of Bessel Functions"; DLMF chapters 9 and 10.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.ops.declare import Promote, T, op
from torchlike._src.ops.elementwise import choose, rejects

EULER = 0.57721566490153286061
SPECIAL = ("torch.special",)
FLOAT = {"promote": Promote.INT_TO_FLOAT, "elementwise": True, "namespaces": SPECIAL, "method": False}
NEAR, FAR = 2.0, 25.0
SERIES_TERMS = 16
MILLER_START = 66


# -- i0, i1 -------------------------------------------------------------------------------------------------------


def _i0(x: Any) -> Any:
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)


def _i1(x: Any) -> Any:
    return lax.exp(lax.abs(x)) * lax.bessel_i1e(x)


def _tiny(x: Any) -> Any:
    return ~(lax.abs(x) > jnp.finfo(x.dtype).eps)


def _i1_gradient(g: Any, input: Any, out: Any) -> Any:
    safe = choose(_tiny(input), 1, input)
    return g * choose(_tiny(input), 0.5, _i0(safe) - out / safe)


def _i1e_gradient(g: Any, input: Any, out: Any) -> Any:
    safe = choose(_tiny(input), 1, input)
    return g * choose(_tiny(input), 0.5, lax.bessel_i0e(safe) - out * (lax.sign(safe) + 1 / safe))


@op(
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    namespaces=("torch", "torch.special"),
    check=rejects("i0_vml_cpu", "c"),
    vjp={"input": lambda g, input: g * _i1(input)},
)
def i0(input: T):
    """The modified Bessel function of the first kind, order 0."""
    return _i0(input)


@op(
    **FLOAT,
    check=rejects("i0e_cpu", "c"),
    grad_name="SpecialI0EBackward0",
    vjp={"input": lambda g, input, out: g * (lax.bessel_i1e(input) - lax.sign(input) * out)},
)
def i0e(input: T):
    """e ** -|input| * i0(input)."""
    return lax.bessel_i0e(input)


@op(**FLOAT, check=rejects("i1_cpu", "c"), grad_name="SpecialI1Backward0", vjp={"input": _i1_gradient})
def i1(input: T):
    """The modified Bessel function of the first kind, order 1."""
    return _i1(input)


@op(**FLOAT, check=rejects("i1e_cpu", "c"), grad_name="SpecialI1EBackward0", vjp={"input": _i1e_gradient})
def i1e(input: T):
    """e ** -|input| * i1(input)."""
    return lax.bessel_i1e(input)


# -- j0, j1, y0, y1 -----------------------------------------------------------------------------------------------


def _series(q: Any, order: int, weights: list | None = None) -> Any:
    """The sum over k of weights[k] * q ** k / (k! (k + order)!), for small q."""
    total = lax.full_like(q, 0)
    for k in range(SERIES_TERMS, -1, -1):
        term = 1 / (math.factorial(k) * math.factorial(k + order))
        total = total * q + term * (1 if weights is None else weights[k])
    return total


HARMONIC = [sum(1 / j for j in range(1, k + 1)) for k in range(SERIES_TERMS + 2)]
SUM_OF_TWO_PSI = [HARMONIC[k] + HARMONIC[k + 1] - 2 * EULER for k in range(SERIES_TERMS + 1)]


def _near_zero(x: Any) -> tuple:
    q = -0.25 * x * x
    j0, j1 = _series(q, 0), 0.5 * x * _series(q, 1)
    log = lax.log(0.5 * x)
    y0 = (2 / math.pi) * ((log + EULER) * j0 - _series(q, 0, HARMONIC))
    y1 = (2 / math.pi) * (log * j1 - 1 / x - 0.25 * x * _series(q, 1, SUM_OF_TWO_PSI))
    return j0, j1, y0, y1


def _middle(x: Any) -> tuple:
    above, here = lax.full_like(x, 0), lax.full_like(x, 1e-140)
    norm = even = odd = lax.full_like(x, 0)
    for k in range(MILLER_START, 0, -1):
        above, here = here, (2 * k / x) * here - above  # here is now J of order k - 1
        order = k - 1
        if order >= 2 and order % 2 == 0:
            norm = norm + 2 * here
            even = even + ((-1) ** (order // 2)) * here / (order // 2)
        elif order >= 3:
            half = order // 2
            odd = odd + ((-1) ** half) * (2 * half + 1) / (half * (half + 1)) * here
    norm = norm + here
    j0, j1, even, odd = here / norm, above / norm, even / norm, odd / norm
    log = lax.log(0.5 * x) + EULER
    y0 = (2 / math.pi) * log * j0 - (4 / math.pi) * even
    y1 = (2 / math.pi) * ((log - 1) * j1 - j0 / x - odd)
    return j0, j1, y0, y1


def _hankel(x: Any, order: int) -> tuple[Any, Any]:
    """(J, Y) of a whole order for large x."""
    mu = 4 * order * order
    p, q, term = lax.full_like(x, 1), lax.full_like(x, 0), lax.full_like(x, 1)
    for k in range(1, 25):
        term = term * ((mu - (2 * k - 1) ** 2) / (8 * k)) / x
        sign = (-1) ** (k // 2)
        p, q = (p + sign * term, q) if k % 2 == 0 else (p, q + sign * term)
    phase = x - (order / 2 + 0.25) * math.pi
    cos, sin, size = lax.cos(phase), lax.sin(phase), lax.sqrt(2 / (math.pi * x))
    return size * (p * cos - q * sin), size * (p * sin + q * cos)


def _bessel(x: Any, order: int, second: bool) -> Any:
    """J or Y of order 0 or 1 for x >= 0."""
    which = order + (2 if second else 0)
    low = _near_zero(jnp.minimum(x, NEAR))[which]
    middle = _middle(jnp.minimum(jnp.maximum(x, NEAR), FAR))[which]
    far = _hankel(choose(x > FAR, x, FAR), order)[int(second)]
    value = choose(x <= NEAR, low, choose(x <= FAR, middle, far))
    return choose((x != x) | (x == jnp.inf), jnp.nan, value)


def _wide(x: Any) -> Any:
    return x.astype("float64")


def _second_kind(x: Any, order: int) -> Any:
    wide = _wide(x)
    value = _bessel(lax.abs(wide), order, True)
    return choose(wide < 0, jnp.nan, choose(wide == 0, -jnp.inf, value)).astype(x.dtype)


NOT_DIFFERENTIABLE = FLOAT | {"differentiable": False}


@op(**NOT_DIFFERENTIABLE, check=rejects("bessel_j0_cpu", "hc"))
def bessel_j0(input: T):
    """The Bessel function of the first kind, order 0."""
    return _bessel(lax.abs(_wide(input)), 0, False).astype(input.dtype)


@op(**NOT_DIFFERENTIABLE, check=rejects("bessel_j1_cpu", "hc"))
def bessel_j1(input: T):
    """The Bessel function of the first kind, order 1."""
    wide = _wide(input)
    return (lax.sign(wide) * _bessel(lax.abs(wide), 1, False)).astype(input.dtype)


@op(**NOT_DIFFERENTIABLE, check=rejects("bessel_y0_cpu", "hc"))
def bessel_y0(input: T):
    """The Bessel function of the second kind, order 0."""
    return _second_kind(input, 0)


@op(**NOT_DIFFERENTIABLE, check=rejects("bessel_y1_cpu", "hc"))
def bessel_y1(input: T):
    """The Bessel function of the second kind, order 1."""
    return _second_kind(input, 1)


@op(**NOT_DIFFERENTIABLE, check=rejects("spherical_bessel_j0_cpu", "hc"))
def spherical_bessel_j0(input: T):
    """sin(input) / input."""
    zero = input == 0
    return choose(lax.abs(input) == jnp.inf, 0, choose(zero, 1, lax.sin(input) / choose(zero, 1, input)))


# -- modified functions -------------------------------------------------------------------------------------------


def _scaled_k(x: Any, order: float, points: int) -> Any:
    """e ** x * K of `order`, for x not near zero."""
    step = jnp.minimum(0.25, lax.sqrt(0.5 / x))
    total = lax.full_like(x, 0.5)
    for k in range(1, points):
        t = k * step
        half = lax.sinh(0.5 * t)
        total = total + lax.exp(-2 * x * half * half) * lax.cosh(order * t)
    return total * step


def _modified_second_kind(x: Any, order: int, scaled: bool) -> Any:
    wide = _wide(x)
    low = jnp.minimum(lax.abs(wide), NEAR)
    q, log = 0.25 * low * low, lax.log(0.5 * low)
    if order == 0:
        near = -(log + EULER) * _series(q, 0) + _series(q, 0, HARMONIC)
    else:
        near = 1 / low + log * 0.5 * low * _series(q, 1) - 0.25 * low * _series(q, 1, SUM_OF_TWO_PSI)
    high = choose(wide > NEAR, wide, NEAR)
    far = _scaled_k(high, order, 20)
    near, far = (near * lax.exp(low), far) if scaled else (near, far * lax.exp(-high))
    value = choose(wide <= NEAR, near, choose(wide == jnp.inf, 0, far))
    return choose(wide < 0, jnp.nan, choose(wide == 0, jnp.inf, choose(wide != wide, jnp.nan, value))).astype(x.dtype)


@op(**NOT_DIFFERENTIABLE, check=rejects("modified_bessel_i0_cpu", "hc"))
def modified_bessel_i0(input: T):
    """The modified Bessel function of the first kind, order 0."""
    return _i0(input)


@op(**NOT_DIFFERENTIABLE, check=rejects("modified_bessel_i1_cpu", "hc"))
def modified_bessel_i1(input: T):
    """The modified Bessel function of the first kind, order 1."""
    return _i1(input)


@op(**NOT_DIFFERENTIABLE, check=rejects("modified_bessel_k0_cpu", "hc"))
def modified_bessel_k0(input: T):
    """The modified Bessel function of the second kind, order 0."""
    return _modified_second_kind(input, 0, False)


@op(**NOT_DIFFERENTIABLE, check=rejects("modified_bessel_k1_cpu", "hc"))
def modified_bessel_k1(input: T):
    """The modified Bessel function of the second kind, order 1."""
    return _modified_second_kind(input, 1, False)


@op(**NOT_DIFFERENTIABLE, check=rejects("scaled_modified_bessel_k0_cpu", "hc"))
def scaled_modified_bessel_k0(input: T):
    """e ** input * modified_bessel_k0(input)."""
    return _modified_second_kind(input, 0, True)


@op(**NOT_DIFFERENTIABLE, check=rejects("scaled_modified_bessel_k1_cpu", "hc"))
def scaled_modified_bessel_k1(input: T):
    """e ** input * modified_bessel_k1(input)."""
    return _modified_second_kind(input, 1, True)


# -- Airy ---------------------------------------------------------------------------------------------------------

AI_ZERO = 0.35502805388781723926
AI_SLOPE = 0.25881940379280679840
AIRY_LOW, AIRY_HIGH = -8.0, 1.5


def _airy_series(x: Any) -> Any:
    cube = x * x * x
    first, second = lax.full_like(x, 1), x
    a, b = first, second
    for k in range(1, 34):
        a = a * cube / ((3 * k) * (3 * k - 1))
        b = b * cube / ((3 * k) * (3 * k + 1))
        first, second = first + a, second + b
    return AI_ZERO * first - AI_SLOPE * second


def _airy_oscillating(x: Any) -> Any:
    """For x far below zero."""
    z = lax.sqrt(-x)
    zeta = (2 / 3) * z * z * z
    p, q, term = lax.full_like(x, 1), lax.full_like(x, 0), lax.full_like(x, 1)
    for k in range(1, 20):
        term = term * ((6 * k - 5) * (6 * k - 1) / (72 * k)) / zeta
        sign = (-1) ** (k // 2)
        p, q = (p + sign * term, q) if k % 2 == 0 else (p, q + sign * term)
    phase = zeta - math.pi / 4
    return (lax.cos(phase) * p + lax.sin(phase) * q) / (math.sqrt(math.pi) * lax.sqrt(z))


@op(**NOT_DIFFERENTIABLE, check=rejects("airy_ai_cpu", "hc"))
def airy_ai(input: T):
    """Airy's function Ai."""
    x = _wide(input)
    middle = _airy_series(jnp.minimum(jnp.maximum(x, AIRY_LOW), AIRY_HIGH))
    high = choose(x > AIRY_HIGH, x, AIRY_HIGH)
    root = lax.sqrt(high)
    zeta = (2 / 3) * high * root
    above = lax.sqrt(high / 3) / math.pi * _scaled_k(zeta, 1 / 3, 24) * lax.exp(-zeta)
    below = _airy_oscillating(choose(x < AIRY_LOW, x, AIRY_LOW))
    value = choose(x > AIRY_HIGH, above, choose(x < AIRY_LOW, below, middle))
    return choose((x != x) | (lax.abs(x) == jnp.inf), jnp.nan, value).astype(input.dtype)
