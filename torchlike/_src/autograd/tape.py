"""The tape: nodes are made as operations run; the `walk` module goes through them once, newest first.

Nodes refer to what they need for their gradient and to the nodes of their operands, never to the tensors that they
made: a graph is freed by reference counting as soon as the last of its tensors is dropped."""

import gc
import inspect
import itertools
import os
import re
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torchlike._src.autograd.grad_mode import MODE, Anomaly
from torchlike._src.core.aval import Aval
from torchlike._src.engine import Value, record
from torchlike._src.engine.values import Trace
from torchlike._src.ops.declare import Pullback, camel, pullback
from torchlike._src.ops.kernels import ONES, ZEROS

_sequence = itertools.count().__next__
Trace.tape_position = staticmethod(_sequence)

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved "
    "tensors after calling backward."
)


class Hooks:
    """Registered by the tensor room and by `shown`: what the tape needs of them."""

    wrap: Callable[[Value], Any]
    apply: Callable[..., Any]
    attribute: Callable[..., Any]
    attribute_names: Callable[..., Any]
    next_functions: Callable[..., Any]
    outside: Callable[..., Any]
    make_swapped: Callable[..., Any]
    primal_at: Callable[..., Any]


class GradientEdge(NamedTuple):
    """A node and which of its results: where a gradient goes (`torch.autograd.graph.GradientEdge`)."""

    node: Any
    output_nr: int
    ownership_token: Any = None


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

    runs_without_gradient = False
    """Whether it must be run even if no gradient arrived (a custom Function)."""

    @property
    def outs(self) -> Sequence[Aval]:
        """The results' shapes and dtypes."""
        return self._outs

    def __init__(self, edges: tuple, outs: Sequence[Aval]) -> None:
        self.edges = edges
        self._outs = outs
        self.seq = _sequence()
        self.extra: dict | None = forward_call() if Anomaly.enabled else None

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

    @property
    def requires_grad(self) -> bool:
        """True: nodes exist only where gradients are wanted."""
        return True

    @property
    def _input_metadata(self) -> tuple[Aval, ...]:
        """The shape, dtype and device of each result."""
        return tuple(self.outs)

    def _sequence_nr(self) -> int:
        return self.seq

    def _set_sequence_nr(self, number: int) -> None:
        self.seq = number

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


CLASSES: dict = {}


def named(node: Any) -> Any:
    """A node as users get to see it: of a class that is called like the operator ('MulBackward0'), which is what graph
    viewers print. Given lazily, so that making nodes costs nothing more."""
    if type(node) is OpNode or (isinstance(node, OpNode) and type(node).__name__ != node.label()):
        label = node.label()
        found = CLASSES.get(label)
        if found is None:
            found = CLASSES[label] = type(label, (OpNode,), {"__slots__": (), "__module__": "builtins"})
        node.__class__ = found
    return node


BOTH = 2


class GradPlan:
    """What a kernel's node needs to know, for one choice of operands that need a gradient. Made once per kernel."""

    __slots__ = ("count", "inputs", "kernel", "label", "need", "only", "outputs", "pull", "saves", "whole")

    def __init__(self, kernel: Any, need: tuple[bool, ...], label: str | None = None) -> None:
        self.kernel = kernel
        self.need = need
        self.label = label
        self.inputs, self.outputs = kernel.plan(need)
        self.saves = bool(self.inputs or self.outputs)
        self.count = len(self.inputs) + len(self.outputs)
        self.only = {(0,): 0, (1,): 1, (0, 1): BOTH}.get(self.inputs) if not self.outputs else None
        """Operand 0 or 1, or BOTH, if nothing else is saved: the usual cases have their own lines in generated code."""
        self.pull = pullback(kernel, need, (True,) * len(kernel.outs))
        self.whole = not kernel.op.linear and len(kernel.outs) > 1 and bool(_untaken(kernel))
        """Some result has a gradient that the rules do not take (statistics that a norm keeps for its backward). The
        node then also keeps its operands, so that such gradients, and second derivatives, can be had by `jax.vjp`."""


def _untaken(kernel: Any) -> tuple[int, ...]:
    """The results whose gradients no rule of the kernel takes."""
    rules = kernel.op.vjp
    if rules is None:
        return ()
    found = kernel.cache.get("untaken")
    if found is None:
        takes: set[str] = set()
        for rule in rules.values():
            takes |= set(inspect.signature(rule).parameters)
        found = kernel.cache["untaken"] = tuple(
            k for k, a in enumerate(kernel.outs) if _differentiable(a) and f"g{k}" not in takes and "g" not in takes
        )
    return found


def _differentiable(a: Aval) -> bool:
    return a.dtype.is_floating_point or a.dtype.is_complex


def grad_plan(kernel: Any, need: tuple[bool, ...], label: str | None = None) -> Any:
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

    saved: Any
    """((value or number, storage or None, version), …) in the order of the plan; None once freed."""

    def __init__(self, plan: GradPlan, edges: tuple, saved: tuple | None) -> None:
        self.edges = edges
        self.seq = _sequence()
        self.extra = forward_call() if Anomaly.enabled else None
        self.plan = plan
        self.saved = saved

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
        name = kernel.cache.get("grad_name")
        if name is None:
            name = getattr(kernel.op, "grad_name", None) or camel(kernel.op.name)
            if callable(name):
                name = name(**kernel.op._checked_arguments(kernel.static, kernel.specs))
            kernel.cache["grad_name"] = name
        return name

    def label(self) -> str:
        """The name of the node's class."""
        return self.name().rsplit("::", 1)[-1]

    def __repr__(self) -> str:
        return f"<{self.label()} object at {id(self):#x}>"

    def __getattr__(self, name: str) -> Any:
        return Hooks.attribute(self, name)  # `_saved_NAME` and `_raw_saved_NAME`

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *Hooks.attribute_names(self)})

    @property
    def next_functions(self) -> tuple:
        return Hooks.next_functions(self)

    def _kept_values(self, keep: bool) -> list:
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        out = []
        for k, (value, storage, version) in enumerate(saved):
            if storage is None:
                if type(value) is Packed:
                    value = value.unpack()
            elif storage.version != version and not Mutation.allowed:
                raise RuntimeError(self._damage(k, storage, version))
            out.append(value)
        if not keep and saved:
            self.saved = None
        return out

    def _kept_tensor(self, value: Value, position: int) -> Any:
        """A saved value as a tensor on the graph: operand `position`, or result `~position`."""
        t = Hooks.wrap(value)
        if position >= 0:
            connect(t, self.edges[position])
        else:
            connect(t, self if ~position == 0 else OutEdge(self, ~position))
        return t

    def _damage(self, k: int, storage: Any, version: int) -> str:
        inputs, outputs = self.plan.inputs, self.plan.outputs
        value = self.saved[k][0]
        if k < len(inputs):
            edge = self.edges[inputs[k]] if inputs[k] < len(self.edges) else None
            return damage_text(value.aval, current_edge(storage, value.aval, edge), storage.version, version)
        return damage_text(value.aval, OutEdge(self, outputs[k - len(inputs)]), storage.version, version)

    def pull(self, grads: list, keep: bool) -> Sequence:
        plan = self.plan
        found = plan.pull
        if None in grads:
            given = tuple([g is not None for g in grads])
            grads = [g for g in grads if g is not None]
            found = pullback(plan.kernel, plan.need, given)
        if plan.whole:
            return self._pull_whole(found, grads, keep)
        if plan.saves:
            return record(found, (), (*self._kept_values(keep), *grads))
        return record(found, (), grads)

    def _pull_whole(self, found: Any, grads: list, keep: bool) -> Sequence:
        plan = self.plan
        values = self._kept_values(keep)
        if any(found.given[k] for k in _untaken(plan.kernel)):
            return record(whole_pullback(found), (), (*values[plan.count :], *grads))
        return record(found, (), (*values[: plan.count], *grads))

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        given = tuple(g is not None for g in grads)
        found = pullback(self.plan.kernel, self.plan.need, given)
        inputs, outputs = found.plan
        values = self._kept_values(keep)
        if self.plan.whole:
            found, values = whole_pullback(found), values[self.plan.count :]
            inputs, outputs = tuple(range(len(values))), ()
        operands: list = []
        for k, v in zip((*inputs, *(~o for o in outputs)), values, strict=True):
            if type(v) is not Value:
                operands.append(v)
                continue
            operands.append(self._kept_tensor(v, k))
        operands += [g for g in grads if g is not None]
        return Hooks.apply(found, (), operands, many=True)


def whole_pullback(found: Pullback) -> Pullback:
    """The same gradient by `jax.vjp` of the forward kernel, from all of its operands."""
    key = (found.need, found.given, "whole")
    made = found.forward.pullbacks.get(key)
    if made is None:
        made = found.forward.pullbacks[key] = WholePullback(found.forward, found.need, found.given)
    return made


def pack(tensor: Any, pack_hook: Callable, unpack_hook: Callable) -> "Packed":
    """Let the user's hook pack a tensor (given without history)."""
    before = MODE.enabled
    MODE.enabled = False
    try:
        version = tensor._s.version
        packed = pack_hook(tensor)
        if tensor._s.version != version:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
                "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )
    finally:
        MODE.enabled = before
    return Packed(packed, unpack_hook, tensor._aval)


class WholePullback(Pullback):
    """A pullback that takes all operands and uses no rule."""

    def __init__(self, forward: Any, need: tuple[bool, ...], given: tuple[bool, ...]) -> None:
        super().__init__(forward, need, given)
        self.plan = tuple(range(len(forward.specs))), ()
        self.by_rule = False


class Mutation:
    """`torch.autograd.graph.allow_mutation_on_saved_tensors`: saved values never change here, so no check is needed."""

    allowed = False


class Packed:
    """What a pack hook made of a saved tensor (`torch.autograd.graph.saved_tensors_hooks`)."""

    __slots__ = ("aval", "packed", "unpack_hook")

    def __init__(self, packed: Any, unpack_hook: Callable, aval: Aval) -> None:
        self.packed = packed
        self.unpack_hook = unpack_hook
        self.aval = aval

    def unpack(self) -> Value:
        """The saved value, as the user's hook gives it back."""
        before = MODE.enabled
        MODE.enabled = False
        try:
            tensor = self.unpack_hook(self.packed)
        finally:
            MODE.enabled = before
        if not hasattr(tensor, "_aval"):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type " + str(type(tensor))
            )
        return tensor._read()


def current_edge(storage: Any, a: Aval, saved: Any) -> Any:
    """Where the tensor over `storage` hangs now: error messages name the operation that wrote to it last."""
    node = saved.node if type(saved) is OutEdge else saved
    if isinstance(node, OpNode) and getattr(node.plan.kernel.op, "view", False):
        return saved  # it was a view
    for t in gc.get_referrers(storage):
        if getattr(t, "_s", None) is storage and hasattr(t, "_aval") and t._aval is a and t._silent is None:
            edge = t._edge()
            if edge is not None:
                return edge
    return saved


def damage_text(a: Aval, edge: Any, now: int, expected: int) -> str:
    """PyTorch's text for a saved tensor that was modified in place."""
    name = f"CPU{a.dtype.scalar_name}Type" if a.dtype.is_complex else a.dtype.type_name
    kind = f"[{name} [{', '.join(map(str, a.shape))}]]"
    node, nr = (edge.node, edge.nr) if type(edge) is OutEdge else (edge, 0)
    source = f", which is output {nr} of {short_name(node)}," if isinstance(node, Node) else ""
    hint = (
        "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
        "question was changed in there or anywhere later. Good luck!"
        if Anomaly.enabled
        else "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"{kind}{source} is at version {now}; expected version {expected} instead. {hint}"
    )


def short_name(node: Node) -> str:
    """A node's name as error messages give it: the operator's. Views are remade as AsStrided by then."""
    if isinstance(node, OpNode) and getattr(node.plan.kernel.op, "strided", False):
        return "AsStrided"
    return operator_name(node)


def operator_name(node: Node) -> str:
    """'Exp' of ExpBackward0, 'Squeeze1' of SqueezeBackward1."""
    return re.sub(r"Backward(?!s)(0$)?", "", node.name())


def note_stack(node: Node) -> None:
    """Anomaly mode: remember where the forward call was made."""
    node.extra = {**(node.extra or {}), **forward_call()}


PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def forward_call() -> dict:
    """Where the user's program is now (our own frames left out), and the node whose gradient is being computed."""
    frames = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((PACKAGE, "<torchlike", "<frozen runpy")):
            frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    stack = traceback.StackSummary.extract(reversed(frames))
    return {"stack": stack.format(), "parent": Running.node}


def user_level() -> int:
    """The `stacklevel` that makes a warning given by the caller point at the user's own line."""
    level = 1
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, "<torchlike")):
        level += 1
        frame = frame.f_back
    return level


class _Running(threading.local):
    """Of a thread: the walk that is under way, and its current node."""

    node: Any = None
    walk: Any = None


Running = _Running()


def connect(tensor: Any, edge: Any) -> None:
    """Put a wrapped saved value back on the graph where it came from."""
    if edge is None or not _differentiable(tensor._aval):
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
        if self.variable._hooks is None:
            self.variable._hooks = {}

        def first(g: Any) -> Any:
            result = hook((g,))
            return result[0] if isinstance(result, tuple) else result

        return RemovableHandle(self.variable._hooks, first, keep=self)


def accumulator(leaf: Any) -> AccumulateGrad:
    """The AccumulateGrad of a leaf: the same object for as long as someone holds it."""
    reference = leaf._accumulator
    found = reference() if reference is not None else None
    if found is None:
        found = AccumulateGrad(leaf)
        leaf._accumulator = weakref.ref(found)
    return found


def public_edge(edge: Any) -> tuple:
    """(node, result number) as users see it."""
    if edge is None:
        return (None, 0)
    if type(edge) is OutEdge:
        return (named(edge.node), edge.nr)
    if isinstance(edge, AccumulateEdge):
        return (accumulator(edge.edges[0]), 0)
    if isinstance(edge, Node):
        return (named(edge), 0)
    return (accumulator(edge), 0)


def inner_edge(edge: GradientEdge) -> Any:
    """What the tape itself keeps for a GradientEdge."""
    if isinstance(edge.node, AccumulateGrad):
        return edge.node.variable
    return edge.node if edge.output_nr == 0 else OutEdge(edge.node, edge.output_nr)


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

    def __getstate__(self) -> tuple:
        state = (self._hooks, self.id)
        return (*state, tuple(self._extra)) if self._extra else state

    def __setstate__(self, state: tuple) -> None:
        # PyTorch's pickles hold the same tuple; a table that is gone stands there as None.
        self._hooks = {} if state[0] is None else state[0]
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self._extra = list(state[2] or ()) if len(state) > 2 else []
        self._keep = None

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


def move_retained(tensor: Any, edge: Any) -> None:
    """A tensor that keeps its gradient was written to: from now on it is the result of another node."""
    old = tensor._gf
    node, nr = (old.node, old.nr) if type(old) is OutEdge else (old, 0)
    reference = (node.extra or {}).get("retain", {}).pop(nr, None) if isinstance(node, Node) else None
    if reference is not None and edge is not None:
        node, nr = (edge.node, edge.nr) if type(edge) is OutEdge else (edge, 0)
        node._extra("retain")[nr] = reference


def ones_like(aval: Aval) -> Value:
    """A gradient of one."""
    return record(ONES, (("aval", aval),), ())[0]


def zeros_like(aval: Aval) -> Value:
    return record(ZEROS, (("aval", aval),), ())[0]


Node.__module__ = GradientEdge.__module__ = "torch.autograd.graph"
AccumulateGrad.__module__ = "builtins"
