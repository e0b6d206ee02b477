"""The other stream: JAX's counter-based generator (threefry), inside the program that uses the numbers.

Used for tensors on a GPU, whose numbers are other than the CPU's under PyTorch too; everywhere if
`torchlike.config.jax_random` is True; within `torchlike.interop.random_key(key)`; and while JAX traces a program of
the user's (his own `jax.jit`), where a host draw would be a constant. Each call has a key of its own: the scope's key
with the call's number folded in, or one made of a GPU generator's seed and offset, or else one 64-bit draw (two
words) of the host generator. So seeds, saved states, `generator=` and `fork_rng` mean what they always mean, the same
seed gives the same numbers run after run, and the numbers are others than PyTorch's. The key is data: a new draw
compiles nothing.
"""

from __future__ import annotations

import operator
import os
import secrets
import threading
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .generator import HostGenerator, check_seed

FROZEN = (
    "torchlike: random numbers drawn while JAX traces a function become constants of the compiled program, which "
    "repeats them in every call. Pass a key to the function, and draw within torchlike.interop.random_key(key)."
)


class Choice:
    """Whether the kernels of this page are used everywhere, and whether they are on GPUs."""

    enabled: bool = os.environ.get("TORCHLIKE_JAX_RANDOM", "") not in ("", "0")
    on_gpus: bool = os.environ.get("TORCHLIKE_JAX_RANDOM", "") != "0"


class KeyGenerator:
    """A GPU's generator: a seed and an offset, of which each call makes a key. Its state is PyTorch's for CUDA: 16
    bytes, the seed and the offset."""

    __slots__ = ("_offset", "_seed", "lock")
    STEP = 4
    """By how much a call moves the offset, which counts 32-bit words in PyTorch's generator."""

    def __init__(self, seed: int = 0) -> None:
        self.lock = threading.RLock()
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> KeyGenerator:
        """Restart from a seed; RuntimeError if it does not fit in 64 bits."""
        self._seed, self._offset = check_seed(operator.index(seed)), 0
        return self

    def seed(self) -> int:
        """Restart from an unpredictable seed, which is returned."""
        self.manual_seed(secrets.randbits(53))
        return self._seed

    def initial_seed(self) -> int:
        """The last seed."""
        return self._seed

    def get_offset(self) -> int:
        """How far the stream is."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Continue elsewhere in the stream; RuntimeError unless it is a multiple of 4."""
        if offset % self.STEP:
            raise RuntimeError("offset must be a multiple of 4")
        self._offset = offset

    def get_state(self) -> np.ndarray:
        """The seed and the offset, uint8 (16,)."""
        return np.array([self._seed, self._offset], np.uint64).view(np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state; RuntimeError if it is not one. States of eight bytes have no offset."""
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size not in (8, 16):
            raise RuntimeError("RNG state is wrong size")
        words = np.ascontiguousarray(state).view(np.uint64).tolist()
        offset = words[1] if len(words) == 2 else 0
        self.set_offset(offset)
        self._seed = words[0]

    def key(self) -> int:
        """The next call's key, 64 bits: others for every offset, and unlike those of neighbouring seeds."""
        with self.lock:
            word = _mixed(_mixed(self._seed) + self._offset)
            self._offset = (self._offset + self.STEP) & WORD
        return word

    def host(self) -> HostGenerator:
        """A host stream for the next call."""
        return HostGenerator(self.key())


WORD = (1 << 64) - 1


def _mixed(word: int) -> int:
    """A bijection of 64-bit words without visible patterns (splitmix64's finisher)."""
    word = (word + 0x9E3779B97F4A7C15) & WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


class _Scope(threading.local):
    """The key of `interop.random_key` and how many calls took one from it."""

    key: Any = None
    calls = 0


SCOPE = _Scope()


def _tracing_context() -> tuple[Any, type | None]:
    """JAX's thread-local (`.trace` is the trace in progress) and the type of `.trace` outside of all; None if unknown.

    It isn't public. Without it, asking costs some 20 microseconds more."""
    try:
        from jax._src import core

        return core.trace_ctx, core.EvalTrace
    except (ImportError, AttributeError):
        return None, None


CONTEXT, OUTSIDE = _tracing_context()


def chosen(gen: HostGenerator | KeyGenerator) -> bool:
    """Whether the generator's numbers come from here, now. Hot."""
    if Choice.enabled or type(gen) is KeyGenerator or SCOPE.key is not None:
        return True
    return traced()


def traced() -> bool:
    """Whether JAX traces a function of the user's."""
    if CONTEXT is not None and type(CONTEXT.trace) is OUTSIDE:
        return False
    return isinstance(jnp.zeros((), np.bool_), jax.core.Tracer)


def draw_key(gen: HostGenerator | KeyGenerator) -> Any:
    """The key of one call: uint32[2]."""
    if SCOPE.key is not None:
        SCOPE.calls += 1
        return jax.random.bits(jax.random.fold_in(SCOPE.key, SCOPE.calls - 1), (2,), np.uint32)
    if not Choice.enabled and traced():
        warnings.warn(FROZEN, UserWarning, stacklevel=5)
    if isinstance(gen, KeyGenerator):
        return np.array([gen.key()], np.uint64).view(np.uint32)
    with gen.lock:
        return gen.words32(2).copy()


# -- kernels -----------------------------------------------------------------------------------------------------


def _stream(key: Any) -> Any:
    return jax.random.wrap_key_data(key, impl="threefry2x32")


def _unit(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform on [0, 1), in steps of 2**-24; for float64 in steps of 2**-53."""
    if dtype.itemsize == 8:
        high, low = jax.random.bits(_stream(key), (2, *shape), np.uint32)
        return (
            (high >> np.uint32(5)).astype(jnp.float64) * 2.0**26 + (low >> np.uint32(6)).astype(jnp.float64)
        ) * 2.0**-53
    drawn = jax.random.bits(_stream(key), shape, np.uint32)
    return (drawn >> np.uint32(8)).astype(jnp.float32) * np.float32(2.0**-24)


def _wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which numbers for `dtype` are made."""
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


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


def _standard_normal(u: Any) -> Any:
    """By the inverse of the distribution function; times the square root of 2."""
    half = np.asarray(2.0 ** (-53 if u.dtype == jnp.float64 else -24), u.dtype)  # keeps -1 and 1 out
    return jax.lax.erf_inv(u * 2 - (1 - half))


def normal(key: Any, mean: Any, std: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Normal; the parts of complex numbers have variance std**2 / 2."""
    scale = np.sqrt(2.0) if dtype.kind != "c" else 1.0

    def finish(u: Any) -> Any:
        return _standard_normal(u) * (std * scale).astype(u.dtype) + mean.astype(u.dtype)

    return _parts(key, shape, dtype, finish)


def log_normal(key: Any, mean: Any, std: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """exp of a normal."""
    return jnp.exp(normal(key, mean, std, shape=shape, dtype=_wide(dtype))).astype(dtype)


def bernoulli(key: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """1 with probability p."""
    return (_unit(key, shape, np.dtype(np.float32)) < p.astype(jnp.float32)).astype(dtype)


def bernoulli_tensor(key: Any, p: Any, *, dtype: np.dtype) -> Any:
    """1 with the probabilities p."""
    unit = _unit(key, p.shape, p.dtype)
    return (unit < p.astype(unit.dtype)).astype(dtype)


def exponential(key: Any, rate: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Exponential with a rate."""
    return _parts(key, shape, dtype, lambda u: jnp.log1p(-u) / -rate.astype(u.dtype))


def cauchy(key: Any, median: Any, sigma: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Cauchy, by the inverse of the distribution function."""

    def finish(u: Any) -> Any:
        return jnp.tan(np.pi * (u - np.asarray(0.5, u.dtype))) * sigma.astype(u.dtype) + median.astype(u.dtype)

    return _parts(key, shape, dtype, finish)


def geometric(key: Any, p: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Trials up to the first success."""
    u = 1 - _unit(key, shape, _wide(dtype))
    return jnp.maximum(jnp.ceil(jnp.log(u) / jnp.log1p(-p).astype(u.dtype)), 1).astype(dtype)


def integers(key: Any, low: Any, last: Any, *, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Integers from low to last, both included."""
    high, less = (b.astype(jnp.uint64) for b in jax.random.bits(_stream(key), (2, *shape), np.uint32))
    span = last.astype(jnp.uint64) - low.astype(jnp.uint64) + np.uint64(1)  # 0 means all 64 bits
    drawn = (high << np.uint64(32)) | less
    drawn = jnp.where(span == 0, drawn, drawn % jnp.where(span == 0, np.uint64(1), span))
    return (drawn + low.astype(jnp.uint64)).astype(jnp.int64).astype(dtype)


def permutation(key: Any, *, n: int, dtype: np.dtype) -> Any:
    """The numbers 0 … n - 1 in a random order."""
    return jax.random.permutation(_stream(key), n).astype(dtype)


def multinomial(key: Any, weights: Any, *, count: int, replacement: bool) -> Any:
    """Categories drawn by weight, (..., C) -> (..., count), int64."""
    wide = weights.astype(_wide(weights.dtype))
    if replacement:
        heights = jnp.cumsum(wide, -1)
        u = _unit(key, (*weights.shape[:-1], count), wide.dtype) * heights[..., -1:]
        found = (heights[..., None, :] <= u[..., None]).sum(-1)
        return jnp.minimum(found, weights.shape[-1] - 1).astype(jnp.int64)
    noise = -jnp.log1p(-_unit(key, weights.shape, wide.dtype))
    return jax.lax.top_k(wide / noise, count)[1].astype(jnp.int64)


def poisson(key: Any, rate: Any) -> Any:
    """Poisson numbers of rate's dtype."""
    return jax.random.poisson(_stream(key), rate.astype(_wide(rate.dtype)), dtype=np.int64).astype(rate.dtype)


def binomial(key: Any, count: Any, prob: Any) -> Any:
    """Binomial numbers of count's dtype."""
    return jax.random.binomial(_stream(key), count, prob, dtype=count.dtype)


def gamma(key: Any, alpha: Any) -> Any:
    """Gamma numbers of scale 1."""
    return jnp.maximum(jax.random.gamma(_stream(key), alpha, dtype=alpha.dtype), jnp.finfo(alpha.dtype).tiny)


def dirichlet(key: Any, alpha: Any) -> Any:
    """Dirichlet samples, the last dim being the event."""
    return jax.nn.softmax(jax.random.loggamma(_stream(key), alpha, dtype=alpha.dtype), -1)


def slopes(key: Any, x: Any, lower: Any, upper: Any) -> Any:
    """1 where x > 0, else uniform on [lower, upper): the noise of a training rrelu."""
    return jnp.where(x > 0, jnp.ones((), x.dtype), uniform(key, lower, upper, shape=x.shape, dtype=x.dtype))
