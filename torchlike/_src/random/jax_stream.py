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


def _unit(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform on [0, 1), in steps of 2**-24; for float64 in steps of 2**-53."""
    stream = jax.random.wrap_key_data(key, impl="threefry2x32")
    if dtype.itemsize == 8:
        high, low = jax.random.bits(stream, (2, *shape), np.uint32)
        return (
            (high >> np.uint32(5)).astype(jnp.float64) * 2.0**26 + (low >> np.uint32(6)).astype(jnp.float64)
        ) * 2.0**-53
    drawn = jax.random.bits(stream, shape, np.uint32)
    return (drawn >> np.uint32(8)).astype(jnp.float32) * np.float32(2.0**-24)


def _parts(key: Any, shape: tuple[int, ...], dtype: np.dtype, finish: Any) -> Any:
    """finish(units) in the dtype; complex numbers are made of two reals."""
    if dtype.kind != "c":
        return finish(_unit(key, shape, dtype)).astype(dtype)
    pair = finish(_unit(key, (*shape, 2), np.dtype(f"f{dtype.itemsize // 2}")))
    return jax.lax.complex(pair[..., 0], pair[..., 1])


def uniform(key: Any, low: Any, high: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform on [low, high); what rounding carries to `high` becomes `low`."""

    def finish(u: Any) -> Any:
        a, b = low.astype(u.dtype), high.astype(u.dtype)
        v = u * (b - a) + a
        end = b.astype(dtype) if dtype.kind != "c" else b
        return jnp.where(v.astype(end.dtype) == end, a, v)

    return _parts(key, shape, dtype, finish)


def normal(key: Any, mean: Any, std: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Normal, by the inverse of the distribution function; the parts of complex numbers have variance std**2 / 2."""
    scale = np.sqrt(2.0) if dtype.kind != "c" else 1.0

    def finish(u: Any) -> Any:
        half = np.asarray(2.0 ** (-53 if u.dtype == jnp.float64 else -24), u.dtype)  # keeps -1 and 1 out
        return jax.lax.erf_inv(u * 2 - (1 - half)) * (std * scale).astype(u.dtype) + mean.astype(u.dtype)

    return _parts(key, shape, dtype, finish)


def bernoulli(key: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 with probability p."""
    return (_unit(key, shape, np.dtype(np.float32)) < p.astype(jnp.float32)).astype(dtype)


def exponential(key: Any, rate: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Exponential with a rate."""
    return _parts(key, shape, dtype, lambda u: jnp.log1p(-u) / -rate.astype(u.dtype))
