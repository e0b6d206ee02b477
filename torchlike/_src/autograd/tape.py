"""The tape: nodes are made as operations run; `run_backward` walks them once, newest first.

Nodes refer to what they need for their gradient and to the nodes of their operands, never to the tensors that they
made: a graph is freed by reference counting as soon as the last of its tensors is dropped."""

import heapq
import itertools
import re
import traceback
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.autograd.grad_mode import MODE, Anomaly
from torchlike._src.core.aval import Aval
from torchlike._src.engine import Value, record
from torchlike._src.ops.declare import camel, pullback
from torchlike._src.ops.kernels import ADD, ONES, ZEROS

_sequence = itertools.count().__next__

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
    "tensors after calling backward."
)


class Hooks:
    """Registered by the tensor room: what the tape needs of tensors."""

    wrap: Callable[[Value], Any]
    apply: Callable[..., Any]


class OutEdge:
    """An edge to a result other than the first of a node."""

    __slots__ = ("node", "nr")

    def __init__(self, node: "Node", nr: int) -> None:
        self.node = node
        self.nr = nr


class Node:
    """What users see as `grad_fn`. `edges[k]` says where operand k's gradient goes: a Node, an OutEdge, a leaf
    tensor, or None."""

    __slots__ = ("__weakref__", "_outs", "edges", "extra", "seq")

    @property
    def outs(self) -> Sequence[Aval]:
        """The results' shapes and dtypes."""
        return self._outs

    def __init__(self, edges: tuple, outs: Sequence[Aval]) -> None:
        self.edges = edges
        self._outs = outs
        self.seq = _sequence()
        self.extra: dict | None = {"stack": traceback.format_stack()} if Anomaly.enabled else None

    def _extra(self, name: str) -> dict:
        """One of the rarely used tables of a node: "pre", "post", "tensor" hooks, "user" metadata."""
        if self.extra is None:
            self.extra = {}
        return self.extra.setdefault(name, {})

    # -- what users call ------------------------------------------------------------------------------------

    def name(self) -> str:
        """The node's name, as PyTorch prints it: 'AddBackward0'."""
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple:
        """((node or None, output number), …), one for each tensor operand."""
        return tuple(public_edge(e) for e in self.edges)

    @property
    def metadata(self) -> dict:
        """A dict of the user's own."""
        return self._extra("user")

    def register_hook(self, hook: Callable) -> Any:
        """Call hook(grad_inputs, grad_outputs) after this node's gradient is computed; a returned tuple replaces
        grad_inputs. Returns a handle with remove()."""
        return RemovableHandle(self._extra("post"), hook)

    def register_prehook(self, hook: Callable) -> Any:
        """Call hook(grad_outputs) before this node's gradient is computed; a returned tuple replaces them."""
        return RemovableHandle(self._extra("pre"), hook)

    def _register_hook_dict(self, hooks: dict) -> None:
        raise NotImplementedError("torchlike: Node._register_hook_dict")

    def _sequence_nr(self) -> int:
        return self.seq

    # -- what backward calls --------------------------------------------------------------------------------

    def pull(self, grads: list, keep: bool) -> Sequence:
        """Gradients of the operands (Values, None where not needed) from those of the results."""
        raise NotImplementedError

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        """The same on tensors, recorded on the tape."""
        raise NotImplementedError

    def tensor_hooks(self, nr: int) -> dict:
        """Hooks of the tensor that is result `nr`; they see and may replace its gradient."""
        return self._extra("tensor").setdefault(nr, {})


class GradPlan:
    """What a kernel's node needs to know, for one choice of operands that need a gradient. Made once per kernel."""

    __slots__ = ("inputs", "kernel", "label", "need", "outputs", "pull", "saves")

    def __init__(self, kernel: Any, need: tuple[bool, ...], label: str | None = None) -> None:
        self.kernel = kernel
        self.need = need
        self.label = label
        self.inputs, self.outputs = kernel.plan(need)
        self.saves = bool(self.inputs or self.outputs)
        self.pull = pullback(kernel, need, (True,) * len(kernel.outs))


def grad_plan(kernel: Any, need: tuple[bool, ...], label: str | None = None) -> GradPlan | None:
    """The plan for these operands; None if no result of the kernel can have a gradient."""
    key = (need, label)
    found = kernel.grad_plans.get(key, 0)
    if found == 0:
        possible = any(a.dtype.is_floating_point or a.dtype.is_complex for a in kernel.outs)
        found = GradPlan(kernel, need, label) if possible and kernel.op.differentiable else None
        kernel.grad_plans[key] = found
    return found


class OpNode(Node):
    """The node of a declared operator: its gradient is the kernel's pullback."""

    __slots__ = ("plan", "saved")

    def __init__(self, plan: GradPlan, edges: tuple, saved: tuple | None) -> None:
        self.edges = edges
        self.seq = _sequence()
        self.extra = {"stack": traceback.format_stack()} if Anomaly.enabled else None
        self.plan = plan
        self.saved = saved  # ((value or number, storage or None, version), …) in the order of the plan

    @property
    def outs(self) -> Sequence[Aval]:
        return self.plan.kernel.outs

    @property
    def kernel(self) -> Any:
        return self.plan.kernel

    def relabel(self, label: str) -> None:
        """Show another name."""
        self.plan = grad_plan(self.plan.kernel, self.plan.need, label)

    def name(self) -> str:
        if self.plan.label is not None:
            return self.plan.label
        kernel = self.plan.kernel
        label = kernel.cache.get("grad_name")
        if label is None:
            label = getattr(kernel.op, "grad_name", None) or camel(kernel.op.name)
            if callable(label):
                label = label(**kernel.op._checked_arguments(kernel.static, kernel.specs))
            kernel.cache["grad_name"] = label
        return label

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple:
        specs = self.kernel.specs
        return tuple(public_edge(e) for e, s in zip(self.edges, specs, strict=True) if type(s) is Aval)

    def _saved_values(self, keep: bool) -> list:
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        out = []
        for k, (value, storage, version) in enumerate(saved):
            if storage is not None and storage.version != version:
                raise RuntimeError(self._damage(k, storage, version))
            out.append(value)
        if not keep and saved:
            self.saved = None
        return out

    def _damage(self, k: int, storage: Any, version: int) -> str:
        inputs, outputs = self.plan.inputs, self.plan.outputs
        value = self.saved[k][0]
        shape = ", ".join(map(str, value.aval.shape))
        dtype = value.aval.dtype
        kind = f"[{f'CPU{dtype.scalar_name}Type' if dtype.is_complex else dtype.type_name} [{shape}]]"
        if k < len(inputs):
            edge = self.edges[inputs[k]]
            node, nr = (edge.node, edge.nr) if isinstance(edge, OutEdge) else (edge, 0)
        else:
            node, nr = self, outputs[k - len(inputs)]
        source = f", which is output {nr} of {short_name(node)}," if isinstance(node, Node) else ""
        hint = (
            "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
            "was changed in there or anywhere later. Good luck!"
            if Anomaly.enabled
            else "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
        return (
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"{kind}{source} is at version {storage.version}; expected version {version} instead. {hint}"
        )

    def pull(self, grads: list, keep: bool) -> Sequence:
        plan = self.plan
        found = plan.pull
        if None in grads:
            given = tuple([g is not None for g in grads])
            grads = [g for g in grads if g is not None]
            found = pullback(plan.kernel, plan.need, given)
        if plan.saves:
            return record(found, (), (*self._saved_values(keep), *grads))
        return record(found, (), grads)

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        given = tuple(g is not None for g in grads)
        found = pullback(self.plan.kernel, self.plan.need, given)
        inputs, outputs = found.plan
        values = self._saved_values(keep)
        operands: list = []
        for k, v in zip((*inputs, *(~o for o in outputs)), values, strict=True):
            if type(v) is not Value:
                operands.append(v)
                continue
            t = Hooks.wrap(v)
            if k >= 0:
                connect(t, self.edges[k])
            else:
                connect(t, self if ~k == 0 else OutEdge(self, ~k))
            operands.append(t)
        operands += [g for g in grads if g is not None]
        return Hooks.apply(found, (), operands, many=True)


def short_name(node: Node) -> str:
    """A node's name as error messages give it: the operator's. Views are remade as AsStrided by then."""
    if type(node) is OpNode and getattr(node.plan.kernel.op, "strided", False):
        return "AsStrided"
    return operator_name(node)


def operator_name(node: Node) -> str:
    """'Exp' of ExpBackward0, 'Squeeze1' of SqueezeBackward1."""
    return re.sub(r"Backward(0$)?", "", node.name())


def note_stack(node: Node) -> None:
    """Anomaly mode: remember where the forward call was made."""
    node._extra("stack")
    node.extra["stack"] = traceback.format_stack()


def connect(tensor: Any, edge: Any) -> None:
    """Put a wrapped saved value back on the graph where it came from."""
    if edge is None:
        return
    tensor._rg = True
    if isinstance(edge, (Node, OutEdge)):
        tensor._gf = edge
    else:
        tensor._gf = AccumulateEdge(edge)


class AccumulateEdge(Node):
    """Stands for a leaf tensor where another tensor object carries its value (a saved parameter in double
    backward): gradients go on to the leaf itself."""

    __slots__ = ()

    def __init__(self, leaf: Any) -> None:
        super().__init__((leaf,), (leaf._aval,))

    def pull(self, grads: list, keep: bool) -> Sequence:
        return grads

    pull_graph = pull


class MoveNode(Node):
    """A copy to another device: the gradient is copied back."""

    __slots__ = ("source",)

    def __init__(self, source: Aval, result: Aval, edges: tuple) -> None:
        super().__init__(edges, (result,))
        self.source = source

    def name(self) -> str:
        return "ToCopyBackward0"

    def pull(self, grads: list, keep: bool) -> Sequence:
        return [Hooks.wrap(grads[0]).to(self.source.device)._read()]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        return [grads[0].to(self.source.device)]


class AccumulateGrad(Node):
    """The end of the graph at a leaf, as users see it through `next_functions`."""

    __slots__ = ("variable",)

    def __init__(self, variable: Any) -> None:
        super().__init__((), (variable._aval,))
        self.variable = variable

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple:
        return ()

    def register_hook(self, hook: Callable) -> Any:
        if self.variable._accumulate_hooks is None:
            self.variable._accumulate_hooks = {}
        return RemovableHandle(self.variable._accumulate_hooks, hook, keep=self)

    def register_prehook(self, hook: Callable) -> Any:
        raise NotImplementedError("torchlike: register_prehook on AccumulateGrad; use Tensor.register_hook")


_accumulators: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()


def accumulator(leaf: Any) -> AccumulateGrad:
    """The AccumulateGrad of a leaf: the same object for as long as someone holds it."""
    reference = leaf._accumulator
    found = reference() if reference is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(found)
    return found


def public_edge(edge: Any) -> tuple:
    if edge is None:
        return (None, 0)
    if type(edge) is OutEdge:
        return (edge.node, edge.nr)
    if isinstance(edge, AccumulateEdge):
        return (accumulator(edge.edges[0]), 0)
    if isinstance(edge, Node):
        return (edge, 0)
    return (accumulator(edge), 0)


class RemovableHandle:
    """What registering a hook returns: `remove()` takes it back; also a context manager."""

    next_id = 0

    def __init__(self, hooks: dict, hook: Callable | None = None, *, extra_dict: Any = None, keep: Any = None) -> None:
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self._hooks = hooks
        self._extra = (
            extra_dict if isinstance(extra_dict, (list, tuple)) else ([extra_dict] if extra_dict is not None else [])
        )
        self._keep = keep
        if hook is not None:
            hooks[self.id] = hook

    def remove(self) -> None:
        """Take the hook back; more than once does nothing."""
        self._hooks.pop(self.id, None)
        for extra in self._extra:
            extra.pop(self.id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


# -- backward -----------------------------------------------------------------------------------------------------------


class _Task:
    """One call of backward: its mode, and what `inputs=`/autograd.grad captures."""

    __slots__ = ("accumulate", "capture", "create", "keep")

    def __init__(self, create: bool, keep: bool, capture: dict | None, accumulate: bool) -> None:
        self.create = create
        self.keep = keep
        self.capture = capture  # edge key -> position; None: accumulate into every leaf
        self.accumulate = accumulate


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
    accumulate: bool = True,
) -> list:
    """Walk the graph from `roots` (edges) with their gradients (tensors if `create`, else Values).

    inputs: edges whose gradients are returned (None where none came); if None, gradients are accumulated into every
    leaf reached."""
    before = MODE.enabled
    MODE.enabled = create
    try:
        return _run(roots, grads, keep, create, inputs)
    finally:
        MODE.enabled = before


def _run(roots: Sequence, grads: Sequence, keep: bool, create: bool, inputs: Sequence | None) -> list:
    captured: list = []
    wanted: dict[tuple, int] | None = None
    useful: set | None = None
    if inputs is not None:
        wanted = {}
        captured = [None] * len(inputs)
        for k, e in enumerate(inputs):
            wanted.setdefault(edge_key(e), k)
        useful = _ancestors(roots, wanted)
    waiting = _dependencies(roots, useful)
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

    def finish_leaf(leaf: Any) -> None:
        _, g = leaves.pop(id(leaf), (None, None))
        if g is None:
            return
        g = run_tensor_hooks(leaf._hooks, g, create)
        if wanted is not None:
            k = wanted.get((id(leaf), 0))
            if k is not None:
                captured[k] = g
            return
        accumulate(leaf, g, create)

    for edge, g in zip(roots, grads, strict=True):
        send(edge, g)
    for edge in roots:
        arrived(edge)
    while heap:
        node = heapq.heappop(heap)[1]
        received = buffers.pop(id(node), None)
        if received is None:
            received = [None] * len(node.outs)
        extra = node.extra
        if extra is not None:
            for nr, hooks in extra.get("tensor", {}).items():
                if hooks and received[nr] is not None:
                    received[nr] = run_tensor_hooks(hooks, received[nr], create)
        if wanted is not None:
            for nr in range(len(received)):
                k = wanted.get((id(node), nr))
                if k is not None:
                    captured[k] = received[nr]
        if extra is not None and extra.get("pre"):
            received = _run_prehooks(node, received, create)
        if useful is not None and not any(_target(e) in useful for e in node.edges if e is not None):
            continue
        edges = [e for e in node.edges if e is not None]
        if all([g is None for g in received]) and not getattr(node, "runs_without_gradient", False):
            pulled: Sequence = [None] * len(edges)
        else:
            try:
                pulled = node.pull_graph(received, keep) if create else node.pull(received, keep)
            except Exception:
                if Anomaly.enabled:
                    _warn_trace(node)
                raise
            if Anomaly.enabled and Anomaly.check_nan:
                _check_nan(node, pulled)
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


def run_tensor_hooks(hooks: dict | None, g: Any, create: bool) -> Any:
    """Run a tensor's gradient hooks; each may return a replacement."""
    if not hooks:
        return g
    tensor = g if create else Hooks.wrap(g)
    for hook in list(hooks.values()):
        result = hook(tensor)
        if result is not None:
            _check_replacement(tensor, result)
            tensor = result
    return tensor if create else tensor._read()


def _check_replacement(before: Any, after: Any) -> None:
    if not hasattr(after, "_aval"):
        raise TypeError(f"expected Variable, but hook returned '{type(after).__name__}'")
    if after._aval.shape != before._aval.shape:
        raise RuntimeError(f"hook '<unknown>' has changed the size of value")
    if after._aval.dtype is not before._aval.dtype:
        raise RuntimeError("hook '<unknown>' has changed the type of value")


def _to_tensors(grads: Sequence, create: bool) -> tuple:
    return tuple(g if create or g is None else Hooks.wrap(g) for g in grads)


def _from_tensors(grads: Sequence, create: bool) -> list:
    return [g if create or g is None else g._read() for g in grads]


def _run_prehooks(node: Node, received: list, create: bool) -> list:
    tensors = _to_tensors(received, create)
    for hook in list(node.extra["pre"].values()):
        result = hook(tensors)
        if result is not None:
            tensors = result if isinstance(result, tuple) else (result,)
    return _from_tensors(tensors, create)


def _run_posthooks(node: Node, pulled: Sequence, received: list, create: bool) -> list:
    """Hooks see one gradient (or None) for each tensor operand."""
    slots = [e is not None for e in node.edges]
    if isinstance(node, OpNode):
        shown = [type(s) is Aval for s in node.kernel.specs]
    else:
        shown = [True] * len(slots)
    source = iter(_to_tensors(pulled, create))
    full = [next(source) if s else None for s in slots]
    visible = tuple(g for g, s in zip(full, shown, strict=True) if s)
    given = _to_tensors(received, create)
    for hook in list(node.extra["post"].values()):
        result = hook(visible, given)
        if result is not None:
            visible = result if isinstance(result, tuple) else (result,)
    source = iter(visible)
    full = [next(source) if s else None for s in shown]
    return _from_tensors([g for g, s in zip(full, slots, strict=True) if s], create)


def accumulate(leaf: Any, g: Any, create: bool) -> None:
    """Add a gradient to leaf.grad."""
    tensor = leaf._grad
    if tensor is None:
        leaf._grad = Hooks.wrap(g) if not create else g
    elif create:
        leaf._grad = tensor + g
    else:
        storage = tensor._s
        if tensor._view is None and g.aval is storage.value.aval and not tensor._rg:
            storage.value = record(ADD, (), (storage.value, g))[0]
            storage.version += 1
        else:
            leaf._grad = tensor.detach() + Hooks.wrap(g) if not tensor._rg else tensor + Hooks.wrap(g)
    if leaf._accumulate_hooks:
        for hook in list(leaf._accumulate_hooks.values()):
            hook((), (leaf._grad,))
    if leaf._post_accumulate_hooks:
        for hook in list(leaf._post_accumulate_hooks.values()):
            hook(leaf)


def _warn_trace(node: Node) -> None:
    text = "".join((node.extra or {}).get("stack", ()))
    if text:
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{text}", stacklevel=2
        )
    else:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during "
            "forward pass for more information.",
            stacklevel=2,
        )


def _check_nan(node: Node, pulled: Sequence) -> None:
    import numpy as np

    from torchlike._src.engine import host_array

    for k, g in enumerate(pulled):
        if g is None:
            continue
        value = g if type(g) is Value else g._read()
        array = host_array(value)
        if array.dtype.kind in "fcV" and bool(
            np.isnan(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)).any()
        ):
            _warn_trace(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {k}th output.")


def ones_like(aval: Aval) -> Value:
    """A gradient of one."""
    return record(ONES, (("aval", aval),), ())[0]


def zeros_like(aval: Aval) -> Value:
    return record(ZEROS, (("aval", aval),), ())[0]
