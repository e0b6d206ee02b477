"""The host generator: PyTorch's CPU generator (a Mersenne Twister) on NumPy's MT19937 engine.

NumPy's engine produces the same 32-bit words as PyTorch's; what differs is how words become numbers (see
``fills.py``), how a seed is taken, and the layout of the saved state. Only the low 32 bits of a seed reach
the table, and a 64-bit draw is two words, the first one in the high half.
"""

from __future__ import annotations

import operator
import secrets
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

STATE_SIZE = 5056
DEFAULT_SEED = 67280421310721  # what a newly constructed torch.Generator() is seeded with

_TABLE = 624
_MASK32 = 0xFFFFFFFF
_MASK53 = (1 << 53) - 1
# Above this many 64-bit draws NumPy's own 64-bit loop repays its 7 microseconds of argument checking.
_BULK_DWORDS = 4096
# Lookahead windows (see ``HostGenerator.lookahead``): after how many small requests one opens, how many requests
# it covers, its least and largest number of words, and for how many requests none opens after a poor one.
_WINDOW_AFTER = 3
_WINDOW_REQUESTS = 16
_WINDOW_LEAST = 8192
_WINDOW_MOST = 8192
_WINDOW_PAUSE = 50

_STATE_LAYOUT = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "table", "normal", "has_normal", "normal32", "has_normal32"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", (_TABLE,)), "<f8", "<i4", "<f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": STATE_SIZE,
    }
)


def check_seed(seed: int) -> int:
    """Return ``seed`` modulo 2**64; accepts -2**63 <= seed < 2**64, as PyTorch does.

    Raises:
        ValueError: the integer does not fit.
    """
    if not -(1 << 63) <= seed < (1 << 64):
        raise ValueError("Overflow when unpacking long long")
    return seed & 0xFFFFFFFFFFFFFFFF


class _NoEntropy(ISeedSequence):
    """Seeds an engine with zeros, which its owner replaces: NumPy would mix entropy for tens of microseconds."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


_NO_ENTROPY: Any = _NoEntropy()


class _Window:
    """Words drawn ahead of their use, with something made from all of them at once."""

    __slots__ = ("made", "position", "start_state", "used", "words")

    def __init__(self, words: np.ndarray, made: Any, start_state: Any) -> None:
        self.words, self.made, self.start_state = words, made, start_state
        self.position = self.used = 0


class HostGenerator:
    """A stream of words with a seed, a position and one cached normal.

    ``cached_normal`` holds the second value of the last scalar Box-Muller pair (or None). It is shared by all
    dtypes and by every function that draws scalar normals; only seeding and ``set_state`` clear it otherwise.
    Functions that draw hold ``lock`` for their whole run, so that threads sharing a generator interleave calls,
    never words.
    """

    __slots__ = (
        "_bits",
        "_legacy",
        "_normal32",
        "_seed",
        "_streak",
        "_unused",
        "_window",
        "cached_normal",
        "lock",
        "raw",
    )
    _window: _Window | None
    _streak: int
    raw: Callable[..., Any]

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        # The engine is made at the first draw: it costs a hundred times what the rest of this object costs, and
        # many generators are made only to be seeded, or set to a state.
        self._bits: Any = None
        self._legacy: Any = None
        self.lock = threading.RLock()
        self.manual_seed(seed)

    def _engine(self) -> Any:
        """NumPy's engine, made and seeded if there was none."""
        if self._bits is None:
            with self.lock:
                if self._bits is None:
                    bits = np.random.MT19937(_NO_ENTROPY)
                    self._legacy = np.random.RandomState(bits)
                    self._legacy.seed(self._seed & _MASK32)
                    # raw(n) -> uint64[n]: the next n words, zero-extended. The bound method itself: the hot path.
                    self.raw = bits.random_raw
                    self._bits = bits
        return self._bits

    def _first_raw(self, n: int | None = None) -> Any:
        self._engine()
        return self.raw(n)

    # -- seeding ---------------------------------------------------------------------------------------------

    def manual_seed(self, seed: int) -> HostGenerator:
        """Restart the stream from ``seed`` (-2**63 <= seed < 2**64) and drop the cached normal."""
        seed = check_seed(operator.index(seed))
        with self.lock:
            self._forget_window()
            if self._bits is not None:
                self._legacy.seed(seed & _MASK32)
            self._seed = seed
            self.cached_normal: float | None = None
            self._normal32 = (0.0, 0)
            self._unused: tuple[Any, int] | None = None
        return self

    def seed(self) -> int:
        """Reseed with a number that cannot be predicted, and return it."""
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of the last ``manual_seed``, ``seed`` or ``set_state``, modulo 2**64."""
        return self._seed

    # -- state -----------------------------------------------------------------------------------------------

    def get_state(self) -> np.ndarray:
        """The complete state as PyTorch serialises it: uint8[5056]."""
        out = np.zeros(STATE_SIZE, np.uint8)
        view = out.view(_STATE_LAYOUT)[0]
        with self.lock:
            self._close_window()
            inner = self._engine().state["state"]
            table, position = inner["key"], inner["pos"]
            following = position
            if position == _TABLE:
                following = self._end_of_table(table)
            view["seed"] = self._seed
            view["left"] = _TABLE + 1 - position
            view["seeded"] = 1
            view["next"] = following
            view["table"] = table
            if self.cached_normal is not None:
                view["normal"] = self.cached_normal
                view["has_normal"] = 1
            view["normal32"], view["has_normal32"] = self._normal32
        return out

    def _end_of_table(self, table: np.ndarray) -> int:
        """PyTorch's ``next`` when no word of the table is left: 624, but for a table that no draw has refreshed
        since it was seeded (0) or restored (what the restored state said)."""
        if self._unused is not None:
            return self._unused[1] if np.array_equal(table, self._unused[0]) else _TABLE
        first = self._seed & _MASK32
        second = (1812433253 * (first ^ (first >> 30)) + 1) & _MASK32
        return 0 if int(table[0]) == first and int(table[1]) == second else _TABLE

    def set_state(self, state: np.ndarray) -> None:
        """Continue from a state made by ``get_state`` here or in PyTorch: uint8[5056].

        Raises:
            TypeError: not an array of uint8.
            RuntimeError: wrong size, or fields that no generator produces.
        """
        if not isinstance(state, np.ndarray):
            kind = type(state)
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            raise TypeError(f"expected a torch.ByteTensor, but got {name}")
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_SIZE} "
                f"but found the input RNG state size to be {state.size}"
            )
        view = np.ascontiguousarray(state).reshape(-1).view(_STATE_LAYOUT)[0]
        left, following = int(view["left"]), int(view["next"])
        if view["seeded"] != 1 or not 0 < left <= _TABLE or following > _TABLE:
            raise RuntimeError("Invalid mt19937 state")
        if left != 1 and left + following != _TABLE + 1:
            # PyTorch would read past or short of the table here; no generator ever writes such a state.
            raise NotImplementedError(
                f"a generator state with left={left} and next={following} (their sum is always 625 in saved states)"
            )
        table = view["table"].astype(np.uint32)
        position = _TABLE if left == 1 else following
        with self.lock:
            self._engine()
            self._forget_window()
            self._bits.state = {"bit_generator": "MT19937", "state": {"key": table, "pos": position}}
            self._seed = int(view["seed"])
            self.cached_normal = float(view["normal"]) if view["has_normal"] else None
            self._normal32 = (float(view["normal32"]), int(view["has_normal32"]))
            self._unused = (table, following)

    def clone_state(self) -> HostGenerator:
        """A new generator that continues with the same numbers."""
        twin = HostGenerator()
        twin.set_state(self.get_state())
        return twin

    # -- draws -----------------------------------------------------------------------------------------------

    def words32(self, n: int) -> np.ndarray:
        """The next ``n`` words: uint32[n]."""
        return self.raw(n).astype(np.uint32)

    def dwords(self, n: int) -> np.ndarray:
        """The next ``n`` 64-bit draws (2n words): uint64[n], writable."""
        if n >= _BULK_DWORDS:
            self._close_window()
            return np.random.Generator(self._engine()).integers(0, 1 << 64, n, np.uint64)
        words = self.raw(2 * n)
        high = words[0::2] << 32
        high |= words[1::2]
        return high

    def dwords53(self, n: int) -> np.ndarray:
        """The low 53 bits of the next ``n`` 64-bit draws (2n words): uint64[n], writable."""
        if n >= _BULK_DWORDS:
            self._close_window()
            self._engine()
            # Masked rejection over a power of two never rejects: two words per number, masked in C.
            return self._legacy.randint(0, 1 << 53, n, np.uint64)
        out = self.dwords(n)
        out &= _MASK53
        return out

    # -- lookahead -------------------------------------------------------------------------------------------

    def lookahead(self, n: int, make: Callable[[np.ndarray], Any]) -> tuple[int, Any] | None:
        """Take the next ``n`` words from a window of words drawn ahead: (index of the first, make(all words)).

        None when there is no window; the caller then draws with ``raw``. A window opens at the third small
        request in a row, and not soon again after one that served mostly other draws. This changes the cost of a
        draw, never a number: the decision depends on counts alone and the state is always that of the words used.
        """
        window = self._window
        if window is None or window.position + n > window.words.size:
            if window is not None:
                self._close_window()
            self._streak += 1
            if self._streak < _WINDOW_AFTER:
                return None
            state = self._engine().state
            words = self._bits.random_raw(min(max(_WINDOW_REQUESTS * n, _WINDOW_LEAST), _WINDOW_MOST))
            self._window = window = _Window(words, make(words), state)
            self.raw = self._raw_from_window
        start = window.position
        window.position += n
        window.used += n
        return start, window.made

    def _raw_from_window(self, n: int | None = None) -> Any:
        window = self._window
        if window is None:  # closed while the caller held on to this method
            return self._bits.random_raw(n)
        start, stop = window.position, window.position + (1 if n is None else n)
        if stop > window.words.size:
            self._close_window()
            return self.raw(n)
        window.position = stop
        return int(window.words[start]) if n is None else window.words[start:stop].copy()

    def _forget_window(self) -> None:
        self._window = None
        self._streak = 0
        self.raw = self._first_raw if self._bits is None else self._bits.random_raw

    def _close_window(self) -> None:
        """Put the engine where the words used so far end."""
        window = self._window
        if window is None:
            return
        worthwhile = 2 * window.used >= window.words.size
        self._forget_window()
        self._streak = _WINDOW_AFTER - 1 if worthwhile else -_WINDOW_PAUSE
        if window.position < window.words.size:
            self._bits.state = window.start_state
            self._bits.random_raw(window.position, False)
