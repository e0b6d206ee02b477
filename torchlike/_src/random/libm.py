"""Double-precision functions with the C library's exact bits, for whole arrays.

PyTorch calls the C library for log, log1p, sin, cos, tan and exp in double precision. NumPy calls it too on
some machines, and on others (AVX-512) takes vector code whose last bit differs for a few arguments in a
hundred. Which one happens is found out once per function by comparing with ``math``, which is the C library by
construction. Where NumPy's loop differs there is a way round: its vector code steps aside when the address
ranges of input and output interleave, so reading the even and writing the odd elements of one buffer gives the
C library's bits at C speed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray


def _direct(ufunc: np.ufunc, scalar: Callable[[float], float], x: Array) -> Array:
    return ufunc(x)


def _interleaved(ufunc: np.ufunc, scalar: Callable[[float], float], x: Array) -> Array:
    pair = np.empty((x.size + 1, 2))  # one more row: a single row does not interleave with itself
    pair[:-1, 0] = x
    pair[-1, 0] = 0.5
    ufunc(pair[:, 0], out=pair[:, 1])
    return pair[:-1, 1]


def _one_by_one(ufunc: np.ufunc, scalar: Callable[[float], float], x: Array) -> Array:
    def guarded(value: float) -> float:
        try:
            return scalar(value)
        except (ValueError, OverflowError):  # an infinite or undefined result, which NumPy returns
            return float(ufunc(value))

    return np.fromiter(map(guarded, x.tolist()), np.float64, x.size)


class _Exact:
    """One function: picks its route at the first call, then keeps it."""

    __slots__ = ("_probe", "_route", "_scalar", "_ufunc")

    def __init__(self, name: str, low: float, high: float) -> None:
        self._ufunc: np.ufunc = getattr(np, name)
        self._scalar: Callable[[float], float] = getattr(math, name)
        # Irregular points (golden-ratio steps) over the range that the fills use.
        steps = np.arange(1, 4097) * 0.6180339887498949 % 1.0
        self._probe = (low, high, steps)
        self._route: Callable[..., Array] | None = None

    def _choose(self) -> Callable[..., Array]:
        low, high, steps = self._probe
        points = low + (high - low) * steps
        expected = _one_by_one(self._ufunc, self._scalar, points)
        for route in (_direct, _interleaved):
            if np.array_equal(route(self._ufunc, self._scalar, points), expected):
                return route
        return _one_by_one

    def __call__(self, x: Array) -> Array:
        """float64[n] -> float64[n] (possibly strided)."""
        if self._route is None:
            self._route = self._choose()
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return self._route(self._ufunc, self._scalar, x)


log = _Exact("log", 0.0, 1.0)
log1p = _Exact("log1p", -1.0, 0.0)
sin = _Exact("sin", 0.0, 2 * math.pi)
cos = _Exact("cos", 0.0, 2 * math.pi)
tan = _Exact("tan", -math.pi / 2, math.pi / 2)
exp = _Exact("exp", -6.0, 6.0)
