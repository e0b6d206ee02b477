"""Dual values: forward-mode derivatives, carried along by the operations themselves.

A dual value is a Value whose array is a `Dual`: a primal and a tangent Value, at one level. Its aval is the primal's.
The recorder hands operations on such values to `run`, which records the operation on the primals and its derivative (a
`Push`) on the tangents. So views, in-place writes and backward itself are differentiated like anything else (forward
over reverse), and all of it becomes part of the step's program. While no value is dual nothing of this is looked at.

Reverse over forward: seen from the tape a dual tensor is a pair, (y, t), and so is its gradient, (dy, dt). A pullback P
of (x, s) that is given the *swapped* pair (dt, dy) as if it were a dual number gives the swapped pair of the operand:
P(x + e s; dt + e dy) = P(x; dt) + e (P(x; dy) + P'(x; dt) s). Pairs of that kind are marked, and where a pair of
tensors was put together (`MakeDualBackward`) or a plain tensor met a dual one (`LiftBackward`) they are taken apart
again."""

import math
import threading
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from torchlike._src.autograd import tape
from torchlike._src.autograd.tape import Hooks, Node
from torchlike._src.core.aval import Aval
from torchlike._src.engine import Value, emit, host_array, record
from torchlike._src.engine.record import set_slow
from torchlike._src.ops.declare import Kernel, Pullback, RawOp, cast
from torchlike._src.ops.kernels import ADD, ZEROS


class DualLevel:
    """One forward differentiation: in progress, or finished, in which case its tangents no longer count."""

    __slots__ = ("active", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.active = True


class Dual:
    """The array of a dual value. `swapped`: it is a gradient, see the module's text. Levels nest: that of the highest
    number is outermost."""

    __slots__ = ("level", "primal", "swapped", "tangent")

    def __init__(self, level: DualLevel, primal: Value, tangent: Value, swapped: bool) -> None:
        self.level = level
        self.primal = primal
        self.tangent = tangent
        self.swapped = swapped

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return host_array(self.primal)

    def __reduce__(self) -> Any:
        return _plain, (host_array(self.primal),)


def _plain(array: Any) -> Any:
    return array


class Kept(tuple):
    """What the node of a dual tensor saved. Backward of the tangent leaves it for that of the primal, which in PyTorch
    has nodes of its own."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


class _Forward(threading.local):
    """Of a thread. `limit`: levels from this number on are switched off (inside of a custom Function)."""

    limit: float = math.inf


FORWARD = _Forward()


class Batching:
    """Set by `torchlike.func`: what vmap has to say about dual values."""

    align: Any = None
    """align(primal, tangent): both with all levels of vmap of either."""
    missing: Any = None
    """missing(outer, inner): the levels of vmap that the value `inner` has and `outer` does not."""
    shared_value: Any = None
    shared: Any = None
    """The sum over the samples of a level: of a value, of a tensor."""
    below: Any = None
    """Runs operations on values that are not dual."""


_count = 0
_lock = threading.Lock()


def new_level() -> DualLevel:
    """A level inside of all others."""
    global _count
    with _lock:
        _count += 1
        _open.append(level := DualLevel(_count))
        _install()
        set_slow("forward", True)
    return level


_open: list[DualLevel] = []


def close_level(level: DualLevel) -> None:
    """The end of a level: its tangents no longer count."""
    level.active = False
    with _lock:
        _open.remove(level)
        if not _open:
            set_slow("forward", False)


def _install() -> None:
    import sys

    recorder: Any = sys.modules["torchlike._src.engine.record"]
    if recorder.direct_hook is not run:
        if Batching.below is None:
            Batching.below = recorder.direct_hook
        recorder.direct_hook = run


# -- parts of values -------------------------------------------------------------------------------------------


def dual_of(x: Any) -> Dual | None:
    """The Dual of a dual value."""
    return x.array if type(x) is Value and type(x.array) is Dual else None


def zeros(a: Aval) -> Value:
    return record(ZEROS, (("aval", a),), ())[0]


def make(level: DualLevel, primal: Value, tangent: Value, swapped: bool = False) -> Value:
    """The dual value of these parts, which may be dual themselves at other levels."""
    p, t = dual_of(primal), dual_of(tangent)
    outer = max((d.level for d in (p, t) if d is not None and d.level.number > level.number), key=_number, default=None)
    if outer is None:
        if Batching.align is not None:
            primal, tangent = Batching.align(primal, tangent)
        return Value(primal.aval, Dual(level, primal, tangent, swapped))
    marked = any(d is not None and d.level is outer and d.swapped for d in (p, t))
    (p0, p1), (t0, t1) = _split(primal, outer), _split(tangent, outer)
    below = make(level, p0, t0, swapped)
    along = make(level, zeros(p0.aval) if p1 is None else p1, zeros(t0.aval) if t1 is None else t1, swapped)
    return make(outer, below, along, marked)


def _number(level: DualLevel) -> int:
    return level.number


def _split(v: Value, level: DualLevel) -> tuple[Value, Value | None]:
    d = dual_of(v)
    return (d.primal, d.tangent) if d is not None and d.level is level else (v, None)


def _at(v: Value, level: DualLevel) -> Dual | None:
    """The Dual of `level` in a value, whatever is around it."""
    d = dual_of(v)
    while d is not None and d.level.number > level.number:
        d = dual_of(d.primal)
    return d if d is not None and d.level is level else None


def _part(v: Value, level: DualLevel, take: Any) -> Value:
    d = dual_of(v)
    if d is None:
        return v
    if d.level is level:
        return take(d, v)
    if d.level.number < level.number:
        return v
    return make(d.level, _part(d.primal, level, take), _part(d.tangent, level, take), d.swapped)


def has_tangent(v: Value, level: DualLevel) -> bool:
    """Whether a value is dual at a level."""
    return _at(v, level) is not None


def is_swapped(v: Value, level: DualLevel) -> bool:
    """Whether a value is a swapped gradient at a level."""
    d = _at(v, level)
    return d is not None and d.swapped


def primal_at(v: Value, level: DualLevel) -> Value:
    """`v` without its tangent at a level."""
    return _part(v, level, lambda d, _: d.primal)


def tangent_at(v: Value, level: DualLevel) -> Value:
    """The tangent of `v`, which is dual at this level."""
    return _part(v, level, lambda d, _: d.tangent)


def outside(v: Value, level: DualLevel) -> Value:
    """A gradient as a tensor that is not dual at this level gets it."""
    return _part(v, level, lambda d, whole: d.tangent if d.swapped else whole if level.active else d.primal)


def below_all(v: Value) -> Value:
    """`v` without any tangent."""
    d = dual_of(v)
    while d is not None:
        v = d.primal
        d = dual_of(v)
    return v


def still_dual(old: Value, new: Value) -> Value:
    """What overwrites a value: its tangent becomes zero where the old one had one."""
    d = dual_of(old)
    if d is None or dual_of(new) is not None or not d.level.active or d.level.number >= FORWARD.limit:
        return new
    return make(d.level, new, zeros(new.aval))


# -- operations ------------------------------------------------------------------------------------------------


class Push(RawOp):
    """The forward derivative of a kernel along tangents of some operands, as an op: saved values and tangents in,
    tangents of the results out. Where the kernel has gradient rules it is their transpose, so that both agree where the
    function has a kink; else it is `jax.jvp` of the kernel."""

    def __init__(self, primal: Kernel, need: tuple[bool, ...]) -> None:
        self.primal = primal
        self.need = need
        self.name = primal.op.name + "_jvp"
        self.results = tuple(k for k, a in enumerate(primal.outs) if tape._differentiable(a))
        self.pull = self._pullback()
        self.plan = self.pull.plan if self.pull is not None else (tuple(range(len(primal.specs))), ())

    def _pullback(self) -> Pullback | None:
        op = self.primal.op
        if op.vjp is None or op.linear or tape._untaken(self.primal):
            return None
        names = op.names(self.primal.static, len(self.primal.specs))
        if not all(names[k] in op.vjp for k, n in enumerate(self.need) if n):
            return None
        given = tuple(k in self.results for k in range(len(self.primal.outs)))
        return tape.pullback(self.primal, self.need, given)

    def words(self, kernel: Kernel, describe: Any) -> str | None:
        """For the name of programs on disk."""
        inner = describe(self.primal)
        return inner and f"jvp({inner},{self.need},{kernel.specs!r})"

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        count = len(self.plan[0]) + len(self.plan[1])
        saved, along = arrays[:count], arrays[count:]
        primal = self.primal
        outs = [primal.outs[k] for k in self.results]
        wanted = [primal.specs[k] for k, n in enumerate(self.need) if n]
        along = [cast(t, s.dtype.np) for t, s in zip(along, wanted, strict=True)]
        if self.pull is None:
            return self._by_jvp(saved, along)
        pull = self.pull

        def transposed(*grads: Any) -> tuple:
            return pull.execute((), (), (*saved, *grads))

        _, back = jax.vjp(transposed, *[jnp.ones(a.shape, a.dtype.np) for a in outs])  # rules may take logarithms
        return tuple(_conj(d) for d in back(tuple(_conj(t) for t in along)))

    def _by_jvp(self, primals: Sequence, along: Sequence) -> tuple:
        places = [k for k, n in enumerate(self.need) if n]

        def forward(*some: Any) -> tuple:
            full = list(primals)
            for k, a in zip(places, some, strict=True):
                full[k] = a
            outs = self.primal(*full)
            return tuple(outs[k] for k in self.results)

        return jax.jvp(forward, tuple(primals[k] for k in places), tuple(along))[1]

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        return tuple(self.primal.outs[k] for k in self.results)


def _conj(d: Any) -> Any:
    return jnp.conj(d) if d.dtype.kind == "c" else d


def push_of(kernel: Kernel, need: tuple[bool, ...]) -> Push:
    """The forward derivative of `kernel` along the operands in `need`."""
    found = kernel.cache.get(("push", need))
    if found is None:
        found = kernel.cache[("push", need)] = Push(kernel, need)
    return found


class DualKernel:
    """The kernel of an operation in which plain and dual operands met, as `attach` gets it. `plain`: for each operand,
    whether it is a tensor that was not dual at `level`."""

    __slots__ = ("base", "level", "plain")

    def __init__(self, base: Any, level: DualLevel, plain: tuple[bool, ...]) -> None:
        self.base = base
        self.level = level
        self.plain = plain


def lifted(kernel: DualKernel, edges: list) -> tuple[Any, list]:
    """(the kernel that a node is made of, its edges): gradients of plain operands are taken out of their pairs."""
    levels = []
    found: Any = kernel
    while type(found) is DualKernel:
        levels.append((found.level, found.plain))
        found = found.base
    for level, plain in reversed(levels):
        edges = [LiftBackward(e, level) if p and e is not None else e for e, p in zip(edges, plain, strict=True)]
    return found, edges


def run(op: Any, static: tuple, operands: Sequence) -> tuple[Any, list[Value]]:
    """The recorder's way for operands that are no plain arrays: (kernel, results)."""
    top: DualLevel | None = None
    for x in operands:
        if type(x) is Value and type(x.array) is Dual and (top is None or x.array.level.number > top.number):
            top = x.array.level
    if top is None:
        return Batching.below(op, static, operands)
    first = _first_gradient(op)
    swapped = any(d.swapped for x in operands[first:] if (d := dual_of(x)) is not None and d.level is top)
    if not swapped and (not top.active or top.number >= FORWARD.limit):
        return emit(op, static, [_split(x, top)[0] for x in operands])
    primals, along = _parts(op, operands, top, first, swapped)
    kernel, outs = emit(op, static, primals)
    tangents = _tangents(op, kernel, primals, along, outs)
    results = [v if t is None else make(top, v, t, swapped) for v, t in zip(outs, tangents, strict=True)]
    plain = tuple(type(x) is Value and t is None for x, t in zip(operands, along, strict=True))
    if True in plain and any(t is not None for t in tangents):
        return DualKernel(kernel, top, plain), results
    return kernel, results


def _first_gradient(op: Any) -> int:
    """Where an operation's operands that are gradients begin (all of them, if it is no pullback)."""
    return len(op.plan[0]) + len(op.plan[1]) if hasattr(op, "given") else 0


ADDING = {"add", "sub"}


def _parts(op: Any, operands: Sequence, top: DualLevel, first: int, swapped: bool) -> tuple[list, list]:
    """(primals, tangents or None) of the operands. Plain gradients that meet swapped ones are swapped, too."""
    additive = swapped and (hasattr(op, "given") or op is ADD or op.name in ADDING)
    primals: list = []
    along: list = []
    for k, x in enumerate(operands):
        p, t = _split(x, top) if type(x) is Value else (x, None)
        if additive and k >= first and type(x) is Value and not (t is not None and x.array.swapped):
            p, t = zeros(p.aval), p
        primals.append(p)
        along.append(t)
    return primals, along


def _tangents(op: Any, kernel: Any, primals: list, along: list, outs: list) -> list:
    """The tangents of an operation's results; None for results that have none."""
    reduce = getattr(op, "reduce", None)
    base = kernel
    while type(base) is not Kernel:
        base = base.base
    if not op.differentiable:
        return [zeros(v.aval) if tape._differentiable(v.aval) else None for v in outs]
    need = tuple(
        t is not None and type(s) is not str and tape._differentiable(s) for t, s in zip(along, base.specs, strict=True)
    )
    push = push_of(base, need)
    found: list = [None] * len(base.outs)
    if not push.results or True not in need:
        return found
    inputs, outputs = push.plan
    given = [t for t, n in zip(along, need, strict=True) if n]
    pushed = emit(push, (), [*(primals[k] for k in inputs), *(outs[k] for k in outputs), *given])[1]
    for k, t in zip(push.results, pushed, strict=True):
        found[k] = t
    return found if reduce is None else reduce(found)


# -- nodes -----------------------------------------------------------------------------------------------------


class _LevelNode(Node):
    __slots__ = ("level",)

    def __init__(self, level: DualLevel, edges: tuple, a: Aval) -> None:
        super().__init__(edges, (a,))
        self.level = level

    def _reopen(self) -> None:
        """A gradient of a tangent: for what users compute in the rest of this walk, the level's tangents count."""
        if not self.level.active:
            self.level.active = True
            tape.Running.walk.reopened.append(self.level)


class LiftBackward(_LevelNode):
    """Where a plain tensor met a dual one."""

    __slots__ = ()

    def __init__(self, edge: Any, level: DualLevel) -> None:
        if type(edge) is tape.OutEdge:
            a = edge.node.outs[edge.nr]
        else:
            a = edge.outs[0] if isinstance(edge, Node) else edge._aval
        super().__init__(level, (edge,), a)

    def pull(self, grads: list, keep: bool) -> Sequence:
        return [outside(grads[0], self.level)]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        return [Hooks.outside(grads[0], self.level)]


class MakeDualBackward(_LevelNode):
    """A dual tensor put together. `missing`: the levels of vmap that the primal and the tangent do not have."""

    __slots__ = ("missing",)
    missing: tuple[tuple, tuple]

    def name(self) -> str:
        return "ViewBackward0"

    def pull(self, grads: list, keep: bool) -> Sequence:
        g, level = grads[0], self.level
        along = primal_at(g, level) if is_swapped(g, level) else None
        return self._reached((outside(g, level), along), Batching.shared_value)

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        g, level = grads[0], self.level
        along = Hooks.primal_at(g, level) if is_swapped(g._read(), level) else None
        return self._reached((Hooks.outside(g, level), along), Batching.shared)

    def _reached(self, found: tuple, shared: Any) -> list:
        out = []
        for g, edge, missing in zip(found, self.edges, self.missing, strict=True):
            if edge is None:
                continue
            for level in missing if g is not None else ():
                g = shared(g, level)
            out.append(g)
        return out


class PrimalBackward(_LevelNode):
    """The primal of a dual tensor. `swapped`: of one that is itself a swapped gradient."""

    __slots__ = ("swapped",)
    swapped: bool

    def name(self) -> str:
        return "Identity"

    def pull(self, grads: list, keep: bool) -> Sequence:
        g = grads[0]
        return [make(self.level, zeros(g.aval), g, True) if self.swapped else g]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        g = grads[0]
        return [Hooks.make_swapped(None, g, self.level) if self.swapped else g]


class TangentBackward(_LevelNode):
    """The tangent of a dual tensor."""

    __slots__ = ()

    def pull(self, grads: list, keep: bool) -> Sequence:
        g = grads[0]
        self._reopen()
        return [make(self.level, g, zeros(g.aval), True)]

    def pull_graph(self, grads: list, keep: bool) -> Sequence:
        self._reopen()
        return [Hooks.make_swapped(grads[0], None, self.level)]
