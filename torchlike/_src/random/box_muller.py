"""Normals in blocks of 16, bit for bit as PyTorch's vectorised CPU kernel makes them.

A block takes 16 uniforms; the first eight become radii, the last eight angles; cosines fill the first half of
the block and sines the second. In float32 the kernel uses its own polynomials (the Cephes ones) with a fused
multiply-add at each step. Here a fused step is a multiply and an add in double, rounded to float32: products of
two float32 are exact in double, and an enumeration of all 2**24 uniforms shows that the sum never lands midway.

The three polynomials (log, sin, cos) run stacked in one (3, m) array wherever their steps line up, because for
small requests the number of NumPy calls is the whole cost, and in pieces of a few thousand pairs so that the
intermediate arrays stay in the cache.

The C extension does the same in a loop; without it, whoever draws many has a compiled program (`compiled.py`).
"""

from __future__ import annotations

import numpy as np

from torchlike._src.core.native import NATIVE

from . import compiled, libm
from .generator import WORD_COST, HostGenerator
from .rounding import fma32, fma64

Array = np.ndarray

_f32, _f64, _i32 = np.float32, np.float64, np.int32
BLOCK = 16
_PIECE = 8192  # pairs worked on at a time: large enough to hide call overhead, small enough for the cache
_WORTHWHILE = compiled.WORDS // 8  # as many normals repay transforming all words that are ahead
_HALF_BLOCK32 = np.dtype("V32")  # eight float32: half a block moves as one item
_HALF_BLOCK64 = np.dtype("V64")

# Constants are 0-d or column arrays: NumPy converts a Python number anew at every call.
_LOG_FIRST = np.array(_f32(7.0376836292e-2), _f64)
_LOG_STEPS = [
    np.array(_f32(c), _f64)
    for c in (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1)
]


def _column(*values: float) -> Array:
    return np.array(values, _f32).astype(_f64).reshape(-1, 1)


# The last two steps of log beside the first two of sin and cos.
_TRIG_FIRST = _column(-1.9515295891e-4, 2.443315711809948e-5)
_STACK_STEP_1 = _column(-2.4999993993e-1, 8.3321608736e-3, -1.388731625493765e-3)
_STACK_STEP_2 = _column(3.3333331174e-1, -1.6666654611e-1, 4.166664568298827e-2)
_SCALE24 = np.array(2.0**-24, _f32)
_SCALE23 = np.array(2.0**-23, _f32)
_ONE = np.array(1.0, _f32)
_HALF = np.array(0.5, _f32)
_MINUS_HALF = np.array(-0.5, _f32)
_MINUS_TWO = np.array(-2.0, _f32)
_ZERO = np.array(0.0, _f32)
_TWO_PI = np.array(6.283185307179586, _f32)
_FOUR_OVER_PI = np.array(1.27323954473516, _f32)
# The kernel subtracts pi/4 in three parts. The first two subtractions are exact, and so is the sum of the parts
# in double, hence one subtraction in double and one rounding give the same angle.
_QUARTER_PI = np.array(
    -(float(_f32(0.78515625)) + float(_f32(2.4187564849853515625e-4)) + float(_f32(3.77489497744594108e-8))), _f64
)
_LN2_LOW = np.array(-2.12194440e-4, _f32)
_LN2_HIGH = np.array(0.693359375, _f32)
_SQRT_HALF_BITS = np.array(0x3F3504F3, _i32)
_EXPONENT_BITS = np.array(-(1 << 23), _i32)
_MASK24 = np.array((1 << 24) - 1, _i32)
_I1, _I2, _I29, _I30, _I31 = (np.array(k, _i32) for k in (1, -2, 29, 30, 31))
_COSINE_TURN = np.array(1 << 30, _i32)
_SIGN = np.array(-(1 << 31), _i32)


class Workspace:
    """Intermediate arrays for up to ``pairs`` pairs; made once per call."""

    __slots__ = ("d1", "d2", "i1", "i2", "s1", "s2", "s3", "s4", "v1", "v2")

    def __init__(self, pairs: int) -> None:
        self.d1, self.d2 = np.empty((2, 3, pairs), _f64)
        self.s1, self.s2, self.s3, self.s4 = np.empty((4, 3, pairs), _f32)
        self.v1, self.v2 = np.empty((2, pairs), _f32)
        self.i1, self.i2 = np.empty((2, pairs), _i32)


def polar_float32(k: Array, work: Workspace, out: Array) -> tuple[Array, Array, Array]:
    """int32(2, m) 24-bit uniforms (radius, angle) -> radius, sine, cosine: float32[m] each, rows of ``work``.

    ``work`` holds exactly m pairs; ``out`` float32(2, m) is overwritten.
    """
    value, factor32, scale32, addend = work.s1, work.s2, work.s3, work.s4
    wide, factor = work.d1, work.d2
    exponent, turn = work.v1, work.v2
    octant, bits = work.i1, work.i2
    y0, angle_square = factor32[0], factor32[1]
    y0_square, angle = scale32[0], scale32[1]
    np.multiply(k, _SCALE24, out[:], dtype=_f32, casting="unsafe")
    # Radius: 1-u = 2**exponent * (1+y0), with 1+y0 between sqrt(1/2) and sqrt(2).
    x = out[0]
    np.subtract(_ONE, x, x)
    xbits = x.view(_i32)
    np.subtract(xbits, _SQRT_HALF_BITS, bits)
    np.bitwise_and(bits, _EXPONENT_BITS, bits)
    np.subtract(xbits, bits, xbits)
    np.subtract(x, _ONE, y0)
    np.multiply(y0, y0, y0_square)
    np.copyto(exponent, bits, "unsafe")
    np.multiply(exponent, _SCALE23, exponent)
    np.multiply(exponent, _LN2_LOW, addend[0])
    # Angle: subtract the nearest even multiple of pi/4.
    t = out[1]
    np.multiply(t, _TWO_PI, t)
    np.multiply(t, _FOUR_OVER_PI, turn)
    np.copyto(octant, turn, "unsafe")
    np.add(octant, _I1, octant)
    np.bitwise_and(octant, _I2, octant)
    np.copyto(wide[0], octant)
    np.multiply(wide[0], _QUARTER_PI, wide[0])
    np.copyto(wide[1], t)
    np.add(wide[0], wide[1], wide[0])
    np.copyto(angle, wide[0], "same_kind")
    np.copyto(addend[1], angle)
    np.multiply(angle, angle, angle_square)
    np.copyto(factor32[2], angle_square)
    np.copyto(scale32[2], angle_square)
    np.multiply(angle_square, _MINUS_HALF, addend[2])
    # The three polynomials.
    np.copyto(factor, factor32)
    head, head_factor, head_value = wide[0], factor[0], value[0]
    np.multiply(head_factor, _LOG_FIRST, head)
    for step in _LOG_STEPS:
        np.add(head, step, head)
        np.copyto(head_value, head, "same_kind")
        np.copyto(head, head_value)
        np.multiply(head, head_factor, head)
    np.multiply(factor[1:], _TRIG_FIRST, wide[1:])
    np.add(wide, _STACK_STEP_1, wide)
    np.copyto(value, wide, "same_kind")
    np.copyto(wide, value)
    np.multiply(wide, factor, wide)
    np.add(wide, _STACK_STEP_2, wide)
    np.copyto(value, wide, "same_kind")
    np.multiply(value, factor32, value)
    np.copyto(wide, value)
    np.copyto(factor, scale32)
    np.multiply(wide, factor, wide)
    np.copyto(factor, addend)
    np.add(wide, factor, wide)
    np.copyto(value, wide, "same_kind")
    # Radius from the logarithm.
    log, sine, cosine = value
    np.multiply(y0_square, _HALF, y0_square)
    np.subtract(log, y0_square, log)
    np.add(y0, log, log)
    np.multiply(exponent, _LN2_HIGH, exponent)
    np.add(exponent, log, log)
    np.multiply(log, _MINUS_TWO, log)
    np.sqrt(log, log)
    # Odd quarter turns exchange sine and cosine; then the signs.
    np.add(cosine, _ONE, cosine)
    sine_bits, cosine_bits = sine.view(_i32), cosine.view(_i32)
    exchange = turn.view(_i32)
    np.left_shift(octant, _I30, exchange)
    np.right_shift(exchange, _I31, exchange)
    np.bitwise_xor(sine_bits, cosine_bits, bits)
    np.bitwise_and(bits, exchange, bits)
    np.bitwise_xor(sine_bits, bits, sine_bits)
    np.bitwise_xor(cosine_bits, bits, cosine_bits)
    np.left_shift(octant, _I29, octant)
    np.bitwise_and(octant, _SIGN, bits)
    np.bitwise_xor(sine_bits, bits, sine_bits)
    np.add(octant, _COSINE_TURN, octant)
    np.bitwise_and(octant, _SIGN, octant)
    np.bitwise_xor(cosine_bits, octant, cosine_bits)
    return log, sine, cosine


def _transform(words: Array, out: Array) -> None:
    """uint32[16 b] words -> standard normals float32[16 b], of which zeros may be negative."""
    total = out.size // 2
    work: Workspace | None = None
    for start in range(0, total, _PIECE):
        size = min(_PIECE, total - start)
        if work is None or size != work.v1.size:
            work, k, pair = Workspace(size), np.empty((2, size), _i32), np.empty((2, size), _f32)
        piece = slice(2 * start, 2 * (start + size))
        low = words[piece].view(_i32) & _MASK24
        np.copyto(k.view(_HALF_BLOCK32), low.view(_HALF_BLOCK32).reshape(-1, 2).T)
        radius, sine, cosine = polar_float32(k, work, pair)
        np.multiply(radius, cosine, pair[0])
        np.multiply(radius, sine, pair[1])
        np.copyto(out[piece].view(_HALF_BLOCK32).reshape(-1, 2).T, pair.view(_HALF_BLOCK32))


def _adjust(out: Array, mean: float, std: float) -> None:
    """Standard normals -> normals, in place."""
    mean32, std32 = float(_f32(mean)), float(_f32(std))
    if mean32 != 0.0:
        for start in range(0, out.size, _PIECE):
            piece = out[start : start + _PIECE]
            piece[:] = fma32(piece.astype(_f64), std32, mean32)
        return
    if std32 != 1.0:
        np.multiply(out, _f32(std32), out)
    np.add(out, _ZERO, out)  # -0 becomes +0, as adding the mean does


def normals_numpy(words: Array, mean: float, std: float) -> Array:
    """uint32[16 b] words -> normals float32[16 b]."""
    out = np.empty(words.size, _f32)
    _transform(words, out)
    _adjust(out, mean, std)
    return out


_native = getattr(NATIVE, "normals", None)
if _native is not None and not _native(b"", bytearray(), 0.0, 1.0):  # a processor without fused multiply-adds
    _native = None


def normals_cost(n: int) -> int:
    """Nanoseconds that n normals take in C, or with NumPy: some seventy calls, and the work."""
    return 500 + n if _native is not None else 48000 + 28 * n


def _blocks(gen: HostGenerator, out: Array, mean: float, std: float) -> None:
    """Fill ``out`` float32[16 b]."""
    done = 0
    while done < out.size:
        size = min(out.size - done, compiled.WORDS)
        left = gen.left()
        if left < size and (left < _WORTHWHILE or done == 0):
            gen.go_ahead(size * WORD_COST + normals_cost(size))
            left = gen.left()
        size = min(size, left // BLOCK * BLOCK or size)
        piece = out[done : done + size]
        if _native is not None:
            _native(gen.words32(size), piece, mean, std)
        elif (found := _from_ahead(gen, size, mean, std)) is not None:
            np.copyto(piece, found)
        else:
            piece[:] = normals_numpy(gen.words32(size), mean, std)
        done += size


def _from_ahead(gen: HostGenerator, n: int, mean: float, std: float) -> Array | None:
    """The next ``n`` normals (not to be written to), from transforms of all words ahead; None if there are none."""
    if gen.left() < n or not compiled.have_normals(normals_cost(n), normals_numpy):
        return None
    if n >= _WORTHWHILE:
        return gen.normals(n, mean, std)
    found = gen.normals(n)
    if found is not None and (mean != 0.0 or std != 1.0):
        found = found.copy()
        _adjust(found, mean, std)
    return found


def normal_blocks32(gen: HostGenerator, n: int, mean: float, std: float, draw_remainder: bool) -> Array:
    """n >= 16 normals, float32[n].

    A size that is no multiple of 16 gets 16 more uniforms for its last 16 values. The uniforms of the incomplete
    block are drawn (and lost) first by the float32 kernel, not by the 16-bit ones: ``draw_remainder``.
    """
    if n < _WORTHWHILE:
        found = gen.standard_normals(n, draw_remainder)
        if found is not None:
            if mean != 0.0 or std != 1.0:
                _adjust(found, mean, std)
            return found
    out = np.empty(n, _f32)
    remainder = n % BLOCK
    _blocks(gen, out[: n - remainder], mean, std)
    if remainder:
        if draw_remainder:
            gen.words32(remainder)
        _blocks(gen, out[n - BLOCK :], mean, std)
    return out


def normal_blocks64(gen: HostGenerator, n: int, mean: float, std: float) -> Array:
    """n >= 16 normals, float64[n]; blocks as in ``normal_blocks32``, logarithm and angles by the C library."""
    remainder = n % BLOCK
    full = n - remainder
    out = np.empty(full + BLOCK if remainder else n)
    start = 0
    while start < out.size:
        size = min(2 * _PIECE, out.size - start)
        if start + size < out.size or not remainder:
            bits = gen.dwords53(size)
        else:
            bits = gen.dwords53(size + remainder)
            bits[size - BLOCK : size] = bits[size - BLOCK + remainder :]
            bits = bits[:size]
        u = bits.view(np.int64).astype(_f64)
        u *= 2.0**-53
        halves = np.ascontiguousarray(u.view(_HALF_BLOCK64).reshape(-1, 2).T).view(_f64)
        r = libm.log(1.0 - halves[0]) * -2.0
        np.sqrt(r, r)
        t = halves[1] * 6.283185307179586
        pair = np.empty_like(halves)
        np.multiply(r, libm.cos(t), pair[0])
        np.multiply(r, libm.sin(t), pair[1])
        np.copyto(out[start : start + size].view(_HALF_BLOCK64).reshape(-1, 2).T, pair.view(_HALF_BLOCK64))
        start += size
    out = fma64(out, std, mean)
    if not remainder:
        return out
    out[n - BLOCK : n] = out[full:].copy()
    return out[:n].copy()
