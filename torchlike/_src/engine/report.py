"""The recompile report: for each program, why it was compiled, at which user line, and what was different.

`torchlike.report()` returns it; TORCHLIKE_REPORT=1 prints it when the process ends."""

import atexit
import os
import sys
from collections.abc import Iterator
from typing import Any

from torchlike._src.core.aval import Aval
from torchlike._src.core.native import RECORDER
from torchlike._src.engine import stats

PROGRAMS: list[dict[str, Any]] = []
MAX_PROGRAMS = 1000
SITES: dict = {}
"""(first line, last line) -> what has run there; set by the flush module."""
CHANGING = 8
"""Different traces at one place that are worth a remark."""

LAST_BATCH = " A smaller last batch? DataLoader(..., drop_last=True) avoids it."
LENGTHS = " Lengths that vary can be padded to a few fixed sizes."
NUMBERS = {"f": "a Python float", "i": "a Python int", "b": "a Python bool", "c": "a Python complex number"}


def compiled(
    node: Any, plan: Any, live: tuple, reason: str, seconds: dict[str, float], loaded: bool, key: str | None
) -> None:
    """Note one compilation. `seconds`: in all ("seconds"), until XLA had its text ("trace"), in XLA ("compile"); `key`:
    its name in the disk cache."""
    path = node.path()
    entry = {
        "operations": len(path),
        "first_line": path[0].line,
        "last_line": path[-1].line,
        "inputs": len(plan.leaf_specs),
        "outputs": len(live),
        **seconds,
        "from_disk": loaded,
        "on_disk": key is not None,
        "reason": reason,
        "difference": difference(node, path, live),
    }
    PROGRAMS.append(entry)
    if len(PROGRAMS) > MAX_PROGRAMS:
        del PROGRAMS[0]


def difference(node: Any, path: list, live: tuple) -> str | None:
    """Where this trace first differs from one that was compiled before, in the user's terms; None if it is none of
    those again, but other code."""
    if len(node.programs) > 1:
        return kept(node, path, live)
    if any(_has_program(n) for n in node.children.values()):
        return f"a shorter trace: results were needed right after {node.line}; before, more ran first"
    for step in reversed(path):
        parent = step.parent
        if parent.programs:
            return (
                f"a longer trace: {step.line} ran {name_of(step)} before results were needed; before, they were needed "
                "earlier"
            )
        others = [n for n in parent.children.values() if n is not step and _has_program(n)]
        same_line = [n for n in others if n.line == step.line]
        if parent.parent is None:
            others = same_line  # programs that begin at other lines are other code, not this again
        if same_line:
            alike = [n for n in same_line if n.kernel.op is step.kernel.op]
            return explain((alike or same_line)[-1], step)
        if others:
            return explain(others[-1], step)
    return None


def kept(node: Any, path: list, live: tuple) -> str:
    """The same operations, but other results in use."""
    before = {k for p in node.programs[:-1] for k in p.live}
    sources = [f"that of {name_of(n)} at {n.line}" for n in path if set(range(n.index, n.values)) & set(live) - before]
    text = "the same operations, but other results are in use afterwards"
    if sources:
        text += ": " + ", ".join(sources[:3]) + (f" and {len(sources) - 3} more" if len(sources) > 3 else "")
        text += ". Tensors that are kept (in a list, on self) become outputs; keep .item() or .detach() of them"
    return text


def _has_program(node: Any, budget: int = 20_000) -> bool:
    stack = [node]
    while stack and budget > 0:
        budget -= 1
        n = stack.pop()
        if n.programs:
            return True
        stack.extend(n.children.values())
    return False


def name_of(node: Any) -> str:
    """The operation's name as users know it."""
    name = node.kernel.op.name
    if name.endswith("_backward"):
        return f"the gradient of {name.removesuffix('_backward').strip('_')}"
    return name.strip("_")


def describe(spec: Any) -> str:
    return NUMBERS.get(spec, str(spec)) if type(spec) is str else str(spec)


def explain(before: Any, now: Any) -> str:
    """One sentence on how two operations that followed the same history differ."""
    name, line = name_of(now), now.line
    if before.kernel.op is not now.kernel.op:
        return f"{line} called {name} where {before.line} had called {name_of(before)} after the same operations"
    for a, b in zip(before.kernel.specs, now.kernel.specs, strict=False):
        if a is not b and a != b:
            return f"{line}: an input of {name} was {describe(a)} before and is {describe(b)} now.{advice(a, b)}"
    if len(before.kernel.specs) != len(now.kernel.specs):
        return f"{line}: {name} got {len(now.kernel.specs)} operands, before {len(before.kernel.specs)}"
    if before.key[1] != now.key[1]:
        changed = list(arguments(before, now))
        text = ", ".join(f"{k} was {a!r} before and is {b!r} now" for k, a, b in changed)
        hint = ""
        if [k for k, _, _ in changed] == ["length"]:
            hint = LAST_BATCH if changed[0][2] < changed[0][1] else LENGTHS
        return f"{line}: an argument of {name} that is part of the program changed: {text}.{hint}"
    for a, b in zip(before.refs, now.refs, strict=False):
        if a != b and (type(a) is Aval) != (type(b) is Aval):
            was, is_ = (
                ("from before the trace", "computed in it")
                if type(a) is Aval
                else ("computed in the trace", "from before it")
            )
            return f"{line}: an input of {name} was {was} and is {is_} now"
    return f"{line}: {name} reads other tensors than before"


def arguments(before: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """(name, value then, value now) of the static arguments that differ."""
    names = getattr(now.kernel.op, "statics", None)
    for k, (a, b) in enumerate(zip(before.key[1], now.key[1], strict=False)):
        if a == b:
            continue
        if type(a) is tuple and type(b) is tuple and len(a) == len(b) == 2 and a[0] == b[0] and type(a[0]) is str:
            yield a[0], a[1], b[1]
        else:
            yield (names[k] if names and k < len(names) else f"number {k + 1}"), a, b


def advice(before: Any, now: Any) -> str:
    """What to do about a changed input."""
    if type(before) is not Aval or type(now) is not Aval:
        return ""
    if before.dtype is not now.dtype:
        return f" Convert it once, outside the loop: .to(torch.{before.dtype.name})."
    if before.ndim != now.ndim or before.device != now.device:
        return ""
    changed = [k for k in range(now.ndim) if before.shape[k] != now.shape[k]]
    if changed == [0] and now.shape[0] < before.shape[0]:
        return LAST_BATCH
    return LENGTHS


def text() -> str:
    """The report as printed text."""
    c = stats.COUNTS
    lines = [
        "torchlike: {:.0f} programs compiled, {:.0f} loaded from disk, in {:.2f} s ({:.2f} s of it tracing); {:.0f} "
        "flushes: {:.0f} launches of compiled programs, {:.0f} runs on the host tier".format(
            c["compiles"],
            c["disk_hits"],
            c["compile_seconds"],
            c["trace_seconds"],
            c["flushes"],
            c["launches"],
            c["host_runs"],
        ),
        f"  operations are recorded in {RECORDER}",
    ]
    for k, p in enumerate(PROGRAMS, 1):
        how = f"loaded from disk in {p['seconds']:.2f} s" if p["from_disk"] else f"compiled in {p['seconds']:.2f} s"
        if not p["from_disk"]:
            how += f" (tracing {p['trace']:.2f} s, XLA {p['compile']:.2f} s)"
            how += "" if p["on_disk"] else ", cannot be kept on disk"
        lines.append(
            f"  program {k}: {p['operations']} operations, {p['inputs']} inputs, {p['outputs']} outputs, {how}\n"
            f"    from {p['first_line']}\n    to   {p['last_line']}\n    because {p['reason']}"
        )
        if p["difference"]:
            lines.append(f"    what differs from an earlier program: {p['difference']}")
    for (first, last), site in list(SITES.items()):
        n = site.different
        if n >= CHANGING:
            lines.append(
                f"  from {first} to {last}: {n}{'+' if site.full else ''} different traces. Those that do not repeat "
                f"run operation by operation on the host tier.{LENGTHS}"
            )
    return "\n".join(lines)


def _print_at_exit() -> None:
    print(text(), file=sys.stderr)


if os.environ.get("TORCHLIKE_REPORT", "0") not in ("", "0"):
    atexit.register(_print_at_exit)
