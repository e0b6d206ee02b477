"""The host generator: PyTorch's CPU generator (a Mersenne Twister) on NumPy's MT19937 engine.

NumPy's engine produces the same 32-bit words as PyTorch's; what differs is how words become numbers (see
``fills.py``), how a seed is taken, and the layout of the saved state. Only the low 32 bits of a seed reach
the table, and a 64-bit draw is two words, the first one in the high half.
"""

from __future__ import annotations

import operator
import secrets
import struct
import threading
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from . import compiled

STATE_SIZE = 5056
DEFAULT_SEED = 67280421310721  # what a newly constructed torch.Generator() is seeded with

_TABLE = 624
_MASK32 = 0xFFFFFFFF
_MASK53 = (1 << 53) - 1
_MASK24 = np.array((1 << 24) - 1, np.int32)
_LOW21 = np.array((1 << 21) - 1, np.uint32)
_SCALE24 = np.array(2.0**-24, np.float32)
_NO_WORDS = np.empty(0, np.uint32)
# What NumPy's draws cost, in nanoseconds, and after how many of them from one seed words are made ahead of their use by
# the compiled program, if there is one.
WORD_COST = 4
_AHEAD_AFTER = WORD_COST * compiled.WORDS // 2
# Draws up to here are taken from words that NumPy made ahead, so many at first, then twice as many each time.
_SMALL = 2048
_FIRST_AHEAD, _MOST_AHEAD = 4 * _TABLE, 64 * _TABLE

# seed, left, seeded, next; the table; a double that is always 0, the cached normal, 0, and whether it is valid, with
# the like of it in single precision
_HEAD, _TAIL = struct.Struct("<QiiQ"), struct.Struct("<8xd8xi4xfB3x")
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


class Ahead:
    """Words made ahead of their use, and what was made of all of them at once.

    Those of the compiled program come with the tables they were made of, and a JAX array. Those of NumPy's engine end
    with a table, where the engine stands."""

    __slots__ = ("normals", "placed", "plan", "plans", "position", "tables")

    def __init__(self, tables: np.ndarray, position: int, placed: Any = None) -> None:
        self.tables = tables  # uint32[624 k], one after another
        self.position = position  # how many words of the first table were used before
        self.placed = placed  # the words as a JAX array, or None
        self.normals: list[np.ndarray | None] = [None] * 16  # of blocks beginning at words 0, 1, ... 15
        self.plan: Plan | None = None  # and of the blocks that many equal calls will ask for
        self.plans = 0


class Plan:
    """The normals of many calls for n of them each, where n is no multiple of 16.

    A call takes n // 16 blocks of words, loses n % 16 words, and takes a block for its last 16 values. The blocks of
    all calls are put together for one transform; by way of the shifts it would take up to 16."""

    __slots__ = ("block", "calls", "full", "made", "n", "start", "step", "tail")

    def __init__(self, words: np.ndarray, start: int, n: int) -> None:
        self.n, self.start = n, start
        self.full, self.tail, self.step = n & -16, n - 16, n + 16
        self.block = self.full + 16  # normals made for a call
        self.calls = calls = (compiled.WORDS - start) // self.step
        chosen = np.zeros(compiled.PADDED, np.uint32)
        rows = chosen[: calls * self.block].reshape(calls, self.block)
        given = words[start : start + calls * self.step].reshape(calls, self.step)
        rows[:, : self.full] = given[:, : self.full]
        rows[:, self.full :] = given[:, n:]
        self.made = compiled.normals(chosen, 0)

    def take(self, gen: HostGenerator) -> np.ndarray | None:
        """The call that begins at the generator's position: float32[n]; None if none does. HOT."""
        at, made, n = gen._at, self.made, self.n
        call, rest = divmod(at - self.start, self.step)
        if rest or not 0 <= call < self.calls or made is None:
            return None
        first = call * self.block
        out = made[first : first + n].copy()
        out[self.tail :] = made[first + self.full : first + self.block]
        gen._at = at + self.step
        return out


class HostGenerator:
    """A stream of words with a seed, a position and one cached normal.

    ``cached_normal`` holds the second value of the last scalar Box-Muller pair (or None). It is shared by all
    dtypes and by every function that draws scalar normals; only seeding and ``set_state`` clear it otherwise.
    Functions that draw hold ``lock`` for their whole run, so that threads sharing a generator interleave calls,
    never words.

    Words come from NumPy's engine, or from ``ahead``: then the next one is ``_words[_at]`` and the engine is stale or
    further on. Which of them it is changes the cost of a draw, never a number; the state is always that of the words
    used.
    """

    __slots__ = (
        "_at", "_bits", "_legacy", "_limit", "_more_ahead", "_normal32", "_normals_before", "_saved", "_seed",
        "_spent", "_units", "_unused", "_words", "ahead", "cached_normal", "lock",
    )  # fmt: skip
    ahead: Ahead | None
    _words: np.ndarray
    _units: np.ndarray | None
    _at: int
    _limit: int
    _spent: int
    _more_ahead: int
    _normals_before: int
    _saved: tuple[Ahead | None, int, float | None, np.ndarray] | None

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
                    self._bits = bits
        return self._bits

    # -- seeding ---------------------------------------------------------------------------------------------

    def manual_seed(self, seed: int) -> HostGenerator:
        """Restart the stream from ``seed`` (-2**63 <= seed < 2**64) and drop the cached normal."""
        seed = check_seed(operator.index(seed))
        with self.lock:
            self._forget_ahead()
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
        with self.lock:
            saved = self._saved
            if saved is not None:  # nothing was drawn since, unless from words ahead or the cached normal
                if saved[0] is self.ahead and saved[1:3] == (self._at, self.cached_normal):
                    return saved[3].copy()
            out = np.zeros(STATE_SIZE, np.uint8)
            table, position = self._table()
            following = position
            if position == _TABLE:
                following = self._end_of_table(table)
            _HEAD.pack_into(out.data, 0, self._seed, _TABLE + 1 - position, 1, following)
            out[24 : 24 + 8 * _TABLE].view("<u8")[:] = table
            normal, has_normal = (0.0, 0) if self.cached_normal is None else (self.cached_normal, 1)
            _TAIL.pack_into(out.data, 24 + 8 * _TABLE, normal, has_normal, *self._normal32)
            self._saved = self.ahead, self._at, self.cached_normal, out.copy()
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
            self._forget_ahead()
            self._set_engine(table, position)
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
        """The next ``n`` words: uint32[n], not to be written to or kept."""
        at = self._at
        stop = at + n
        if stop > self._limit:
            return self._more(n)
        self._at = stop
        return self._words[at:stop]

    def _more(self, n: int) -> np.ndarray:
        """As ``words32``, when there are not so many words ahead."""
        if n > compiled.WORDS:
            out = np.empty(n, np.uint32)
            for start in range(0, n, compiled.WORDS):
                piece = out[start : start + compiled.WORDS]
                piece[:] = self.words32(piece.size)
            return out
        if self.go_ahead(n * WORD_COST):
            return self.words32(n)
        if n <= _SMALL and self._more_ahead:
            self._numpy_ahead(n)
            return self.words32(n)
        self._more_ahead = self._more_ahead or _FIRST_AHEAD
        self._saved = None
        left = self._words[self._at : self._limit]
        words = self._bits.random_raw(n - left.size).astype(np.uint32)
        if self.ahead is not None:
            words = np.concatenate([left, words])
            self._drop_ahead()
        return words

    def _numpy_ahead(self, n: int) -> None:
        """Let there be n words ahead, made by NumPy up to the end of a table."""
        table, position = self._table()
        left = self._words[self._at : self._limit]
        used = position + left.size
        size = -(-max(n - left.size, self._more_ahead) // _TABLE) * _TABLE - used % _TABLE
        if size < n - left.size:
            size += _TABLE
        self._more_ahead = min(2 * self._more_ahead or _FIRST_AHEAD, _MOST_AHEAD)
        self._spent += size * WORD_COST
        compiled.have_words(size * WORD_COST)
        words = self._engine().random_raw(size).astype(np.uint32)
        if left.size:
            words = np.concatenate([left, words])
        self.ahead, self._saved = Ahead(table, position), None
        self._words, self._units = words, None
        self._at, self._limit = 0, words.size

    def peek53(self, n: int) -> np.ndarray:
        """What ``dwords53(n)`` would return, n <= 60000; nothing is drawn. See ``skip``."""
        at = self._at
        if at + 2 * n > self._limit:
            if not self.go_ahead(2 * n * WORD_COST):
                self._numpy_ahead(2 * n)
            at = self._at
        out = self.dwords53(n)
        self._at = at
        return out

    def skip(self, n: int) -> None:
        """Use n words that ``peek53`` has seen (two for each draw)."""
        self._at += n

    def dwords(self, n: int) -> np.ndarray:
        """The next ``n`` 64-bit draws (2n words, the first one in the high half): uint64[n], writable."""
        words = self.words32(2 * n)
        out = np.empty(n, "<u8")
        halves = out.view("<u4")
        halves[1::2] = words[0::2]
        halves[0::2] = words[1::2]
        return out

    def dwords53(self, n: int) -> np.ndarray:
        """The low 53 bits of the next ``n`` 64-bit draws (2n words): uint64[n], writable."""
        words = self.words32(2 * n)
        out = np.empty(n, "<u8")
        halves = out.view("<u4")
        np.bitwise_and(words[0::2], _LOW21, halves[1::2])
        halves[0::2] = words[1::2]
        return out

    def draw53(self) -> int:
        """The low 53 bits of one 64-bit draw (two words)."""
        at = self._at
        if at + 2 <= self._limit:
            self._at = at + 2
            item = self._words.item
            return (item(at) << 32 | item(at + 1)) & _MASK53
        high, low = self.words32(2).tolist()
        return (high << 32 | low) & _MASK53

    def units24(self, n: int) -> np.ndarray:
        """The low 24 bits of the next ``n`` words, times 2**-24: float32[n], writable."""
        at = self._at
        stop = at + n
        if stop <= self._limit and (n <= _SMALL or n < self._limit >> 1):
            if self._units is None:
                self._units = _units(self._words)
            self._at = stop
            return self._units[at:stop].copy()
        return _units(self.words32(n))

    # -- ahead of use ----------------------------------------------------------------------------------------

    def go_ahead(self, cost: int) -> bool:
        """Let the compiled program make words ahead, from the present position; False without it.

        ``cost`` is that of the draw without them."""
        if self.ahead is None or self.ahead.placed is None:
            self._engine()
            self._spent += cost
            if not compiled.have_words(cost) or self._spent < _AHEAD_AFTER:
                return False
        table, position = self._table()
        found = compiled.words(table, position) if compiled.have_words(0) else None
        if found is None:
            self._drop_ahead()
            self._set_engine(table, position)
            return False
        placed, rows = found
        tables = np.asarray(rows).reshape(-1)[compiled.TABLES_AT :]
        self.ahead, self._saved = Ahead(tables, position, placed), None
        self._words = np.asarray(placed)
        self._at, self._limit, self._units = 0, compiled.WORDS, None
        return True

    def left(self) -> int:
        """How many words of the compiled program there are ahead."""
        return self._limit - self._at if self.ahead is not None and self.ahead.placed is not None else 0

    def normals(self, n: int, mean: float = 0.0, std: float = 1.0) -> np.ndarray | None:
        """Normals from the next ``n`` words, which are ahead, in blocks of 16: float32[n], not to be written to.

        A last block that is not complete holds numbers of no meaning. None if they cannot be made; nothing is drawn.
        """
        at, ahead = self._at, self.ahead
        if ahead is None or ahead.placed is None:
            return None
        shift = at & 15
        made = None
        if mean != 0.0 or std != 1.0:
            made = compiled.normals(ahead.placed, shift, mean, std)
        else:
            made = ahead.normals[shift]
            if made is None:
                made = ahead.normals[shift] = compiled.normals(ahead.placed, shift)
        if made is None:
            return None
        self._at = at + n
        return made[at - shift : at - shift + n]

    def standard_normals(self, n: int, draw_remainder: bool) -> np.ndarray | None:
        """``box_muller.normal_blocks32`` from transforms that there are: float32[n]; None without them."""
        ahead = self.ahead
        if ahead is None or ahead.placed is None:
            return None
        at = self._at
        remainder = n & 15
        if not remainder:
            stop = at + n
            made = ahead.normals[at & 15]
            if made is None or stop > self._limit:
                return None
            self._at = stop
            at &= -16
            return made[at : at + n].copy()
        if not draw_remainder:
            return self._overlapping_normals(ahead, n, at + n + 16 - remainder)
        plan = ahead.plan
        if plan is not None and plan.n == n:
            out = plan.take(self)
            if out is not None:
                return out
        out = self._overlapping_normals(ahead, n, at + n + 16)
        if out is not None:
            return out
        again = n == self._normals_before
        self._normals_before = n
        if not again or not compiled.normals_ready():
            return None
        if at + n + 16 > self._limit:
            self.go_ahead(0)
            ahead = self.ahead
        if ahead is None or ahead.plans == 4:
            return None
        ahead.plans += 1
        ahead.plan = Plan(self._words, self._at, n)
        return ahead.plan.take(self)

    def _overlapping_normals(self, ahead: Ahead, n: int, stop: int) -> np.ndarray | None:
        """``standard_normals`` of a size that is no multiple of 16, from two transforms; draws up to word ``stop``."""
        at = self._at
        tail = stop - 16
        most, last = ahead.normals[at & 15], ahead.normals[tail & 15]
        if most is None or last is None or stop > self._limit:
            return None
        at &= -16
        out = most[at : at + n].copy()
        tail &= -16
        out[n - 16 :] = last[tail : tail + 16]
        self._at = stop
        return out

    def _forget_ahead(self) -> None:
        """For a new stream."""
        self._drop_ahead()
        self._spent = self._more_ahead = self._normals_before = 0

    def _drop_ahead(self) -> None:
        self.ahead = self._saved = None
        self._words = _NO_WORDS
        self._units = None
        self._at = self._limit = 0

    def _table(self) -> tuple[np.ndarray, int]:
        """The table, uint32[624], and how many of its words are used."""
        ahead = self.ahead
        if ahead is None:
            inner = self._engine().state["state"]
            return inner["key"].astype(np.uint32, copy=False), inner["pos"]
        refreshes, position = divmod(ahead.position + self._at, _TABLE)
        if not position and refreshes:  # PyTorch refreshes a table when it needs the first word of the new one
            refreshes, position = refreshes - 1, _TABLE
        start = refreshes * _TABLE
        if start < ahead.tables.size:
            return ahead.tables[start : start + _TABLE], position
        start -= ahead.position
        return _untempered(self._words[start : start + _TABLE]), position

    def _set_engine(self, table: np.ndarray, position: int) -> None:
        self._engine().state = {"bit_generator": "MT19937", "state": {"key": table, "pos": position}}


def _units(words: np.ndarray) -> np.ndarray:
    return np.multiply(words.view(np.int32) & _MASK24, _SCALE24, dtype=np.float32, casting="unsafe")


def _untempered(words: np.ndarray) -> np.ndarray:
    """The table entries that words were made of: the steps of tempering undone, last one first."""
    y = words ^ (words >> 18)
    y ^= (y << 15) & 0xEFC60000
    x = y
    for _ in range(4):  # seven bits at a time
        x = y ^ ((x << 7) & 0x9D2C5680)
    y = x ^ (x >> 11)
    return x ^ (y >> 11)
