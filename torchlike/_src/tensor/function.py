"""torch.autograd.Function: operations with a gradient of the user's own."""

import functools
import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from torchlike._src.autograd import tape
from torchlike._src.autograd.dual import (
    FORWARD,
    LiftBackward,
    dual_of,
    has_tangent,
    make,
    primal_at,
    tangent_at,
)
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import FREED, Node, OutEdge
from torchlike._src.core.aval import Aval
from torchlike._src.engine.record import SLOW
from torchlike._src.ops import views as ops
from torchlike._src.storage.storage import FUNCTION, View, contiguous_strides
from torchlike._src.tensor import composite_vmap
from torchlike._src.tensor.call import LEAF_VIEW_INPLACE, SavedHooks, become, count_write, record_taped, write
from torchlike._src.tensor.composite_vmap import STACK
from torchlike._src.tensor.tensor import Tensor, TensorBase, alias, wrap


class FunctionCtx:
    """What `forward` and `backward` share."""

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs for backward; in-place changes of them are then errors."""
        for t in tensors:
            if t is not None and not isinstance(t, TensorBase):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {tensors.index(t)} is of type "
                    f"{type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp (forward mode)."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """These inputs were modified in place."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """These outputs have no gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that did not arrive reach backward as zeros (True) or None."""
        self._materialize = value

    def mark_shared_storage(self, *pairs: Any) -> None:
        raise ValueError(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked"
        )


class BackwardFunction(Node, FunctionCtx):
    """The node of one call of a Function, and the ctx that the user's methods get."""

    __slots__ = ("__dict__",)

    runs_without_gradient = True
    _to_save: tuple = ()
    _dirty: tuple = ()
    _non_differentiable: tuple = ()
    _materialize = True
    _saved: Any = ()
    _forward = False
    saved_for_forward: Any = None
    needs_input_grad: tuple = ()
    _is_tensor: Sequence[bool]
    _input_avals: Sequence[Aval]

    def __init__(self, cls: Any, edges: tuple) -> None:
        Node.__init__(self, edges, ())
        self._forward_cls = cls

    def name(self) -> str:
        return self._forward_cls.__name__ + "Backward"

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{self.name()} object at {id(self):#x}>"

    def apply(self, *args: Any) -> Any:
        """Call the user's backward."""
        return self._forward_cls.backward(self, *args)

    @property
    def saved_tensors(self) -> tuple:
        """What save_for_backward kept; RuntimeError after it was freed or modified in place."""
        if self._forward and self.saved_for_forward is not None:
            return tuple(self.saved_for_forward)
        if self._saved is None:
            raise RuntimeError(FREED)
        out: list = []
        for item in self._saved:
            if item is None:
                out.append(None)
                continue
            value, storage, version, edge = item
            if storage is None:
                value = value.unpack()
            elif storage.version != version and not tape.Mutation.allowed:
                at = OutEdge(self, edge[1]) if isinstance(edge, tuple) else tape.current_edge(storage, value.aval, edge)
                raise RuntimeError(tape.damage_text(value.aval, at, storage.version, version))
            t = wrap(value)
            if isinstance(edge, tuple):
                t._rg = True
                t._gf = self if edge[1] == 0 else OutEdge(self, edge[1])
            elif isinstance(edge, Tensor) and edge._read() is value:
                t = edge
            else:
                tape.connect(t, edge)
            out.append(t)
        return tuple(out)

    saved_variables = saved_tensors

    def _pull(self, grads: Sequence, keep: bool) -> list:
        full = []
        for g, a in zip(grads, self.outs, strict=True):
            if g is None and self._materialize:
                g = wrap(tape.zeros_like(a))
            full.append(g)
        if self._saved is None:
            raise RuntimeError(FREED)
        cls = self._forward_cls
        vjp = cls.__dict__.get("vjp", None)
        result = (vjp or cls.backward)(self, *full)
        if not keep:
            self._saved = None if self._saved else ()
        results = list(result) if isinstance(result, tuple) else [result]
        count = len(self._is_tensor)
        if len(results) > count and all(r is None for r in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got "
                f"{len(results)})"
            )
        out = []
        edges = iter(self.edges)
        for k, (here, r) in enumerate(zip(self._is_tensor, results, strict=True)):
            if not here:
                if r is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than None at position {k + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            if next(edges) is None:
                continue
            if r is not None and not isinstance(r, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
            out.append(None if r is None else self._fit(r, k))
        return out

    def _fit(self, g: Tensor, k: int) -> Tensor:
        want = self._input_avals[k]
        if g._aval.shape != want.shape:
            lead = g._aval.ndim - want.ndim
            fits = lead >= 0 and all(b in (1, a) for a, b in zip(g._aval.shape[lead:], want.shape, strict=True))
            if not fits:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {k} - got {list(g._aval.shape)} but "
                    f"expected shape compatible with {list(want.shape)}"
                )
            from torchlike._src.tensor.namespace import torch

            dims = tuple(range(lead)) + tuple(
                lead + d for d, n in enumerate(want.shape) if n == 1 and g._aval.shape[lead + d] != 1
            )
            g = torch.sum(g, dims, keepdim=False).reshape(want.shape) if dims else g.reshape(want.shape)
        if g._aval.dtype is not want.dtype:
            g = g.to(want.dtype)
        return g

    def pull(self, grads: list, keep: bool) -> Sequence:
        tensors = [None if g is None else wrap(g) for g in grads]
        return [None if g is None else g._read() for g in self._pull(tensors, keep)]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        return self._pull(grads, keep)


class FunctionMeta(type):
    """Gives each Function its backward node class, so that isinstance and names work as in PyTorch."""

    def __init__(cls, name: str, bases: tuple, attrs: dict) -> None:
        backward_name = name + "Backward"
        cls._backward_cls = type(backward_name, (BackwardFunction,), {"__slots__": ()})
        super().__init__(name, bases, attrs)


class _SingleLevelFunction(metaclass=FunctionMeta):
    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation: forward(ctx, *args), or forward(*args) with setup_context(ctx, inputs, output)."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Save what backward needs, where forward has no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of forward's arguments from those of its results."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Forward-mode derivative."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )


class Function(_SingleLevelFunction):
    """An operation with its own gradient: subclass, define static `forward` and `backward`, call `apply`."""

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run forward, and put this call on the tape if an argument requires grad."""
        separate = cls.setup_context is not _SingleLevelFunction.setup_context
        if STACK.depth and not separate:
            raise RuntimeError(NO_SETUP)
        if STACK.levels and not kwargs:
            found = composite_vmap.apply_function(cls, args)
            if found is not NotImplemented:
                return found
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, {}
        return _apply(cls, args, kwargs, separate)


NO_SETUP = (
    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
    "the setup_context staticmethod. For more details, please see "
    "https://pytorch.org/docs/main/notes/extending.func.html"
)


def _dual_levels(args: tuple) -> list:
    """The levels of forward mode that some argument is dual at, outermost last."""
    found = set()
    for a in args:
        d = dual_of(a._read()) if isinstance(a, TensorBase) else None
        while d is not None:
            if d.level.active and d.level.number < FORWARD.limit:
                found.add(d.level)
            d = dual_of(d.primal)
    return sorted(found, key=lambda level: level.number)


def _lift(args: tuple, edges: tuple, levels: list) -> tuple:
    """The edges of a call on dual tensors: gradients of plain arguments are taken out of their pairs."""
    tensors = [a for a in args if isinstance(a, TensorBase)]
    out = []
    for t, e in zip(tensors, edges, strict=True):
        for level in levels if e is not None else ():
            if not has_tangent(t._read(), level):
                e = LiftBackward(e, level)
        out.append(e)
    return tuple(out)


NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
    "input inplace, then the jvp function must modify the corresponding gradient inplace."
)
NOT_AS_IS = (
    "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an "
    "input inplace, then the jvp function must modify the gradient inplace and return it as-is."
)


def _push(cls: Any, node: Any, args: tuple, results: list, levels: list) -> None:
    """Forward mode: give the results the tangents that the user's jvp makes."""
    changed = {id(t) for t in node._dirty}
    before = MODE.enabled, FORWARD.limit
    MODE.enabled = False
    node._forward = True
    try:
        for k, level in enumerate(levels):
            FORWARD.limit = level.number
            given = [_tangent(a, level, levels[k + 1 :], node._materialize) for a in args]
            tangents = cls.jvp(node, *given)
            found = tangents if isinstance(tangents, tuple) else (tangents,)
            if len(found) != len(results):
                raise RuntimeError(
                    f"Function's jvp returned an invalid number of forward gradients (expected {len(results)} but got "
                    f"{len(found)})"
                )
            for o, t in zip(results, found, strict=True):
                if id(o) in changed and not any(t is g for g in given):
                    raise RuntimeError(
                        NOT_AS_IS if any(g is not None and g._s.version for g in given) else NOT_IN_PLACE
                    )
                if isinstance(o, Tensor) and t is not None and o._view is None:
                    _set_tangent(o, t, level)
    finally:
        MODE.enabled, FORWARD.limit = before
        node._forward = False


def _drop_tangents(outputs: list, args: tuple, dirty: tuple, levels: list) -> None:
    kept = {id(a) for a in args} - {id(t) for t in dirty}
    for o in outputs:
        if isinstance(o, TensorBase) and o._view is None and id(o) not in kept:
            for level in levels:
                o._s.value = primal_at(o._s.value, level)


def _tangent(a: Any, level: Any, above: list, materialize: bool) -> Any:
    if not isinstance(a, TensorBase):
        return None
    v = a._read()
    for outer in above:
        v = primal_at(v, outer)
    if has_tangent(v, level):
        return wrap(tangent_at(v, level))
    dtype = a._aval.dtype
    return wrap(tape.zeros_like(a._aval)) if materialize and (dtype.is_floating_point or dtype.is_complex) else None


def _set_tangent(o: Tensor, t: Any, level: Any) -> None:
    if not isinstance(t, TensorBase):
        raise TypeError(f"expected the jvp of a Function to return tensors, but got {type(t).__name__}")
    if t._aval.shape != o._aval.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(o._aval.shape)} while the given forward gradient is of size "
            f"{list(t._aval.shape)}."
        )
    o._s.value = make(level, o._s.value, t._read())


def _apply(cls: Any, args: tuple, kwargs: dict, separate: bool) -> Any:
    is_tensor = [isinstance(a, TensorBase) for a in args]
    needs = tuple([bool(here and a._rg) for here, a in zip(is_tensor, args, strict=True)])
    tracked = MODE.enabled and True in needs
    # One edge for each tensor argument, None for those that need no gradient.
    edges = tuple([a._edge() if n else None for a, n, here in zip(args, needs, is_tensor, strict=True) if here])
    levels = _dual_levels(args) if SLOW else []
    if levels and tracked:
        edges = _lift(args, edges, levels)
    node = cls._backward_cls(cls, edges if tracked else ())
    node._is_tensor = is_tensor
    node.needs_input_grad = needs
    node._input_avals = [a._aval if here else None for here, a in zip(is_tensor, args, strict=True)]
    before = MODE.enabled
    MODE.enabled = False
    # In forward mode what forward saves besides its arguments has its tangents, too; only those of results are the
    # user's.
    originals = {id(a): wrap(a._read()) for a in args if isinstance(a, TensorBase)} if levels else {}
    try:
        if separate:
            output = cls.forward(*args)
            cls.setup_context(node, args, output)
        else:
            output = cls.forward(node, *args, **kwargs)
    finally:
        MODE.enabled = before
    single = not isinstance(output, tuple)
    outputs = [output] if single else list(output)
    if levels:
        _drop_tangents(outputs, args, node._dirty, levels)
    results = _hang(node, args, outputs, tracked)
    _save(node, args, outputs, results, tracked)
    if levels:
        _push(cls, node, tuple(originals.get(id(a), a) for a in args), results, levels)
        _save(node, args, outputs, results, tracked)  # again: results now have tangents
    for name in ("_to_save", "_dirty", "_non_differentiable", "saved_for_forward"):
        node.__dict__.pop(name, None)
    return results[0] if single else tuple(results)


def _hang(node: Any, args: tuple, outputs: list, tracked: bool) -> list:
    dirty = {id(t) for t in node._dirty}
    plain = {id(t) for t in node._non_differentiable}
    inputs = {id(a): a for a in args if isinstance(a, TensorBase)}
    for t in node._dirty:
        if id(t) not in {id(o) for o in outputs}:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        count_write(t)
        if tracked and t.is_leaf and t._rg:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        base = t._base_tensor if t._view is not None else None
        if tracked and base is not None and base._rg and base._gf is None:
            raise RuntimeError(LEAF_VIEW_INPLACE)
    results = []
    avals = []
    nr = 0
    for o in outputs:
        if not isinstance(o, Tensor):
            results.append(o)
            continue
        avals.append(o._aval)
        dtype = o._aval.dtype
        edge = node if nr == 0 else OutEdge(node, nr)
        nr += 1
        history = tracked and id(o) not in plain and (dtype.is_floating_point or dtype.is_complex)
        if id(o) in dirty:
            if history and o._view is not None and o._base_tensor is not None:
                _write_through(o, edge)
            elif history:
                new = wrap(o._read())
                new._rg, new._gf = True, edge
                become(o, new)
            results.append(o)
            continue
        if id(o) in inputs or (history and o._view is not None and o._base_tensor is not None):
            o = _guarded_view(o)  # an input returned as it is becomes a view of it, so that input and output differ
        elif o._rg:
            o = alias(o)
        if history:
            o._rg, o._gf = True, edge
        results.append(o)
    node._outs = tuple(avals)
    if tracked:
        record_taped()
    return results


def _write_through(view: Tensor, edge: Any) -> None:
    """An in-place Function on a view: the base's history becomes 'itself, with this part replaced'."""
    new = wrap(view._read())
    new._rg, new._gf = True, edge
    storage = view._s
    version = storage.version
    write(view, new, fit=False)
    storage.version = version


def _guarded_view(t: Tensor) -> Tensor:
    """Another view of the same data, through which tracked writes are refused."""
    out = alias(t)
    view = t._view
    if view is None:
        shape = t._aval.shape
        steps, strides, offset = ((ops.RESHAPE, (("shape", shape),), ()),), contiguous_strides(shape), 0
    else:
        steps, strides, offset = view.steps, view.strides, view.offset
    out._view = View(steps, t._aval, strides, offset, FUNCTION)
    out._base_tensor = t if t._base_tensor is None else t._base_tensor
    out._vversion = t._s.version
    return out


def _save(node: Any, args: tuple, outputs: list, results: list, tracked: bool) -> None:
    saved: list = []
    for t in node._to_save:
        if t is None:
            saved.append(None)
            continue
        edge: Any = None
        for k, o in enumerate(outputs):
            if o is t and not any(a is t for a in args):
                edge = ("out", k) if tracked and isinstance(results[k], TensorBase) and results[k]._rg else None
                break
        else:
            if t._rg:
                edge = t._edge()
        if SavedHooks.stack:
            saved.append((tape.pack(alias(t), *SavedHooks.stack[-1]), None, 0, edge))
        else:
            saved.append((t._read(), t._s, t._s.version, edge))
    node._saved = tuple(saved)


def once_differentiable(fn: Any) -> Any:
    """Decorator for a backward that cannot itself be differentiated: double backward raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        before = MODE.enabled
        MODE.enabled = False
        try:
            outputs = fn(ctx, *args)
        finally:
            MODE.enabled = before
        if not before:
            return outputs
        if not any(isinstance(a, TensorBase) and a._rg for a in args):
            return outputs
        items = outputs if isinstance(outputs, tuple) else (outputs,)
        out = []
        for o in items:
            if o is not None:
                o = o.detach()
                o._rg = True
                o._gf = _ErrorNode(tuple(a._edge() for a in args if isinstance(a, TensorBase) and a._rg), (o._aval,))
            out.append(o)
        return tuple(out) if isinstance(outputs, tuple) else out[0]

    return wrapper


class _ErrorNode(Node):
    __slots__ = ()

    def name(self) -> str:
        return "torch::autograd::Error"

    def pull(self, grads: list, keep: bool) -> Sequence:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    pull_graph = pull


for _cls in (FunctionCtx, BackwardFunction, Function):
    _cls.__module__ = "torch.autograd.function"
