"""The generator's core: what a jaxpr variable is bound to, and the straight-line program that rules append to.

A rule is a function ``rule(em, eqn, *refs) -> Ref | list[Ref]`` registered under a primitive's name. It resolves the
primitive's parameters once, when the program is generated, and appends lines such as ``v7 = add(v3, v5)``. What runs
later is only those lines.

Two ideas keep the lines few:

* A :class:`Ref` may be *lazily broadcast*: its array (of shape ``phys``) only broadcasts to the variable's shape.
  ``broadcast_in_dim`` then costs nothing, because NumPy's ufuncs broadcast by themselves. Rules not marked ``lazy``
  get their operands expanded first.
* Values known at generation are constants, and equations of constants are evaluated at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]

# Constants up to this many elements are held by the program; larger ones are made anew at each run.
FOLD_LIMIT = 4096
# Arrays from this many bytes on are freed after their last use and have their memory reused by ufuncs.
BIG_BYTES = 1 << 15

_VARIABLE = re.compile(r"\b[va]\d+\b")


class HostUnsupported(Exception):
    """A primitive, or a combination of its parameters, that the host tier does not cover."""

    def __init__(self, primitive: str, detail: str = "") -> None:
        super().__init__(f"{primitive}: {detail}" if detail else primitive)
        self.primitive = primitive
        self.detail = detail


class Ref:
    """What a jaxpr variable is bound to: a Python name, the logical shape and dtype, and the array's own shape.

    ``phys`` broadcasts to ``shape`` (aligned at the right, leading dimensions may be missing). ``const`` is the array
    when it is known at generation. A value of shape ``()`` may be a NumPy scalar at run time: rules use only what
    arrays and scalars share.
    """

    __slots__ = ("name", "shape", "dtype", "phys", "const")

    def __init__(self, name: str, shape: Shape, dtype: np.dtype, phys: Shape, const: np.ndarray | None = None) -> None:
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.phys = phys
        self.const = const

    @property
    def size(self) -> int:
        """Number of logical elements."""
        return math.prod(self.shape)

    def padded(self) -> Shape:
        """``phys`` with its missing leading dimensions written as ones."""
        return (1,) * (len(self.shape) - len(self.phys)) + self.phys

    def with_shape(self, shape: Shape) -> Ref:
        """The same array seen as a lazy broadcast to ``shape``."""
        return Ref(self.name, shape, self.dtype, self.phys, self.const)

    def scalar_const(self) -> Any:
        """The single Python number all elements are known to equal, or None."""
        if self.const is None or self.const.size != 1:
            return None
        return self.const.reshape(()).item()


class Line:
    """One statement ``targets = expression`` and what the clean-up pass needs to know of it."""

    __slots__ = ("targets", "left", "text", "uses", "alias", "pins", "reuse", "nbytes")

    def __init__(self, targets: tuple[str, ...], text: str, unpack: bool = False) -> None:
        self.targets = targets
        self.left = "".join(f"{t}, " for t in targets) if unpack else targets[0]
        self.text = text
        self.uses = tuple(dict.fromkeys(_VARIABLE.findall(text)))
        self.alias: str | None = None
        self.pins = False
        self.reuse: tuple[tuple[str, Shape, np.dtype], ...] = ()
        self.nbytes = 0

    def rename(self, names: dict[str, str]) -> None:
        """Use other variables in place of some."""
        if names.keys().isdisjoint(self.uses):
            return
        self.text = _VARIABLE.sub(lambda found: names.get(found[0], found[0]), self.text)
        self.uses = tuple(dict.fromkeys(names.get(u, u) for u in self.uses))
        self.alias = names.get(self.alias, self.alias) if self.alias else None
        self.reuse = tuple((names.get(n, n), shape, dtype) for n, shape, dtype in self.reuse)


Rule = Callable[..., Any]
RULES: dict[str, tuple[Rule, bool]] = {}


def rule(*names: str, lazy: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule for primitives. ``lazy=True``: the rule takes lazily broadcast operands as they are."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = (function, lazy)
        return function

    return register


def broadcast_phys(shapes: Sequence[Shape]) -> Shape:
    """The shape NumPy gives to a ufunc of arrays of these (compatible) shapes."""
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    rank = max(len(s) for s in shapes)
    out = [1] * rank
    for s in shapes:
        offset = rank - len(s)
        for i, n in enumerate(s):
            if n != 1:
                out[offset + i] = n
    return tuple(out)


def expand(x: Any, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """A full array of ``shape`` holding the broadcast of ``x``."""
    out = np.empty(shape, dtype)
    out[...] = x
    return out


def aval_of(var: Any) -> tuple[Shape, np.dtype]:
    """Shape and dtype of a jaxpr variable; extended dtypes (PRNG keys) come back as they are."""
    aval = var.aval
    shape = tuple(int(n) for n in aval.shape)
    try:
        return shape, np.dtype(aval.dtype)
    except TypeError:
        return shape, aval.dtype


def is_key(dtype: Any) -> bool:
    """Whether a jaxpr dtype is a PRNG key."""
    return not isinstance(dtype, np.dtype)


# What a PRNG key is in memory: two words, in a last dimension of their own.
KEY_WORDS = np.dtype(np.uint32)
KEY_SHAPE = (2,)
# Primitives whose rules take keys; calls only hand them on.
KEY_PRIMITIVES = {"slice", "squeeze", "reshape", "unstack", "copy", "optimization_barrier", "jit", "closed_call"}


def key_to_words(ref: Ref) -> Ref:
    """A key as the array of words it is in memory."""
    shape = ref.shape + KEY_SHAPE
    return Ref(ref.name, shape, KEY_WORDS, shape, ref.const)


def words_to_key(ref: Ref, dtype: Any) -> Ref:
    """The reverse of :func:`key_to_words`, for words that are full in memory."""
    shape = ref.shape[: -len(KEY_SHAPE)]
    return Ref(ref.name, shape, dtype, shape, ref.const)


class Emitter:
    """A program under construction: its namespace of functions and constants, and its lines."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"host": None}  # reserved for the function being generated
        self.lines: list[Line] = []
        self.children: dict[int, Any] = {}
        # For variables that are reshapes or transposes: what of, and (for a transpose) the permutation.
        self.views: dict[str, tuple[Ref, Shape | None]] = {}
        self._names: dict[int, str] = {}
        self._constants: dict[Any, Ref] = {}
        self._expanded: dict[tuple[str, Shape], Ref] = {}
        self._count = 0

    # -- names -----------------------------------------------------------------------------------------------

    def fresh(self) -> str:
        """A new variable name."""
        self._count += 1
        return f"v{self._count}"

    def fn(self, function: Any) -> str:
        """The name under which the program sees a function, dtype or other object."""
        known = self._names.get(id(function))
        if known is not None:
            return known
        base = re.sub(r"\W", "_", getattr(function, "__name__", None) or type(function).__name__)
        if _VARIABLE.fullmatch(base):
            base = f"{base}_"
        name, i = base, 1
        while name in self.namespace:
            i += 1
            name = f"{base}_{i}"
        self.namespace[name] = function
        self._names[id(function)] = name
        return name

    def dtype(self, dtype: np.dtype) -> str:
        """The name of a dtype object (an object is faster than its string for NumPy to read)."""
        return self.fn(np.dtype(dtype))

    # -- values ----------------------------------------------------------------------------------------------

    def const(self, value: Any, shape: Shape, dtype: np.dtype) -> Ref:
        """A constant; ``value`` broadcasts to ``shape``. Scalars are 0-d arrays, which ufuncs read fastest."""
        array = np.asarray(value).astype(dtype, copy=False)
        key = (array.tobytes(), array.shape, dtype) if array.size <= 64 else None
        ref = self._constants.get(key) if key else None
        if ref is None:
            array = array.copy() if array.flags.writeable else array
            array.flags.writeable = False
            name = f"k{len(self.namespace)}"
            self.namespace[name] = array
            ref = Ref(name, array.shape, dtype, array.shape, array)
            if key:
                self._constants[key] = ref
        return ref.with_shape(shape)

    def full_const(self, value: Any, shape: Shape, dtype: np.dtype) -> Ref:
        """A constant of one value."""
        return self.const(np.asarray(value).astype(dtype), shape, dtype)

    def put(self, text: str, shape: Shape, dtype: np.dtype, phys: Shape | None = None, alias: Ref | None = None) -> Ref:
        """Append ``v = text``. ``alias``: the operand whose memory the result may share (a view of it)."""
        phys = shape if phys is None else phys
        name = self.fresh()
        line = Line((name,), text)
        line.alias = alias.name if alias is not None else None
        line.nbytes = math.prod(phys) * getattr(dtype, "itemsize", 8)
        self.lines.append(line)
        return Ref(name, shape, dtype, phys)

    def put_many(self, text: str, outs: Sequence[tuple[Shape, np.dtype]], pins: bool = False) -> list[Ref]:
        """Append ``v1, v2, … = text``. ``pins``: results may share memory with any operand."""
        names = tuple(self.fresh() for _ in outs)
        line = Line(names, text, unpack=True)
        line.pins = pins
        line.nbytes = max((math.prod(s) * getattr(d, "itemsize", 8) for s, d in outs), default=0)
        self.lines.append(line)
        return [Ref(n, s, d, s) for n, (s, d) in zip(names, outs)]

    def ufunc(self, function: Any, refs: Sequence[Ref], shape: Shape, dtype: np.dtype) -> Ref:
        """Append a call of a ufunc; the result is as lazily broadcast as its operands are."""
        phys = broadcast_phys([r.phys for r in refs])
        ref = self.put(f"{self.fn(function)}({', '.join(r.name for r in refs)})", shape, dtype, phys)
        line = self.lines[-1]
        if phys and line.nbytes >= BIG_BYTES:
            line.reuse = tuple((r.name, r.phys, r.dtype) for r in refs)
            line.reuse = tuple(r for r in line.reuse if r[1] == phys and r[2] == dtype)
        return ref

    def call(
        self,
        function: Any,
        refs: Sequence[Ref],
        shape: Shape,
        dtype: np.dtype,
        extra: str = "",
        phys: Shape | None = None,
        alias: Ref | None = None,
    ) -> Ref:
        """Append a call of a function on ``refs`` and the text ``extra``."""
        arguments = ", ".join([r.name for r in refs] + ([extra] if extra else []))
        return self.put(f"{self.fn(function)}({arguments})", shape, dtype, phys, alias)

    def full(self, ref: Ref) -> Ref:
        """The value with its whole shape in memory."""
        if ref.phys == ref.shape:
            return ref
        if ref.const is not None and ref.size <= FOLD_LIMIT:
            return self.const(np.broadcast_to(ref.const, ref.shape), ref.shape, ref.dtype)
        key = (ref.name, ref.shape)
        known = self._expanded.get(key)
        if known is None:
            known = self.put(
                f"{self.fn(expand)}({ref.name}, {ref.shape}, {self.dtype(ref.dtype)})", ref.shape, ref.dtype
            )
            self._expanded[key] = known
        return known

    def reshaped(self, ref: Ref, phys: Shape, shape: Shape) -> Ref:
        """The array of ``ref`` reshaped to ``phys``, as a lazy broadcast to ``shape``."""
        if ref.phys == phys:
            return ref.with_shape(shape)
        if ref.const is not None:
            return self.const(ref.const.reshape(phys), shape, ref.dtype)
        base, permutation = self.views.get(ref.name, (None, None))
        if base is not None and permutation is None:
            ref = base  # a reshape of a reshape
            if ref.phys == phys:
                return ref.with_shape(shape)
        out = self.put(f"{ref.name}.reshape({phys})", shape, ref.dtype, phys, alias=ref)
        self.views[out.name] = (ref, None)
        return out

    def cast(self, ref: Ref, dtype: np.dtype) -> Ref:
        """NumPy's plain conversion of a value to ``dtype``."""
        if ref.dtype == dtype:
            return ref
        if ref.const is not None:
            return self.const(ref.const.astype(dtype), ref.shape, dtype)
        return self.put(f"{ref.name}.astype({self.dtype(dtype)})", ref.shape, dtype, ref.phys)

    # -- equations -------------------------------------------------------------------------------------------

    def inline(self, jaxpr: Any, consts: Sequence[Any], refs: Sequence[Ref]) -> list[Ref]:
        """Append the equations of a jaxpr applied to ``refs``."""
        env: dict[Any, Ref] = {}
        for var, value in zip(jaxpr.constvars, consts):
            shape, dtype = aval_of(var)
            if is_key(dtype):
                raise HostUnsupported("constant", "a PRNG key")
            env[var] = self.const(np.asarray(value), shape, dtype)
        env.update(zip(jaxpr.invars, refs))

        def read(var: Any) -> Ref:
            if hasattr(var, "val"):  # a Literal
                shape, dtype = aval_of(var)
                return self.const(np.asarray(var.val), shape, dtype)
            return env[var]

        for eqn in jaxpr.eqns:
            outs = self.equation(eqn, [read(v) for v in eqn.invars])
            env.update(zip(eqn.outvars, outs))
        return [read(v) for v in jaxpr.outvars]

    def equation(self, eqn: Any, refs: list[Ref]) -> list[Ref]:
        """Append one equation; evaluate it at once when its operands are small constants."""
        name = eqn.primitive.name
        found = RULES.get(name)
        if found is None:
            raise HostUnsupported(name)
        function, lazy = found
        if any(is_key(r.dtype) for r in refs) and name not in KEY_PRIMITIVES and not name.startswith("random_"):
            raise HostUnsupported(name, "PRNG keys")
        if not lazy:
            refs = [self.full(r) for r in refs]
        mark = len(self.lines)
        outs = function(self, eqn, *refs)
        outs = [outs] if isinstance(outs, Ref) else list(outs)
        if outs and len(self.lines) > mark and all(r.const is not None for r in refs):
            outs = self._fold(mark, outs)
        return outs

    def _fold(self, mark: int, outs: list[Ref]) -> list[Ref]:
        """Evaluate the lines from ``mark`` on and bind ``outs`` to the results, if these are small."""
        if any(math.prod(r.phys) > FOLD_LIMIT or is_key(r.dtype) for r in outs):
            return outs
        lines = self.lines[mark:]
        if any(line.nbytes > 1 << 20 for line in lines):
            return outs
        scope = self.namespace
        results: dict[str, Any] = {}
        source = "\n".join(f"{line.left} = {line.text}" for line in lines)
        with np.errstate(all="ignore"):
            exec(compile(source, "<host constant>", "exec"), scope, results)
        del self.lines[mark:]
        self._expanded = {k: r for k, r in self._expanded.items() if r.name not in results}
        self.views = {k: v for k, v in self.views.items() if k not in results}
        return [
            r if r.const is not None else self.const(np.asarray(results[r.name]).reshape(r.phys), r.shape, r.dtype)
            for r in outs
        ]
