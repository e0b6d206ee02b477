"""Gamma, polygamma, zeta and incomplete gamma functions."""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.dtype import BOOL
from torchlike._src.ops.declare import TS, Promote, T, op
from torchlike._src.ops.elementwise import choose, rejects

WITH_SPECIAL = ("torch", "torch.special")
SPECIAL = ("torch.special",)
FLOAT = {"promote": Promote.INT_TO_FLOAT, "elementwise": True}


def psi(x: Any) -> Any:
    """The digamma function; ±inf at zero by its sign, NaN at negative whole numbers."""
    return choose(x == 0, -1 / x, lax.digamma(x))


@op(**FLOAT, inplace=True, check=rejects("lgamma_vml_cpu", "c"), vjp={"input": lambda g, input: g * psi(input)})
def lgamma(input: T):
    """log |Γ(input)|."""
    return lax.lgamma(input)


def hurwitz(s: Any, q: Any) -> Any:
    """The zeta function; inf at the poles (q = 0, -1, … and s = 1), NaN for s < 1."""
    s, q = jnp.broadcast_arrays(s, q)
    value = choose((q <= 0) & (q == lax.floor(q)), jnp.inf, lax.zeta(s, q))
    return choose(s == 1, jnp.inf, choose(s < 1, jnp.nan, value))


def trigamma(x: Any) -> Any:
    return _polygamma(x, 1)


@op(
    **FLOAT,
    inplace=True,
    namespaces=WITH_SPECIAL,
    check=rejects("digamma", "c"),
    vjp={"input": lambda g, input: g * trigamma(input)},
)
def digamma(input: T):
    """The derivative of lgamma."""
    return psi(input)


def _polygamma(x: Any, n: int) -> Any:
    if n == 0:
        return psi(x)
    sign = 1.0 if n % 2 else -1.0
    if n == 1:  # reflected below 1/2, where the series of zeta would start at a pole
        reflect = x < 0.5
        y = choose(reflect, 1 - x, x)
        value = lax.polygamma(lax.full_like(x, 1), y)  # has a derivative, which zeta has not
        turn = lax.sin(x * math.pi)
        return choose(reflect, (math.pi / turn) * (math.pi / turn) - value, value)
    return sign * math.factorial(n) * hurwitz(lax.full_like(x, n + 1), x)


def check_polygamma(n: int, input: Aval) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    rejects({0: "digamma", 1: "trigamma"}.get(n, "polygamma"), "c", of=("input",))(input=input)


@op(
    **FLOAT,
    inplace=True,
    namespaces=WITH_SPECIAL,
    check=check_polygamma,
    vjp={"input": lambda g, n, input: g * _polygamma(input, n + 1)},
)
def polygamma(n, input: T):
    """The n-th derivative of digamma. As a method it is `input.polygamma(n)`."""
    return _polygamma(input, n)


def check_mvlgamma(input: Aval, p: int) -> None:
    if input.dtype.category == BOOL:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    rejects("arange_cpu", "c", of=("input",))(input=input)


def _mvlgamma_gradient(g: Any, input: Any, p: int) -> Any:
    return g * sum(psi(input - 0.5 * j) for j in range(p))


@op(**FLOAT, inplace=True, check=check_mvlgamma, vjp={"input": _mvlgamma_gradient})
def mvlgamma(input: T, p):
    """The logarithm of the p-variate gamma function."""
    total = sum(lax.lgamma(input - 0.5 * j) for j in range(p))
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _zeta_name(input: Any, other: Any) -> str:
    which = 1 if isinstance(input, type) else 2 if isinstance(other, type) else 0
    return f"SpecialZetaBackward{which}"


@op(
    **FLOAT,
    namespaces=SPECIAL,
    method=False,
    check=rejects("zeta_cpu", "hc"),
    grad_name=_zeta_name,
    vjp={"other": lambda g, input, other: g * -input * hurwitz(input + 1, other)},
)
def zeta(input: TS, other: TS):
    """Hurwitz' zeta function: the sum over k of (k + other) ** -input."""
    return hurwitz(input, other)


def _gamma_density(g: Any, input: Any, other: Any) -> Any:
    return g * lax.exp((input - 1) * lax.log(other) - other - lax.lgamma(input))


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=rejects("igamma_cpu", "bic"),
    vjp={"other": _gamma_density},
)
def igamma(input: T, other: T):
    """The regularised lower incomplete gamma function P(input, other)."""
    return lax.igamma(*jnp.broadcast_arrays(input, other))


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=rejects("igammac_cpu", "bic"),
    vjp={"other": lambda g, input, other: -_gamma_density(g, input, other)},
)
def igammac(input: T, other: T):
    """The regularised upper incomplete gamma function Q(input, other)."""
    return lax.igammac(*jnp.broadcast_arrays(input, other))
