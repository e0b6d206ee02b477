"""The other stream: JAX's counter-based generator (threefry), for those who prefer speed at very large sizes.

Off unless `torchlike.config.jax_random` is set. Each call takes one 64-bit draw (two words) of the host generator as
the key of its own threefry stream. So seeds, saved states, `generator=` and `fork_rng` mean what they always mean,
the same seed gives the same numbers run after run, and the numbers are others than PyTorch's. The kernels below
become part of the program that uses their result; the key is data, so that a new draw never compiles anything.
"""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .generator import HostGenerator


class Choice:
    """Whether the kernels of this page are used."""

    enabled: bool = os.environ.get("TORCHLIKE_JAX_RANDOM", "0") not in ("", "0")


def draw_key(gen: HostGenerator) -> np.ndarray:
    """The key of one call: uint32[2], two words of the host generator."""
    with gen.lock:
        return gen.words32(2)


def _key(data: Any) -> Any:
    return jax.random.wrap_key_data(data, impl="threefry2x32")


def _real(key: Any, shape: tuple[int, ...], dtype: np.dtype, sample: Any) -> Any:
    """sample(key, shape, dtype), with complex numbers as two reals."""
    if dtype.kind != "c":
        return sample(key, shape, dtype)
    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    pair = sample(key, (*shape, 2), part)
    return jax.lax.complex(pair[..., 0], pair[..., 1])


def uniform(key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform on [low, high)."""

    def sample(k: Any, s: tuple[int, ...], d: np.dtype) -> Any:
        return jax.random.uniform(k, s, d, low.astype(d), high.astype(d))

    return _real(_key(key), shape, dtype, sample)


def normal(key: Any, mean: Any, std: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Normal; the parts of complex numbers have variance std**2 / 2."""
    part = std / np.sqrt(2.0) if dtype.kind == "c" else std

    def sample(k: Any, s: tuple[int, ...], d: np.dtype) -> Any:
        return jax.random.normal(k, s, d) * part.astype(d) + mean.astype(d)

    return _real(_key(key), shape, dtype, sample)


def bernoulli(key: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 with probability p."""
    return (jax.random.uniform(_key(key), shape, jnp.float32) < p.astype(jnp.float32)).astype(dtype)


def exponential(key: Any, rate: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Exponential with a rate."""
    return jax.random.exponential(_key(key), shape, dtype) / rate.astype(dtype)
