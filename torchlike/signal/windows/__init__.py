"""torch.signal.windows: windows of M points, symmetric (for filters) or with sym=False periodic (for spectra)."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from torchlike._src.core import dtype as _dt
from torchlike._src.tensor.creation import from_array as _from_array

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


def _checked(name: str, M: int, dtype: Any, layout: Any) -> Any:
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and str(layout) != "torch.strided":
        shown = name if name in ("exponential", "gaussian", "kaiser") else "general_cosine"
        raise ValueError(f"{shown} is implemented for strided tensors only, got: {layout}")
    dtype = dtype or _dt.default_dtype()
    if dtype not in (_dt.float32, _dt.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _window(formula: Any, M: int, sym: bool, dtype: Any, device: Any, requires_grad: bool) -> Any:
    """formula(n, last): the window at the points n = 0 … M - 1, of which the last of a symmetric one is `last`."""
    n = np.arange(M, dtype=np.float64)
    array = np.ones(M) if M == 1 else formula(n, (M - 1 if sym else M) if M else 1)
    return _from_array(np.asarray(array).astype(dtype.np), dtype, device, requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """exp(-|n - center| / tau); the centre is the middle unless given, which sym=False allows."""
    dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def formula(n: Any, last: Any) -> Any:
        return np.exp(-np.abs(n - (last / 2 if center is None else center)) / tau)

    n = np.arange(M, dtype=np.float64)
    if M == 1 and center is not None:
        return _from_array(formula(n, 1).astype(dtype.np), dtype, device, requires_grad)
    return _window(formula, M, sym, dtype, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """sin(pi * (n + 1/2) / M)."""
    dtype = _checked("cosine", M, dtype, layout)
    return _window(lambda n, last: np.sin(np.pi * (n + 0.5) / (last + 1)), M, sym, dtype, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """exp(-((n - middle) / std)^2 / 2)."""
    dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window(lambda n, last: np.exp(-(((n - last / 2) / std) ** 2) / 2), M, sym, dtype, device, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """I0(beta * sqrt(1 - (2n / (M - 1) - 1)^2)) / I0(beta)."""
    dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def formula(n: Any, last: Any) -> Any:
        x = (2 * n - last) / last
        return np.i0(beta * np.sqrt(np.maximum(1 - x * x, 0))) / np.i0(beta)

    return _window(formula, M, sym, dtype, device, requires_grad)


def general_cosine(M, *, a: Iterable, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """The sum over k of (-1)^k a[k] cos(2 pi k n / (M - 1))."""
    dtype = _checked("general_cosine", M, dtype, layout)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")

    def formula(n: Any, last: Any) -> Any:
        return sum((-1) ** k * w * np.cos(2 * np.pi * k * n / last) for k, w in enumerate(weights))

    return _window(formula, M, sym, dtype, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2 pi n / (M - 1))."""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_hamming with alpha 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_hamming with alpha 0.5."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_cosine with 0.42, 0.5, 0.08."""
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle: 1 - |2n / (M - 1) - 1|."""
    dtype = _checked("bartlett", M, dtype, layout)
    return _window(lambda n, last: 1 - np.abs(2 * n / last - 1), M, sym, dtype, device, requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):
    """general_cosine with Nuttall's four weights."""
    return general_cosine(
        M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip
