"""Batched values: what `vmap` maps over is a value with hidden dims, one for each level of vmap around it.

A batched value is an ordinary Value whose array is a `Batched`: its aval is what one sample looks like, so that shape
checks, error texts and the tape work as if there were one sample, while the samples lie together in one physical value
with the hidden dims in front. The recorder hands operations on such values to `run`, which records one operation on the
physical values: the operator's kernel under `jax.vmap`. So everything under vmap, gradients included, becomes part of
the step's program like any other operation.

On the tape, an operation that mixes batched and other operands is a `LevelKernel`: its gradient for an operand that
all samples share is summed over the samples."""

import functools
import itertools
import sys
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from torchlike._src.autograd import dual
from torchlike._src.autograd.dual import Batching, Dual, make
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import Node, WholePullback
from torchlike._src.core.aval import Aval
from torchlike._src.engine import Value, host_array, record
from torchlike._src.engine import direct as direct_engine
from torchlike._src.ops.declare import Kernel, Pullback, RawOp
from torchlike._src.tensor import composite_vmap
from torchlike._src.tensor.call import record_taped
from torchlike._src.tensor.tensor import Tensor, wrap

recorder: Any = sys.modules["torchlike._src.engine.record"]
_numbers = itertools.count(1).__next__

ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a "
    "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
    "PyTorch internals, please file a bug report."
)
CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support "
    "that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
    "aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)
MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
    "indexing with a boolean mask."
)
NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"
READERS = {
    "item": ITEM, "to_float": ITEM, "to_int": ITEM, "to_index": ITEM, "to_complex": ITEM, "getitem": ITEM,
    "to_bool": CONTROL_FLOW, "nonzero": DYNAMIC.format(name="nonzero"), "argwhere": DYNAMIC.format(name="nonzero"),
    "masked_select": DYNAMIC.format(name="masked_select"), "unique": DYNAMIC.format(name="_unique2"),
    "_mask_indices": MASK, "mask_indices": MASK,
}  # fmt: skip
"""Which function of the library wanted the numbers, and what PyTorch says then."""


class Level:
    """One vmap in progress, or a finished one that values on the tape still refer to."""

    __slots__ = ("number", "randomness", "size")

    def __init__(self, size: int, randomness: str) -> None:
        self.number = _numbers()
        self.size = size
        self.randomness = randomness


class Batched:
    """The array of a batched value: the physical value, whose first dims belong to `levels`, outermost first.

    `home` has these and more levels: at the others, all samples happen to hold the same, but each has its own. What is
    differentiated inside of vmap is such a value: its gradients are per sample, and nothing is computed twice."""

    __slots__ = ("home", "levels", "value")

    def __init__(self, levels: tuple[Level, ...], value: Value, home: tuple[Level, ...]) -> None:
        self.levels = levels
        self.value = value
        self.home = home

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.levels:
            return host_array(self.value)
        frame = sys._getframe(1)
        for _ in range(8):
            if frame is None:
                break
            text = READERS.get(frame.f_code.co_name)
            if text is not None and frame.f_globals.get("__name__", "").startswith(recorder.PACKAGE):
                raise RuntimeError(text)
            frame = frame.f_back  # type: ignore[assignment]
        raise RuntimeError(NO_STORAGE)

    def __reduce__(self) -> Any:
        raise RuntimeError(NO_STORAGE)


def levels_of(x: Any) -> tuple[Level, ...]:
    """The levels whose samples lie side by side in a value; () for numbers and other values."""
    if type(x) is Value and type(x.array) is Batched:
        return x.array.levels
    if type(x) is Value and type(x.array) is Dual:
        return order((*levels_of(x.array.primal), *levels_of(x.array.tangent)))
    return ()


def home_of(x: Any) -> tuple[Level, ...]:
    """The levels each of whose samples has a value of its own."""
    if type(x) is Value and type(x.array) is Batched:
        return x.array.home
    if type(x) is Value and type(x.array) is Dual:
        return home_of(x.array.primal)
    return ()


def physical_of(x: Any) -> Any:
    """What the recorder knows of a value; numbers as they are."""
    return x.array.value if type(x) is Value and type(x.array) is Batched else x


def _each(function: Any, v: Value, *args: Any) -> Value:
    """function(v, ...) of both parts of a dual value."""
    d = v.array
    return make(d.level, function(d.primal, *args), function(d.tangent, *args), d.swapped)


def at_home(v: Value, levels: Sequence[Level]) -> Value:
    """`v` as a value that each sample of these levels has for itself."""
    if type(v.array) is Dual:
        return _each(at_home, v, levels)
    home = order((*home_of(v), *levels))
    return _rebatched(v.aval, levels_of(v), physical_of(v), home)


def order(levels: Any) -> tuple[Level, ...]:
    return tuple(sorted(set(levels), key=lambda level: level.number))


def vmap_of() -> None:
    """The name of `VMAP`'s function, for programs on disk."""


class VmapOp(RawOp):
    """A kernel over hidden dims. static: (kernel, for each operand which levels it has, the levels' sizes)."""

    def __init__(self) -> None:
        super().__init__(vmap_of, "vmap")

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        kernel, masks, sizes = static
        function: Any = kernel.__call__
        for k in reversed(range(len(sizes))):
            function = jax.vmap(function, in_axes=tuple(0 if m[k] else None for m in masks), out_axes=0)
        return tuple(function(*arrays))

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        kernel, _, sizes = static
        return tuple(o.with_shape(sizes + tuple(o.shape)) for o in kernel.outs)


VMAP = VmapOp()
MOVE = RawOp(lambda x, source, target: jnp.moveaxis(x, source, target), "level_movedim", linear=True)
EXPAND = RawOp(
    lambda x, axis, size: jnp.broadcast_to(jnp.expand_dims(x, axis), (*x.shape[:axis], size, *x.shape[axis:])),
    "level_expand",
    linear=True,
)
REDUCE = RawOp(
    lambda x, axes, scale: _scaled(x.sum(axes).astype(x.dtype) if axes else x, scale), "level_sum", linear=True
)


def _scaled(x: Any, scale: int) -> Any:
    return x if scale == 1 else (x * scale).astype(x.dtype)


def run(op: Any, static: tuple, operands: Sequence) -> tuple[Any, list[Value]]:
    """The recorder's way for operands that are no plain arrays: (kernel, results)."""
    found = [home_of(x) for x in operands]
    if not any(found):
        return direct_engine.run(op, static, operands)
    if type(op) is LevelPullback:
        return op.run(operands, found)
    home = order(itertools.chain.from_iterable(found))
    kernel, outs = _batched(op, static, operands, home)
    if all(type(x) is not Value or len(of) == len(home) for x, of in zip(operands, found, strict=True)):
        return kernel, outs
    return LevelKernel(kernel, home, tuple(found)), outs


def _batched(op: Any, static: tuple, operands: Sequence, home: tuple) -> tuple[Any, list[Value]]:
    """One operation on physical values, its results batched at all levels of its operands."""
    physical = [physical_of(x) for x in operands]
    found = [levels_of(x) for x in operands]
    top = order(itertools.chain.from_iterable(found))
    kernel = recorder.kernel_of(op, static, recorder.const_avals(operands))
    if top:
        masks = tuple(tuple(level in of for level in top) for of in found)
        outs = record(VMAP, (kernel, masks, tuple(level.size for level in top)), physical)
    else:
        outs = record(op, static, physical)
    return kernel, [Value(a, Batched(top, v, home)) for a, v in zip(kernel.outs, outs, strict=True)]


# -- gradients ------------------------------------------------------------------------------------------------


class _Pullbacks(dict):
    """The pullbacks of a LevelKernel, made when the tape asks for them."""

    def __init__(self, forward: "LevelKernel") -> None:
        super().__init__()
        self.forward = forward

    def get(self, key: tuple, default: Any = None) -> Any:  # type: ignore[override]
        found = super().get(key)
        if found is None:
            found = self[key] = LevelPullback(self.forward, key)
        return found


class LevelKernel(Kernel):
    """The kernel of an operation some of whose operands all samples share, as the tape sees it."""

    __slots__ = ("base", "levels", "operand_levels")

    def __init__(self, base: Kernel, levels: tuple[Level, ...], operand_levels: tuple) -> None:
        super().__init__(base.op, base.static, base.specs, base.outs)
        self.plans, self.cache = base.plans, base.cache
        self.base = base
        self.levels = levels
        self.operand_levels = operand_levels
        self.pullbacks = _Pullbacks(self)


class LevelPullback(RawOp):
    """The gradient of a LevelKernel. Two are equal if they do the same to values that are not batched, which is what a
    trace may hold of them."""

    def __init__(self, forward: LevelKernel, key: tuple) -> None:
        need, given = key[:2]
        found = forward.base.pullbacks.get(key)
        if found is None:
            kind = WholePullback if len(key) == 3 else Pullback
            found = forward.base.pullbacks[key] = kind(forward.base, need, given)
        self.base = found
        self.forward = forward
        self.need = need
        self.given = given
        self.plan = found.plan
        self.by_rule = found.by_rule
        self.name = found.name
        self.missing = [
            tuple(level for level in forward.levels if level not in of)
            for of, needed in zip(forward.operand_levels, need, strict=True)
            if needed
        ]
        self.scales = tuple(_product(level.size for level in m) for m in self.missing)

    def words(self, kernel: Kernel, describe: Any) -> str | None:
        """For the name of programs on disk."""
        text = describe(self.forward.base)
        kind = type(self.base).__name__
        return text and f"level_{kind}({text},{self.need},{self.given},{self.scales},{kernel.specs!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is LevelPullback and other.base is self.base and other.scales == self.scales

    def __hash__(self) -> int:
        return hash((id(self.base), self.scales))

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        outs = self.base.execute(static, specs, arrays)
        return tuple(_scaled(o, n) for o, n in zip(outs, self.scales, strict=True))

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        return self.base.infer(static, specs)

    def reduce(self, outs: Sequence) -> list[Value]:
        """Gradients of each sample, or their tangents: summed for operands that samples share."""
        return [_reduced(v, m) for v, m in zip(outs, self.missing, strict=True)]

    def run(self, operands: Sequence, found: list) -> tuple[Any, list[Value]]:
        """On batched values: the gradient for each sample, summed for operands that samples share."""
        kernel, outs = _batched(self.base, (), operands, order(itertools.chain.from_iterable(found)))
        results = self.reduce(outs)
        return LevelKernel(kernel, order(itertools.chain(self.forward.levels, *found)), tuple(found)), results


def _align(primal: Value, tangent: Value) -> tuple[Value, Value]:
    """The parts of a dual value with the levels of either."""
    a, b = home_of(primal), home_of(tangent)
    if a == b:
        return primal, tangent
    return at_home(primal, b), at_home(tangent, a)


def _product(numbers: Any) -> int:
    out = 1
    for n in numbers:
        out *= n
    return out


def _reduced(v: Value, missing: tuple[Level, ...]) -> Value:
    """A gradient summed over levels that its operand does not have."""
    if not missing:
        return v
    if type(v.array) is Dual:
        return _each(_reduced, v, missing)
    levels = levels_of(v)
    axes = tuple(k for k, level in enumerate(levels) if level in missing)
    scale = _product(level.size for level in missing if level not in levels)
    physical = physical_of(v)
    if axes or scale != 1:
        physical = record(REDUCE, (("axes", axes), ("scale", scale)), (physical,))[0]
    home = tuple(level for level in home_of(v) if level not in missing)
    return _rebatched(v.aval, tuple(level for level in levels if level not in missing), physical, home)


def _rebatched(logical: Aval, levels: tuple[Level, ...], physical: Value, home: tuple[Level, ...]) -> Value:
    return Value(logical, Batched(levels, physical, home)) if home else physical


# -- entering and leaving a level ------------------------------------------------------------------------------


def _moved(v: Value, source: int, target: int) -> Value:
    return v if source == target else record(MOVE, (("source", source), ("target", target)), (v,))[0]


def enter_value(v: Value, level: Level, dim: int) -> Value:
    """`v` with its dim `dim` hidden."""
    if type(v.array) is Dual:
        return _each(enter_value, v, level, dim)
    levels = levels_of(v)
    shape = tuple(v.aval.shape)
    after = order((*levels, level))
    physical = _moved(physical_of(v), len(levels) + dim, after.index(level))
    logical = v.aval.with_shape(shape[:dim] + shape[dim + 1 :])
    return Value(logical, Batched(after, physical, order((*home_of(v), level))))


def leave_value(v: Value, level: Level, dim: int) -> Value:
    """The samples of `v` along a visible dim `dim`."""
    if type(v.array) is Dual:
        return _each(leave_value, v, level, dim)
    levels = levels_of(v)
    home = tuple(x for x in home_of(v) if x is not level)
    shape = tuple(v.aval.shape)
    logical = v.aval.with_shape((*shape[:dim], level.size, *shape[dim:]))
    if level not in levels:
        static = (("axis", len(levels) + dim), ("size", level.size))
        return _rebatched(logical, levels, record(EXPAND, static, (physical_of(v),))[0], home)
    rest = tuple(x for x in levels if x is not level)
    return _rebatched(logical, rest, _moved(physical_of(v), levels.index(level), len(rest) + dim), home)


def shared_value(v: Value, level: Level) -> Value:
    """The gradient of a result that all samples share, from that of its copies: their sum."""
    return _reduced(v, (level,))


class EnterBackward(Node):
    """What `enter` puts on the tape."""

    __slots__ = ("dim", "level")
    dim: int
    level: "Level"

    def pull(self, grads: list, keep: bool) -> Sequence:
        return [leave_value(grads[0], self.level, self.dim)]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        return [leave(grads[0], self.level, self.dim)]


class LeaveBackward(Node):
    """What `leave` puts on the tape."""

    __slots__ = ("batched", "dim", "level")
    batched: bool
    dim: int
    level: "Level"

    def pull(self, grads: list, keep: bool) -> Sequence:
        g = enter_value(grads[0], self.level, self.dim)
        return [g if self.batched else shared_value(g, self.level)]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        g = enter(grads[0], self.level, self.dim)
        return [g if self.batched else shared(g, self.level)]


class ShareBackward(Node):
    """What `shared` puts on the tape."""

    __slots__ = ("level",)

    def pull(self, grads: list, keep: bool) -> Sequence:
        return [grads[0]]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        return [grads[0]]


def _taped(source: Tensor, value: Value, kind: type[Node], **fields: Any) -> Tensor:
    out = wrap(value)
    if source._rg and MODE.enabled:
        node = kind((source._edge(),), (value.aval,))
        for name, field in fields.items():
            setattr(node, name, field)
        out._rg, out._gf = True, node
        record_taped()
    return out


def enter(t: Tensor, level: Level, dim: int) -> Tensor:
    """A tensor of one sample: `t` without its dim `dim`, over which `level` maps."""
    return _taped(t, enter_value(t._read(), level, dim), EnterBackward, level=level, dim=dim)


def leave(t: Tensor, level: Level, dim: int) -> Tensor:
    """The samples along dim `dim`; copies of `t` if it is the same for all."""
    v = t._read()
    batched = level in home_of(v)
    return _taped(t, leave_value(v, level, dim), LeaveBackward, level=level, dim=dim, batched=batched)


def shared(t: Tensor, level: Level) -> Tensor:
    """The sum over the samples of one level."""
    return _taped(t, shared_value(t._read(), level), ShareBackward, level=level)


def is_batched(t: Any, level: Level | None = None) -> bool:
    """Whether a tensor differs between samples (of `level`, or of any)."""
    levels = levels_of(t._read())
    return bool(levels) if level is None else level in levels


def shown(t: Tensor) -> str:
    """A batched tensor as it prints."""
    v = t._read()
    levels = levels_of(v)
    text = repr(wrap(v.array.value) if not levels else leave(t.detach(), levels[-1], 0))
    if not levels:
        return text
    inner = "\n".join("    " + line for line in text.split("\n"))
    return f"BatchedTensor(lvl={len(home_of(v))}, bdim=0, value=\n{inner}\n)"


def _install() -> None:
    """Let the recorder and printing know of batched values."""
    plain = Tensor.__repr__

    @functools.wraps(plain)
    def representation(self: Tensor, **kwargs: Any) -> str:
        if self._aval.device.type != "meta" and type(self._read().array) is Batched:
            return shown(self)
        return plain(self, **kwargs)

    Tensor.__repr__ = representation  # type: ignore[assignment, method-assign]
    if recorder.direct_hook is dual.run:
        dual.Batching.below = run
    else:
        recorder.direct_hook = run
    Batching.align, Batching.shared_value, Batching.shared = _align, shared_value, shared
    Batching.missing = lambda outer, inner: tuple(x for x in home_of(inner) if x not in home_of(outer))
    composite_vmap.enter, composite_vmap.leave, composite_vmap.is_batched = enter, leave, is_batched


_install()
