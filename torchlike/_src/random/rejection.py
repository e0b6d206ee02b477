"""Samplers that reject: how many words one value takes depends on the words.

Values follow each other in row-major order with unit64 uniforms, so that PyTorch's order of draws is kept. They are
made one by one in loops over lists of uniforms seen beforehand, of which only those used are drawn; or, where all
parameters are alike, by whole arrays: each attempt takes as many uniforms as any other, and the accepted ones are the
values. The algorithms are the published ones: Hoermann's transformed rejection (PTRS for Poisson, BTRS for binomial,
1993), counting geometric gaps for small binomials, Marsaglia and Tsang (2000) for gamma.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from . import checks, libm
from .checks import float32, float64
from .fills import Array, Shape, normal, scalar_normal, uniform
from .generator import HostGenerator
from .rounding import narrow

_SCALE53 = 2.0**-53
_TWO_PI = 6.283185307179586
_FEW = 16  # fewer alike values than this are made one by one


def _uniforms(gen: HostGenerator, n: int) -> Array:
    """The next n unit64: float64[n]. Nothing is drawn."""
    out = gen.peek53(n).view(np.int64).astype(np.float64)
    out *= _SCALE53
    return out


def _one_by_one(gen: HostGenerator, n: int, each: float, run: Callable[[Array, int], tuple[int, int]]) -> None:
    """Make n values that take some ``each`` uniforms each: run(uniforms, k) -> (k, used) makes them from the k-th on,
    as many as the uniforms suffice for."""
    k, least = 0, 64
    while k < n:
        before = k
        k, used = run(_uniforms(gen, min(max(int((n - k) * each * 1.1), least), 30000)), k)
        gen.skip(2 * used)
        if k == before:
            least *= 2


def _accepted(gen: HostGenerator, n: int, rate: float, attempt: Callable[[Array, Array], tuple[Array, Array]]) -> Array:
    """n values of like parameters: attempt(u, v) -> (values, which are accepted), two uniforms for each; ``rate`` of
    them are. float64[n]."""
    out = np.empty(n)
    done = 0
    while done < n:
        pairs = min(int((n - done) / rate * 1.05) + 16, 15000)
        u = _uniforms(gen, 2 * pairs)
        values, accepted = attempt(u[0::2] - 0.5, u[1::2])
        chosen = np.flatnonzero(accepted)[: n - done]
        out[done : done + chosen.size] = values[chosen]
        done += chosen.size
        gen.skip(4 * (int(chosen[-1]) + 1 if done == n else pairs))
    return out


def _alike(*arrays: Array) -> bool:
    return arrays[0].size >= _FEW and all(bool((x == x[0]).all()) for x in arrays)


def _summed(gen: HostGenerator, n: int, each: float, steps: Callable[[Array], Array], over: Callable) -> list[int]:
    """How often n walks step before they are over: over(steps of the uniforms) -> the counts of the walks that end.

    A walk takes a uniform for each step, and one for the step that ends it; about ``each`` of them."""
    out: list[int] = []

    def run(uniforms: Array, k: int) -> tuple[int, int]:
        out.extend(over(steps(uniforms).tolist()))
        del out[n:]
        return len(out), sum(out[k:]) + len(out) - k

    _one_by_one(gen, n, each, run)
    return out


# -- Poisson -----------------------------------------------------------------------------------------------------


def _ptrs_constants(rate: Array) -> tuple[Array, Array, Array]:
    """a, b and v_r of rates."""
    b = 0.931 + 2.53 * np.sqrt(rate)
    return -0.059 + 0.02483 * b, b, 0.9277 - 3.6224 / (b - 2)


_NO_COUNT = -(2**63)
"""What C makes of a number beyond int64, or of none."""


def _ptrs_accepts(rate: float, a: float, b: float, us: float, v: float, k: float) -> bool:
    """What the quick test has not accepted."""
    if k < 0 or (us < 0.013 and v > us):
        return False
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    left = (math.log(v) if v > 0 else -math.inf) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
    return left <= -rate + k * math.log(rate) - math.lgamma(k + 1)


def _poissons_alike(gen: HostGenerator, n: int, rate: float) -> Array | list[int]:
    if rate == 0:
        return [0] * n
    if rate < 10:
        floor = math.exp(-rate)

        def counts(uniforms: list[float]) -> list[int]:
            out = []
            product, count = 1.0, 0
            for x in uniforms:
                product *= x
                if product <= floor:
                    out.append(count)
                    product, count = 1.0, 0
                else:
                    count += 1
            return out

        return _summed(gen, n, rate + 1, lambda u: u, counts)
    a, b, v_r = (float(x) for x in _ptrs_constants(np.array(rate)))
    log_alpha, log_rate = math.log(1.1239 + 1.1328 / (b - 3.4)), math.log(rate)

    def attempt(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a / us + b) * u + rate + 0.43)
        accepted = (us >= 0.07) & (v <= v_r)
        rest = np.flatnonzero(~accepted & (k >= 0) & ((us >= 0.013) | (v <= us)))
        left = libm.log(v[rest]) + log_alpha - libm.log(a / (us[rest] * us[rest]) + b)
        chosen = k[rest]
        right = -rate + chosen * log_rate - np.array([math.lgamma(x) for x in (chosen + 1).tolist()])
        accepted[rest] = left <= right
        return k, accepted

    return _accepted(gen, n, 0.85, attempt)


def _poissons(gen: HostGenerator, rates: Array) -> Array | list[int]:
    """float64[n] -> n counts."""
    if _alike(rates) and 0 <= rates[0] < math.inf:
        return _poissons_alike(gen, rates.size, float(rates[0]))
    out: list[int] = []
    given = rates.tolist()
    n = len(given)
    with np.errstate(all="ignore"):
        a_s, b_s, v_rs = (x.tolist() for x in _ptrs_constants(rates))
    add, floor, exp, isfinite = out.append, math.floor, math.exp, math.isfinite

    def run(uniforms: Array, k: int) -> tuple[int, int]:
        u = uniforms.tolist()
        i = start = 0
        try:
            for k in range(k, n):  # noqa: B020 - from k on
                start = i
                rate = given[k]
                if rate >= 10:
                    a, b, v_r = a_s[k], b_s[k], v_rs[k]
                    while True:
                        x = u[i] - 0.5
                        v = u[i + 1]
                        i += 2
                        us = 0.5 - abs(x)
                        value = (2 * a / us + b) * x + rate + 0.43
                        value = floor(value) if isfinite(value) else _NO_COUNT
                        if us >= 0.07 and v <= v_r or _ptrs_accepts(rate, a, b, us, v, value):
                            add(value)
                            break
                elif rate > 0:
                    least = exp(-rate)
                    product = u[i]
                    i += 1
                    while product > least:
                        product *= u[i]
                        i += 1
                    add(i - start - 1)
                elif rate == 0:
                    add(0)
                else:
                    gen.skip(2 * start)
                    raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        except IndexError:
            return k, start
        return n, i

    if n:
        _one_by_one(gen, n, float(np.where(rates < 10, rates + 1, 2.4).mean()), run)
    return out


def poisson(gen: HostGenerator, rate: Array) -> Array:
    """Poisson counts with the shape and floating dtype of ``rate``.

    Raises:
        RuntimeError: a negative or NaN rate.
        NotImplementedError: an integer dtype.
    """
    checks.require_floating(rate.dtype, "poisson_cpu")
    with gen.lock:
        out = np.array(_poissons(gen, rate.astype(np.float64).ravel()), np.float64)
    out[~(out < 2.0**63)] = -(2.0**63)  # PyTorch counts in int64
    return narrow(out, rate.dtype).reshape(rate.shape)


# -- binomial ----------------------------------------------------------------------------------------------------

_STIRLING = [
    math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)) for k in range(10)
]


_STIRLING_TABLE = np.array(_STIRLING)


def _stirling_tail(k: float) -> float:
    """log(k!) minus Stirling's approximation at k+1."""
    if k <= 9:
        return _STIRLING[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _stirling_tails(k: Array) -> Array:
    square = (k + 1) * (k + 1)
    far = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, _STIRLING_TABLE[np.minimum(k, 9).astype(np.int64)], far)


def _btrs_constants(count: Array, p: Array) -> tuple[Array, Array, Array, Array]:
    """a, b, the centre and v_r of counts and p <= 1/2."""
    b = 1.15 + 2.53 * np.sqrt(count * p * (1 - p))
    return -0.0873 + 0.0248 * b + 0.01 * p, b, count * p + 0.5, 0.92 - 4.2 / b


def _btrs_bound(count: float, p: float) -> tuple[float, float, float, tuple[float, float]]:
    """odds, mode, the part of the bound that does not depend on a draw, and two more."""
    odds = p / (1 - p)
    mode = math.floor((count + 1) * p)
    first = (mode + 0.5) * math.log((mode + 1) / (odds * (count - mode + 1)))
    return odds, mode, first, (_stirling_tail(mode), _stirling_tail(count - mode))


def _btrs_accepts(count: float, p: float, a: float, b: float, us: float, v: float, k: float) -> bool:
    """What the quick test has not accepted; 0 <= k <= count."""
    odds, mode, first, tails = _btrs_bound(count, p)
    value = v * ((2.83 + 5.1 / b) * math.sqrt(count * p * (1 - p))) / (a / (us * us) + b)
    bound = (
        first
        + (count + 1) * math.log((count - mode + 1) / (count - k + 1))
        + (k + 0.5) * math.log(odds * (count - k + 1) / (k + 1))
        + tails[0]
        + tails[1]
        - _stirling_tail(k)
        - _stirling_tail(count - k)
    )
    return (math.log(value) if value > 0 else -math.inf) <= bound


def _binomials_alike(gen: HostGenerator, n: int, count: float, p: float) -> Array:
    """n counts of p <= 1/2."""
    if count * p < 10:
        log_miss = math.log1p(-p)

        def counts(gaps: list[float]) -> list[int]:
            out = []
            total, successes = 0.0, 0
            for gap in gaps:
                total += gap
                if total > count:
                    out.append(successes)
                    total, successes = 0.0, 0
                else:
                    successes += 1
            return out

        found = _summed(gen, n, count * p + 1, lambda u: np.ceil(libm.log(u) / log_miss), counts)
        return np.array(found, np.float64)
    a, b, centre, v_r = (float(x) for x in _btrs_constants(np.array(count), np.array(p)))
    alpha = (2.83 + 5.1 / b) * math.sqrt(count * p * (1 - p))
    odds, mode, first, tails = _btrs_bound(count, p)

    def attempt(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - np.abs(u)
        k = np.floor((2 * a / us + b) * u + centre)
        possible = (k >= 0) & (k <= count)
        accepted = possible & (us >= 0.07) & (v <= v_r)
        rest = np.flatnonzero(possible & ~accepted)
        chosen, steps = k[rest], us[rest]
        left = libm.log(v[rest] * alpha / (a / (steps * steps) + b))
        right = (
            first
            + (count + 1) * libm.log((count - mode + 1) / (count - chosen + 1))
            + (chosen + 0.5) * libm.log(odds * (count - chosen + 1) / (chosen + 1))
            + tails[0]
            + tails[1]
            - _stirling_tails(chosen)
            - _stirling_tails(count - chosen)
        )
        accepted[rest] = left <= right
        return k, accepted

    return _accepted(gen, n, 0.8, attempt)


def _binomials(gen: HostGenerator, counts: Array, probs: Array) -> Array:
    """float64[n] each -> float64[n]."""
    if _alike(counts, probs):
        count, p = float(counts[0]), float(probs[0])
        if 0 < p < 1 and 0 < count < math.inf:
            out = _binomials_alike(gen, counts.size, count, min(p, 1 - p))
            return out if p <= 0.5 else count - out
    rare_probs = np.minimum(probs, 1 - probs)
    given_counts, given_probs, rares = counts.tolist(), probs.tolist(), rare_probs.tolist()
    n = len(given_counts)
    with np.errstate(all="ignore"):
        a_s, b_s, centres, v_rs = (x.tolist() for x in _btrs_constants(counts, rare_probs))
    values: list[float] = []
    add, floor, ceil, log1p = values.append, math.floor, math.ceil, math.log1p

    def run(uniforms: Array, k: int) -> tuple[int, int]:
        u = uniforms.tolist()
        # The logarithm of 0 stands for a gap longer than any count.
        logs = np.maximum(libm.log(uniforms), -1e300).tolist()
        i = start = 0
        try:
            for k in range(k, n):  # noqa: B020 - from k on
                start = i
                count, p = given_counts[k], given_probs[k]
                if count <= 0 or p <= 0:
                    add(0)
                    continue
                if p >= 1:
                    add(count)
                    continue
                if p != p or count != count:
                    add(math.nan)
                    continue
                rare = rares[k]
                if count * rare >= 10:
                    a, b, centre, v_r = a_s[k], b_s[k], centres[k], v_rs[k]
                    while True:
                        x = u[i] - 0.5
                        v = u[i + 1]
                        i += 2
                        us = 0.5 - abs(x)
                        value = floor((2 * a / us + b) * x + centre)
                        if 0 <= value <= count and (
                            us >= 0.07 and v <= v_r or _btrs_accepts(count, rare, a, b, us, v, value)
                        ):
                            break
                else:
                    log_miss = log1p(-rare)
                    total = ceil(logs[i] / log_miss)
                    i += 1
                    while total <= count:
                        total += ceil(logs[i] / log_miss)
                        i += 1
                    value = i - start - 1
                add(value if p <= 0.5 else count - value)
        except IndexError:
            return k, start
        return n, i

    _one_by_one(gen, n, 4, run)
    return np.array(values, np.float64)


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
        out = _binomials(gen, wide_count.ravel(), wide_prob.ravel())
    return out.astype(count.dtype).reshape(wide_count.shape)


# -- gamma -------------------------------------------------------------------------------------------------------

# Both constants are single precision in PyTorch, whatever the dtype.
_SQUEEZE = float(np.float32(0.0331))
_THIRD = np.float32(1) / np.float32(3)


def _gammas(gen: HostGenerator, alpha: Array) -> Array:
    """``alpha``, in whose dtype it is first shifted -> gammas in double."""
    flat = alpha.ravel()
    with np.errstate(all="ignore"):
        small = flat < 1
        powers = np.where(small, 1 / flat, 0).astype(np.float64)
        ds = (np.where(small, flat + 1, flat) - flat.dtype.type(_THIRD)).astype(np.float64)
        cs = np.where(ds > 0, 1.0 / np.sqrt(9.0 * ds), math.nan)
    with gen.lock:
        if _alike(flat) and not small[0]:
            out = _gammas_alike(gen, flat.size, float(ds[0]), float(cs[0]))
        else:
            out = np.empty(flat.size)
            _gammas_one_by_one(gen, out, powers.tolist(), ds.tolist(), cs.tolist())
    return out.reshape(alpha.shape)


def _gammas_one_by_one(
    gen: HostGenerator, out: Array, powers: Sequence[float], ds: Sequence[float], cs: Sequence[float]
) -> None:
    """Fill float64[n]."""
    log, log1p, sqrt, sin, cos = math.log, math.log1p, math.sqrt, math.sin, math.cos
    n = out.size
    cached = gen.cached_normal

    def run(uniforms: Array, k: int) -> tuple[int, int]:
        nonlocal cached
        u = uniforms.tolist()
        i = start = 0
        kept = cached
        try:
            for k in range(k, n):  # noqa: B020 - from k on
                start, kept = i, cached
                power, d, c = powers[k], ds[k], cs[k]
                scale = 1.0
                if power:
                    if power == math.inf:  # alpha is 0
                        out[k] = 0.0
                        continue
                    scale = (1.0 - u[i]) ** power
                    i += 1
                while True:
                    if cached is None:
                        angle = _TWO_PI * u[i]
                        r = sqrt(-2.0 * log1p(-u[i + 1]))
                        i += 2
                        x, cached = r * cos(angle), r * sin(angle)
                    else:
                        x, cached = cached, None
                    y = 1.0 + c * x
                    if y <= 0:
                        continue
                    v = y * y * y
                    w = 1.0 - u[i]
                    i += 1
                    square = x * x
                    if w < 1.0 - _SQUEEZE * square * square or log(w) < 0.5 * square + d * (1.0 - v + log(v)):
                        out[k] = scale * d * v
                        break
        except IndexError:
            cached = kept
            return k, start
        return n, i

    _one_by_one(gen, n, 3, run)
    gen.cached_normal = cached


def _gamma_one(gen: HostGenerator, d: float, c: float) -> float:
    """One gamma of an alpha >= 1."""
    while True:
        x = scalar_normal(gen)
        y = 1.0 + c * x
        if y <= 0:
            continue
        v = y * y * y
        w = 1.0 - gen.draw53() * _SCALE53
        square = x * x
        if w < 1.0 - _SQUEEZE * square * square or math.log(w) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return d * v


def _gammas_alike(gen: HostGenerator, n: int, d: float, c: float) -> Array:
    """n gammas of one alpha >= 1, two attempts at a time: the uniforms of two normals, then one for each of them."""
    out = np.empty(n)
    done = 0
    # An attempt whose normal is below -1/c takes no third uniform: no use to look far beyond the next of these.
    most = int(min(7000, max(16, 3 / math.erfc(1 / (c * math.sqrt(2))) if c > 0.12 else 7000)))
    while done < n:
        pairs = usable = 0
        if gen.cached_normal is None and n - done >= _FEW:
            pairs = min(int((n - done) * 0.52) + 8, most)
            u = _uniforms(gen, 4 * pairs).reshape(pairs, 4)
            r = np.sqrt(libm.log1p(-u[:, 1]) * -2.0)
            angle = u[:, 0] * _TWO_PI
            x = np.stack([r * libm.cos(angle), r * libm.sin(angle)], 1)
            y = 1.0 + c * x
            fits = (y > 0).all(1)
            usable = pairs if fits.all() else int(np.argmin(fits))  # an attempt that takes no third uniform
        if usable:
            x, y, w = x[:usable].ravel(), y[:usable].ravel(), (1.0 - u[:usable, 2:]).ravel()
            v = y * y * y
            square = x * x
            accepted = w < 1.0 - _SQUEEZE * square * square
            for i in np.flatnonzero(~accepted).tolist():
                bound = 0.5 * float(square[i]) + d * (1.0 - float(v[i]) + math.log(v[i]))
                accepted[i] = math.log(w[i]) < bound
            chosen = np.flatnonzero(accepted)[: n - done]
            out[done : done + chosen.size] = d * v[chosen]
            done += chosen.size
            if done == n:
                pair, second = divmod(int(chosen[-1]), 2)
                gen.cached_normal = None if second else float(x[2 * pair + 1])
                gen.skip(8 * pair + (8 if second else 6))
                break
            gen.skip(8 * usable)
        if usable < pairs or not pairs:
            out[done] = _gamma_one(gen, d, c)
            done += 1
    return out


def standard_gamma(gen: HostGenerator, alpha: Array) -> Array:
    """Gamma with shape parameter ``alpha`` and rate 1: float32 or float64, shape of ``alpha``.

    Raises:
        NotImplementedError: another dtype.
    """
    if alpha.dtype not in (float32, float64):
        raise checks.not_implemented("gamma_cpu", alpha.dtype)
    return np.fmax(_gammas(gen, alpha).astype(alpha.dtype), np.finfo(alpha.dtype).tiny)


def dirichlet(gen: HostGenerator, alpha: Array) -> Array:
    """Dirichlet draws over the last dimension: float32 or float64. PyTorch sums the rows in another order,
    so a value may differ from PyTorch's in its last bit.

    Raises:
        NotImplementedError: another dtype.
    """
    if alpha.dtype not in (float32, float64):
        raise checks.not_implemented("dirichlet", alpha.dtype)
    # PyTorch draws in double and keeps every value off 0 and 1.
    gammas = np.fmax(_gammas(gen, alpha.astype(np.float64)), np.finfo(np.float64).tiny)
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
