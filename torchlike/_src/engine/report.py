"""The recompile report: for each program, why it was compiled, at which user line, and what was different.

`torchlike.report()` returns it; TORCHLIKE_REPORT=1 prints it when the process ends."""

import atexit
import os
import sys
from typing import Any

from torchlike._src.core.aval import Aval

PROGRAMS: list[dict[str, Any]] = []
MAX_PROGRAMS = 1000


def compiled(node: Any, plan: Any, live: tuple, reason: str, seconds: float, loaded: bool) -> None:
    """Note one compilation."""
    path = node.path()
    entry = {
        "operations": len(path),
        "first_line": path[0].line,
        "last_line": path[-1].line,
        "inputs": len(plan.leaf_specs),
        "outputs": len(live),
        "seconds": seconds,
        "from_disk": loaded,
        "reason": reason,
        "difference": difference(node),
    }
    if len(PROGRAMS) < MAX_PROGRAMS:
        PROGRAMS.append(entry)


def difference(node: Any) -> str | None:
    """Where this trace first differs from one that was compiled before, in the user's terms."""
    if len(node.programs) > 1:
        return "the same operations, but other results are still in use afterwards (a tensor kept this time that was not kept before)"
    step = node
    while step.parent is not None:
        parent = step.parent
        if len(parent.children) > 1:
            for other in parent.children.values():
                if other is not step and _has_program(other):
                    return explain(other, step)
        if parent.programs:
            return f"a longer trace: {step.line} ran {step.kernel.op.name} before the results were needed; earlier ones ended before it"
        step = parent
    return None


def _has_program(node: Any, budget: int = 20_000) -> bool:
    stack = [node]
    while stack and budget > 0:
        budget -= 1
        n = stack.pop()
        if n.programs:
            return True
        stack.extend(n.children.values())
    return False


def explain(before: Any, now: Any) -> str:
    """One sentence on how two operations that followed the same history differ."""
    name, line = now.kernel.op.name, now.line
    if before.kernel.op is not now.kernel.op:
        return f"{line} called {name} where {before.line} had called {before.kernel.op.name}"
    for a, b in zip(before.refs, now.refs, strict=False):
        if type(a) is Aval and type(b) is Aval and a is not b:
            return f"{line}: an input of {name} was {a} before and is {b} now.{advice(a, b)}"
    for a, b in zip(before.kernel.specs, now.kernel.specs, strict=False):
        if a is not b and a != b:
            return f"{line}: an operand of {name} was {a} before and is {b} now"
    if before.key[1] != now.key[1]:
        return f"{line}: an argument of {name} was {before.key[1]} before and is {now.key[1]} now"
    if len(before.refs) != len(now.refs):
        return f"{line}: {name} got {len(now.refs)} operands, before {len(before.refs)}"
    return f"{line}: {name} reads other tensors than before"


def advice(before: Aval, now: Aval) -> str:
    if before.dtype is not now.dtype or before.ndim != now.ndim:
        return ""
    changed = [k for k in range(now.ndim) if before.shape[k] != now.shape[k]]
    if changed == [0] and now.shape[0] < before.shape[0]:
        return " A smaller last batch? DataLoader(..., drop_last=True) avoids it."
    return " Lengths that vary can be padded to a few fixed sizes."


def text() -> str:
    """The report as printed text."""
    from torchlike._src.engine import stats

    c = stats.COUNTS
    lines = [
        "torchlike: {:.0f} programs compiled, {:.0f} loaded from disk, in {:.2f} s; {:.0f} flushes: {:.0f} launches of "
        "compiled programs, {:.0f} runs on the host tier".format(
            c["compiles"], c["disk_hits"], c["compile_seconds"], c["flushes"], c["launches"], c["host_runs"]
        )
    ]
    for k, p in enumerate(PROGRAMS, 1):
        how = "loaded from disk" if p["from_disk"] else "compiled"
        lines.append(
            f"  program {k}: {p['operations']} operations, {p['inputs']} inputs, {p['outputs']} outputs, {how} in "
            f"{p['seconds']:.2f} s\n    from {p['first_line']}\n    to   {p['last_line']}\n    because {p['reason']}"
        )
        if p["difference"]:
            lines.append(f"    what differs from an earlier program: {p['difference']}")
    return "\n".join(lines)


def _print_at_exit() -> None:
    print(text(), file=sys.stderr)


if os.environ.get("TORCHLIKE_REPORT", "0") not in ("", "0"):
    atexit.register(_print_at_exit)
