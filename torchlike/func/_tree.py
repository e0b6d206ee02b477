"""Nested containers of tensors: taken apart and put together again, and printed as PyTorch prints their structure."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any


class Spec:
    """The structure of a nested container. `kind` is None for a leaf; `context`: what rebuilding needs."""

    __slots__ = ("children", "context", "count", "kind")
    count: int

    def __init__(self, kind: Any, context: Any, children: tuple["Spec", ...]) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.count = 1 if kind is None else sum(c.count for c in children)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Spec)
            and self.kind == other.kind
            and self.context == other.context
            and self.children == other.children
        )

    __hash__ = None  # type: ignore[assignment]

    def short(self) -> str:
        """As in '(*, *)'."""
        inner = [c.short() for c in self.children]
        if self.kind is None:
            return "*"
        if self.kind is tuple:
            return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"
        if self.kind is list:
            return f"[{', '.join(inner)}]"
        if self.kind is dict:
            return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(self.context, inner, strict=True)) + "}"
        return f"{self.kind.__name__}({', '.join(inner)})"

    def __repr__(self, indent: int = 0) -> str:
        if self.kind is None:
            return "*"
        lead = f"TreeSpec({self.kind.__name__}, {self.context}, ["
        deeper = indent + 2
        parts = [c.__repr__(deeper) for c in self.children]
        if not parts:
            return lead + "])"
        return lead + parts[0] + "".join(f",\n{' ' * deeper}{p}" for p in parts[1:]) + "])"


LEAF = Spec(None, None, ())


def _node(x: Any) -> tuple[Any, Any, list] | None:
    """(kind, context, children) of a container, None for a leaf."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind, None, list(x)
    if kind is dict or kind is OrderedDict:
        return kind, list(x), list(x.values())
    if kind is defaultdict:
        return kind, [x.default_factory, list(x)], list(x.values())
    if kind is deque:
        return kind, x.maxlen, list(x)
    if isinstance(x, tuple) and (hasattr(kind, "_fields") or hasattr(kind, "n_sequence_fields")):
        return kind, kind, list(x)
    return None


def flatten(tree: Any) -> tuple[list, Spec]:
    """(leaves in order, structure)."""
    leaves: list = []

    def visit(x: Any) -> Spec:
        node = _node(x)
        if node is None:
            leaves.append(x)
            return LEAF
        kind, context, children = node
        return Spec(kind, context, tuple(visit(c) for c in children))

    spec = visit(tree)
    return leaves, spec


def unflatten(leaves: Sequence, spec: Spec) -> Any:
    """The container of this structure with these leaves."""
    rest = iter(leaves)

    def build(s: Spec) -> Any:
        if s.kind is None:
            return next(rest)
        children = [build(c) for c in s.children]
        if s.kind is tuple or s.kind is list:
            return s.kind(children)
        if s.kind is dict or s.kind is OrderedDict:
            return s.kind(zip(s.context, children, strict=True))
        if s.kind is defaultdict:
            return defaultdict(s.context[0], zip(s.context[1], children, strict=True))
        if s.kind is deque:
            return deque(children, s.context)
        return s.kind(*children) if hasattr(s.kind, "_fields") else s.kind(children)

    return build(spec)


def tree_map(function: Callable, tree: Any) -> Any:
    """The same container of function(leaf)."""
    leaves, spec = flatten(tree)
    return unflatten([function(x) for x in leaves], spec)


def broadcast(prefix: Any, spec: Spec) -> list | None:
    """One entry of `prefix` for each leaf of `spec`: a leaf of the prefix stands for a whole subtree. None if it does
    not fit."""
    node = _node(prefix)
    if spec.kind is None or node is None:
        return None if node is not None else [prefix] * spec.count
    kind, context, children = node
    if kind is not spec.kind or context != spec.context or len(children) != len(spec.children):
        return None
    out: list = []
    for c, s in zip(children, spec.children, strict=True):
        part = broadcast(c, s)
        if part is None:
            return None
        out += part
    return out
