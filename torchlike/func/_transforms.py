"""grad, vjp, jvp and what is made of them, on the tape.

A transform gives the function inputs of its own: leaves, or where the input itself is being differentiated by something
around, tensors whose node leads on to it. Gradients with respect to exactly these are asked for, so transforms nest.
Results keep a history only if it leads to something outside of the transform. Forward derivatives are had from the
gradient, which is linear in the cotangents: the derivative of that by the cotangents, applied to the tangent."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.autograd.dual import close_level, new_level
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import Node, OutEdge
from torchlike._src.tensor import backward
from torchlike._src.tensor.composite_vmap import STACK
from torchlike._src.tensor.dual import is_dual, make_dual, primal_at, tangent_at
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase, alias, wrap
from torchlike.func._levels import at_home, home_of, shared, shared_value
from torchlike.func._tree import flatten, tree_map, unflatten
from torchlike.func._vmap import vmap


class InputBackward(Node):
    """The node of a transform's input that is itself being differentiated. `missing`: the levels of vmap whose samples
    share the input, each with a transform of its own."""

    __slots__ = ("missing",)
    missing: tuple

    def pull(self, grads: list, keep: bool) -> Sequence:
        g = grads[0]
        for level in self.missing:
            g = shared_value(g, level)
        return [g]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        g = grads[0]
        for level in self.missing:
            g = shared(g, level)
        return [g]


class _Recording:
    """Within a transform, operations are recorded, whatever the mode around it. `outer`: whether it records, too."""

    active = False

    def __enter__(self) -> "_Recording":
        self.active = True
        self.before = MODE.enabled, STACK.depth
        self.outer = MODE.enabled
        MODE.enabled = True
        STACK.depth += 1
        return self

    def __exit__(self, *unused: object) -> None:
        self.active = False
        MODE.enabled, STACK.depth = self.before


def _leaf(t: Tensor, mode: _Recording) -> Tensor:
    """`t` as a leaf of one transform: each sample of the vmaps around has its own."""
    if STACK.levels:
        t = wrap(at_home(t._read(), STACK.levels))
    t._rg = True
    t._owner = mode  # type: ignore[attr-defined]
    return t


def _inner(x: Any, mode: _Recording) -> Tensor:
    """A transform's own input with the data of `x`."""
    if not isinstance(x, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    dtype = x._aval.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if not (x._rg and mode.outer):
        return _leaf(alias(x), mode)
    value = x._read()
    t = wrap(at_home(value, STACK.levels) if STACK.levels else value)
    node = InputBackward((x._edge(),), (x._aval,))
    node.missing = tuple(level for level in STACK.levels if level not in home_of(value))
    t._gf, t._rg = node, True
    return t


def _leads_outside(tensors: Sequence, own: Sequence) -> bool:
    """Whether a history ends anywhere but at the transform's own inputs."""
    inside = {id(t) for t in own if t._gf is None}
    seen: set[int] = set()
    stack = [e for t in tensors if isinstance(t, TensorBase) and (e := t._edge()) is not None]
    while stack:
        edge = stack.pop()
        node = edge.node if type(edge) is OutEdge else edge
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Node):
            stack += [e for e in node.edges if e is not None]
            if not any(e is not None for e in node.edges):
                return True
        elif id(node) not in inside:
            owner = getattr(node, "_owner", None)
            if owner is None or owner.active:
                return True
    return False


def _released(x: Any, own: Sequence, outer: bool) -> Any:
    """A result as the transform's caller gets it."""
    if not isinstance(x, TensorBase) or not x._rg:
        return x
    if outer and _leads_outside([x], own):
        return x
    return alias(x)  # type: ignore[arg-type]


def _gradients(outputs: Sequence, inputs: Sequence, weights: Sequence, create: bool, keep: bool = True) -> list:
    """autograd.grad over those outputs that have a history; None for an input without a path."""
    pairs = [(o, w) for o, w in zip(outputs, weights, strict=True) if o._rg]
    if not pairs:
        return [None] * len(inputs)
    found = backward.grad([o for o, _ in pairs], inputs, [w for _, w in pairs], keep, create, allow_unused=True)
    return list(found)


def _filled(grads: Sequence, like: Sequence) -> list:
    return [torch.zeros_like(x) if g is None else g for g, x in zip(grads, like, strict=True)]


# -- argnums ---------------------------------------------------------------------------------------------------


def _positions(argnums: Any, count: int) -> tuple[int, ...]:
    """argnums as non-negative positions, checked."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if isinstance(argnums, tuple):
        if len(numbers) == 0:
            raise RuntimeError("argnums must be non-empty")
        for n in numbers:
            if not isinstance(n, int):
                raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {argnums}")
    for n in numbers:
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    found = tuple(n % count for n in numbers)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def _chosen(argnums: Any, args: tuple) -> Any:
    """The arguments that argnums names: one, or a tuple."""
    found = tuple(args[k] for k in _positions(argnums, len(args)))
    return found if isinstance(argnums, tuple) else found[0]


def _replaced(args: tuple, argnums: Any, new: Any) -> tuple:
    out = list(args)
    for k, x in zip(_positions(argnums, len(args)), new if isinstance(argnums, tuple) else (new,), strict=True):
        out[k] = x
    return tuple(out)


def _only_tensors(x: Any, lead: str) -> list:
    leaves, _ = flatten(x)
    for leaf in leaves:
        if not isinstance(leaf, TensorBase):
            raise RuntimeError(f"{lead}expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")
    return leaves


def _aux(x: Any) -> None:
    for leaf in flatten(x)[0]:
        if not isinstance(leaf, TensorBase):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")


def _wraps(func: Callable) -> Callable:
    def decorate(new: Callable) -> Callable:
        try:
            return functools.wraps(func)(new)
        except (AttributeError, TypeError):
            return new

    return decorate


# -- reverse mode ----------------------------------------------------------------------------------------------


def _value_and_gradient(func: Callable, argnums: Any, has_aux: bool, args: tuple, kwargs: dict) -> tuple:
    with _Recording() as mode:
        leaves, spec = flatten(_chosen(argnums, args))
        own = [_inner(x, mode) for x in leaves]
        output = func(*_replaced(args, argnums, unflatten(own, spec)), **kwargs)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
        if not isinstance(output, TensorBase):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
        if output._aval.ndim:
            raise RuntimeError(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{output._aval.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        create = mode.outer and _leads_outside([output], own)
        grads = _filled(_gradients([output], own, [None], create, create or has_aux), own)
        grads = [_released(g, own, mode.outer) for g in grads]
        if has_aux:
            _aux(aux)
            aux = tree_map(lambda x: _released(x, own, mode.outer), aux)
        return unflatten(grads, spec), _released(output, own, mode.outer), aux


def grad(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of `func` (which returns a tensor with no dims) by its arguments `argnums`:
    an int, or a tuple for a tuple of gradients; arguments may be containers of tensors. has_aux: `func` returns
    (output, aux), and the new function (gradient, aux). Errors as in PyTorch."""

    @_wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, _, aux = _value_and_gradient(func, argnums, has_aux, args, kwargs)
        return (found, aux) if has_aux else found

    return wrapper


def grad_and_value(func: Callable, argnums: Any = 0, has_aux: bool = False) -> Callable:
    """Like `grad`, and returns (gradient, value), or with has_aux (gradient, (value, aux))."""

    @_wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value, aux = _value_and_gradient(func, argnums, has_aux, args, kwargs)
        return (found, (value, aux)) if has_aux else (found, value)

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), vjp_fn): vjp_fn(cotangents), with the structure of the outputs, returns a tuple with one product
    v^T J for each primal. has_aux: `func` returns (outputs, aux), and aux is the third result."""
    return _vjp(func, primals, None, has_aux)


def _vjp(func: Callable, primals: tuple, argnums: Any, has_aux: bool) -> tuple:
    with _Recording() as mode:
        differentiated = primals if argnums is None else _chosen(argnums, primals)
        leaves, spec = flatten(differentiated)
        own = [_inner(x, mode) for x in leaves]
        inner = unflatten(own, spec)
        output = func(*(inner if argnums is None else _replaced(primals, argnums, inner)))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
            _aux(aux)
        outputs = _only_tensors(output, "vjp(f, *primals): ")
        out_spec = flatten(output)[1]
        outside = mode.outer and _leads_outside(outputs, own)
        shown = unflatten([_released(o, own, mode.outer) for o in outputs], out_spec)
        aux = tree_map(lambda x: _released(x, own, mode.outer), aux)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = flatten(cotangents)
        if given_spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given_spec.short()}, primal output: {out_spec.short()}"
            )
        with _Recording() as now:
            wanted = now.outer if create_graph is None else create_graph
            create = wanted and (outside or any(isinstance(c, TensorBase) and c._rg for c in given))
            for c in given:
                if not isinstance(c, TensorBase):
                    raise TypeError(f"gradients can be either Tensors or None, but got {type(c).__name__}")
            found = _filled(_gradients(outputs, own, given, create, retain_graph), own)
            return unflatten([_released(g, own, now.outer) for g in found], spec)

    return (shown, vjp_fn, aux) if has_aux else (shown, vjp_fn)


def _basis(t: Tensor, before: int, total: int) -> Tensor:
    """(total, *t.shape): zeros, but row before + k is 1 at element k."""
    n = t._aval.numel
    parts = []
    if before:
        parts.append(torch.zeros(before, n, dtype=t.dtype, device=t.device))
    parts.append(torch.eye(n, dtype=t.dtype, device=t.device))
    if total - before - n:
        parts.append(torch.zeros(total - before - n, n, dtype=t.dtype, device=t.device))
    rows = parts[0] if len(parts) == 1 else torch.cat(parts)
    return rows.reshape((total, *t.shape))


def jacrev(
    func: Callable, argnums: Any = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:  # fmt: skip
    """A function that returns the Jacobian of `func` by its arguments `argnums`, by reverse mode: for each output, for
    each such argument, output shape + argument shape. chunk_size: at most so many rows at once."""
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @_wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        bound = functools.partial(func, **kwargs) if kwargs else func
        found = _vjp(bound, args, argnums, has_aux)
        output, vjp_fn = found[0], found[1]
        outputs, out_spec = flatten(output)
        inputs, in_spec = flatten(_chosen(argnums, args))
        total = sum(o._aval.numel for o in outputs)
        basis = unflatten(_bases(outputs, total), out_spec)
        rows, _ = flatten(vmap(vjp_fn, chunk_size=chunk_size)(basis))
        columns = [r.split([o._aval.numel for o in outputs]) for r in rows]
        result = [
            unflatten([c[k].reshape((*o.shape, *x.shape)) for c, x in zip(columns, inputs, strict=True)], in_spec)
            for k, o in enumerate(outputs)
        ]
        jacobian = unflatten(result, out_spec)
        return (jacobian, found[2]) if has_aux else jacobian

    return wrapper


def _bases(tensors: Sequence, total: int) -> list:
    before = 0
    out = []
    for t in tensors:
        out.append(_basis(t, before, total))
        before += t._aval.numel
    return out


# -- forward mode ----------------------------------------------------------------------------------------------


class Linearized:
    """A function's outputs and, by twice reversing, its derivative along tangents. Made within a _Recording."""

    def __init__(self, own: Sequence, outputs: Sequence, mode: _Recording) -> None:
        self.own = own
        self.outputs = outputs
        self.dummies = [_leaf(torch.zeros_like(o), mode) if o._rg else None for o in outputs]
        live = [o for o in outputs if o._rg]
        self.grads = _gradients(live, own, [d for d in self.dummies if d is not None], True)

    def push(self, tangents: Sequence, create: bool) -> list:
        """The derivative of each output along the tangents; None where it is zero."""
        wanted = [d for d in self.dummies if d is not None]
        pairs = [(g, t) for g, t in zip(self.grads, tangents, strict=True) if g is not None]
        if not wanted or not pairs:
            return [None] * len(self.outputs)
        pushed = iter(_gradients([g for g, _ in pairs], wanted, [t.to(g.dtype) for g, t in pairs], create))
        return [None if d is None else next(pushed) for d in self.dummies]


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), J t): the derivative of the outputs along `tangents`, structured like the tuple `primals`.
    strict: an error if an output does not depend on them. has_aux: `func` returns (outputs, aux), and aux is the third
    result."""
    return _jvp(func, primals, tangents, None, strict, has_aux)


def _jvp(func: Callable, primals: Any, tangents: Any, argnums: Any, strict: bool, has_aux: bool) -> tuple:
    lead = "jvp(f, primals, tangents): "
    if argnums is None and not isinstance(primals, tuple):
        raise RuntimeError(f"{lead}Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    differentiated = primals if argnums is None else _chosen(argnums, primals)
    leaves, spec = flatten(differentiated)
    along, tangent_spec = flatten(tangents)
    if spec != tangent_spec:
        raise RuntimeError(
            f"{lead}Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{tangent_spec}"
        )
    for what, items in (("primals", leaves), ("tangents", along)):
        if not items:
            raise RuntimeError(f"{lead}Expected {what} to contain at least one Tensor.")
        for x in items:
            if not isinstance(x, TensorBase):
                raise RuntimeError(f"{lead}Expected {what} to only contain Tensors, got {type(x)}")
    for x, t in zip(leaves, along, strict=True):
        _check_tangent(x, t)
    level = new_level()
    STACK.depth += 1
    try:
        inner = unflatten([make_dual(x, t, level) for x, t in zip(leaves, along, strict=True)], spec)
        output = func(*(inner if argnums is None else _replaced(primals, argnums, inner)))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(f"{lead}output of function f should be a tuple: (output, aux) if has_aux is True")
            output, aux = output
            _aux(aux)
            aux = tree_map(lambda x: primal_at(x, level), aux)
        outputs = _only_tensors(output, lead)
        if strict and not all(is_dual(o, level) for o in outputs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                "not allowed with strict=True."
            )
        out_spec = flatten(output)[1]
        products = [tangent_at(o, level) if is_dual(o, level) else torch.zeros_like(o) for o in outputs]
        shown = [primal_at(o, level) for o in outputs]
        results = unflatten(shown, out_spec), unflatten(products, out_spec)
        return (*results, aux) if has_aux else results
    finally:
        STACK.depth -= 1
        close_level(level)


def _check_tangent(x: Tensor, t: Tensor) -> None:
    dtype = x._aval.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {dtype}")
    if x._aval.shape != t._aval.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(x._aval.shape)} while the given forward gradient is of size "
            f"{list(t._aval.shape)}."
        )


def jacfwd(func: Callable, argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """A function that returns the Jacobian of `func` by its arguments `argnums`, by forward mode: for each output, for
    each such argument, output shape + argument shape. randomness: as for vmap, over the directions."""

    @_wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        bound = functools.partial(func, **kwargs) if kwargs else func
        inputs, in_spec = flatten(_chosen(argnums, args))
        for x in inputs:
            if not isinstance(x, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected primals to only contain Tensors, got {type(x)}"
                )
            _check_tangent(x, x)
        basis = unflatten(_bases(inputs, sum(x._aval.numel for x in inputs)), in_spec)

        def push(tangents: Any) -> Any:
            return _jvp(bound, args, tangents, argnums, False, has_aux)

        out_dims: Any = (0, 0, None) if has_aux else (0, 0)
        found = vmap(push, randomness=randomness, out_dims=out_dims)(basis)
        columns, out_spec = flatten(found[1])
        result = []
        for c in columns:
            parts = c.split([x._aval.numel for x in inputs])
            shape = c.shape[1:]
            result.append(
                unflatten(
                    [p.movedim(0, -1).reshape((*shape, *x.shape)) for p, x in zip(parts, inputs, strict=True)], in_spec
                )
            )
        jacobian = unflatten(result, out_spec)
        return (jacobian, found[2]) if has_aux else jacobian

    return wrapper


def hessian(func: Callable, argnums: Any = 0) -> Callable:
    """A function that returns the Hessian of `func` by its arguments `argnums`: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable, *primals: Any) -> tuple:
    """(func(*primals), jvp_fn): jvp_fn(*tangents) is the derivative along them; `func` is not called again."""
    leaves, spec = flatten(primals)
    with _Recording() as mode:
        own = [_inner(x, mode) if isinstance(x, TensorBase) else x for x in leaves]
        output = func(*unflatten(own, spec))
        outputs, out_spec = flatten(output)
        own = [x for x in own if isinstance(x, TensorBase)]
        live = [o for o in outputs if isinstance(o, TensorBase)]
        linear = Linearized(own, live, mode)
        outside = mode.outer and _leads_outside(live, own)
        shown = unflatten([_released(o, own, mode.outer) for o in outputs], out_spec)
    mine = [*own, *(d for d in linear.dummies if d is not None)]
    flat = [x for x in leaves if isinstance(x, TensorBase)]

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = flatten(tangents)
        if given_spec != spec:
            raise RuntimeError(f"Expected the tangents {given_spec} to have the same argspec as the primals {spec}")
        for k, (t, x) in enumerate(zip(given, flat, strict=True)):
            if t.shape != x.shape:
                raise RuntimeError(
                    f"tangent:{k} with shape {t.shape} in flattened pytree doesn't match the shape {x.shape} of the "
                    "corresponding primal."
                )
            if t.dtype is not x.dtype:
                raise RuntimeError(
                    f"tangent:{k} with dtype {t.dtype} in flattened pytree doesn't match the dtype {x.dtype} of the "
                    "corresponding primal."
                )
        with _Recording() as now:
            create = now.outer and (outside or any(t._rg for t in given))
            pushed = _filled(linear.push(given, create), [torch.zeros_like(o) for o in live])
            return unflatten([_released(p, mine, now.outer) for p in pushed], out_spec)

    return shown, jvp_fn
