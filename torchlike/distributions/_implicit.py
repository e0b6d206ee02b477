"""Gradients through gamma and Dirichlet draws: implicit differentiation of the distribution functions.

A draw x with distribution function F(x; a) moves with its parameter as dx/da = -(∂F/∂a) / density(x)."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

import torchlike as torch
from torchlike._src.ops.declare import RawOp
from torchlike._src.tensor.call import apply
from torchlike.autograd import Function
from torchlike.autograd.function import once_differentiable

MAX_TERMS = 5000


def _gamma_gradient(concentration: Any, sample: Any) -> Any:
    """d sample / d concentration for a standard gamma draw, elementwise."""
    gradient = lax.random_gamma_grad(concentration.astype("float64"), sample.astype("float64"))
    return gradient.astype(concentration.dtype)


def _lentz_step(n: Any, state: tuple, a: Any, b: Any, x: Any) -> tuple:
    """One even and one odd term of the continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d, h = state
    for numerator in (
        n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n)),
        -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1)),
    ):
        d = 1 + numerator * d
        d = 1 / jnp.where(d == 0, tiny, d)
        c = 1 + numerator / c
        c = jnp.where(c == 0, tiny, c)
        h = h * c * d
    return c, d, h


def _log_cdf_slopes(a: Any, b: Any, x: Any) -> tuple:
    """The derivatives of log I_x(a, b) by a and by b, and log I_x itself; for x below about the mean."""

    def start(a: Any, b: Any) -> tuple:
        d = 1 / (1 - (a + b) * x / (a + 1))
        return jnp.ones_like(d), d, d

    one, zero = jnp.ones_like(a), jnp.zeros_like(a)
    by_a = jax.jvp(start, (a, b), (one, zero))
    by_b = jax.jvp(start, (a, b), (zero, one))

    def body(carry: tuple) -> tuple:
        n, primal, slope_a, slope_b, _ = carry

        def step(state: tuple, a: Any, b: Any) -> tuple:
            return _lentz_step(n, state, a, b, x)

        new, new_a = jax.jvp(step, (primal, a, b), (slope_a, one, zero))
        _, new_b = jax.jvp(step, (primal, a, b), (slope_b, zero, one))
        h, ha, hb = new[2], new_a[2], new_b[2]
        change = (
            abs(h - primal[2]) / abs(h)
            + abs(ha - slope_a[2]) / (abs(ha) + abs(h))
            + abs(hb - slope_b[2]) / (abs(hb) + abs(h))
        )
        return n + 1, new, new_a, new_b, jnp.max(jnp.where(jnp.isfinite(change), change, 0), initial=0)

    first = (jnp.ones((), a.dtype), by_a[0], by_a[1], by_b[1], jnp.full((), jnp.inf, a.dtype))
    _, (_, _, h), (_, _, ha), (_, _, hb), _ = lax.while_loop(lambda c: (c[4] > 1e-13) & (c[0] < MAX_TERMS), body, first)
    both = lax.digamma(a + b)
    log_value = (
        a * jnp.log(x) + b * jnp.log1p(-x) - jnp.log(a) + lax.lgamma(a + b) - lax.lgamma(a) - lax.lgamma(b) + jnp.log(h)
    )
    slope_a = jnp.log(x) - 1 / a + both - lax.digamma(a) + ha / h
    slope_b = jnp.log1p(-x) + both - lax.digamma(b) + hb / h
    return log_value, slope_a, slope_b


def _dirichlet_gradient(sample: Any, concentration: Any, total: Any) -> Any:
    """-(∂F/∂a) / (density · (1 - x)) of a Beta(a, total - a) draw x, elementwise: how one entry of a Dirichlet draw
    moves with its own concentration, per unit of what the other entries share."""
    x, a, total = (v.astype("float64") for v in (sample, concentration, total))
    b = total - a
    tiny = jnp.finfo(sample.dtype).tiny
    x = jnp.clip(x, tiny, 1 - jnp.finfo(sample.dtype).eps / 4)
    below = x <= (a + 1) / (a + b + 2)
    # Above the mean, the complement: I_x(a, b) = 1 - I_{1-x}(b, a).
    y, p, q = jnp.where(below, x, 1 - x), jnp.where(below, a, b), jnp.where(below, b, a)
    log_value, slope_p, slope_q = _log_cdf_slopes(p, q, y)
    slope = jnp.where(below, slope_p, -slope_q)
    log_beta = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)
    log_density = (a - 1) * jnp.log(x) + b * jnp.log1p(-x) - log_beta  # with the factor 1 / (1 - x) included
    return (-slope * jnp.exp(log_value - log_density)).astype(sample.dtype)


GAMMA_GRADIENT = RawOp(_gamma_gradient, "standard_gamma_grad")
DIRICHLET_GRADIENT = RawOp(_dirichlet_gradient, "dirichlet_grad")


class StandardGamma(Function):
    """Gamma draws of scale 1 that follow their concentration."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        sample = torch._standard_gamma(concentration)
        sample = sample if sample.device == concentration.device else sample.to(concentration.device)
        ctx.save_for_backward(concentration, sample)
        return sample

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Any) -> Any:
        concentration, sample = ctx.saved_tensors
        return grad_output * apply(GAMMA_GRADIENT, (), (concentration, sample))


class SampleDirichlet(Function):
    """Dirichlet draws that follow their concentrations."""

    @staticmethod
    def forward(ctx: Any, concentration: Any) -> Any:
        sample = torch._sample_dirichlet(concentration)
        sample = sample if sample.device == concentration.device else sample.to(concentration.device)
        ctx.save_for_backward(concentration, sample)
        return sample

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Any) -> Any:
        concentration, sample = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        gradient = apply(DIRICHLET_GRADIENT, (), (sample, concentration, total))
        return gradient * (grad_output - (sample * grad_output).sum(-1, True))


def standard_gamma(concentration: Any) -> Any:
    """Gamma draws of scale 1, of concentration's shape."""
    return StandardGamma.apply(concentration)


def sample_dirichlet(concentration: Any) -> Any:
    """Dirichlet draws, of concentration's shape, the last dim being the event."""
    return SampleDirichlet.apply(concentration)
