"""Run-time checks: what PyTorch looks at while an operation runs (an index in range, a matrix that is not singular).

An operator that has such conditions says so in `op.faults`. A program with such operations returns one more result, an
int64 for each condition: FINE, or what is wrong (the index, say). It is looked at when a result is next read or a trace
is next flushed, whichever comes first, so that the host need not wait for a launch. The error is PyTorch's, with a note
that names the operation and the user's line (the first that recorded this operation after the same history). Results
from the failed operation on raise it when they are read: under PyTorch they would not exist. The host tier and direct
mode check at once.

A program without conditions costs nothing; one with them, some two microseconds a launch."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import torchlike._src.engine.record as record

FINE = int(np.iinfo(np.int64).min)
FINE_BYTES = np.full(1, FINE, np.int64).tobytes()
PENDING: list["Pending"] = []
"""Launched programs whose conditions have not been looked at."""


class Condition:
    """The conditions of one operation of a plan: the kernel that computes them, and where its operands come from."""

    __slots__ = ("codes", "first", "kernel", "refs")

    def __init__(self, kernel: Any, first: int, codes: Any, refs: tuple) -> None:
        self.kernel = kernel
        self.first = first
        self.codes = codes
        self.refs = refs


class Pending:
    """A launched program's conditions, and the results that they vouch for. It keeps those until it is looked at."""

    __slots__ = ("codes", "live", "ready", "trace", "values")

    def __init__(self, codes: Any, ready: Any, trace: Any, live: tuple[int, ...]) -> None:
        self.codes = codes
        self.ready = ready
        self.trace = trace
        self.values = trace.values
        self.live = live


def of_kernel(kernel: Any) -> Any:
    """(kernel of its conditions: (count,) int64, the positions of the operands that it takes), or None."""
    found = kernel.cache.get("faults", 0)
    if found == 0:
        faults = getattr(kernel.op, "faults", None)
        found = kernel.cache["faults"] = None if faults is None else faults.of(kernel)
    return found


def conditions(plan: Any, entries: Sequence) -> list[Condition]:
    """Those of the operations that run, and of others whose checked operands are at hand (an embedding whose result
    only its gradient's kernel would have used)."""
    at_hand = {k for e in entries for k in range(e.first, e.first + len(e.kernel.outs))}
    out = []
    for e in plan.entries:
        found = of_kernel(e.kernel)
        if found is not None:
            refs = tuple([e.refs[p] for p in found[1]])
            if all(kind != "v" or k in at_hand for kind, k in refs):
                out.append(Condition(e.kernel, e.first, found[0], refs))
    return out


def collect(found: Sequence[Condition], get: Any) -> Any:
    """All conditions' codes in one array, in a program; get(ref) is an operand."""
    return jnp.concatenate([c.codes(*[get(r) for r in c.refs])[0] for c in found])


def fine(found: Sequence[Condition]) -> bytes:
    """What `collect` gives, in memory, if nothing is wrong."""
    return FINE_BYTES * sum([c.codes.outs[0].numel for c in found])


def error_of(kernel: Any, codes: np.ndarray) -> Exception | None:
    """The error that an operation's codes stand for."""
    for k in np.flatnonzero(codes != FINE):
        return kernel.op.faults.error_of(kernel, int(k), int(codes[k]))
    return None


def failure(plan: Any, found: Sequence[Condition], codes: np.ndarray) -> tuple[int, Exception]:
    """(the first result that there should not be, the error) of the first failed condition."""
    at = 0
    for c in found:
        count = c.codes.outs[0].numel
        error = error_of(c.kernel, codes[at : at + count])
        at += count
        if error is not None:
            error.add_note(f"torchlike: found when the recorded operations ran; {where(plan, c)}")
            return c.first, error
    raise AssertionError("no condition failed")


def where(plan: Any, condition: Condition) -> str:
    for step in plan.node.path():
        if step.index == condition.first and step.kernel is condition.kernel:
            return f"the operation is {step.kernel.op.name.strip('_')}, first called at {step.line}"
    return f"the operation is {condition.kernel.op.name.strip('_')}"


def examine() -> None:
    """Look at the conditions of what was launched. Raises if one of this thread's programs failed; results of a failed
    program raise when they are read, as do results that were recorded after it."""
    with record.LOCK:
        while PENDING:
            pending = PENDING.pop(0)
            try:
                codes = np.asarray(pending.codes)
            except Exception:  # the program itself failed: reading its results says how
                continue
            if codes.tobytes() == pending.ready.fine:
                continue
            first, error = failure(pending.ready.plan, pending.ready.checks, codes)
            poison(pending.values, pending.live, first, error)
            mine = pending.trace is record.current()
            del pending
            if mine:
                raise error


def poison(values: Sequence, live: Sequence[int], first: int, error: Exception) -> None:
    """Take back the results from `first` on, and everything that was recorded since with one of them."""
    lost = {id(values[k]) for k in live if k >= first}
    for trace in list(record.TRACES):
        if trace.values is not values and any(id(v) in lost for v in trace.leaves):
            for v in trace.values:
                v.error = error
            trace.reset()
    for k in live:
        if k >= first:
            values[k].array = None
            values[k].epoch = None
            values[k].error = error
