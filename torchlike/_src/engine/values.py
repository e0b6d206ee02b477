"""Values and the tree of known traces: the engine's data."""

import itertools
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.core.aval import Aval
from torchlike._src.core.native import NATIVE


class Value:
    """An immutable array, or the promise of one.

    `array` is a NumPy array, a JAX array, or None while the value is pending in a trace. `epoch` and `index` say
    where: within the trace that owns `epoch`, a non-negative index counts results, a negative one (-1 - k) leaf k.
    They are stale, and mean nothing, as soon as that trace has moved to another epoch."""

    __slots__ = ("array", "aval", "epoch", "error", "index")
    error: BaseException  # there only if computing the array failed

    def __init__(self, aval: Aval, array: Any = None) -> None:
        self.aval = aval
        self.array = array
        self.epoch: Epoch | None = None
        self.index = 0

    def __repr__(self) -> str:
        return f"<Value {self.aval}{' pending' if self.array is None else ''}>"


class Epoch:
    """The identity of one stretch of a trace, from one flush to the next."""

    __slots__ = ("trace",)

    def __init__(self, trace: "Trace") -> None:
        self.trace = trace


MAX_MARKS = 4096
MAX_LOOSE_DEPTH = 512
"""Operations in one trace, while none of them needs a gradient, before it is cut (a loop that never reads results)."""


class TreeNode:
    """A point in the tree of known traces: one recorded operation after a known history."""

    __slots__ = (
        "aval",
        "bound",
        "children",
        "grad_plans", "count", "depth", "floats", "index", "ints", "kernel", "key", "last", "leaves",
        "line", "origin", "outs", "parent", "plan", "programs", "refs", "size", "values", "visits", "complexes", "used",
    )  # fmt: skip

    def __init__(self, parent: "TreeNode | None", key: tuple, kernel: Any, refs: tuple, outs: Sequence[Aval]) -> None:
        self.parent = parent
        self.key = key
        self.kernel = kernel
        self.refs = refs
        self.outs = outs
        self.children: dict[tuple, TreeNode] = {}
        self.last: TreeNode | None = None  # the child that the C recorder took last
        self.programs: list = []
        self.plan: Any = None
        self.line: str | None = None
        self.origin: str | None = None
        self.visits = 0
        self.used = 0
        self.count = len(outs)
        self.aval = outs[0] if outs else None
        self.grad_plans: dict = {}
        if parent is None:
            self.depth = self.index = self.values = self.leaves = self.size = 0
            self.floats = self.ints = self.complexes = 0
        else:
            leaves = floats = ints = complexes = 0
            for r in refs:
                if type(r) is Aval:
                    leaves += 1
                elif type(r) is str:
                    if r == "f":
                        floats += 1
                    elif r == "c":
                        complexes += 1
                    else:
                        ints += 1
            self.depth = parent.depth + 1
            self.index = parent.values
            self.values = parent.values + self.count
            self.leaves = parent.leaves + leaves
            self.floats = parent.floats + floats
            self.ints = parent.ints + ints
            self.complexes = parent.complexes + complexes
            self.size = parent.size + (outs[0].numel if self.count == 1 else sum([a.numel for a in outs]))
        self.bound = self.depth > MAX_LOOSE_DEPTH

    def path(self) -> "list[TreeNode]":
        """From the first operation to this one."""
        out = []
        node: TreeNode | None = self
        while node is not None and node.parent is not None:
            out.append(node)
            node = node.parent
        out.reverse()
        return out


class Trace:
    """The open trace of one thread: what has been recorded since its last flush."""

    __slots__ = (
        "__weakref__", "backwards", "busy", "complexes", "epoch", "floats", "ints", "leaves", "marks", "node", "root",
        "taped", "updated", "values",
    )  # fmt: skip

    tape_position: Callable[[], int] = itertools.count().__next__
    """Set by the tape: a number greater than those of all its nodes so far. Each cut of a trace is marked with one."""

    def __init__(self, root: TreeNode) -> None:
        self.root = root
        self.marks: deque[int] = deque(maxlen=MAX_MARKS)
        self.reset()

    def reset(self) -> None:
        # An interrupt between these lines leaves a busy trace at the root, which `recover` empties.
        self.busy = True
        self.node = self.root
        self.epoch = Epoch(self)
        self.taped = False
        self.backwards = 0
        self.updated = False
        self.values: list[Value] = []
        self.leaves: list[Value] = []
        self.floats: list[float] = []
        self.ints: list[int] = []
        self.complexes: list[complex] = []
        self.busy = False

    def recover(self) -> None:
        """Drop what an interrupted or failed record left behind its last complete operation."""
        node = self.node
        for v in self.leaves[node.leaves :]:
            v.epoch = None
        del self.leaves[node.leaves :]
        del self.values[node.values :]
        del self.floats[node.floats :]
        del self.ints[node.ints :]
        del self.complexes[node.complexes :]
        self.busy = False


def _calibrate() -> int:
    """The reference count that `refcounts` reports for a value that only its list holds."""
    return refcounts([Value(None)])[0]  # type: ignore[arg-type]


def _refcounts(values: list) -> list[int]:
    return list(map(sys.getrefcount, values))


refcounts: Callable[[list], list[int]] = _refcounts if NATIVE is None else NATIVE.refcounts
"""How many references each item has. Compare with UNREFERENCED."""


UNREFERENCED = _calibrate()


def _referenced(values: list) -> tuple[int, ...]:
    return tuple([k for k, n in enumerate(refcounts(values)) if n > UNREFERENCED])


referenced: Callable[[list], tuple[int, ...]] = _referenced if NATIVE is None else NATIVE.referenced
"""Where the items are that something besides the list refers to."""
