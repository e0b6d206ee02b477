"""Walking the tape: each node's gradient is computed once, newest node first; leaves accumulate.

HOT: `_run` is the body of every backward."""

import heapq
import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.autograd.blocks import Blocks
from torchlike._src.autograd.grad_mode import MODE, Anomaly
from torchlike._src.autograd.shown import slots
from torchlike._src.autograd.tape import Hooks, Node, OpNode, OutEdge, Running, user_level
from torchlike._src.core.native import NATIVE
from torchlike._src.engine import Value, current, host_array, record
from torchlike._src.ops.kernels import ADD

_numbers = itertools.count().__next__


class Walk:
    """One call of backward, for hooks that ask about it: its number, the ids of the nodes and leaves it reaches, and
    the levels of forward mode that count again until its end."""

    __slots__ = ("number", "reached", "reopened")

    def __init__(self, reached: dict) -> None:
        self.number = _numbers()
        self.reached = reached
        self.reopened: list = []


def will_reach(edge: Any) -> bool:
    """Whether the walk under way computes the gradient that goes to `edge`."""
    return Running.walk is not None and _target(edge) in Running.walk.reached


def edge_key(edge: Any) -> tuple:
    """An identity for where a gradient goes."""
    if type(edge) is OutEdge:
        return (id(edge.node), edge.nr)
    return (id(edge), 0)


def run_backward(
    roots: Sequence,
    grads: Sequence,
    *,
    keep: bool,
    create: bool,
    inputs: Sequence | None = None,
    accumulating: bool = False,
) -> list:
    """Walk the graph from `roots` (edges) with their gradients (tensors if `create`, else Values).

    inputs: edges whose gradients are returned (None where none came), or with `accumulating` the only leaves that
    gradients are accumulated into; without `inputs`, they are accumulated into every leaf reached."""
    before, around = MODE.enabled, Running.walk
    try:
        MODE.enabled = create
        return _run(roots, grads, keep, create, inputs, accumulating)
    finally:
        MODE.enabled = before
        if Running.walk is not around:
            for level in Running.walk.reopened:
                level.active = False
        Running.walk = around


def _run(
    roots: Sequence, grads: Sequence, keep: bool, create: bool, inputs: Sequence | None, accumulating: bool
) -> list:
    if NATIVE is not None and inputs is None and not create:
        blocks = Blocks(current().marks)
        if NATIVE.walk(roots, grads, keep, blocks.cross, blocks.bound()):
            blocks.end()
            return []
    captured: list = []
    wanted: dict[tuple, list[int]] | None = None
    useful: set | None = None
    if inputs is not None:
        wanted = {}
        captured = [None] * len(inputs)
        for k, e in enumerate(inputs):
            wanted.setdefault(edge_key(e), []).append(k)
        useful = _ancestors(roots, wanted)
    waiting = _dependencies(roots, useful)
    Running.walk = Walk(waiting)
    buffers: dict[int, list] = {}
    leaves: dict[int, list] = {}
    heap: list = []
    add = _add_graph if create else _add

    def send(edge: Any, g: Any) -> None:
        kind = type(edge)
        if kind is OutEdge:
            node, nr = edge.node, edge.nr
        elif isinstance(edge, Node):
            node, nr = edge, 0
        else:
            held = leaves.get(id(edge))
            if held is None:
                leaves[id(edge)] = [edge, g]
            elif g is not None:
                held[1] = g if held[1] is None else add(held[1], g)
            return
        buffer = buffers.get(id(node))
        if buffer is None:
            buffer = buffers[id(node)] = [None] * len(node.outs)
        if g is not None:
            buffer[nr] = g if buffer[nr] is None else add(buffer[nr], g)

    def arrived(edge: Any) -> None:
        node = edge.node if type(edge) is OutEdge else edge
        left = waiting[id(node)] - 1
        waiting[id(node)] = left
        if left == 0:
            if isinstance(node, Node):
                heapq.heappush(heap, (-node.seq, node))
            else:
                finish_leaf(node)

    def capture(node: Any, received: list) -> None:
        for nr in range(len(received)):
            for k in wanted.get((id(node), nr), ()):  # type: ignore[union-attr]
                captured[k] = received[nr]

    def finish_leaf(leaf: Any) -> None:
        _, g = leaves.pop(id(leaf), (None, None))
        if g is None:
            return
        if leaf._hooks:
            g = run_tensor_hooks(leaf._hooks, g, create)
        if wanted is not None:
            positions = wanted.get((id(leaf), 0))
            if positions is None:
                return
            if not accumulating:
                for k in positions:
                    captured[k] = g
                return
        accumulate(leaf, g, create)

    for edge, g in zip(roots, grads, strict=True):
        send(edge, g)
    for edge in roots:
        arrived(edge)
    blocks = Blocks(current().marks)
    older = -blocks.bound()
    while heap:
        number, node = heapq.heappop(heap)
        if number > older:  # numbers are negative in the heap
            older = -blocks.cross(-number)
        received = buffers.pop(id(node), None)
        if received is None:
            received = [None] * len(node.outs)
        extra = node.extra
        executes = useful is None or any([e is not None and _target(e) in useful for e in node.edges])  # noqa: C419
        if wanted is not None and executes:
            capture(node, received)  # as PyTorch does: before the hooks of tensors, unless the walk ends here
        if extra is not None:
            if "tensor" in extra or "retain" in extra:
                _run_result_hooks(extra, received, create)
        if wanted is not None and not executes:
            capture(node, received)
        if not executes:
            continue
        if extra is not None and extra.get("pre"):
            received = _run_prehooks(node, received, create)
        edges = [e for e in node.edges if e is not None]
        if not node.runs_without_gradient and all([g is None for g in received]):  # noqa: C419 - a list is quicker here
            pulled: Sequence = [None] * len(edges)
        elif Anomaly.enabled:
            pulled = _pull_watched(node, received, keep, create)
        else:
            pulled = node.pull_graph(received, keep) if create else node.pull(received, keep)
        if extra is not None and extra.get("post"):
            pulled = _run_posthooks(node, pulled, received, create)
        del received
        for edge, g in zip(edges, pulled, strict=True):
            if useful is None or _target(edge) in useful:
                send(edge, g)
        del pulled
        for edge in edges:
            if useful is None or _target(edge) in useful:
                arrived(edge)
    blocks.end()
    return captured


def _target(edge: Any) -> int:
    return id(edge.node) if type(edge) is OutEdge else id(edge)


def _dependencies(roots: Sequence, useful: set | None) -> dict[int, int]:
    """How many gradients each node and leaf waits for."""
    counts: dict[int, int] = {}
    stack: list = []
    for edge in roots:
        node = edge.node if type(edge) is OutEdge else edge
        k = id(node)
        if k not in counts:
            counts[k] = 1
            stack.append(node)
        else:
            counts[k] += 1
    while stack:
        node = stack.pop()
        if not isinstance(node, Node):
            continue
        for edge in node.edges:
            if edge is None:
                continue
            if type(edge) is OutEdge:
                edge = edge.node
            k = id(edge)
            if useful is not None and k not in useful:
                continue
            n = counts.get(k)
            if n is None:
                counts[k] = 1
                stack.append(edge)
            else:
                counts[k] = n + 1
    return counts


def _ancestors(roots: Sequence, wanted: dict) -> set:
    """The ids of the nodes and leaves through which some wanted edge is reached."""
    ids = {key[0] for key in wanted}
    order: list = []
    seen: set[int] = set()
    stack = [(e.node if type(e) is OutEdge else e, False) for e in roots]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        if isinstance(node, Node):
            stack.extend((e.node if type(e) is OutEdge else e, False) for e in node.edges if e is not None)
    useful: set[int] = set()
    for node in order:
        if id(node) in ids or (
            isinstance(node, Node) and any(_target(e) in useful for e in node.edges if e is not None)
        ):
            useful.add(id(node))
    for e in roots:
        useful.add(_target(e))
    return useful


def _add(a: Value, b: Value) -> Value:
    return record(ADD, (), (a, b))[0]


def _add_graph(a: Any, b: Any) -> Any:
    return a + b


# -- hooks ----------------------------------------------------------------------------------------------------


def _run_result_hooks(extra: dict, received: list, create: bool) -> None:
    """Hooks of the tensors that are the node's results; what keeps `.grad` of one comes last."""
    for nr, hooks in extra.get("tensor", {}).items():
        if hooks and received[nr] is not None:
            received[nr] = run_tensor_hooks(hooks, received[nr], create)
    for nr, reference in extra.get("retain", {}).items():
        tensor, g = reference(), received[nr]
        if tensor is not None and g is not None:
            g = g if create else Hooks.wrap(g)
            tensor._grad = (g.clone() if create else g) if tensor._grad is None else tensor._grad + g


def run_tensor_hooks(hooks: dict, g: Any, create: bool) -> Any:
    """Run a tensor's gradient hooks; each may return a replacement."""
    tensor = g if create else Hooks.wrap(g)
    for hook in list(hooks.values()):
        result = hook(tensor)
        if result is not None:
            _check_replacement(tensor, result, hook)
            tensor = result
    return tensor if create else tensor._read()


def _check_replacement(before: Any, after: Any, hook: Any) -> None:
    if not hasattr(after, "_aval"):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    name = getattr(hook, "__name__", "<unknown>")
    if after._aval.dtype is not before._aval.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {before._aval.dtype.type_name} got "
            f"{after._aval.dtype.type_name})"
        )
    if after._aval.shape != before._aval.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def _to_tensors(grads: Sequence, create: bool) -> tuple:
    return tuple([g if create or g is None else Hooks.wrap(g) for g in grads])


def _from_tensors(grads: Sequence, create: bool) -> list:
    return [g if create or g is None else g._read() for g in grads]


def _replaced(before: tuple, result: Any, hook: Any) -> tuple:
    """What a hook on a node returned, checked."""
    if not isinstance(result, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
    after = result
    if len(after) != len(before):
        raise RuntimeError(
            f"hook '{getattr(hook, '__name__', '<unknown>')}' has returned an incorrect number of values (got "
            f"{len(after)}, but expected {len(before)})"
        )
    for a, b in zip(after, before, strict=True):
        if a is None and b is not None:
            raise RuntimeError("can't replace a Tensor gradient with None in a hook")
        if a is not None and b is not None:
            _check_replacement(b, a, hook)
    return after


def _run_prehooks(node: Node, received: list, create: bool) -> list:
    tensors = _to_tensors(received, create)
    for hook in list(node.extra["pre"].values()):  # type: ignore[index]
        result = hook(tensors)
        if result is not None:
            tensors = _replaced(tensors, result, hook)
    return _from_tensors(tensors, create)


def _run_posthooks(node: Node, pulled: Sequence, received: list, create: bool) -> list:
    """Hooks see one gradient (or None) for each tensor operand."""
    arrived = iter(_to_tensors(pulled, create))
    full = [None if e is None else next(arrived) for e in node.edges]
    shown = slots(node) if isinstance(node, OpNode) else list(range(len(full)))
    visible = tuple([None if k is None else full[k] for k in shown])
    given = _to_tensors(received, create)
    for hook in list(node.extra["post"].values()):  # type: ignore[index]
        result = hook(visible, given)
        if result is not None:
            visible = _replaced(visible, result, hook)
    for k, g in zip(shown, visible, strict=True):
        if k is not None:
            full[k] = g
    return _from_tensors([g for g, e in zip(full, node.edges, strict=True) if e is not None], create)


def accumulate(leaf: Any, g: Any, create: bool) -> None:
    """Add a gradient to leaf.grad, in place unless the sum is itself differentiable."""
    tensor = leaf._grad
    if tensor is None:
        leaf._grad = Hooks.wrap(g) if not create else g.clone()
    elif create:
        leaf._grad = tensor + g
    else:
        storage = tensor._s
        if tensor._view is None and g.aval is storage.value.aval and not tensor._rg:
            storage.value = record(ADD, (), (storage.value, g))[0]
            storage.version += 1
        else:
            tensor.add_(Hooks.wrap(g))
    if leaf._accumulate_hooks:
        for hook in list(leaf._accumulate_hooks.values()):
            hook((), (g if create else Hooks.wrap(g),))
    if leaf._post_accumulate_hooks:
        for hook in list(leaf._post_accumulate_hooks.values()):
            hook(leaf)


# -- anomaly mode ----------------------------------------------------------------------------------------------------


def _pull_watched(node: Node, received: list, keep: bool, create: bool) -> Sequence:
    before, Running.node = Running.node, node
    try:
        try:
            pulled = node.pull_graph(received, keep) if create else node.pull(received, keep)
        except Exception:
            _warn_trace(node)
            raise
    finally:
        Running.node = before
    if Anomaly.check_nan:
        _check_nan(node, pulled)
    return pulled


def _warn_trace(node: Node) -> None:
    """Warn with the forward call of a node whose gradient failed, and of those during whose gradient it was made."""
    level = user_level()
    extra = node.extra or {}
    if "stack" not in extra:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information.",
            stacklevel=level,
        )
        return
    text = "".join(extra["stack"])
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{text}", stacklevel=level
    )
    parent = extra.get("parent")
    while parent is not None:
        extra = parent.extra or {}
        if "stack" not in extra:
            warnings.warn(
                f"\n\nPrevious calculation was induced by {parent.name()}. No forward pass information available. "
                "Enable detect anomaly during forward pass for more information.",
                stacklevel=level,
            )
            return
        text = "".join(extra["stack"])
        warnings.warn(
            f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the "
            f"previous calculation:\n{text}",
            stacklevel=level,
        )
        parent = extra.get("parent")


def _check_nan(node: Node, pulled: Sequence) -> None:
    slots = [k for k, e in enumerate(node.edges) if e is not None]
    for k, g in zip(slots, pulled, strict=True):
        if g is None:
            continue
        array = host_array(g if type(g) is Value else g._read())
        if array.dtype.kind not in "fcV":
            continue
        wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
        if bool(np.isnan(wide).any()):
            _warn_trace(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {k}th output.")
