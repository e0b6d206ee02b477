"""JAX's own random numbers (threefry keys) and Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from torchlike._src.engine.host.emit import (
    KEY_WORDS,
    Emitter,
    HostUnsupported,
    Ref,
    aval_of,
    is_key,
    key_to_words,
    rule,
    words_to_key,
)

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(key1: Any, key2: Any, x1: Any, x2: Any) -> list[np.ndarray]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3")."""
    keys = [key1, key2, key1 ^ key2 ^ np.uint32(0x1BD11BDA)]
    x1, x2 = np.add(x1, keys[0]), np.add(x2, keys[1])
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            x1 = np.add(x1, x2)
            x2 = np.left_shift(x2, np.uint32(rotation)) | np.right_shift(x2, np.uint32(32 - rotation))
            x2 = x1 ^ x2
        x1 = np.add(x1, keys[(i + 1) % 3])
        x2 = np.add(np.add(x2, keys[(i + 2) % 3]), np.uint32(i + 1))
    return [x1, x2]


@rule("threefry2x32")
def _threefry(em: Emitter, eqn: Any, *refs: Ref) -> list[Ref]:
    outs = [aval_of(v) for v in eqn.outvars]
    return em.put_many(f"{em.fn(threefry2x32)}({', '.join(r.name for r in refs)})", outs)


@rule("iota_2x32_shape", lazy=True)
def _iota_2x32(em: Emitter, eqn: Any) -> list[Ref]:
    """Counters over a shape, as the high and low words of 64 bits."""
    shape = tuple(int(n) for n in eqn.params["shape"])

    def counters() -> tuple[np.ndarray, np.ndarray]:
        count = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
        return np.right_shift(count, np.uint64(32)).astype(np.uint32), count.astype(np.uint32)

    return em.put_many(f"{em.fn(counters)}()", [aval_of(v) for v in eqn.outvars])


def _check(name: str, dtype: Any) -> None:
    if "fry" not in str(dtype):
        raise HostUnsupported(name, str(dtype))


@rule("random_wrap", "random_unwrap", "random_seed", "random_bits", "random_fold_in", "random_split", lazy=True)
def _random(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    """Each is the implementation's own function, traced and inlined."""
    name, params = eqn.primitive.name, eqn.params
    shape, dtype = aval_of(eqn.outvars[0])
    refs = tuple(em.full(r) if not is_key(r.dtype) else r for r in refs)
    key_type = dtype if is_key(dtype) else eqn.invars[0].aval.dtype
    _check(name, key_type)
    if name == "random_wrap":
        return words_to_key(refs[0], dtype)
    if name == "random_unwrap":
        return key_to_words(refs[0])
    if refs[0].shape != ():
        raise HostUnsupported(name, "several keys at once")
    from jax.extend.random import threefry_prng_impl as impl  # here: it brings Pallas with it, a tenth of a second

    words = jax.ShapeDtypeStruct((2,), np.uint32)
    if name == "random_seed":
        seed = jax.ShapeDtypeStruct((), refs[0].dtype)
        jaxpr, operands = jax.make_jaxpr(impl.seed)(seed), [refs[0]]
    elif name == "random_bits":
        jaxpr = jax.make_jaxpr(lambda k: impl.random_bits(k, params["bit_width"], params["shape"]))(words)
        operands = [key_to_words(refs[0])]
    elif name == "random_split":
        jaxpr = jax.make_jaxpr(lambda k: impl.split(k, params["shape"]))(words)
        operands = [key_to_words(refs[0])]
    else:
        jaxpr = jax.make_jaxpr(impl.fold_in)(words, jax.ShapeDtypeStruct((), np.uint32))
        operands = [key_to_words(refs[0]), em.cast(refs[1], KEY_WORDS)]
    (out,) = em.inline(jaxpr.jaxpr, jaxpr.consts, operands)
    out = em.full(out)
    return words_to_key(out, dtype) if is_key(dtype) else out


# -- Fourier transforms --------------------------------------------------------------------------------------------


@rule("fft")
def _fft(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    lengths = tuple(int(n) for n in eqn.params["fft_lengths"])
    kind = str(getattr(eqn.params["fft_type"], "name", eqn.params["fft_type"]))
    kind = {"0": "FFT", "1": "IFFT", "2": "RFFT", "3": "IRFFT"}.get(kind, kind)
    axes = tuple(range(-len(lengths), 0))
    if 0 in shape or x.size == 0:
        return em.full_const(0, shape, dtype)
    functions = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
    function: Any = functions[kind]

    def fft(x: Any) -> np.ndarray:
        return function(x, lengths, axes).astype(dtype, copy=False)

    return em.call(fft, (x,), shape, dtype)
