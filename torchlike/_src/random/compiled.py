"""The Box-Muller transform of `box_muller.py` as one compiled loop, for programs that draw many normals.

NumPy needs some seventy passes over its arrays; XLA makes one loop of them, ten times as fast. PyTorch's kernel fuses
a*b+c into one rounding in some places and not in others, and this must do the same. XLA's CPU compiler fuses wherever
it can; where PyTorch rounds a product, `_Rounded` hides it behind an integer addition of a zero that the compiler does
not know. Whether the result has PyTorch's bits depends on the processor and the compiler, so it is compared with
NumPy's before it is used, and NumPy goes on where it differs. Either way the numbers are the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

SIZES = (32768, 8192)
"""How many pairs a call may take. A launch costs as much as the arithmetic on the smaller one."""
_WORTH = 1 << 20  # uniforms after which compiling (a fifth of a second) pays for itself soon
_CHECKED = 1 << 18  # uniforms that are compared with NumPy's
_f32 = np.float32
_LOG = tuple(
    _f32(c)
    for c in (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
              -2.4999993993e-1, 3.3333331174e-1)
)  # fmt: skip


def _bits(x: Any) -> Any:
    return lax.bitcast_convert_type(x, jnp.int32)


def _float(x: Any) -> Any:
    return lax.bitcast_convert_type(x, jnp.float32)


def _radius(k: Any, rounded: Callable[[Any], Any]) -> Any:
    """sqrt(-2 log(1 - u)): the logarithm of 2**exponent * (1 + y), y between sqrt(1/2) - 1 and sqrt(2) - 1."""
    x = _f32(1) - k.astype(jnp.float32) * _f32(2.0**-24)
    shift = (_bits(x) - np.int32(0x3F3504F3)) & np.int32(-(1 << 23))
    exponent = shift.astype(jnp.float32) * _f32(2.0**-23)
    y = _float(_bits(x) - shift) - _f32(1)
    z = rounded(y * y)
    p = jnp.full_like(y, _f32(7.0376836292e-2))
    for c in _LOG:
        p = p * y + c
    p = rounded(p * y) * z + rounded(exponent * _f32(-2.12194440e-4))
    p = p - rounded(z * _f32(0.5))
    log = exponent * _f32(0.693359375) + rounded(y + p)
    return jnp.sqrt(rounded(log * _f32(-2)))


def _sine_cosine(k: Any, rounded: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Of 2 pi u: the nearest even multiple of pi/4 is taken off in three steps, then one polynomial each."""
    t = rounded(k.astype(jnp.float32) * _f32(2.0**-24) * _f32(6.283185307179586))
    octant = (rounded(t * _f32(1.27323954473516)).astype(jnp.int32) + 1) & ~1
    turn = octant.astype(jnp.float32)
    q = turn * _f32(-0.78515625) + t
    q = turn * _f32(-2.4187564849853515625e-4) + q
    q = turn * _f32(-3.77489497744594108e-8) + q
    z = rounded(q * q)
    c = z * _f32(2.443315711809948e-5) + _f32(-1.388731625493765e-3)
    c = c * z + _f32(4.166664568298827e-2)
    c = rounded(z * rounded(c * z) - rounded(z * _f32(0.5))) + _f32(1)
    w = z * _f32(-1.9515295891e-4) + _f32(8.3321608736e-3)
    w = w * z + _f32(-1.6666654611e-1)
    w = q * rounded(w * z) + q
    even = (octant & 2) == 0
    sine, cosine = jnp.where(even, w, c), jnp.where(even, c, w)
    sine = _float(_bits(sine) ^ ((octant & 4) << 29))
    return sine, _float(_bits(cosine) ^ ((((octant - 2) & 4) ^ 4) << 29))


def _polar(k: Any, zero: Any) -> tuple[Any, Any, Any]:
    """int32(2, m) 24-bit uniforms (radius, angle) -> radius, sine, cosine: float32(m,) each. `zero` is 0."""

    def rounded(x: Any) -> Any:
        return _float(_bits(x) + zero)

    return (_radius(k[0], rounded), *_sine_cosine(k[1], rounded))


class _State:
    lock = threading.Lock()
    seen = 0
    programs: dict[int, Callable[[np.ndarray], list[np.ndarray]]] = {}
    given_up = False


def _give_up() -> None:
    """A forked child must not touch its parent's XLA client."""
    _State.given_up = True
    _State.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up)


def _build(pairs: int, reference: Callable[[np.ndarray], Sequence]) -> None:
    """Compile for a number of pairs, compare, and keep what agrees with `reference`."""
    device = jax.local_devices(backend="cpu")[0]
    placed = jax.sharding.SingleDeviceSharding(device)
    many = jax.ShapeDtypeStruct((2, pairs), np.int32, sharding=placed)
    one = jax.ShapeDtypeStruct((), np.int32, sharding=placed)
    program = jax.jit(_polar).lower(many, one).compile()
    zero = np.zeros((), np.int32)
    # Spread over all 24-bit numbers by an odd multiplier, with both ends among them.
    spread = (np.arange(-64, _CHECKED - 64, dtype=np.int64) * 10368891 & 0xFFFFFF).astype(np.int32)
    for k in spread.reshape(-1, 2, pairs):
        found = program(k, zero)
        if any(np.asarray(a).tobytes() != b.tobytes() for a, b in zip(found, reference(k), strict=True)):
            _State.given_up = True
            return
    _State.programs[pairs] = lambda k: [np.asarray(a) for a in program(k, zero)]


def size(pairs: int) -> int:
    """How many of so many pairs to make in the next piece."""
    largest, smallest = SIZES
    return largest if pairs >= largest and _State.seen >= _WORTH and not _State.given_up else min(pairs, smallest)


def polar(k: np.ndarray, reference: Callable[[np.ndarray], Sequence]) -> list[np.ndarray] | None:
    """int32(2, pairs) 24-bit uniforms -> radius, sine, cosine; None where NumPy (`reference`) is to make them."""
    pairs = k.shape[1]
    if _State.given_up or pairs not in SIZES:
        return None
    try:
        if pairs not in _State.programs:
            _State.seen += k.size
            if _State.seen < _WORTH:
                return None
            with _State.lock:
                if pairs not in _State.programs and not _State.given_up:
                    _build(pairs, reference)
            if _State.given_up:
                return None
        return _State.programs[pairs](k)
    except Exception:  # whatever keeps a compiler from working: the numbers do not depend on it
        _State.given_up = True
        return None
