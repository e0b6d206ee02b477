"""Discrete fills: integers, permutations, Bernoulli masks, multinomial draws.

Same contract as ``fills.py``: new arrays in logical row-major order, arguments checked before drawing.
"""

from __future__ import annotations

import math

import numpy as np

from . import checks
from .checks import PRECISION, bfloat16, float16, float32, float64
from .fills import Array, Shape, exponential, pieces, unit24, unit64
from .generator import HostGenerator
from .rounding import narrow

_WIDE_RANGE = 1 << 28  # from here on two words per number
_ONE_BY_ONE = 4096
_STEPS = np.arange(2 * math.isqrt((2**32 - 1) // 20))
_LONG_PERMUTATION = (2**32 - 1) // 20
_U64 = 1 << 64
_INT64 = np.dtype(np.int64)
_MASK_PIECE = 16384


# -- integers ----------------------------------------------------------------------------------------------------


def _cast_integers(values: Array, dtype: np.dtype) -> Array:
    """int64 -> ``dtype``, wrapping integers; the 16-bit floats are reached through float32."""
    if dtype.kind == "b":
        return values != 0
    if dtype.itemsize == 2 and dtype in PRECISION:
        return narrow(values.astype(np.float32), dtype)
    return values.astype(dtype)


def _ranged(gen: HostGenerator, n: int, lo: int, span: int, dtype: np.dtype) -> Array:
    """n numbers lo + draw mod span."""
    out = np.empty(n, dtype)
    narrow_draw = span < _WIDE_RANGE
    shift = np.uint64(lo % _U64)
    for start, stop in pieces(n):
        if narrow_draw:
            words = gen.raw(stop - start).astype(np.uint32)
            # NumPy divides by a scalar with vector instructions, but not the remainder.
            quotient = words // np.uint32(span)
            quotient *= np.uint32(span)
            words -= quotient
            draw = words.astype(np.uint64)
        else:
            draw = gen.dwords(stop - start)
            if span < _U64:
                draw %= np.uint64(span)
        draw += shift
        out[start:stop] = _cast_integers(draw.view(np.int64), dtype)
    return out


def _inner_bounds(lo: int, hi: int, dtype: np.dtype) -> tuple[int, int]:
    """Pull [lo, hi) inside to numbers that a floating dtype represents."""

    def rounded(value: int) -> int:
        wide = np.array(value, np.int64).astype(np.float64 if dtype == float64 else np.float32)
        back = float(narrow(wide, dtype))
        # What does not fit int64 becomes its least value, as the processor converts it.
        return int(back) if -(2.0**63) <= back < 2.0**63 else -(1 << 63)

    def spacing(value: int) -> int:
        return 1 << max(abs(value).bit_length() - PRECISION[dtype], 0)

    above, below = rounded(lo + 1), rounded(hi - 1)
    if above < lo:
        lo = above + spacing(lo + 1)
    if below >= hi:
        hi = below - spacing(hi - 1)
    return lo, hi


def _fill_between(gen: HostGenerator, shape: Shape, dtype: np.dtype, lo: int, hi: int) -> Array:
    if not lo < hi:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={lo} >= to={hi}")
    if dtype in PRECISION:
        lo, hi = _inner_bounds(lo, hi, dtype)
        checks.require(
            lo < hi,
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
            f"but got from={lo} >= to={hi}",
        )
    checks.random_bounds(lo, hi - 1, dtype)
    with gen.lock:
        return _ranged(gen, math.prod(shape), lo, hi - lo, dtype).reshape(shape)


def randint(gen: HostGenerator, lo: int, hi: int, shape: Shape, dtype: np.dtype = _INT64) -> Array:
    """Integers from [lo, hi) in any real dtype: one word each, two if hi - lo >= 2**28.

    Raises:
        RuntimeError: lo >= hi, or a bound outside the dtype.
    """
    return _fill_between(gen, shape, np.dtype(dtype), int(lo), int(hi))


def random_(gen: HostGenerator, shape: Shape, dtype: np.dtype, lo: int | None = None, hi: int | None = None) -> Array:
    """``Tensor.random_``: (lo, hi) is [lo, hi); (None, hi) is [0, hi); (lo, None) reaches the dtype's largest value;
    without bounds every non-negative number that the dtype holds exactly.

    Raises:
        RuntimeError: an empty range, or a bound outside the dtype.
        NotImplementedError: complex, or unsigned types wider than 8 bits without bounds.
    """
    dtype = np.dtype(dtype)
    if hi is not None:
        return _fill_between(gen, shape, dtype, int(lo or 0), int(hi))
    if lo is not None:
        return _fill_from(gen, shape, dtype, int(lo))
    n = math.prod(shape)
    if dtype.kind == "c" or dtype.kind == "u" and dtype.itemsize > 1:
        raise checks.not_implemented("random_kernel_cpu", dtype)
    with gen.lock:
        if dtype == np.int64:
            return (gen.dwords(n) & np.uint64((1 << 63) - 1)).view(np.int64).reshape(shape)
        if dtype == float64:
            return (gen.dwords(n) % np.uint64((1 << 53) + 1)).astype(np.float64).reshape(shape)
        span = (1 << PRECISION[dtype]) + 1 if dtype in PRECISION else checks.integer_limits(dtype)[1] + 1
        return _cast_integers((gen.raw(n) % np.uint64(span)).view(np.int64), dtype).reshape(shape)


def _fill_from(gen: HostGenerator, shape: Shape, dtype: np.dtype, lo: int) -> Array:
    n = math.prod(shape)
    if lo == -(1 << 63):
        if n and dtype not in (np.dtype(np.int64), float64, float32, bfloat16):
            kernel = "random_full_64_bits_range_kernel_cpu"
            if dtype in PRECISION or dtype.kind in "bc" or dtype.kind == "u" and dtype.itemsize > 1:
                raise checks.not_implemented(kernel, dtype)
            raise RuntimeError(f"{kernel} handles only int64, double, float and bfloat16")
        with gen.lock:
            return _cast_integers(gen.dwords(n).view(np.int64), dtype).reshape(shape)
    if dtype in PRECISION:
        top = 1 << PRECISION[dtype]
        lo, _ = _inner_bounds(lo, (1 << 63) - 1, dtype)
        checks.require(
            lo < top,
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, "
            f"but got from={lo} > to_inc={top}",
        )
    elif dtype.kind in "iub":
        # PyTorch keeps the bound in an int64, where the largest uint64 is -1 and always out of bounds.
        top = -1 if dtype == np.uint64 else checks.integer_limits(dtype)[1]
    else:
        raise RuntimeError("random_from_to handles only integral, floating-point and boolean types")
    checks.random_bounds(lo, top, dtype)
    with gen.lock:
        return _ranged(gen, n, lo, top - lo + 1, dtype).reshape(shape)


def randperm(gen: HostGenerator, n: int, dtype: np.dtype = _INT64) -> Array:
    """A permutation of 0..n-1: max(n-1, 0) words.

    Raises:
        RuntimeError: n < 0, or n - 1 does not fit the dtype.
        NotImplementedError: bool or complex; n >= 214748364 (PyTorch's 64-bit variant).
    """
    n, dtype = int(n), np.dtype(dtype)
    checks.require(n >= 0, f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype.kind in "bc":
        raise checks.not_implemented("randperm", dtype)
    if dtype in PRECISION and dtype != bfloat16:
        bits = PRECISION[dtype]
        bound = {float16: "2049", float32: "2^24+1", float64: "2^53+1"}[dtype]
        checks.require(n <= (1 << bits) + 1, f"n cannot be greater than {bound} for {checks.scalar_name(dtype)} type.")
    elif dtype.kind in "iu":
        largest = checks.integer_limits(dtype)[1]
        checks.require(n <= largest, f"value cannot be converted to type {dtype.name}_t without overflow")
    if n >= _LONG_PERMUTATION:
        raise NotImplementedError(f"randperm of {n} elements (2**28 and more need a slow 64-bit loop)")
    if n < 2:
        return _cast_integers(np.arange(n), dtype)
    with gen.lock:
        words = gen.raw(n - 1)
    words %= np.arange(n, 1, -1, dtype=np.uint64)
    words += np.arange(n - 1, dtype=np.uint64)
    return _cast_integers(_swapped(words.view(np.int64), n), dtype)


def _swapped(partners: Array, n: int) -> Array:
    """0..n-1 after swapping places i and partners[i] for i = 0, 1, ...; partners[i] >= i.

    A run of swaps is done at once, but for those that share a place with another of the run: these are few as
    long as the run is not much longer than the square root of what is left. The rest goes one by one, in a list.
    """
    order = np.arange(n)
    last_user = np.empty(n, np.int64)
    start = 0
    while n - start > _ONE_BY_ONE:
        run = min(2 * math.isqrt(n - start), partners.size - start)
        stop = start + run
        steps = _STEPS[:run]
        there = partners[start:stop]
        last_user[there] = steps
        clash = last_user[there] != steps  # a later swap of this run uses the same place ...
        inside = there < stop
        involved = clash | inside  # ... or the place is itself inside the run
        involved[last_user[there[clash]]] = True
        involved[there[inside] - start] = True
        free = np.flatnonzero(~involved)
        target = there[free]
        free += start
        order[free], order[target] = order[target], order[free]
        for here in (np.flatnonzero(involved) + start).tolist():
            other = partners[here]
            order[here], order[other] = order[other], order[here]
        start = stop
    rest = order[start:].tolist()
    for here, there in enumerate((partners[start:] - start).tolist()):
        rest[here], rest[there] = rest[there], rest[here]
    order[start:] = rest
    return order


# -- Bernoulli ---------------------------------------------------------------------------------------------------


def _keep(gen: HostGenerator, n: int, p: float) -> Array:
    """bool[n]: unit64 < p."""
    threshold = np.uint64(math.ceil(p * 9007199254740992.0))
    if n <= _MASK_PIECE:
        return gen.dwords53(n) < threshold
    out = np.empty(n, np.bool_)
    for start, stop in pieces(n):
        np.less(gen.dwords53(stop - start), threshold, out[start:stop])
    return out


def bernoulli_p(gen: HostGenerator, shape: Shape, dtype: np.dtype, p: float) -> Array:
    """Ones with probability ``p`` (a float): any dtype, 2n words.

    Raises:
        RuntimeError: p outside [0, 1].
    """
    p = float(p)
    checks.probability(p)
    with gen.lock:
        return _keep(gen, math.prod(shape), p).astype(dtype, copy=False).reshape(shape)


def bernoulli_tensor(gen: HostGenerator, p: Array, dtype: np.dtype | None = None) -> Array:
    """Ones with probability ``p[i]``, row-major; ``dtype`` defaults to that of ``p``.

    Words: n, for float64 probabilities 2n.

    Raises:
        RuntimeError: a probability outside [0, 1].
        NotImplementedError: probabilities of an integer dtype.
    """
    checks.require_floating(p.dtype, "bernoulli_tensor_cpu_p_")
    wide: np.ndarray = np.ascontiguousarray(p, float64 if p.dtype == float64 else float32).reshape(-1)
    inside = (wide >= 0) & (wide <= 1)
    checks.require(
        bool(inside.all()),
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  "
        "If so, please report an enhancement request to PyTorch.)",
    )
    with gen.lock:
        if p.dtype == float64:
            drawn = unit64(gen, wide.size)
        else:
            drawn = unit24(gen, wide.size).astype(np.float32)
            drawn *= np.float32(2.0**-24)
    return (drawn < wide).astype(dtype or p.dtype, copy=False).reshape(p.shape)


def dropout_noise(gen: HostGenerator, shape: Shape, p: float) -> Array:
    """The keep mask of a training dropout with drop probability ``p``: bool, True with probability 1 - p.

    2n words. The caller handles p == 0 (no draw) and p == 1 (no draw, all dropped) as PyTorch does: here they
    draw like any other p.

    Raises:
        RuntimeError: p outside [0, 1].
    """
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {checks.shown(p)}")
    with gen.lock:
        return _keep(gen, math.prod(shape), 1.0 - p).reshape(shape)


# -- multinomial -------------------------------------------------------------------------------------------------


def multinomial(gen: HostGenerator, weights: Array, num_samples: int, replacement: bool = False) -> Array:
    """Category indices drawn from rows of weights: (C,) or (R, C) floating -> int64 (k,) or (R, k).

    Without replacement, or for one sample, each category's weight is divided by an exponential and the largest
    scores win (2 words per category); otherwise the cumulative weights are searched (2 words per sample).

    Raises:
        RuntimeError: wrong dimensions, counts or weights.
    """
    check_multinomial(weights, num_samples, replacement)
    if weights.ndim == 2 and weights.shape[0] == 0:
        return np.empty((0, num_samples), np.int64)
    if replacement and num_samples > 1:
        return _with_replacement(gen, weights, num_samples)
    return multinomial_scores(weights, exponential(gen, weights.shape, weights.dtype), num_samples)


def check_multinomial(weights: Array, num_samples: int, replacement: bool) -> None:
    """The conditions of ``multinomial`` that do not depend on a draw."""
    checks.require(weights.ndim in (1, 2), "prob_dist must be 1 or 2 dim")
    checks.require(
        weights.dtype in PRECISION,
        f"multinomial only supports floating-point dtypes for input, got: {checks.scalar_name(weights.dtype)}",
    )
    checks.require(num_samples > 0, "cannot sample n_sample <= 0 samples")
    categories = weights.shape[-1]
    checks.require(
        replacement or num_samples <= categories,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    if weights.ndim == 2 and weights.shape[0] == 0 or replacement and num_samples > 1:
        return
    checks.require(
        categories > 0,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
    )
    wide = weights.astype(np.float64)
    checks.require(
        bool((np.isfinite(wide) & (wide >= 0)).all()),
        "probability tensor contains either `inf`, `nan` or element < 0",
    )
    checks.require(bool((wide.sum(-1) > 0).all()), "invalid multinomial distribution (sum of probabilities <= 0)")


def multinomial_scores(weights: Array, noise: Array, num_samples: int) -> Array:
    """The categories with the highest weight / noise, where ``noise`` is exponential."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = weights / noise
    if num_samples == 1:
        return np.argmax(scores, -1, keepdims=True).astype(np.int64)
    order = np.argsort(-scores.astype(np.float64), -1, kind="stable")
    return np.ascontiguousarray(order[..., :num_samples]).astype(np.int64)


def _with_replacement(gen: HostGenerator, weights: Array, num_samples: int) -> Array:
    rows = weights.reshape(-1, weights.shape[-1])
    kind = float64 if weights.dtype == float64 else float32
    rows = rows.astype(kind)
    text = "invalid multinomial distribution ({})"
    out = np.empty((rows.shape[0], num_samples), np.int64)
    with gen.lock:
        for index, row in enumerate(rows):
            checks.require(bool((row >= 0).all()), text.format("encountering probability entry < 0"))
            checks.require(
                bool(np.isfinite(row).all()), text.format("encountering probability entry = infinity or NaN")
            )
            cumulative = np.add.accumulate(row)
            total = cumulative[-1] if cumulative.size else kind.type(0)
            checks.require(bool(total > 0), text.format("sum of probabilities <= 0"))
            cumulative /= total
            cumulative[-1] = 1
            out[index] = np.searchsorted(cumulative.astype(np.float64), unit64(gen, num_samples), side="left")
    return out.reshape(*weights.shape[:-1], num_samples)
