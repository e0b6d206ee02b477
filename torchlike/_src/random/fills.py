"""Continuous fills: words of the generator to numbers, bit for bit as PyTorch's CPU kernels.

Every function takes the generator and a shape and returns a new array in logical row-major order. A caller
that fills a tensor in another memory order asks for the shape in that order (and, for normals of a tensor that
is not row-major contiguous, for ``scalar_path=True``). Arguments are checked before anything is drawn.

unit32 is the low 24 bits of one word times 2**-24; unit64 the low 53 bits of a 64-bit draw times 2**-53.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from . import checks, libm
from .box_muller import BLOCK, normal_blocks32, normal_blocks64
from .checks import float32, float64
from .generator import HostGenerator
from .rounding import fma32, fma64, narrow

Array = np.ndarray
Shape = Sequence[int]

# Elements worked on at a time, so that intermediate arrays stay in the cache; words are made ahead for eight of these.
PIECE = 16380
_TWO_PI = 6.283185307179586
_COMPLEX_PARTS: dict[np.dtype, np.dtype] = {np.dtype(np.complex64): float32, np.dtype(np.complex128): float64}
_SCALE24 = np.float32(2.0**-24)
_SCALE53 = 2.0**-53
_MASK24 = np.array(0xFFFFFF, np.int32)


def unit64(gen: HostGenerator, n: int) -> Array:
    """n uniforms of 53 bits in [0, 1): float64[n], 2n words."""
    out = gen.dwords53(n).view(np.int64).astype(np.float64)
    out *= _SCALE53
    return out


def unit24(gen: HostGenerator, n: int) -> Array:
    """The low 24 bits of n words: int32[n]."""
    return gen.words32(n).view(np.int32) & _MASK24


def pieces(n: int) -> Iterable[tuple[int, int]]:
    """Cut n elements into (start, stop) ranges."""
    if n <= PIECE:
        return [(0, n)] if n else []
    return _long_pieces(n)


def _long_pieces(n: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, PIECE):
        yield start, min(start + PIECE, n)


# -- uniform -----------------------------------------------------------------------------------------------------


@functools.lru_cache(256)
def _reaches_end(a: float, b: float, dtype: np.dtype) -> bool:
    """Whether the largest unit, which gives the largest value, is rounded up to ``b``."""
    if dtype == float64:
        top = fma64(np.array([1.0 - 2.0**-53]), b - a, a)
    else:
        span = float(np.float32(np.float32(b) - np.float32(a)))
        top = fma32(np.array([1.0 - 2.0**-24]), span, float(np.float32(a)))
    return bool(narrow(top, dtype)[0] == narrow(np.array([b], np.float64), dtype)[0])


@functools.lru_cache(256)
def _sum_is_exact(lo: float, span: float) -> bool:
    """Whether (k * 2**-24) * span + lo fits a double for every 24-bit k (both arguments are float32)."""
    units = [math.ldexp(math.ulp(abs(x)), 29) for x in (lo, span) if x]  # spacing of float32 near x
    if not units:
        return True
    finest = min(units[-1] * 2.0**-24, units[0])
    return (abs(lo) + span) / finest <= 2.0**53


def _uniform32(gen: HostGenerator, n: int, a: float, b: float) -> Array:
    lo = float(np.float32(a))
    span = float(np.float32(np.float32(b) - np.float32(a)))
    out = np.empty(n, np.float32)
    if lo == 0.0 and span == 1.0:
        for start, stop in pieces(n):
            np.multiply(unit24(gen, stop - start), _SCALE24, out[start:stop], dtype=np.float32, casting="unsafe")
        return out
    exact = _sum_is_exact(lo, span)
    for start, stop in pieces(n):
        k = unit24(gen, stop - start).astype(np.float64)
        if exact:
            k *= span * 2.0**-24
            k += lo
            out[start:stop] = k
        else:
            k *= 2.0**-24
            out[start:stop] = fma32(k, span, lo)
    return out


def uniform(gen: HostGenerator, shape: Shape, dtype: np.dtype, a: float = 0.0, b: float = 1.0) -> Array:
    """Uniform on [a, b): float32, float64, float16, bfloat16 or complex (real and imaginary parts alike).

    Words: n, for float64 2n (n elements; complex counts both parts).

    Raises:
        RuntimeError: a > b, or a bound or b - a exceeds the dtype.
        NotImplementedError: an integer dtype.
    """
    if dtype is float32 and a == 0.0 and b == 1.0:  # hot: most calls, and the values stay below 1
        n = math.prod(shape)
        with gen.lock:
            out = gen.units24(n) if n <= PIECE else _uniform32(gen, n, 0.0, 1.0)
        return out if len(shape) == 1 else out.reshape(shape)
    dtype = np.dtype(dtype)
    if dtype in _COMPLEX_PARTS:
        return _as_complex(uniform(gen, (*shape, 2), _COMPLEX_PARTS[dtype], a, b), dtype, shape)
    a, b = float(a), float(b)
    checks.uniform_bounds(a, b, dtype)
    n = math.prod(shape)
    with gen.lock:
        if dtype == float64:
            out = np.empty(n)
            for start, stop in pieces(n):
                out[start:stop] = fma64(unit64(gen, stop - start), b - a, a)
        else:
            out = narrow(_uniform32(gen, n, a, b), dtype)
    # A value that rounding has carried up to b is replaced by a.
    if _reaches_end(a, b, dtype):
        low, high = narrow(np.array([a, b]), dtype)
        reached = out == high
        if reached.any():
            out[reached] = low
    return out.reshape(shape)


def _as_complex(parts: Array, dtype: np.dtype, shape: Shape) -> Array:
    return parts.reshape(-1).view(dtype).reshape(shape)


# -- normal ------------------------------------------------------------------------------------------------------


def scalar_normal(gen: HostGenerator) -> float:
    """One standard normal in double: the cached one, or a new pair of which the second is cached (4 words)."""
    value = gen.cached_normal
    if value is not None:
        gen.cached_normal = None
        return value
    u1 = gen.draw53() * _SCALE53
    u2 = gen.draw53() * _SCALE53
    r = math.sqrt(-2.0 * math.log1p(-u2))
    t = _TWO_PI * u1
    gen.cached_normal = r * math.sin(t)
    return r * math.cos(t)


def _scalar_normals(gen: HostGenerator, n: int) -> Array:
    """n standard normals by the scalar path: float64[n]."""
    if n <= BLOCK:
        return np.array([scalar_normal(gen) for _ in range(n)])
    out = np.empty(n)
    filled = 0
    if gen.cached_normal is not None:
        out[0] = scalar_normal(gen)
        filled = 1
    while n - filled > 1:
        pairs = min(PIECE, n - filled) // 2
        u = unit64(gen, 2 * pairs)
        r = libm.log1p(-u[1::2]) * -2.0
        np.sqrt(r, r)
        t = u[0::2] * _TWO_PI
        np.multiply(r, libm.cos(t), out[filled : filled + 2 * pairs : 2])
        np.multiply(r, libm.sin(t), out[filled + 1 : filled + 2 * pairs : 2])
        filled += 2 * pairs
    if filled < n:
        out[filled] = scalar_normal(gen)
    return out


def standard_normals32(gen: HostGenerator, n: int) -> Array:
    """n standard normals for a row-major tensor: float32[n]."""
    if n >= BLOCK:
        ahead = gen.ahead
        if ahead is not None and ahead.plan is not None and ahead.plan.n == n:  # hot
            found = ahead.plan.take(gen)
            if found is not None:
                return found
        return normal_blocks32(gen, n, 0.0, 1.0, draw_remainder=True)
    return np.array([scalar_normal(gen) + 0.0 for _ in range(n)], np.float32)


def normal(
    gen: HostGenerator,
    shape: Shape,
    dtype: np.dtype,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    scalar_path: bool = False,
) -> Array:
    """Normal with float mean and std: floating or complex dtype.

    Sixteen or more row-major values are made in blocks; fewer, or a tensor with another memory layout
    (``scalar_path=True``), one pair at a time through the generator's cached normal: different numbers.

    Raises:
        RuntimeError: std < 0.
        NotImplementedError: an integer dtype.
    """
    if dtype is float32 and std == 1.0 and mean == 0.0 and not scalar_path:  # hot
        with gen.lock:
            out = standard_normals32(gen, math.prod(shape))
        return out if len(shape) == 1 else out.reshape(shape)
    dtype = np.dtype(dtype)
    mean, std = float(mean), float(std)
    checks.deviation(std)
    if dtype in _COMPLEX_PARTS:
        parts = normal(gen, (*shape, 2), _COMPLEX_PARTS[dtype], mean, std / math.sqrt(2.0), scalar_path=scalar_path)
        return _as_complex(parts, dtype, shape)
    checks.require_floating(dtype, "normal_kernel_cpu")
    n = math.prod(shape)
    with gen.lock:
        if n < BLOCK or scalar_path:
            out = fma64(_scalar_normals(gen, n), std, mean)
        elif dtype == float64:
            out = normal_blocks64(gen, n, mean, std)
        else:
            out = normal_blocks32(gen, n, mean, std, draw_remainder=dtype == float32)
    return narrow(out, dtype).reshape(shape)


def normal_tensors(gen: HostGenerator, mean: Array | float, std: Array | float, dtype: np.dtype | None = None) -> Array:
    """``torch.normal`` with at least one array argument: row-major, of the broadcast shape.

    ``dtype`` is the result's; by default that of ``mean`` if it is an array, else of ``std``.

    Raises:
        RuntimeError: a negative or complex std, or shapes that do not broadcast.
    """
    if not isinstance(std, np.ndarray):
        std = float(std)
        checks.deviation(std)
        means = np.asarray(mean)
        dtype = np.dtype(dtype or means.dtype)
        out = normal(gen, means.shape, dtype, 0.0, std)
        return out + means.astype(dtype)
    checks.require(std.dtype.kind != "c", "normal expects standard deviation to be non-complex")
    if checks.barebones_unsigned(std.dtype) and std.size:
        raise checks.not_implemented("min_all", std.dtype)
    checks.require(not std.size or bool((std >= 0).all()), "normal expects all elements of std >= 0.0")
    if isinstance(mean, np.ndarray):
        shape = np.broadcast_shapes(mean.shape, std.shape)
        dtype = np.dtype(dtype or mean.dtype)
        shift: Array | np.generic = mean
    else:
        shape = std.shape
        dtype = np.dtype(dtype or std.dtype)
        shift = narrow(np.array(float(mean)), dtype)
    out = normal(gen, shape, dtype)
    return _stored(np.add, _stored(np.multiply, out, std), shift)


def _stored(operation: np.ufunc, out: Array, other: Array | np.generic) -> Array:
    """``out`` after an in-place operation with a number of another dtype: computed in the common dtype of PyTorch's
    promotion, stored in its own."""
    kind = out.dtype
    if other.dtype == kind or other.dtype.kind in "iub":
        return operation(out, other.astype(kind))
    result: Array = operation(out, other)
    if kind.kind != "c" and result.dtype.kind == "c":
        raise RuntimeError(
            f"result type {checks.scalar_name(result.dtype)} can't be cast to the desired output type "
            f"{checks.scalar_name(kind)}"
        )
    return result.astype(kind) if result.dtype.kind == "c" else narrow(result, kind)


# -- other continuous distributions --------------------------------------------------------------------------------


def exponential(gen: HostGenerator, shape: Shape, dtype: np.dtype, lambd: float = 1.0) -> Array:
    """Exponential with rate ``lambd``: -log1p(-unit64) / lambd, 2n words.

    Raises:
        RuntimeError: lambd <= 0, or an integer dtype.
    """
    dtype, lambd = np.dtype(dtype), float(lambd)
    checks.require(lambd > 0.0, f"exponential_ expects lambda > 0.0, but found lambda={checks.shown(lambd)}")
    checks.require(
        dtype in checks.FLOATING,
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
        f"you specified {checks.scalar_name(dtype)}",
    )
    n = math.prod(shape)
    out = np.empty(n, dtype)
    factor = -1.0 / lambd
    with gen.lock:
        for start, stop in pieces(n):
            out[start:stop] = narrow(factor * libm.log1p(-unit64(gen, stop - start)), dtype)
    return out.reshape(shape)


def cauchy(gen: HostGenerator, shape: Shape, dtype: np.dtype, median: float = 0.0, sigma: float = 1.0) -> Array:
    """Cauchy: median + sigma * tan(pi * (unit64 - 1/2)), 2n words.

    Raises:
        RuntimeError: sigma <= 0, or an integer dtype.
    """
    dtype, median, sigma = np.dtype(dtype), float(median), float(sigma)
    checks.require(sigma > 0.0, f"cauchy_ expects sigma > 0.0, but found sigma={checks.shown(sigma)}")
    checks.require(
        dtype in checks.FLOATING,
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but "
        f"you specified {checks.cpp_name(dtype)}",
    )
    n = math.prod(shape)
    out = np.empty(n, dtype)
    with gen.lock:
        for start, stop in pieces(n):
            u = unit64(gen, stop - start)
            u -= 0.5
            u *= math.pi
            out[start:stop] = narrow(fma64(libm.tan(u), sigma, median), dtype)
    return out.reshape(shape)


def log_normal(gen: HostGenerator, shape: Shape, dtype: np.dtype, mean: float = 1.0, std: float = 2.0) -> Array:
    """exp of a normal, always by the scalar path (uses the cached normal).

    Raises:
        RuntimeError: std <= 0.
        NotImplementedError: an integer dtype.
    """
    dtype, mean, std = np.dtype(dtype), float(mean), float(std)
    checks.require(std > 0.0, f"log_normal_ expects std > 0.0, but found std={checks.shown(std)}")
    checks.require_floating(dtype, "log_normal_cpu")
    with gen.lock:
        z = fma64(_scalar_normals(gen, math.prod(shape)), std, mean)
    return narrow(libm.exp(z), dtype).reshape(shape)


def geometric(gen: HostGenerator, shape: Shape, dtype: np.dtype, p: float) -> Array:
    """Trials up to the first success: ceil(log(unit64) / log1p(-p)), 2n words; floating or integer dtype.

    Raises:
        RuntimeError: p outside (0, 1).
        NotImplementedError: bool or complex.
    """
    dtype, p = np.dtype(dtype), float(p)
    checks.require(0.0 < p < 1.0, f"geometric_ expects p to be in (0, 1), but got p={checks.shown(p)}")
    if dtype.kind in "bc" or checks.barebones_unsigned(dtype):
        raise checks.not_implemented("geometric_cpu", dtype)
    n = math.prod(shape)
    out = np.empty(n, dtype)
    divisor = math.log1p(-p)
    with gen.lock:
        for start, stop in pieces(n):
            value = np.ceil(libm.log(unit64(gen, stop - start)) / divisor)
            if dtype.kind in "iu":
                value = value.astype(np.int64)
                out[start:stop] = value.astype(dtype)
            else:
                out[start:stop] = narrow(value, dtype)
    return out.reshape(shape)


def rrelu_noise(gen: HostGenerator, x: Array, lower: float, upper: float) -> Array:
    """The slopes of a training ``rrelu``: 1 where x > 0, else uniform on [lower, upper); shape of x, float32 for
    bfloat16 (the output is made of them, the gradient of the rounded ones), else dtype of x.

    One unit64 for each element <= 0, row-major.

    Raises:
        RuntimeError: lower > upper.
        NotImplementedError: an integer dtype or float16.
    """
    checks.require(lower <= upper, "Lower bound should be less than or equal to the upper bound")
    if x.dtype not in checks.FLOATING or x.dtype == np.float16:
        raise checks.not_implemented("rrelu_with_noise_out_cpu", x.dtype)
    lo, hi = (float(v) for v in narrow(np.array([lower, upper], np.float64), np.promote_types(x.dtype, float32)))
    noise = np.ones(x.shape, np.promote_types(x.dtype, float32))
    leaking = x <= 0
    with gen.lock:
        u = unit64(gen, int(np.count_nonzero(leaking)))
    u *= hi - lo
    u += lo
    noise[leaking] = narrow(u, noise.dtype)
    return noise
