"""torch.utils._pytree: containers as flat lists of leaves and back.

Lists, tuples, dicts, named tuples, OrderedDict, defaultdict and deque are containers, and what `register_pytree_node`
adds; anything else, None too, is a leaf."""

import collections
import dataclasses
import functools
import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[PyTree], bool] | None


# -- keys -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """A position in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """A key of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]


def keystr(kp: KeyPath) -> str:
    """A path as it would be written after a name: ['a'][1]."""
    return "".join(str(k) for k in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies at a path."""
    for k in kp:
        obj = k.get(obj)
    return obj


# -- kinds of containers --------------------------------------------------------------------------------------


@dataclasses.dataclass
class NodeDef:
    """How containers of one class are taken apart and put together."""

    type: type
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable | None
    serialized_type_name: str | None = None
    to_dumpable_context: ToDumpableContextFn | None = None
    from_dumpable_context: FromDumpableContextFn | None = None


SUPPORTED_NODES: dict[type, NodeDef] = {}


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Make a class a container. ValueError if it is one already."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(
        cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name, to_dumpable_context,
        from_dumpable_context,
    )  # fmt: skip


_register_pytree_node = register_pytree_node


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class is a named tuple's."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple(obj: object | type) -> bool:
    """Whether it is a named tuple, or such a class."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is one of Python's own structures, or of torch.return_types."""
    return (
        isinstance(cls, type) and cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_sequence_fields", None), int)
    )


def is_structseq(obj: object | type) -> bool:
    """Whether it is a structure sequence, or such a class."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: object) -> bool:
    """Whether it is a structure sequence."""
    return is_structseq_class(type(obj))


def _sequence(cls: type) -> None:
    def with_keys(d: Any) -> tuple[list, Any]:
        return [(SequenceKey(i), v) for i, v in enumerate(d)], None

    register_pytree_node(
        cls, lambda d: (list(d), None), lambda v, c: cls(v), serialized_type_name=f"builtins.{cls.__name__}",
        flatten_with_keys_fn=with_keys,
    )  # fmt: skip


def _mapping_keys(d: Any) -> tuple[list, Any]:
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


_sequence(list)
_sequence(tuple)
register_pytree_node(
    dict, lambda d: (list(d.values()), list(d)), lambda v, keys: dict(zip(keys, v, strict=True)),
    serialized_type_name="builtins.dict", flatten_with_keys_fn=_mapping_keys,
)  # fmt: skip
register_pytree_node(
    collections.OrderedDict,
    lambda d: (list(d.values()), list(d)),
    lambda v, keys: collections.OrderedDict(zip(keys, v, strict=True)),
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=_mapping_keys,
)
register_pytree_node(
    collections.namedtuple,  # type: ignore[arg-type]  # stands for all named tuples
    lambda d: (list(d), type(d)),
    lambda v, cls: cls(*v),
    serialized_type_name="collections.namedtuple",
    flatten_with_keys_fn=lambda d: ([(GetAttrKey(f), v) for f, v in zip(d._fields, d, strict=True)], type(d)),
)
register_pytree_node(
    collections.defaultdict,
    lambda d: (list(d.values()), [d.default_factory, list(d)]),
    lambda v, c: collections.defaultdict(c[0], zip(c[1], v, strict=True)),
    serialized_type_name="collections.defaultdict",
    flatten_with_keys_fn=lambda d: ([(MappingKey(k), v) for k, v in d.items()], [d.default_factory, list(d)]),
)
register_pytree_node(
    collections.deque,
    lambda d: (list(d), d.maxlen),
    lambda v, size: collections.deque(v, maxlen=size),
    serialized_type_name="collections.deque",
    flatten_with_keys_fn=lambda d: ([(SequenceKey(i), v) for i, v in enumerate(d)], d.maxlen),
)
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)


def _node_type(tree: Any) -> Any:
    return collections.namedtuple if is_namedtuple_instance(tree) and type(tree) not in SUPPORTED_NODES else type(tree)


# Other libraries use PyTorch's names.
_get_node_type = _node_type
_dict_flatten_with_keys = _mapping_keys
_dict_flatten = SUPPORTED_NODES[dict].flatten_fn
_dict_unflatten = SUPPORTED_NODES[dict].unflatten_fn


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether it is no container, or one that `is_leaf` keeps whole."""
    return is_leaf is not None and bool(is_leaf(tree)) or _node_type(tree) not in SUPPORTED_NODES


# -- structures -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(init=False, eq=True, repr=False)
class TreeSpec:
    """The structure of a tree, without its leaves."""

    type: Any
    _context: Context
    _children: list["TreeSpec"]

    def __init__(self, type: Any, context: Context, children_specs: list["TreeSpec"]) -> None:
        self.type = type
        self._context = context
        self._children = children_specs
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children_specs)
        self.num_leaves: int = sum(c.num_leaves for c in children_specs) if type is not None else 1
        self.num_children = len(children_specs)

    @property
    def context(self) -> Context:
        return self._context

    @property
    def children_specs(self) -> list["TreeSpec"]:
        return self._children

    def children(self) -> list["TreeSpec"]:
        """The structures of what it contains."""
        return list(self._children)

    def child(self, index: int) -> "TreeSpec":
        """The structure of one of its elements."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether it is a single leaf."""
        return self.type is None

    def __hash__(self) -> int:
        return hash((self.type, str(self._context), tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        inner = ""
        if self._children:
            indent += 2
            parts = [child.__repr__(indent) for child in self._children]
            inner = parts[0] + "".join(",\n" + " " * indent + p for p in parts[1:])
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"

    def __str__(self) -> str:
        return repr(self)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of a tree at this structure's leaves. ValueError if the tree is shaped otherwise."""
        if self.type is None:
            return [tree]
        if _node_type(tree) is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {_node_type(tree)!r}.")
        children, context = SUPPORTED_NODES[self.type].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if context != self._context:
            if isinstance(self._context, list) and isinstance(tree, dict) and set(tree) == set(self._context):
                children = [tree[k] for k in self._context]
            else:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return [
            leaf for child, spec in zip(children, self._children, strict=True) for leaf in spec.flatten_up_to(child)
        ]

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves. ValueError for another number of them."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        if self.type is None:
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a single leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and other.type is None

    __hash__ = TreeSpec.__hash__


_LEAF = LeafSpec()


# -- flat and back --------------------------------------------------------------------------------------------


def _flatten(tree: PyTree, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = _node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """(leaves, structure)"""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of this structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
    else:
        for child in SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)[0]:
            yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree of func(leaf, and the leaves of the other trees at the same place)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(r) for r in rests]))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call func on each leaf; returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    collections.deque(map(func, leaves, *[spec.flatten_up_to(r) for r in rests]), maxlen=0)
    return tree


def _chooses(wanted: Any) -> Callable[[Any], bool]:
    if isinstance(wanted, type) or isinstance(wanted, tuple) or not callable(wanted):
        return lambda x: isinstance(x, wanted)
    return wanted  # type: ignore[no-any-return]


def map_only(type_or_types_or_pred: Any, /) -> Callable:
    """A decorator: the function is applied to such leaves alone, others stay."""
    chosen = _chooses(type_or_types_or_pred)

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def call(x: Any) -> Any:
            return func(x) if chosen(x) else x

        return call

    return decorate


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map for leaves of a type, or that a predicate chooses."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map_ for leaves of a type, or that a predicate chooses."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves satisfy pred."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf satisfies pred."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of these types satisfy pred."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable, tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a leaf of these types satisfies pred."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


# -- with paths -----------------------------------------------------------------------------------------------


def _with_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) of each leaf."""
    return list(_with_paths((), tree, is_leaf))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """([(path, leaf), ...], structure)"""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """tree_map of func(path, leaf, ...)."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [p for p, _ in found], [v for _, v in found]
    return spec.unflatten(map(func, paths, leaves, *[spec.flatten_up_to(r) for r in rests]))


# -- structures as text ---------------------------------------------------------------------------------------


def _encode(spec: TreeSpec) -> dict[str, Any]:
    if spec.type is None:
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[spec.type]
    if node.serialized_type_name is None:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")  # fmt: skip
    context = spec.context
    if node.to_dumpable_context is not None:
        context = node.to_dumpable_context(context)
    elif isinstance(context, type):
        context = f"{context.__module__}.{context.__qualname__}"
    elif spec.type is collections.defaultdict:
        context = [f"{context[0].__module__}.{context[0].__qualname__}" if context[0] else None, context[1]]
    return {
        "type": node.serialized_type_name,
        "context": json.dumps(context),
        "children_spec": [_encode(c) for c in spec.children_specs],
    }


def _named(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _decode(content: dict[str, Any]) -> TreeSpec:
    if content["type"] is None:
        return _LEAF
    node = next((n for n in SUPPORTED_NODES.values() if n.serialized_type_name == content["type"]), None)
    if node is None:
        raise NotImplementedError(f"Deserializing `{content['type']}` in pytree is not registered.")
    context = json.loads(content["context"])
    if node.from_dumpable_context is not None:
        context = node.from_dumpable_context(context)
    elif node.type is collections.namedtuple:
        context = _named(context)
    elif node.type is collections.defaultdict:
        context = [_named(context[0]) if context[0] else None, context[1]]
    return TreeSpec(node.type, context, [_decode(c) for c in content["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON: [protocol, structure]. Protocol 1 is the only one."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be an instance of TreeSpec but got item of "
            f"type {type(treespec)}."
        )
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, _encode(treespec)))


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure of `treespec_dumps`."""
    protocol, content = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _decode(content)


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as a tree of stars."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


class _Star:
    def __repr__(self) -> str:
        return "*"
