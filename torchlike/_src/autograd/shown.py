"""What users see of operator nodes: edges as PyTorch lists them, and saved values as attributes."""

from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.autograd.tape import FREED, Hooks, Node, OpNode, OutEdge, Packed, pack, public_edge
from torchlike._src.core.aval import Aval
from torchlike._src.ops.declare import S

WRAPS = {"add", "sub", "mul", "div"}
"""PyTorch makes tensors of the Python numbers in these, so that they count as operands."""


def slots(node: OpNode) -> list[int | None]:
    """The operands that PyTorch counts as differentiable, in order; None for an optional one left out, and for a
    number in the place of a tensor."""
    kernel = node.plan.kernel
    found = kernel.cache.get("slots")
    if found is None:
        found = kernel.cache["slots"] = _slots(kernel)
    return found


def _slots(kernel: Any) -> list[int | None]:
    op, specs = kernel.op, kernel.specs
    operands = getattr(op, "operands", None)
    if operands is None:
        return [k for k, s in enumerate(specs) if type(s) is Aval]
    if op.name in WRAPS and type(specs[0]) is str:  # 2 * x is x * 2, and 1 - x has a node of its own
        return [1, None] if op.name in ("add", "mul") else [1]
    counts = [-1] * len(operands) if op.simple else kernel.static[-1]
    out: list[int | None] = []
    position = 0
    for (name, annotation), count in zip(operands, counts, strict=True):
        known = annotation is not S and (op.vjp is None or name in op.vjp)
        if count is None:
            out += [None] if known else []
            continue
        for _ in range(abs(count)):
            spec = specs[position]
            if type(spec) is str:
                out += [None] if known and op.name in WRAPS else []
            elif known and (op.vjp is not None or spec.dtype.is_floating_point or spec.dtype.is_complex):
                out.append(position)
            position += 1
    return out


class ShownNode(Node):
    """A node that PyTorch's graph has and ours does not (the transpose of a linear layer's weight): to be looked at."""

    __slots__ = ("_name",)

    def __init__(self, name: str, edges: tuple) -> None:
        super().__init__(edges, ())
        self._name = name

    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<{self._name} object at {id(self):#x}>"

    def register_hook(self, hook: Callable) -> Any:
        """Not possible: gradients do not pass through this node."""
        raise NotImplementedError(
            f"torchlike: a hook on {self._name} inside a linear layer; register it on a tensor instead"
        )

    register_prehook = register_hook


_shown_classes: dict[str, type] = {}


def shown(name: str, edges: tuple) -> ShownNode:
    """A node to look at, of a class with PyTorch's name."""
    found = _shown_classes.get(name)
    if found is None:
        found = _shown_classes[name] = type(name, (ShownNode,), {"__slots__": (), "__module__": "builtins"})
    return found(name, edges)


def next_functions(node: OpNode) -> tuple:
    """((node or None, number), …) as PyTorch lists them."""
    edges = node.edges
    if node.plan.kernel.op.name == "linear" and node.plan.label is None:
        return _linear(node)
    out = [(None, 0) if k is None else public_edge(edges[k]) for k in slots(node)]
    label = node.label()
    if label in ("ZeroBackward0", "FillBackward2"):
        del out[1:]
    elif label == "MulBackward0" and len(out) == 1:
        out.append((None, 0))  # dropout's mask
    return tuple(out)


def _linear(node: OpNode) -> tuple:
    """PyTorch computes a linear layer as addmm(bias, input, weight.t()), with views around it unless input is 2-d."""
    kept = node._extra("shown")
    if "nodes" not in kept:
        kept["nodes"] = _linear_nodes(node)
    return tuple(public_edge(e) for e in kept["nodes"])


def _linear_nodes(node: OpNode) -> list:
    edges, specs = node.edges, node.plan.kernel.specs
    given, weight = edges[0], edges[1]
    if len(specs[1].shape) == 1:
        return list(edges)
    transposed = None if weight is None else shown("TBackward0", (weight,))
    flat = len(specs[0].shape) == 2
    if not flat and given is not None:
        given = shown("ViewBackward0", (given,))
    if len(edges) == 2 or edges[2] is None and len(specs) == 2:
        inner: tuple[str, tuple] = ("MmBackward0", (given, transposed))
    else:
        inner = ("AddmmBackward0", (edges[2], given, transposed))
    return list(inner[1]) if flat else [shown(*inner)]


def attribute(node: OpNode, name: str) -> Any:
    """`_saved_NAME` and `_raw_saved_NAME`."""
    if name.startswith("_saved_"):
        found = saved_attributes(node).get(name[7:])
        if found is not None:
            return found()
    if name.startswith("_raw_saved_"):
        positions = saved_positions(node).get(name[11:])
        if positions is not None:
            made = [SavedTensor(node, k) for k in positions]
            return made[0] if len(made) == 1 else tuple(made)
    raise AttributeError(f"'{node.label()}' object has no attribute '{name}'")


def attribute_names(node: OpNode) -> Sequence[str]:
    """The names of what `attribute` can give."""
    return [f"_saved_{n}" for n in saved_attributes(node)] + [f"_raw_saved_{n}" for n in saved_positions(node)]


def saved_positions(node: OpNode) -> dict[str, list[int]]:
    """PyTorch's name of each saved tensor -> where in `saved` it is."""
    kernel = node.plan.kernel
    op = kernel.op
    names = op.names(kernel.static, len(kernel.specs)) if hasattr(op, "names") else ["self", "other"]
    out: dict[str, list[int]] = {}
    for k, position in enumerate(node.plan.inputs):
        if position < len(kernel.specs) and type(kernel.specs[position]) is not str:
            name = names[position] if position < len(names) else f"operand{position}"
            out.setdefault("self" if name == "input" and getattr(op, "method", False) else name, []).append(k)
    for k, position in enumerate(node.plan.outputs, len(node.plan.inputs)):
        out["result" if len(kernel.outs) == 1 else f"result{position}"] = [k]
    return out


def saved_attributes(node: OpNode) -> dict[str, Callable]:
    """What users can read as `_saved_NAME`: saved tensors, and static arguments (dim, keepdim, …)."""
    kernel = node.plan.kernel
    statics = getattr(kernel.op, "statics", ())
    out: dict[str, Callable] = {
        n: (lambda v=v: v)
        for n, v in zip(statics, kernel.static, strict=False)
        if isinstance(v, (int, float, str, tuple, type(None)))
    }
    for name, positions in saved_positions(node).items():
        out[name] = lambda positions=positions: _saved(node, positions)
    return out


def _saved(node: OpNode, positions: list[int]) -> Any:
    values = node._kept_values(True)
    where = (*node.plan.inputs, *(~o for o in node.plan.outputs))
    out = []
    for k in positions:
        edge = node.edges[where[k]] if where[k] >= 0 else None
        leaf = edge is not None and not isinstance(edge, (Node, OutEdge)) and edge._read() is values[k]
        out.append(edge if leaf else node._kept_tensor(values[k], where[k]))
    return out[0] if len(out) == 1 else tuple(out)


class SavedTensor:
    """`_raw_saved_NAME`: one saved tensor, for registering hooks of its own."""

    def __init__(self, node: OpNode, position: int) -> None:
        self._node = node
        self._position = position

    @property
    def data(self) -> Any:
        """The saved tensor, without history."""
        return self.unpack().detach()

    def unpack(self) -> Any:
        """The saved tensor."""
        return _saved(self._node, [self._position])

    def register_hooks(self, pack_hook: Callable, unpack_hook: Callable) -> None:
        """Replace the saved tensor by what pack_hook makes of it, until backward asks unpack_hook for it."""
        node, k = self._node, self._position
        if node.saved is None:
            raise RuntimeError(FREED)
        value = node.saved[k][0]
        if type(value) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        packed = pack(Hooks.wrap(value), pack_hook, unpack_hook)
        node.saved = (*node.saved[:k], (packed, None, 0), *node.saved[k + 1 :])


SavedTensor.__module__ = "torch._C._autograd"
Hooks.next_functions = staticmethod(next_functions)
Hooks.attribute = staticmethod(attribute)
Hooks.attribute_names = staticmethod(attribute_names)
