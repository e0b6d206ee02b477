"""Packs: many small arrays that live and die together, one after the other in one flat array.

What a launch costs grows with the arrays that go in and come out, by some microseconds each: the parameters and
optimizer states of a small model cost more than its arithmetic. A program therefore takes the small arrays that its
results replace as one array, and returns those results as one, in the same order, for its next run to consume.
Their values hold a `Piece` each. Who reads one gets a view of the pack's memory.

Which results replace which arrays, and so in which order they will come back, is a guess made when the program is
compiled. A wrong one costs time, never a wrong number: what is not there in the expected order is put together on the
host. A program for which that goes on is compiled again for what it is given.
"""

import functools
from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.engine import backend, record, stats
from torchlike._src.engine.values import UNREFERENCED, Value, refcounts

SMALL = 2048
"""Elements of an array that may be in a pack: copying more costs more than passing them."""
FEWEST = 5
"""Arrays that make a pack worthwhile."""
MISSES = 1000
"""Launches in a row with the wrong arrays, some tens of microseconds each, after which a program is compiled again."""


class Layout:
    """Which arrays follow each other in a pack; equal ones are one object."""

    __slots__ = ("avals", "dtype", "offsets", "size")

    def __init__(self, avals: tuple[Aval, ...]) -> None:
        self.avals = avals
        self.dtype = avals[0].dtype.np
        offsets = [0]
        for a in avals:
            offsets.append(offsets[-1] + a.numel)
        self.offsets = tuple(offsets)
        self.size = offsets[-1]

    def cut(self, array: Any, k: int) -> Any:
        """Member k of the flat array, in its shape."""
        return array[self.offsets[k] : self.offsets[k + 1]].reshape(self.avals[k].shape)


layout_of = functools.lru_cache(1024)(Layout)


class Pack:
    """A flat array that holds several values, and some of them as arrays of their own."""

    __slots__ = ("array", "kept", "layout", "parts")

    def __init__(self, array: Any, layout: Layout, kept: bool = False) -> None:
        self.kept = kept  # for a backward that drops it: not state, which the next program would replace
        self.array = array
        self.layout = layout
        self.parts: dict[int, Any] = {}


class Piece:
    """What a value in a pack holds as its array. NumPy reads it like one."""

    __slots__ = ("number", "pack")

    def __init__(self, pack: Pack, number: int) -> None:
        self.pack = pack
        self.number = number

    def host(self) -> np.ndarray:
        """A view of the pack's memory, not to be written to."""
        return self.pack.layout.cut(np.asarray(self.pack.array), self.number)

    def part(self) -> Any:
        """An array of its own, for a program: a JAX one if it is asked for again, which costs less to pass."""
        parts, k = self.pack.parts, self.number
        found = parts.get(k)
        if found is None:
            found = parts[k] = np.array(self.host())
        elif type(found) is np.ndarray:
            found = parts[k] = backend.placed(found)
        return found

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.host(), dtype, copy=copy)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.pack.layout.avals[self.number].shape

    @property
    def dtype(self) -> np.dtype:
        return self.pack.layout.dtype

    def is_ready(self) -> bool:
        return self.pack.array.is_ready()


record.PLAIN.add(Piece)


class Group:
    """A pack that a program takes or returns. Member k is leaf `leaves[k]` (-1: not used) and, if there are `results`,
    result `results[k]` afterwards: in the same memory, which the program consumes. Without leaves it is new."""

    __slots__ = ("apart", "layout", "leaves", "members", "numbers", "results")

    def __init__(self, layout: Layout, leaves: tuple[int, ...], results: tuple[int, ...], apart: bool = False) -> None:
        self.layout = layout
        self.leaves = leaves
        self.results = results
        self.apart = apart  # other operations go on from the results: XLA would compute each again for its place here
        self.numbers = [k for k, leaf in enumerate(leaves) if leaf >= 0]
        self.members = [leaf for leaf in leaves if leaf >= 0]

    def words(self) -> tuple:
        """What the program's name in the disk cache must tell."""
        return self.layout.avals, self.leaves, self.results, self.apart

    def split(self, array: Any) -> dict[int, Any]:
        """In a program: the leaves."""
        return {leaf: self.layout.cut(array, k) for k, leaf in enumerate(self.leaves) if leaf >= 0}

    def join(self, results: Sequence) -> Any:
        """In a program: the new pack."""
        if self.apart:
            results = jax.lax.optimization_barrier(list(results))
        return jnp.concatenate([x.reshape(-1) for x in results])

    def take(self, leaves: Sequence[Value]) -> tuple[Any, bool]:
        """(the array to pass, whether the leaves were in a pack of this layout, or all of them in host memory)."""
        try:
            pieces = [leaves[k].array for k in self.members]
            pack = pieces[0].pack
            if (
                pack.layout is self.layout
                and [p.number for p in pieces] == self.numbers
                and all(p.pack is pack for p in pieces)
            ):
                array = pack.array
                if not self.results:
                    return array, True
                values = [leaves[k] for k in self.members]
                if (
                    getrefcount(pack) == len(pieces) + 2  # the pieces', the name's, the call's own
                    and getrefcount(array) == 3
                    and max(refcounts(pieces)) == UNREFERENCED + 1
                    and max(refcounts(values)) == UNREFERENCED + 1
                ):
                    return array, True
                # Someone still reads one of the values: the program consumes a copy.
                stats.COUNTS["copies"] += 1
                return backend.fresh_copy(array), True
        except AttributeError:  # one of them is not a piece
            pass
        array = self.assemble(leaves)
        moved = any(type(leaves[k].array) is not np.ndarray for k in self.members)
        return array, not moved

    def assemble(self, leaves: Sequence[Value]) -> np.ndarray:
        """The pack, made in host memory of arrays that lie elsewhere."""
        out = np.zeros(self.layout.size, self.layout.dtype)
        offsets = self.layout.offsets
        for k, leaf in enumerate(self.leaves):
            if leaf >= 0:
                array = leaves[leaf].array
                out[offsets[k] : offsets[k + 1]] = np.asarray(array).reshape(-1)
        return out


def groups_for(plan: Any, live: tuple[int, ...], leaves: Sequence[Value], dead: tuple[int, ...]) -> tuple[Group, ...]:
    """The packs that a program should take: those that its leaves are in, and one for each dtype of small arrays that
    nothing refers to any more and that some of its live results replace."""
    if backend.platform() != "cpu" or plan.repacked > 2:
        return ()
    replaced = replacements(plan, live, set(dead))
    groups: list[Group] = []
    packs: dict[int, tuple[Pack, dict[int, int]]] = {}
    for k, v in enumerate(leaves):
        if type(v.array) is Piece:
            packs.setdefault(id(v.array.pack), (v.array.pack, {}))[1][v.array.number] = k
    for pack, members in packs.values():
        places = tuple([members.get(n, -1) for n in range(len(pack.layout.avals))])
        results = () if pack.kept else tuple([replaced.get(k, -1) for k in places])
        if -1 in results:  # those that are replaced leave this pack; if there are others, it is read
            places = tuple([-1 if k in replaced else k for k in places])
            results = ()
        if any(k >= 0 for k in places):
            groups.append(Group(pack.layout, places, results))
    # At first, the last run's results came from the host tier; after launches, in a pack. Others are data, or another
    # program's. What one optimizer updates has a pack of its own: other programs change statistics, too.
    kind = Piece if plan.repacked else np.ndarray
    updates = {
        e.first + j: e.first
        for e in plan.entries
        if hasattr(e.kernel.op, "replaces")
        for j in range(len(e.kernel.outs))
    }
    fresh: dict[Any, list[int]] = {}
    taken = {k for g in groups for k in g.leaves}
    for k in sorted(replaced):
        a = leaves[k].aval
        if k not in taken and a.numel <= SMALL and type(leaves[k].array) is kind:
            fresh.setdefault((a.dtype, updates.get(replaced[k])), []).append(k)
    for members_ in fresh.values():
        if len(members_) >= FEWEST:
            layout = layout_of(tuple([leaves[k].aval for k in members_]))
            groups.append(Group(layout, tuple(members_), tuple([replaced[k] for k in members_])))
    groups += _new(plan, set(live) - {k for g in groups for k in g.results}, set(replaced.values()))
    return tuple(groups)


def _new(plan: Any, live: set[int], state: set[int]) -> list[Group]:
    """Packs of gradients, which are mostly dropped together and unread, and of what the nodes of operations keep for
    backward. state: results that replace something."""
    found: dict[Any, list[tuple[int, Aval]]] = {}
    for e in plan.entries:
        gradient = getattr(e.kernel.op, "forward", None) is not None
        for k, a in enumerate(e.kernel.outs, e.first):
            if k in live and a.numel <= SMALL and (gradient or k not in state):
                found.setdefault((a.dtype, gradient), []).append((k, a))
    return [
        Group(layout_of(tuple([a for _, a in members])), (), tuple([k for k, _ in members]), not gradient)
        for (_, gradient), members in found.items()
        if len(members) >= FEWEST
    ]


def replacements(plan: Any, live: tuple[int, ...], dead: set[int]) -> dict[int, int]:
    """Which dead leaf each live result replaces: found by going back from operand to operand, to the one that its
    operation updates (`op.replaces`; by default the first)."""
    made = {e.first + j: (e, j) for e in plan.entries for j in range(len(e.kernel.outs))}
    out: dict[int, int] = {}
    for result in live:
        e, j = made[result]
        a = e.kernel.outs[j]
        while True:
            replaces = getattr(e.kernel.op, "replaces", None)
            place = replaces(e.kernel.static)[j] if replaces is not None else (0 if j == 0 else None)
            if place is None or place >= len(e.refs) or getattr(e.kernel.op, "forward", None) is not None:
                break
            kind, k = e.refs[place]
            if kind == "l" and k in dead and plan.leaf_specs[k] == a:
                out[k] = result
            if kind != "v":
                break
            e, j = made[k]
            if e.kernel.outs[j] != a:
                break
    return out
