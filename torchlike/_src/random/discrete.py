"""Discrete fills: integers, permutations, Bernoulli masks, multinomial draws.

Same contract as ``fills.py``: new arrays in logical row-major order, arguments checked before drawing.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import checks
from .checks import PRECISION, bfloat16, float16, float32, float64
from .fills import PIECE, Array, Shape, exponential, pieces, unit24, unit64
from .generator import HostGenerator
from .rounding import narrow

_WIDE_RANGE = 1 << 28  # from here on two words per number
_STEP = 4096
_INDEX = np.arange(float(_STEP))
_BY_LIST = 24  # permutations up to here are made in a list
_DIVIDED = 4096  # and up to here by whole-number divisions
_COUNTDOWN = np.arange(_DIVIDED, 1, -1, dtype=np.uint32)
_PLACES = np.arange(_DIVIDED, dtype=np.uint32)
_COLUMN = np.arange(_DIVIDED, dtype=np.float32).reshape(-1, 1)
_LAPACK_AFTER = 1 << 18  # permuted elements after which SciPy is worth its import
_LOW21 = np.array((1 << 21) - 1, np.uint32)
_LONG_PERMUTATION = (2**32 - 1) // 20
_U64 = 1 << 64
_INT64 = np.dtype(np.int64)


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
    if n <= PIECE:
        return _ranged_piece(gen, n, lo, span, dtype)
    out = np.empty(n, dtype)
    for start, stop in pieces(n):
        out[start:stop] = _ranged_piece(gen, stop - start, lo, span, dtype)
    return out


def _ranged_piece(gen: HostGenerator, n: int, lo: int, span: int, dtype: np.dtype) -> Array:
    if span < _WIDE_RANGE:
        words, divisor = gen.words32(n), np.uint32(span)
        # NumPy divides by a scalar with vector instructions, but not the remainder.
        quotient = words // divisor
        quotient *= divisor
        draw = np.subtract(words, quotient, dtype=np.uint64)
    else:
        draw = gen.dwords(n)
        if span < _U64:
            draw %= np.uint64(span)
    if lo:
        draw += np.uint64(lo % _U64)
    values = draw.view(np.int64)
    return values if dtype is _INT64 else _cast_integers(values, dtype)


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
        return _cast_integers((gen.words32(n) % np.uint64(span)).view(np.int64), dtype).reshape(shape)


def bounds(dtype: np.dtype, lo: int | None, hi: int | None) -> tuple[int, int]:
    """The least and the largest number that ``random_`` may give."""
    if dtype in PRECISION:
        least, largest = -(1 << PRECISION[dtype]), 1 << PRECISION[dtype]
    else:
        least, largest = checks.integer_limits(dtype)
    if lo is None or hi is not None:
        return int(lo or 0), int(hi) - 1 if hi is not None else largest
    return int(lo), max(largest, int(lo), least)


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
    check_permutation(n, dtype)
    if n >= _LONG_PERMUTATION:
        raise NotImplementedError(f"randperm of {n} elements (2**28 and more need a slow 64-bit loop)")
    if n < 2:
        return _cast_integers(np.arange(n), dtype)
    swap = None if n <= _BY_LIST else _Swaps.route(n)
    with gen.lock:
        words = gen.words32(n - 1)
        if swap is None:
            partners = [i + w % (n - i) for i, w in enumerate(words.tolist())]
            return _cast_integers(np.array(_swapped_list(partners, n)), dtype)
        order = swap(_partners(words, n), n)
    return order if dtype is _INT64 else _cast_integers(order, dtype)


def check_permutation(n: int, dtype: np.dtype) -> None:
    """The conditions of ``randperm``."""
    if dtype is _INT64:
        return
    if dtype.kind in "bc":
        raise checks.not_implemented("randperm", dtype)
    if dtype in PRECISION and dtype != bfloat16:
        bits = PRECISION[dtype]
        bound = {float16: "2049", float32: "2^24+1", float64: "2^53+1"}[dtype]
        checks.require(n <= (1 << bits) + 1, f"n cannot be greater than {bound} for {checks.scalar_name(dtype)} type.")
    elif dtype.kind in "iu":
        largest = checks.integer_limits(dtype)[1]
        checks.require(n - 1 <= largest, f"value cannot be converted to type {dtype.name}_t without overflow")
        if checks.barebones_unsigned(dtype):
            raise checks.not_implemented("randperm", dtype)


def _partners(words: Array, n: int) -> Array:
    """Which place is swapped with place i: i + word mod (n - i), int32[n - 1]."""
    if n <= _DIVIDED:
        left = words % _COUNTDOWN[_DIVIDED - n :]
        left += _PLACES[: n - 1]
        return left.view(np.int32)
    out = np.empty(n - 1, np.int32)
    quotient = np.empty(min(n, _STEP))
    for start in range(0, n - 1, _STEP):
        word = words[start : start + _STEP].astype(np.float64)
        index = _INDEX[: word.size]
        left = np.subtract(n - start, index)
        whole = quotient[: word.size]
        np.divide(word, left, whole)
        np.floor(whole, whole)  # exact: whole numbers below 2**32 do not come that close to a multiple
        whole *= left
        word -= whole
        word += index
        np.add(word, start, out[start : start + _STEP], casting="unsafe")
    return out


def _swapped_list(partners: list[int], n: int) -> list[int]:
    """0..n-1 after swapping places i and partners[i] for i = 0, 1, ..."""
    order = list(range(n))
    for here, there in enumerate(partners):
        order[here], order[there] = order[there], order[here]
    return order


def _swapped_lapack(partners: Array, n: int) -> Array:
    """The same by the row interchanges of an LU factorisation, on a matrix of one column."""
    single = n <= 1 << 24
    column: Array
    if n <= _DIVIDED:
        column = _COLUMN[:n].copy()
    else:
        column = np.arange(n, dtype=np.float32 if single else np.float64).reshape(n, 1)
    interchange = _Swaps.lapack.slaswp if single else _Swaps.lapack.dlaswp
    return interchange(column, partners, overwrite_a=True)[:, 0].astype(np.int64)


class _Swaps:
    """How permutations are made: one by one in Python, or by LAPACK after so many that its import pays."""

    lapack: Any = None
    swap: Callable[[Array, int], Array] | None = None
    left = _LAPACK_AFTER

    @classmethod
    def route(cls, n: int) -> Callable[[Array, int], Array] | None:
        if cls.swap is None and cls.left > 0:
            cls.left -= n
            if cls.left <= 0 or "scipy.linalg.lapack" in sys.modules:
                cls.left = 0
                try:
                    cls.lapack = importlib.import_module("scipy.linalg.lapack")
                    test = np.minimum(np.arange(99) * 37 % 61 + np.arange(99), 99).astype(np.int32)
                    if _swapped_lapack(test, 100).tolist() == _swapped_list(test.tolist(), 100):
                        cls.swap = _swapped_lapack
                except Exception:  # a library without it: the list will do
                    cls.swap = None
        return cls.swap


# -- Bernoulli ---------------------------------------------------------------------------------------------------


def _keep(gen: HostGenerator, n: int, p: float) -> Array:
    """bool[n]: unit64 < p."""
    high, low = divmod(math.ceil(p * 9007199254740992.0), 1 << 32)
    if n <= PIECE:
        return _below(gen.words32(2 * n), high, low)
    out = np.empty(n, np.bool_)
    for start, stop in pieces(n):
        out[start:stop] = _below(gen.words32(2 * (stop - start)), high, low)
    return out


def _below(words: Array, high: int, low: int) -> Array:
    """Which 53-bit draws, uint32[2 n], are below high * 2**32 + low. Nearly always the first words decide."""
    first = words[0::2] & _LOW21
    out = first < high
    if low:
        level = first == high
        if level.any():
            out[level] = words[1::2][level] < low
    return out


def check_bernoulli(dtype: np.dtype, kernel: str = "bernoulli_scalar_cpu_") -> None:
    """NotImplementedError for a dtype that cannot be filled."""
    if dtype.kind == "c" or checks.barebones_unsigned(dtype):
        raise checks.not_implemented(kernel, dtype)


def bernoulli_p(gen: HostGenerator, shape: Shape, dtype: np.dtype, p: float) -> Array:
    """Ones with probability ``p`` (a float): any dtype, 2n words.

    Raises:
        RuntimeError: p outside [0, 1].
    """
    p = float(p)
    checks.probability(p)
    check_bernoulli(dtype)
    with gen.lock:
        return _keep(gen, math.prod(shape), p).astype(dtype, copy=False).reshape(shape)


def bernoulli_tensor(gen: HostGenerator, p: Array, dtype: np.dtype | None = None) -> Array:
    """Ones with probability ``p[i]``, row-major; ``dtype`` defaults to that of ``p``.

    Words: n, for float64 probabilities 2n.

    Raises:
        RuntimeError: a probability outside [0, 1].
        NotImplementedError: probabilities of an integer dtype.
    """
    target = np.dtype(dtype or p.dtype)
    check_bernoulli(target, "bernoulli_tensor_cpu_self_")
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
    return (drawn < wide).astype(target, copy=False).reshape(p.shape)


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
    if scores.ndim == 1 and num_samples < scores.size // 8:
        least = np.partition(scores, -num_samples)[-num_samples]
        best = np.flatnonzero(scores >= least)
        if best.size >= num_samples:  # not if there are NaNs
            order = np.argsort(-scores[best].astype(np.float64), kind="stable")[:num_samples]
            return best[order].astype(np.int64)
    order = np.argsort(-scores.astype(np.float64), -1, kind="stable")
    return np.ascontiguousarray(order[..., :num_samples]).astype(np.int64)


def _with_replacement(gen: HostGenerator, weights: Array, num_samples: int) -> Array:
    kind = float64 if weights.dtype == float64 else float32
    rows: Array = weights.reshape(-1, weights.shape[-1]).astype(kind, copy=False)
    out = np.empty((rows.shape[0], num_samples), np.int64)
    with gen.lock:
        if rows.size and np.minimum.reduce(rows, None) >= 0:
            heights: Array = np.add.accumulate(rows, 1)
            total = heights[:, -1:]
            if all(0 < x < math.inf for x in total.ravel().tolist()):
                heights /= total
                heights[:, -1] = 1
                wide = heights.astype(np.float64, copy=False)
                for index, row in enumerate(wide):
                    out[index] = row.searchsorted(unit64(gen, num_samples))
                return out.reshape(*weights.shape[:-1], num_samples)
        for index, row in enumerate(rows):  # there is something wrong with one of them
            _check_row(row)
            cumulative = np.add.accumulate(row)
            cumulative /= cumulative[-1]
            cumulative[-1] = 1
            out[index] = np.searchsorted(cumulative.astype(np.float64), unit64(gen, num_samples), side="left")
    return out.reshape(*weights.shape[:-1], num_samples)


def _check_row(row: Array) -> None:
    text = "invalid multinomial distribution ({})"
    checks.require(bool((row >= 0).all()), text.format("encountering probability entry < 0"))
    checks.require(bool(np.isfinite(row).all()), text.format("encountering probability entry = infinity or NaN"))
    total = np.add.accumulate(row)[-1] if row.size else row.dtype.type(0)
    checks.require(bool(total > 0), text.format("sum of probabilities <= 0"))
