"""Multiply-add with one rounding, and narrowing, as PyTorch's compiled kernels do them."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray

_SPLITTER = 134217729.0  # 2**27 + 1


def narrow(x: Array, dtype: np.dtype) -> Array:
    """float64 or float32 -> ``dtype``; the 16-bit types are reached through float32 (two roundings)."""
    if x.dtype == dtype:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.itemsize == 2 and dtype.kind in "fV" and x.dtype == np.float64:
            x = x.astype(np.float32)
        return x.astype(dtype)


def two_sum(a: Array, b: Array | float) -> tuple[Array, Array]:
    """The rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _to_odd(total: Array, error: Array) -> Array:
    """``total`` with its last bit made odd wherever ``total + error`` is inexact (in place)."""
    bits = total.view(np.int64)
    inexact = (error != 0) & ((bits & 1) == 0)
    away = (error > 0) == (total > 0)
    bits += np.where(inexact, np.where(away, 1, -1), 0)
    return total


def fma32(a: Array, b: float, c: float) -> Array:
    """float32(a*b + c) rounded once: float64[n] whose values, like b and c, are float32 -> float32[n].

    The product is exact in double. The double sum may round and then land midway between two float32
    (about one chance in 2**29); only there is the error of the sum looked at.
    """
    product = a * b
    total = product + c
    midway = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    if midway.any():
        exact, error = two_sum(product[midway], c)
        total[midway] = _to_odd(exact, error)
    return total.astype(np.float32)


def fma64(a: Array, b: float, c: float) -> Array:
    """a*b + c rounded once, float64[n] (Dekker's exact product, then Boldo and Melquiond's exact sum)."""
    product = a * b
    if c == 0.0:
        product += 0.0  # -0 becomes +0, as adding zero does
        return product
    fraction, _ = math.frexp(b)
    if abs(fraction) == 0.5:  # a power of two: the product is exact
        product += c
        return product
    scaled = a * _SPLITTER
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled_b = b * _SPLITTER
    b_high = scaled_b - (scaled_b - b)
    b_low = b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    upper, upper_error = two_sum(error, c)
    total, total_error = two_sum(product, upper)
    rest, rest_error = two_sum(total_error, upper_error)
    total += _to_odd(rest, rest_error)
    return total
