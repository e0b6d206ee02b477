"""Samplers that reject: how many words one value takes depends on the words.

They run value by value in row-major order with unit64 uniforms, so that PyTorch's order of draws is kept. The
algorithms are the published ones: Hoermann's transformed rejection (PTRS for Poisson, BTRS for binomial, 1993),
counting geometric gaps for small binomials, Marsaglia and Tsang (2000) for gamma.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from . import checks
from .checks import float32, float64
from .fills import Array, Shape, normal, scalar_normal, uniform
from .generator import HostGenerator
from .rounding import narrow

_SCALE53 = 2.0**-53


def _uniforms(gen: HostGenerator) -> Callable[[], float]:
    """A function that draws one unit64 (two words) at each call."""
    draw53 = gen.draw53
    return lambda: draw53() * _SCALE53


# -- Poisson -----------------------------------------------------------------------------------------------------


def _poisson_one(draw: Callable[[], float], rate: float) -> float:
    checks.require(rate >= 0, "invalid Poisson rate, expected rate to be non-negative")
    if rate == 0:
        return 0
    if rate < 10:
        floor, product, count = math.exp(-rate), 1.0, 0
        while True:
            product *= draw()
            if product <= floor:
                return count
            count += 1
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = draw() - 0.5
        v = draw()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= v_r:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = (math.log(v) if v > 0 else -math.inf) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return k


def poisson(gen: HostGenerator, rate: Array) -> Array:
    """Poisson counts with the shape and floating dtype of ``rate``.

    Raises:
        RuntimeError: a negative or NaN rate.
        NotImplementedError: an integer dtype.
    """
    checks.require_floating(rate.dtype, "poisson_cpu")
    with gen.lock:
        draw = _uniforms(gen)
        out = [float(_poisson_one(draw, r)) for r in rate.astype(np.float64).ravel().tolist()]
    return narrow(np.array(out, np.float64), rate.dtype).reshape(rate.shape)


# -- binomial ----------------------------------------------------------------------------------------------------

_STIRLING = [
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)) for k in range(10)
]


def _stirling_tail(k: float) -> float:
    """log(k!) minus Stirling's approximation at k+1."""
    if k <= 9:
        return _STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _binomial_gaps(draw: Callable[[], float], count: float, p: float) -> float:
    total, successes = 0.0, 0
    log_miss = math.log1p(-p)
    while True:
        u = draw()
        total += math.ceil(math.log(u) / log_miss) if u > 0 else math.inf
        if total > count:
            return successes
        successes += 1


def _binomial_btrs(draw: Callable[[], float], count: float, p: float) -> float:
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = count * p + 0.5
    v_r = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((count + 1) * p)
    while True:
        u = draw() - 0.5
        v = draw()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + centre)
        if k < 0 or k > count:
            continue
        if us >= 0.07 and v <= v_r:
            return k
        value = v * alpha / (a / (us * us) + b)
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(count - mode)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if (math.log(value) if value > 0 else -math.inf) <= bound:
            return k


def _binomial_one(draw: Callable[[], float], count: float, p: float) -> float:
    if count <= 0 or p <= 0:
        return 0
    if p >= 1:
        return count
    if p != p or count != count:
        return math.nan
    rare = min(p, 1 - p)
    sampler = _binomial_btrs if count * rare >= 10 else _binomial_gaps
    drawn = sampler(draw, count, rare)
    return drawn if p <= 0.5 else count - drawn


def binomial(gen: HostGenerator, count: Array, prob: Array) -> Array:
    """Binomial counts; ``count`` and ``prob`` share a dtype (float32 or float64) and broadcast.

    Raises:
        ValueError: counts of an integer dtype.
        RuntimeError: the dtypes differ.
        NotImplementedError: float16 or bfloat16.
    """
    kind = checks.scalar_name(count.dtype)
    if count.dtype not in checks.FLOATING:
        raise ValueError(f"binomial only supports floating-point dtypes for count, got: {kind}")
    if prob.dtype not in checks.FLOATING:
        raise ValueError(
            f"binomial only supports floating-point dtypes for prob, got: {checks.scalar_name(prob.dtype)}"
        )
    checks.require(count.dtype == prob.dtype, f"Found dtype {checks.scalar_name(prob.dtype)} but expected {kind}")
    if count.dtype not in (float32, float64):
        raise checks.not_implemented("binomial_cpu", count.dtype)
    wide_count, wide_prob = np.broadcast_arrays(count.astype(np.float64), prob.astype(np.float64))
    with gen.lock:
        draw = _uniforms(gen)
        out = [
            float(_binomial_one(draw, c, p))
            for c, p in zip(wide_count.ravel().tolist(), wide_prob.ravel().tolist(), strict=True)
        ]
    return np.array(out, np.float64).astype(count.dtype).reshape(wide_count.shape)


# -- gamma -------------------------------------------------------------------------------------------------------

# Both constants are single precision in PyTorch, whatever the dtype.
_SQUEEZE = float(np.float32(0.0331))
_THIRD = np.float32(1) / np.float32(3)


def _gamma_one(gen: HostGenerator, draw: Callable[[], float], alpha: np.floating) -> float:
    """One gamma in double; ``alpha`` is a scalar of the tensor's dtype, in which it is first shifted."""
    one = type(alpha)(1)
    scale = 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = (1.0 - draw()) ** float(one / alpha)
        alpha = alpha + one
    d = float(alpha - type(alpha)(_THIRD))
    c = 1.0 / math.sqrt(9.0 * d) if d > 0 else math.nan
    while True:
        x = scalar_normal(gen)
        y = 1.0 + c * x
        if y <= 0:
            continue
        v = y * y * y
        u = 1.0 - draw()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def _gammas(gen: HostGenerator, alpha: Array) -> Array:
    with gen.lock:
        draw = _uniforms(gen)
        return np.array([_gamma_one(gen, draw, a) for a in alpha.ravel()], np.float64).reshape(alpha.shape)


def standard_gamma(gen: HostGenerator, alpha: Array) -> Array:
    """Gamma with shape parameter ``alpha`` and rate 1: float32 or float64, shape of ``alpha``.

    Raises:
        NotImplementedError: another dtype.
    """
    if alpha.dtype not in (float32, float64):
        raise checks.not_implemented("gamma_cpu", alpha.dtype)
    return np.maximum(_gammas(gen, alpha).astype(alpha.dtype), np.finfo(alpha.dtype).tiny)


def dirichlet(gen: HostGenerator, alpha: Array) -> Array:
    """Dirichlet draws over the last dimension: float32 or float64. PyTorch sums the rows in another order,
    so a value may differ from PyTorch's in its last bit.

    Raises:
        NotImplementedError: another dtype.
    """
    if alpha.dtype not in (float32, float64):
        raise checks.not_implemented("dirichlet", alpha.dtype)
    # PyTorch draws in double and keeps every value off 0 and 1.
    gammas = np.maximum(_gammas(gen, alpha.astype(np.float64)), np.finfo(np.float64).tiny)
    out = (gammas / gammas.sum(-1, keepdims=True)).astype(alpha.dtype)
    return np.clip(out, np.finfo(alpha.dtype).tiny, np.nextafter(alpha.dtype.type(1), alpha.dtype.type(0)))


# -- truncated normal ----------------------------------------------------------------------------------------------


def _phi(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal(
    gen: HostGenerator,
    shape: Shape,
    dtype: np.dtype,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    *,
    scalar_path: bool = False,
) -> Array:
    """Normal restricted to [a, b], as ``nn.init.trunc_normal_`` draws it; each round draws whole tensors.

    ``scalar_path`` as in ``normal``. Where the interval holds little of the normal's mass, candidates are uniform
    and accepted by the density; that decision uses NumPy's logarithm, not PyTorch's (a flip has odds of 1e-7).

    Warns:
        UserWarning: the mean is more than two std outside [a, b].
    """
    dtype = np.dtype(dtype)
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=3,
        )
    with gen.lock:
        if _phi((b - mean) / std) - _phi((a - mean) / std) > 0.3:
            lo, hi = narrow(np.array([a, b], np.float64), dtype)
            result = normal(gen, shape, dtype, mean, std, scalar_path=scalar_path)
            while (outside := (result < lo) | (result > hi)).any():
                result = np.where(outside, normal(gen, shape, dtype, mean, std, scalar_path=scalar_path), result)
            return result
        return _truncated_tail(gen, shape, dtype, mean, std, a, b)


def _truncated_tail(
    gen: HostGenerator, shape: Shape, dtype: np.dtype, mean: float, std: float, a: float, b: float
) -> Array:
    mode = max(a, min(mean, b))
    scalars = np.array([mean, std, -0.5, -0.5 * ((mode - mean) / std) ** 2], np.float64)
    shift, scale, minus_half, peak = narrow(scalars, dtype)
    result = np.zeros(shape, dtype)
    pending = np.ones(shape, np.bool_)
    while pending.any():
        candidates = uniform(gen, shape, dtype, a, b)
        result = np.where(pending, candidates, result)
        with np.errstate(divide="ignore"):
            accept = narrow(np.log(narrow(uniform(gen, shape, dtype), np.promote_types(dtype, float32))), dtype)
        z = (candidates - shift) / scale
        pending &= accept > z * z * minus_half - peak
    return result
