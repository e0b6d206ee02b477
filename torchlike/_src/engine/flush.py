"""Flushing: the open trace is computed, by one compiled program or, while it is new or tiny, on the host tier.

When a trace is worth compiling is decided by counts and sizes, never by timing, so that two runs of a script give
the same bits:
- on an accelerator, always;
- a tiny trace, never: NumPy finishes before a launch would begin. Unless its inputs may still be under way, and nobody
  waits for it;
- a trace that runs twice in a row where such traces run (the same first and last user line), at once: this is a loop.
  Where many different traces run (lengths that vary), only a longer streak counts as one;
- one that comes back now and then, once its runs on the host tier have cost about what a compilation costs.
"""

import os
import threading
import weakref
from sys import getrefcount
from typing import Any

import numpy as np

from torchlike._src.engine import backend, checks, cold, packs, program, record, report, stats
from torchlike._src.engine.packs import Pack, Piece
from torchlike._src.engine.values import UNREFERENCED, Trace, TreeNode, Value, refcounts, referenced

LAUNCH_SECONDS, LAUNCH_ARRAY_SECONDS, LAUNCH_OPERATION_SECONDS = 80e-6, 2.5e-6, 3e-6
"""What running a program costs on a CPU besides its arithmetic: itself, each array that goes in or comes out, and each
operation (XLA's threads hand its kernels to each other; counted for MANY_OPERATIONS at most, because in long programs
many share a kernel)."""
MANY_OPERATIONS = 32
PACKED_ARRAYS = 64
"""More arrays than these cost little more: small ones travel in packs."""
TINY_ELEMENTS, THREADED_ELEMENTS = 1 << 21, 1 << 15
"""In all operands and results together: what is larger does not stay in the caches, and takes longer than estimated."""
MAX_NODES = 200_000

_sites: dict = {}
"""(first line, last line) -> Site: what has run there."""
MAX_SITES = 10_000
host_only = False
"""True in a forked child: XLA's threads did not survive the fork."""
_tick = 0


def flush(trace: Trace | None = None, reason: str = "synchronise") -> None:
    """Compute everything pending in `trace` (the calling thread's by default) that something still refers to."""
    if trace is None:
        trace = record.current()
    with record.LOCK:  # always: a second thread may begin, and read one of these results, while this one computes
        _flush(trace, reason)


def _flush(trace: Trace, reason: str) -> None:
    global _tick
    if trace.busy:
        trace.recover()
    if checks.PENDING:
        checks.examine()
    node = trace.node
    if node is trace.root:
        if trace.leaves or trace.taped or trace.backwards or trace.updated:  # an interrupted operation left it so
            trace.reset()
        return
    stats.COUNTS["flushes"] += 1
    stats.COUNTS["records"] += node.depth
    _tick += 1
    node.used = _tick
    if trace.taped:
        trace.marks.append(trace.tape_position())
    values = trace.values
    live = referenced(values)
    if not live:
        trace.reset()
        return
    try:
        ready = _program_for(trace, node, live, reason)
        if ready is None:
            _run_cold(trace, node, live)
        else:
            _launch(trace, ready, live)
    except Exception as error:
        if trace.node is node:  # otherwise the results are there, and something interrupted after that
            _poison(trace, live, error)
        raise
    if stats.COUNTS["nodes"] > MAX_NODES:
        prune()


def _program_for(trace: Trace, node: TreeNode, live: tuple[int, ...], reason: str) -> Any:
    """A compiled program that returns at least these results, compiled now if it is worth it; else None."""
    if host_only:
        return None
    wanted = set(live) if node.programs else None
    for candidate in node.programs:
        if candidate.live == live:
            return candidate
    for candidate in node.programs:
        if wanted.issubset(candidate.live):  # type: ignore[union-attr]
            return candidate
    node.visits += 1
    why = worth_compiling(trace, node, live, reason)
    if why is None:
        return None
    wanted = set(live)
    for candidate in node.programs:
        wanted |= set(candidate.live)  # one program for all the results that this path has ever had in use
    dead = tuple(k for k, n in enumerate(refcounts(trace.leaves)) if n <= UNREFERENCED)
    why += f"; flushed by {reason} at {record.user_line()}"
    return program.compile_program(node, tuple(sorted(wanted)), trace.leaves, dead, why)


MAX_DIFFERENT = 64
LONGEST_PERIOD = 8


class Site:
    """Traces that begin at one user line and end at another: how many different ones there are, and in which order."""

    __slots__ = ("last", "seen", "streak", "visits")

    def __init__(self) -> None:
        self.last: Any = None
        self.streak = 0
        self.visits = 0
        self.seen: dict[tuple, list[int]] = {}  # trace -> [its last visit, visits since the one before, how often so]

    @property
    def different(self) -> int:
        return len(self.seen)

    @property
    def full(self) -> bool:
        """Whether counting has stopped."""
        return len(self.seen) >= MAX_DIFFERENT

    def visit(self, node: TreeNode, live: tuple[int, ...]) -> int:
        """How many times in a row this trace, with these results in use, has run here now: at every visit, or at every
        second, third, ... (two lines' traces that alternate; something done once in a few rounds)."""
        key = (id(node), live)
        self.visits += 1
        self.streak = self.streak + 1 if key == self.last else 1
        self.last = key
        before = self.seen.get(key)
        if before is None:
            if not self.full:
                self.seen[key] = [self.visits, 0, 1]
            return self.streak
        period = self.visits - before[0]
        before[2] = before[2] + 1 if period == before[1] else 1
        before[0], before[1] = self.visits, period
        return max(self.streak, before[2]) if period <= LONGEST_PERIOD else self.streak


WAITING = frozenset({"a read", "one turn of a loop in backward()"})
"""Reasons to flush after which the host soon waits for the results anyway."""
LONG_COMPILE = 3.0
STREAKS = {1: 2, 2: 2, 3: 3}
MANY_DIFFERENT = 5
"""Times in a row that a trace must run before it is compiled, by how many different ones its place has seen."""


def host_seconds(node: TreeNode, live: tuple[int, ...]) -> tuple[float, float, bool]:
    """About what one run on the host tier takes; see `cold.cost`."""
    plan = program.plan_of(node)
    if plan.host_seconds is None:
        plan.host_seconds = cold.cost(plan, live)
    return plan.host_seconds


def is_tiny(trace: Trace, node: TreeNode, live: tuple[int, ...], host: float, threads: bool) -> bool:
    """Whether a launch alone takes longer than the host tier takes, `host`, for what XLA might do faster. `threads`:
    some of that is done by threads, which is only safe to be quick where it is little."""
    results = len(live)
    if results > packs.FEWEST and program.plan_of(node).numel <= packs.SMALL * results:
        results = packs.FEWEST  # they are small, and come in packs
    launch = LAUNCH_SECONDS + LAUNCH_ARRAY_SECONDS * min(len(trace.leaves) + results, PACKED_ARRAYS)
    launch += LAUNCH_OPERATION_SECONDS * min(node.depth, MANY_OPERATIONS)
    return host < launch and program.plan_of(node).numel <= (TINY_ELEMENTS if not threads else THREADED_ELEMENTS)


def worth_compiling(trace: Trace, node: TreeNode, live: tuple[int, ...], reason: str) -> str | None:
    """Why this trace should be compiled now, or None to run it on the host tier."""
    if backend.platform() != "cpu":
        return "programs always run compiled on an accelerator"
    host, calls, threads = host_seconds(node, live)
    if is_tiny(trace, node, live, calls, threads) and (reason in WAITING or _at_hand(trace.leaves)):
        return None
    site = _sites.get((node.origin, node.line))
    if site is None:
        if len(_sites) > MAX_SITES:
            _sites.clear()
        site = _sites[node.origin, node.line] = Site()
    streak = site.visit(node, live)
    compile_seconds = 0.25 + 0.006 * node.depth
    needed: float = STREAKS.get(site.different, MANY_DIFFERENT)
    if streak >= needed and (compile_seconds > LONG_COMPILE or needed == MANY_DIFFERENT):
        # Thousands of operations (a long sequence unrolled in Python) take a minute to compile: only if they go on. The
        # same where they differ from round to round and a streak says little about the next.
        needed = max(needed, compile_seconds / (10 * host))
    if streak >= needed:
        return "it ran again: a loop" if not node.programs else "other results than before stay in use"
    if node.visits * host > 1.5 * compile_seconds:
        return f"{node.visits} runs of it cost more than compiling it"
    return None


HOST = frozenset({np.ndarray})


def _at_hand(leaves: list[Value]) -> bool:
    """Whether reading these waits for no program."""
    arrays = [v.array for v in leaves]
    return HOST.issuperset(map(type, arrays)) or all(map(backend.at_hand, arrays))


def _launch(trace: Trace, ready: Any, live: tuple[int, ...]) -> None:
    leaves = trace.leaves
    args: list[Any] = []
    if trace.floats:
        args.append(np.array(trace.floats, np.float64))
    if trace.ints:
        args.append(np.array(trace.ints, np.int64))
    if trace.complexes:
        args.append(np.array(trace.complexes, np.complex128))
    first = len(args)
    _place(ready, leaves)
    if ready.groups:
        _take_packs(ready, leaves, args)
        args += [leaves[k].array for k in ready.singles]
    else:
        args += [v.array for v in leaves]
    if Piece in set(map(type, args)):
        args = [a.part() if type(a) is Piece else a for a in args]
    if not ready.consumes:
        _run(trace, ready, live, args)
        return
    counts = refcounts(leaves)
    for k in ready.donate:
        array = leaves[k].array
        # Someone still reads this value or its array (4: the value, args, the name here, the call's own argument): the
        # program consumes a copy instead.
        if counts[k] > UNREFERENCED or type(array) in COPIED or getrefcount(array) > 4:
            place = first + ready.positions[k]
            given = args[place]
            small = type(given) is np.ndarray and given.size <= packs.SMALL
            args[place] = given.copy() if small else backend.fresh_copy(given)
            stats.COUNTS["copies"] += 1
    del counts
    with program.Quiet():
        _run(trace, ready, live, args)


def _run(trace: Trace, ready: Any, live: tuple[int, ...], args: list) -> None:
    """Call the program and store its results, also if a signal handler's exception comes in between."""
    stats.COUNTS["launches"] += 1
    outs = None
    try:
        outs = backend.call(ready.executable, args)
        _store(trace, ready, live, outs)
    except BaseException as error:
        if outs is not None:
            _store(trace, ready, live, outs)
        elif not isinstance(error, Exception) and any(getattr(a, "is_deleted", bool)() for a in args):
            _poison(trace, live, RuntimeError("computing it was interrupted"))
        raise


def _place(ready: Any, leaves: list[Value]) -> None:
    """Arrays in host memory that are passed for the second time in a row (parameters that are not trained) become the
    backend's: passing a NumPy array costs a transfer each time."""
    given = ready.given
    for k in ready.singles:
        value = leaves[k]
        array = value.array
        if type(array) is np.ndarray:
            before = given.get(k)
            if before is not None and before() is array:
                value.array = backend.placed(array)
                del given[k]
            else:
                given[k] = weakref.ref(array)


COPIED = {np.ndarray, Piece}
"""Arrays that a program cannot consume."""


def _take_packs(ready: Any, leaves: list[Value], args: list) -> None:
    """Append the packs that the program takes. One that keeps being given something else is not used again."""
    missed = False
    for group in ready.groups:
        array, there = group.take(leaves)
        args.append(array)
        missed = missed or not there
    ready.misses = ready.misses + 1 if missed else 0
    if ready.misses >= packs.MISSES:
        program.give_up(ready)


def _store(trace: Trace, ready: Any, live: tuple[int, ...], outs: list) -> None:
    values = trace.values
    count = len(ready.alone)
    if ready.checks and len(outs) > count + len(ready.renewed):
        checks.PENDING.append(checks.Pending(outs.pop(), ready, trace, live))
    if ready.live == live:
        for k, array in zip(ready.alone, outs, strict=False):
            values[k].array = array
    else:
        wanted = set(live)
        for k, array in zip(ready.alone, outs, strict=False):
            if k in wanted:
                values[k].array = array
    for group, array in zip(ready.renewed, outs[count:], strict=True):
        pack = Pack(array, group.layout, group.apart)
        for number, k in enumerate(group.results):
            values[k].array = Piece(pack, number)
    trace.reset()


def _run_cold(trace: Trace, node: TreeNode, live: tuple[int, ...]) -> None:
    stats.COUNTS["cold_runs"] += 1
    plan = program.plan_of(node)
    results, failed = cold.run(plan, live, trace.floats, trace.ints, trace.complexes, [v.array for v in trace.leaves])
    values = trace.values
    for k, array in zip(live, results, strict=True):
        values[k].array = array
    trace.reset()
    if failed is not None:
        checks.poison(values, live, *failed)
        raise failed[1]


def _poison(trace: Trace, live: tuple[int, ...], error: Exception) -> None:
    """Computing failed: each result that was wanted raises the same error whenever it is read."""
    for k in live:
        trace.values[k].error = error
    trace.reset()


def _computed(value: Value) -> Any:
    """The value's array, of any kind, computing what it needs."""
    if checks.PENDING and type(value.array) is not np.ndarray:
        checks.examine()
    if value.array is None:
        epoch = value.epoch
        if epoch is not None and epoch.trace.epoch is epoch:
            flush(epoch.trace, "a read")
            if checks.PENDING:
                checks.examine()
        if value.array is None:
            record.raise_lost(value)
    return value.array


def value_array(value: Value) -> Any:
    """The value's array (NumPy or JAX), computing what it needs."""
    array = _computed(value)
    if type(array) is Piece:  # its own memory from now on: callers may share it
        array = value.array = np.array(array.host())
    return array


def host_array(value: Value) -> np.ndarray:
    """The value in host memory. Shared with the engine: do not write to it."""
    array = value.array
    if array is None or (checks.PENDING and type(array) is not np.ndarray):
        array = _computed(value)
    if type(array) is Piece:
        return array.host()
    return array if type(array) is np.ndarray else np.asarray(array)


def flush_all(reason: str = "synchronise") -> None:
    """Flush every thread's trace."""
    with record.LOCK:
        traces = list(record.TRACES)
    for trace in traces:
        flush(trace, reason)


def prune() -> None:
    """Forget the traces that were used longest ago, with their programs, until at most half of MAX_NODES is left.

    A tree that stays large would be searched at every flush, and forget before it can see a loop."""
    ends = []
    stack = [record.ROOT]
    while stack:
        n = stack.pop()
        if n.used:
            ends.append(n.used)
        stack.extend(n.children.values())
    ends.sort()
    live_paths = {t.node for t in record.TRACES}
    keep: set = set()
    for end in live_paths:
        at: TreeNode | None = end
        while at is not None:
            keep.add(at)
            at = at.parent
    for tenth in (5, 8, 9, 10):
        horizon = ends[len(ends) * tenth // 10] if ends and tenth < 10 else _tick
        stats.COUNTS["nodes"] = _sweep(record.ROOT, horizon, keep)
        if stats.COUNTS["nodes"] <= MAX_NODES // 2:
            break
    _sites.clear()  # they name nodes by id


def _sweep(root: TreeNode, horizon: int, keep: set) -> int:
    order = [root]
    for n in order:
        order.extend(n.children.values())
    kept: dict[TreeNode, bool] = {}
    count = 0
    for n in reversed(order):
        n.children = {k: c for k, c in n.children.items() if kept[c]}
        n.last = None
        kept[n] = bool(n.children) or n.used >= horizon > 0 or n in keep
        count += kept[n] and n is not root
        if not kept[n]:
            for p in n.programs:
                program.PROGRAMS.pop(p, None)
            n.programs = []
    return count


def _before_fork() -> None:
    flush_all("a fork")
    backend.quiesce()


def _after_fork_in_child() -> None:
    global host_only
    host_only = True
    record.LOCK = threading.RLock()
    for trace in list(record.TRACES):
        if trace.busy:  # its thread was in the middle of an operation, and is not here
            trace.recover()
    cold.after_fork()


def install() -> None:
    report.SITES = _sites
    record.flush_hook = flush
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)


install()
