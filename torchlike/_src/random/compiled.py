"""The generator's words and the normals made of them, as two compiled XLA loops for programs that draw many.

XLA refreshes the Mersenne Twister's table with vector instructions, three times as fast as NumPy's C code, and makes
one loop of the seventy passes over arrays that NumPy needs for normals (`box_muller.py`). PyTorch's kernel for these
fuses a*b+c into one rounding in some places and not in others, and this must do the same. XLA's CPU compiler fuses
wherever it can; where PyTorch rounds a product, `rounded` hides it behind an integer addition of a zero that the
compiler does not know. Whether the result has PyTorch's bits depends on the processor and the compiler, so both
programs are compared with NumPy before they are used, and NumPy goes on where they differ. Either way the numbers are
the same.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.engine import program as disk

TABLE = 624
REFRESHES = 210
WORDS = REFRESHES * TABLE
"""Words, or normals, that one call makes: 131040, a multiple of 16. Many more would not fit the cache."""
PADDED = WORDS + 16
_ROW = 227  # entries of a table that do not need each other
TABLES_AT = 3 * _ROW - TABLE
ROWS = 3 + 2 * -(-WORDS // (2 * _ROW))
# Nanoseconds of NumPy's after which loading a program (10 and 30 ms) soon pays for itself, and compiling (0.3 s, once).
_WORDS_WORTH, _NORMALS_WORTH = 1 << 22, 1 << 25
_f32, _u32 = np.float32, np.uint32
# Barriers must live until fusion, to keep the interleaving of sines and cosines out of the loop over polynomials; and
# handing parts of so short a loop to other threads costs more than it gains.
_OPTIONS: dict[str, Any] = {"xla_disable_hlo_passes": "cse_barrier_expander,cpu-parallel-task-assigner"}
_LOG = tuple(
    _f32(c)
    for c in (-1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
              -2.4999993993e-1, 3.3333331174e-1)
)  # fmt: skip


# -- words -------------------------------------------------------------------------------------------------------


def _twisted(upper: Any, lower: Any) -> Any:
    joined = (upper & _u32(1 << 31)) | (lower & _u32((1 << 31) - 1))
    return (joined >> _u32(1)) ^ ((_u32(0) - (lower & _u32(1))) & _u32(0x9908B0DF))


def _tempered(y: Any) -> Any:
    y = y ^ (y >> _u32(11))
    y = y ^ ((y << _u32(7)) & _u32(0x9D2C5680))
    y = y ^ ((y << _u32(15)) & _u32(0xEFC60000))
    return y ^ (y >> _u32(18))


def _words(table: Any, position: Any) -> tuple[Any, Any]:
    """uint32[624], words of it that are used -> the next WORDS words (and 16 of no meaning), and the tables.

    The tables are uint32[ROWS, 227], of which the one given begins at TABLES_AT and the others follow it. An entry
    needs those 624, 623 and 227 places before it; two rows are made at a time, the second of what the first is made of,
    because what a turn of XLA's loop costs is mostly its beginning."""
    head = jnp.concatenate([jnp.zeros(TABLES_AT, jnp.uint32), table]).reshape(3, _ROW)
    second = np.array([[0], [0xFFFFFFFF]], np.uint32)

    def step(k: Any, buffer: Any) -> Any:
        row = k * np.int32(2)
        x = lax.optimization_barrier(lax.dynamic_slice(buffer, (row, np.int32(0)), (3, _ROW)).reshape(-1))
        x = x[TABLES_AT:]
        first = x[397:] ^ _twisted(x[:_ROW], x[1 : _ROW + 1])
        change = _twisted(x[_ROW : 2 * _ROW], x[_ROW + 1 : 2 * _ROW + 1])
        return lax.dynamic_update_slice(buffer, first ^ (change & second), (row + np.int32(3), np.int32(0)))

    buffer = jnp.concatenate([head, jnp.zeros((ROWS - 3, _ROW), jnp.uint32)])
    buffer = lax.fori_loop(np.int32(0), np.int32((ROWS - 3) // 2), step, buffer)
    following = lax.dynamic_slice(buffer.reshape(-1), (position + np.int32(TABLES_AT),), (PADDED,))
    return _tempered(following), buffer


# -- normals -----------------------------------------------------------------------------------------------------


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


def _normals(words: Any, shift: Any, zero: Any, mean: Any, std: Any) -> Any:
    """uint32[PADDED] -> the normals of blocks of 16 that begin `shift` < 16 words on, float32[WORDS]. `zero` is 0."""

    def rounded(x: Any) -> Any:
        return _float(_bits(x) + zero)

    k = (lax.dynamic_slice(words, (shift,), (WORDS,)) & _u32(0xFFFFFF)).astype(jnp.int32).reshape(-1, 2, 8)
    radius = _radius(k[:, 0], rounded)
    sine, cosine = _sine_cosine(k[:, 1], rounded)
    halves = [rounded(radius * cosine) * std + mean, rounded(radius * sine) * std + mean]
    return jnp.concatenate(lax.optimization_barrier(halves), 1).reshape(-1)


# -- compiling ---------------------------------------------------------------------------------------------------


class _State:
    lock = threading.Lock()
    seen = 0
    words: Any = None
    normals: Any = None
    standard: tuple = ()  # the zero, the mean and the deviation of standard normals, placed
    shifts: tuple = ()
    no_words = no_normals = False


def _give_up() -> None:
    """A forked child must not touch its parent's XLA client."""
    _State.no_words = _State.no_normals = True
    _State.words = _State.normals = None
    _State.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_up)


def _compile(function: Callable, *specs: tuple[tuple, Any]) -> Any:
    """The program for arguments of these shapes and dtypes, compiled or loaded from disk."""
    key = None
    if disk.cache_folder() is not None:
        text = f"{__name__}.{function.__name__}{specs}{_OPTIONS}"
        key = hashlib.sha256((disk.fingerprint() + text).encode()).hexdigest()
    found = disk.load(key)
    if found is None:
        placed = jax.sharding.SingleDeviceSharding(_device())
        arguments = [jax.ShapeDtypeStruct(shape, dtype, sharding=placed) for shape, dtype in specs]
        with jax.enable_x64(False):
            found = jax.jit(function).lower(*arguments).compile(_OPTIONS)
        disk.save(key, found)
    return found


def _device() -> Any:
    return jax.local_devices(backend="cpu")[0]


def _build_words() -> None:
    if _State.words is not None:
        return
    found = _compile(_words, ((TABLE,), _u32), ((), np.int32))
    bits = np.random.MT19937(7)
    for position in (TABLE, 5):
        bits.state = {"bit_generator": "MT19937", "state": {"key": bits.state["state"]["key"], "pos": position}}
        words, tables = found(bits.state["state"]["key"].astype(_u32), np.int32(position))
        same = np.array_equal(np.asarray(words)[:WORDS], bits.random_raw(WORDS))
        last = np.asarray(tables).reshape(-1)[TABLES_AT + WORDS :][:TABLE]
        if not same or not np.array_equal(last, bits.state["state"]["key"]):
            _State.no_words = True
            return
    _State.words = found


def _build_normals(reference: Callable[[np.ndarray, float, float], np.ndarray]) -> None:
    if _State.normals is not None:
        return
    scalars = [((), np.int32)] * 2 + [((), _f32)] * 2
    found = _compile(_normals, ((PADDED,), _u32), *scalars)
    # Spread over all 24-bit numbers by an odd multiplier, with both ends among them.
    spread = (np.arange(-64, 4 * WORDS - 64, dtype=np.int64) * 10368891 & 0xFFFFFF).astype(_u32).reshape(4, WORDS)
    zero = np.int32(0)
    for shift, (words, mean, std) in enumerate(zip(spread, (0, 0, 0.37, 0), (1, 1, 1.618, 0.02), strict=True)):
        padded = np.concatenate([words, words[:16]])
        made = np.asarray(found(padded, np.int32(shift), zero, _f32(mean), _f32(std)))
        if made.tobytes() != reference(padded[shift : shift + WORDS], mean, std).tobytes():
            _State.no_normals = True
            return
    numbers = (zero, _f32(0), _f32(1))
    _State.standard = tuple(jax.device_put(x, _device()) for x in numbers)
    _State.shifts = tuple(jax.device_put(np.int32(k), _device()) for k in range(16))
    _State.normals = found


def _build(build: Callable, *args: Any) -> None:
    """Whatever keeps a compiler from working: the numbers do not depend on it."""
    try:
        with _State.lock:
            build(*args)
    except Exception:
        _State.no_words = _State.no_normals = True


def have_words(cost: int) -> bool:
    """Whether `words` may be called by one whom NumPy's will cost so many nanoseconds (by a count, not by a clock);
    they may be what makes it worthwhile."""
    if _State.words is not None:
        return True
    if _State.no_words:
        return False
    _State.seen += cost
    if _State.seen >= _WORDS_WORTH:
        _build(_build_words)
    return _State.words is not None


def have_normals(cost: int, reference: Callable[[np.ndarray, float, float], np.ndarray]) -> bool:
    """The same for `normals`. `reference(words, mean, std)` is what they are compared with."""
    if _State.normals is not None:
        return True
    if _State.no_normals or _State.no_words:
        return False
    _State.seen += cost
    if _State.seen >= _NORMALS_WORTH and have_words(0) and not _State.no_normals:
        _build(_build_normals, reference)
    return _State.normals is not None


def normals_ready() -> bool:
    """Whether `normals` may be called."""
    return _State.normals is not None


def words(table: np.ndarray, position: int) -> tuple[Any, Any] | None:
    """`_words`, JAX arrays (the tables as rows); None if that is no longer possible."""
    try:
        return _State.words(table, np.int32(position))
    except Exception:
        _give_up()
        return None


def normals(words: Any, shift: int, mean: float = 0.0, std: float = 1.0) -> np.ndarray | None:
    """`_normals`, not to be written to; None if that is no longer possible."""
    try:
        zero, no_mean, no_std = _State.standard
        if mean == 0.0 and std == 1.0:
            return np.asarray(_State.normals(words, _State.shifts[shift], zero, no_mean, no_std))
        return np.asarray(_State.normals(words, _State.shifts[shift], zero, _f32(mean), _f32(std)))
    except Exception:
        _give_up()
        return None
