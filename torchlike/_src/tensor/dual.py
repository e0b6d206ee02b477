"""Dual tensors: put together and taken apart, on the tape."""

from typing import Any

from torchlike._src.autograd import dual as values
from torchlike._src.autograd.dual import (
    Batching,
    DualLevel,
    MakeDualBackward,
    PrimalBackward,
    TangentBackward,
    has_tangent,
    is_swapped,
)
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import Hooks
from torchlike._src.tensor.call import record_taped
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap


def make_dual(primal: Tensor, tangent: Tensor, level: DualLevel, swapped: bool = False) -> Tensor:
    """A tensor like `primal` with a tangent at a level."""
    p, t = primal._read(), tangent._read()
    v = values.make(level, p, t, swapped)
    out = wrap(v)
    if MODE.enabled and (primal._rg or tangent._rg):
        node = MakeDualBackward(level, (primal._edge(), tangent._edge()), v.aval)
        node.missing = ((), ()) if Batching.missing is None else (Batching.missing(p, v), Batching.missing(t, v))
        _hang(out, node)
    return out


def _hang(out: Tensor, node: Any) -> None:
    out._rg, out._gf = True, node
    record_taped()


def _taken(t: Tensor, value: Any, kind: type, level: DualLevel, **fields: Any) -> Tensor:
    out = wrap(value)
    if MODE.enabled and t._rg:
        node = kind(level, (t._edge(),), value.aval)
        for name, field in fields.items():
            setattr(node, name, field)
        _hang(out, node)
    return out


def is_dual(t: Any, level: DualLevel) -> bool:
    """Whether a tensor has a tangent at a level."""
    return isinstance(t, TensorBase) and has_tangent(t._read(), level)


def primal_at(t: Tensor, level: DualLevel) -> Tensor:
    """`t` without its tangent at a level."""
    v = t._read()
    return _taken(t, values.primal_at(v, level), PrimalBackward, level, swapped=is_swapped(v, level))


def tangent_at(t: Tensor, level: DualLevel) -> Tensor | None:
    """The tangent of `t` at a level; None if it has none."""
    v = t._read()
    if not has_tangent(v, level):
        return None
    found = values.tangent_at(v, level)
    node = t._gf
    if type(node) is MakeDualBackward and node.level is level and node.edges[1] is None:
        return wrap(found)
    return _taken(t, found, TangentBackward, level)


def shown(t: Tensor) -> Any:
    """The tangent that a tensor prints."""
    d = values.dual_of(t._read()) if t._aval.device.type != "meta" else None
    return tangent_at(t, d.level) if d is not None and d.level.active and not d.swapped else None


def _outside(g: Tensor, level: DualLevel) -> Tensor:
    """A gradient as a tensor that is not dual at this level gets it, on the tape."""
    v = g._read()
    if not has_tangent(v, level):
        return g
    if is_swapped(v, level):
        return _taken(g, values.tangent_at(v, level), TangentBackward, level)
    return g if level.active else primal_at(g, level)


def _make_swapped(primal: Tensor | None, tangent: Tensor | None, level: DualLevel) -> Tensor:
    if primal is None:
        primal = wrap(values.zeros(tangent._aval))  # type: ignore[union-attr]
    if tangent is None:
        tangent = wrap(values.zeros(primal._aval))
    return make_dual(primal, tangent, level, True)


Hooks.outside = staticmethod(_outside)
Hooks.make_swapped = staticmethod(_make_swapped)
Hooks.primal_at = staticmethod(primal_at)
