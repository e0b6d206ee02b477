"""Orthogonal polynomials by their three-term recurrences. The degree is a tensor: a loop to the largest degree."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.ops.declare import TS, Promote, op
from torchlike._src.ops.elementwise import choose, rejects


def _going(state: tuple) -> Any:
    return state[0] < jnp.max(state[1])


def by_recurrence(x: Any, n: Any, first: Callable, step: Callable) -> Any:
    """P of degree n at x: P0 = 1, P1 = first(x), P(k + 1) = step(k, x, Pk, P(k - 1)); 0 for a negative degree."""
    x, n = jnp.broadcast_arrays(x, n)
    if x.size == 0:
        return x
    n = n.astype("int64")
    one = lax.full_like(x, 1)
    result = choose(n == 0, one, first(x))
    state = (lax.full_like(n[(0,) * n.ndim], 1), n, x, one, first(x), result)
    return choose(n < 0, 0, lax.while_loop(_going, step, state)[5])


def _advance(state: tuple, new: Any) -> tuple:
    k, n, x, _, here, result = state
    return k + 1, n, x, here, new, choose(n == k + 1, new, result)


def _chebyshev(state: tuple) -> tuple:
    _, _, x, before, here, _ = state
    return _advance(state, 2 * x * here - before)


def _hermite(state: tuple) -> tuple:
    k, _, x, before, here, _ = state
    return _advance(state, 2 * x * here - 2 * k.astype(x.dtype) * before)


def _probabilist(state: tuple) -> tuple:
    k, _, x, before, here, _ = state
    return _advance(state, x * here - k.astype(x.dtype) * before)


def _laguerre(state: tuple) -> tuple:
    k, _, x, before, here, _ = state
    k = k.astype(x.dtype)
    return _advance(state, ((2 * k + 1 - x) * here - k * before) / (k + 1))


def _legendre(state: tuple) -> tuple:
    k, _, x, before, here, _ = state
    k = k.astype(x.dtype)
    return _advance(state, ((2 * k + 1) * x * here - k * before) / (k + 1))


def _times_1(x: Any) -> Any:
    return x


def _times_2(x: Any) -> Any:
    return 2 * x


def _third(x: Any) -> Any:
    return 2 * x - 1


def _fourth(x: Any) -> Any:
    return 2 * x + 1


def _one_minus(x: Any) -> Any:
    return 1 - x


def _options(name: str) -> dict:
    return {
        "promote": Promote.INT_TO_FLOAT,
        "elementwise": True,
        "namespaces": ("torch.special",),
        "method": False,
        "differentiable": False,
        "check": rejects(f"{name}_cpu", "hc"),
    }


@op(**_options("chebyshev_polynomial_t"))
def chebyshev_polynomial_t(input: TS, n: TS):
    """Chebyshev's polynomial of the first kind."""
    return by_recurrence(input, n, _times_1, _chebyshev)


@op(**_options("chebyshev_polynomial_u"))
def chebyshev_polynomial_u(input: TS, n: TS):
    """Chebyshev's polynomial of the second kind."""
    return by_recurrence(input, n, _times_2, _chebyshev)


@op(**_options("chebyshev_polynomial_v"))
def chebyshev_polynomial_v(input: TS, n: TS):
    """Chebyshev's polynomial of the third kind."""
    return by_recurrence(input, n, _third, _chebyshev)


@op(**_options("chebyshev_polynomial_w"))
def chebyshev_polynomial_w(input: TS, n: TS):
    """Chebyshev's polynomial of the fourth kind."""
    return by_recurrence(input, n, _fourth, _chebyshev)


@op(**_options("shifted_chebyshev_polynomial_t"))
def shifted_chebyshev_polynomial_t(input: TS, n: TS):
    """Chebyshev's polynomial of the first kind at 2 * input - 1."""
    return by_recurrence(2 * input - 1, n, _times_1, _chebyshev)


@op(**_options("shifted_chebyshev_polynomial_u"))
def shifted_chebyshev_polynomial_u(input: TS, n: TS):
    """Chebyshev's polynomial of the second kind at 2 * input - 1."""
    return by_recurrence(2 * input - 1, n, _times_2, _chebyshev)


@op(**_options("shifted_chebyshev_polynomial_v"))
def shifted_chebyshev_polynomial_v(input: TS, n: TS):
    """Chebyshev's polynomial of the third kind at 2 * input - 1."""
    return by_recurrence(2 * input - 1, n, _third, _chebyshev)


@op(**_options("shifted_chebyshev_polynomial_w"))
def shifted_chebyshev_polynomial_w(input: TS, n: TS):
    """Chebyshev's polynomial of the fourth kind at 2 * input - 1."""
    return by_recurrence(2 * input - 1, n, _fourth, _chebyshev)


@op(**_options("hermite_polynomial_h"))
def hermite_polynomial_h(input: TS, n: TS):
    """Hermite's polynomial, the physicist's."""
    return by_recurrence(input, n, _times_2, _hermite)


@op(**_options("hermite_polynomial_he"))
def hermite_polynomial_he(input: TS, n: TS):
    """Hermite's polynomial, the probabilist's."""
    return by_recurrence(input, n, _times_1, _probabilist)


@op(**_options("laguerre_polynomial_l"))
def laguerre_polynomial_l(input: TS, n: TS):
    """Laguerre's polynomial."""
    return by_recurrence(input, n, _one_minus, _laguerre)


@op(**_options("legendre_polynomial_p"))
def legendre_polynomial_p(input: TS, n: TS):
    """Legendre's polynomial."""
    return by_recurrence(input, n, _times_1, _legendre)
