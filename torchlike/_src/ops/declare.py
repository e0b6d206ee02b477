"""The declaration of an operator: everything the library knows about it, in one place.

    @op(promote=Promote.DEFAULT, elementwise=True, inplace=True, dunders=("__mul__", "__rmul__"),
        vjp={"input": lambda g, other: g * jnp.conj(other), "other": lambda g, input: g * jnp.conj(input)})
    def mul(input: T, other: TS):
        '''input * other, broadcast.'''
        return input * other

The decorated function is the implementation: pure, on JAX arrays, module level. Its signature is the public
one. Annotations say what each parameter is:

    T   a tensor                          TO  a tensor or None
    TS  a tensor or a Python number       TL  a sequence of tensors
    S   a Python number, passed as data: a new number never compiles anything new
    anything else is static: part of the program's key (lists become tuples, so it must be hashable)

An implementation sees arrays (numbers arrive as 0-d arrays) and static values. With `promote`, its T and TS
operands arrive in the compute dtype and the result is cast to PyTorch's result dtype; S operands arrive in the
compute dtype too (without `promote`: float64, int64 or complex128 0-d arrays). The compute dtype of half types is
float32, and the result is rounded once. Where PyTorch rounds numbers to the half type first, `rounds_numbers` is set;
where it rounds between steps, `half` is an implementation whose tensors arrive in the half type (numbers in float32).

`vjp` maps a tensor parameter to its gradient rule. A rule takes, by name: `g` (the output's gradient; `g0`,
`g1`, … with several outputs, zeros where nothing came back), tensor and number parameters, `out` (`out0`, …),
static parameters, and `<parameter>_aval` / `out_aval` for a shape and dtype alone. Naming an array saves it for
backward — and makes an in-place change of it an error, as in PyTorch — so name what is needed and no more. The
result is summed to the operand's shape and cast to its dtype by the caller. A TL parameter's rule returns a
tuple, a rule that stands for several parameters a dict of their gradients. Gradients follow PyTorch's complex
convention (conjugate where PyTorch does). Without `vjp`, `jax.vjp` of the implementation is used and all tensor
operands are saved.
"""

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp

from torchlike._src.core.aval import CPU, Aval, aval
from torchlike._src.core.dtype import by_name, from_numpy
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.core.promotion import Promote, promote, result_type
from torchlike._src.core.tracing import result_types
from torchlike._src.ops.products import column_sum

__all__ = ["OPS", "S", "T", "TL", "TO", "TS", "Kernel", "Op", "Promote", "RawOp", "op"]


if TYPE_CHECKING:  # a type checker sees what implementations see: arrays, or Python numbers that arrive as arrays
    T: TypeAlias = Any
    TS: TypeAlias = Any
    TO: TypeAlias = Any
    TL: TypeAlias = Any
    S: TypeAlias = Any
else:

    class T:
        """Annotation: a tensor operand."""

    class TS:
        """Annotation: a tensor operand or a Python number."""

    class TO:
        """Annotation: a tensor operand or None."""

    class TL:
        """Annotation: a sequence of tensors."""

    class S:
        """Annotation: a Python number that enters the program as data."""


OPERANDS = (T, TS, TO, TL, S)
TENSORS = (T, TS, TO, TL)
OPS: dict[str, "Op"] = {}

NUMBER_TYPES = {"b": bool, "i": int, "f": float, "c": complex}
NUMBER_DTYPES = {"b": "bool", "i": "int64", "f": "float64", "c": "complex128"}


class StaticFloat(float):
    """A float among static arguments. Python holds 2 == 2.0, but a program for one is not a program for the other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is StaticFloat and float.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__  # in C: a trace's history is looked up by it


def parameter_names(rule: Callable) -> tuple[str, ...]:
    """The names of a function's parameters; much quicker than a whole signature."""
    code = getattr(rule, "__code__", None)
    if code is None or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return tuple(inspect.signature(rule).parameters)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def plain(value: Any) -> Any:
    """A static argument as the implementation takes it."""
    if type(value) is StaticFloat:
        return float(value)
    return tuple([plain(v) for v in value]) if type(value) is tuple else value


class RawOp:
    """An internal kernel without a declaration: `fn(*arrays, **dict(static)) -> array or tuple of arrays`.

    `static` is a tuple of (name, value) pairs. Differentiable by `jax.vjp` where it is put on the tape."""

    vjp: dict[str, Callable] | None = None
    differentiable = True
    linear = False
    """Linear in all its array operands together: the gradient is the transpose and needs none of them."""
    faults: "Faults | None" = None
    """What may be wrong with operands' values, found while programs run."""

    def __init__(self, fn: Callable, name: str | None = None, *, linear: bool = False, grad_name: Any = None) -> None:
        self.fn = fn
        self.name = name or fn.__name__
        self.linear = linear
        if grad_name is not None:
            self.grad_name = grad_name

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        out = self.fn(*arrays, **dict(static))
        return out if isinstance(out, tuple) else (out,)

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        return infer_by_tracing(self, static, specs)

    def make_kernel(self, static: tuple, specs: tuple) -> "Kernel":
        return Kernel(self, static, specs, self.infer(static, specs))

    def host_function(self, kernel: "Kernel") -> Callable | None:
        """The kernel as a NumPy function, if one has been written out."""
        # Loaded with the host tier, when a first trace needs it.
        from torchlike._src.ops.host_convolution import host_function

        return host_function(kernel)

    def element_code(self, kernel: "Kernel") -> Any:
        """The kernel as instructions of the C extension's elementwise functions; see `ops.elements`."""
        from torchlike._src.ops.elements import code_of

        return code_of(kernel)

    def starts_chain(self) -> bool:
        """Whether `host_chain` may find something."""
        from torchlike._src.ops.host_convolution import starts_chain

        return starts_chain(self)

    def host_chain(self, kernels: list["Kernel"]) -> tuple[int, Callable] | None:
        """(how many kernels, one NumPy function for them), for an operator that is best computed together with those
        that follow it: `kernels`, its own first. See `host_convolution.host_chain`."""
        from torchlike._src.ops.host_convolution import host_chain

        return host_chain(kernels)


class Op(RawOp):
    """A declared operator; see the module's text for the fields."""

    def __init__(self, fn: Callable, **options: Any) -> None:
        super().__init__(fn, options.pop("name", None) or fn.__name__)
        self.doc = inspect.getdoc(fn)
        self.promote: Promote | None = options.pop("promote", None)
        self.elementwise: bool = options.pop("elementwise", False)
        self.vjp = options.pop("vjp", None)
        self.differentiable: bool = options.pop("differentiable", True)
        self.check: Callable | None = options.pop("check", None)
        self.shape: Callable | None = options.pop("shape", None)
        self.namespaces: tuple[str, ...] = options.pop("namespaces", ("torch",))
        self.method: bool = options.pop("method", True)
        self.inplace: bool = options.pop("inplace", False)
        self.out: bool = options.pop("out", True)
        self.dunders: tuple[str, ...] = options.pop("dunders", ())
        self.aliases: tuple[str, ...] = options.pop("aliases", ())
        self.outputs: tuple[str, ...] | None = options.pop("outputs", None)
        self.grad_name: str | Callable = options.pop("grad_name", None) or camel(self.name)
        self.autocast: str | None = options.pop("autocast", None)
        self.half: Callable | None = options.pop("half", None)
        self.rounds_numbers: bool = options.pop("rounds_numbers", False)
        self.linear = options.pop("linear", False)
        promote_args: tuple[str, ...] | None = options.pop("promote_args", None)
        if options:
            raise TypeError(f"op {self.name}: unknown options {sorted(options)}")
        # Read off the code object: whole signatures of all operators would be a tenth of the time that importing takes.
        names = parameter_names(fn)
        self.parameters = names
        annotations = fn.__annotations__
        self.operands = [(n, annotations[n]) for n in names if annotations.get(n) in OPERANDS]
        self.statics = [n for n in names if annotations.get(n) not in OPERANDS]
        self.simple = all(a in (T, TS, S) for _, a in self.operands)
        """No optional or list operands: operand k is parameter k."""
        if promote_args is None:
            promote_args = tuple(n for n, a in self.operands if a is not S)
        self.promote_args = promote_args
        for name, rule in (self.vjp or {}).items():
            self._check_rule(name, rule)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The implementation's signature."""
        return inspect.signature(self.fn)

    def _check_rule(self, name: str, rule: Callable) -> None:
        names = [n for n, a in self.operands if a in TENSORS]
        if name not in names:
            raise TypeError(f"op {self.name}: vjp names {name!r}, but its tensor parameters are {names}")
        known = {"g", "out", "out_aval", *self.parameters} | {n + "_aval" for n in names}
        for k in range(len(self.outputs or ())):
            known |= {f"g{k}", f"out{k}", f"out{k}_aval"}
        if unknown := set(parameter_names(rule)) - known:
            raise TypeError(f"op {self.name}: the vjp rule of {name!r} takes {sorted(unknown)}, which it cannot have")

    # -- from flat operands to the implementation's arguments ------------------------------------------------

    def bind(self, static: tuple, items: Sequence) -> dict[str, Any]:
        """Parameter -> item, from the flat operand list. `static` is the tuple of static values in order, followed,
        when the op has optional or list operands, by one layout tuple: per operand parameter None (absent), -1 (one)
        or the list's length."""
        named = {n: plain(v) for n, v in zip(self.statics, static, strict=False)}
        if self.simple:
            for (n, _), item in zip(self.operands, items, strict=True):
                named[n] = item
            return named
        position = 0
        for (n, _), count in zip(self.operands, static[-1], strict=True):
            if count is None:
                named[n] = None
            elif count < 0:
                named[n] = items[position]
                position += 1
            else:
                named[n] = tuple(items[position : position + count])
                position += count
        return named

    def names(self, static: tuple, count: int) -> list[str]:
        """The parameter that each flat operand belongs to."""
        if self.simple:
            return [n for n, _ in self.operands]
        out: list[str] = []
        for (n, _), k in zip(self.operands, static[-1], strict=True):
            out += [] if k is None else [n] * abs(k)
        return out

    def resolve(self, static: tuple, specs: tuple) -> tuple[DType, DType] | None:
        """(compute dtype, result dtype) by PyTorch's promotion; None if the op does not promote."""
        if self.promote is None:
            return None
        names = self.names(static, len(specs))
        parts = [
            NUMBER_TYPES[s] if type(s) is str else (s.dtype, s.ndim)
            for n, s in zip(names, specs, strict=True)
            if n in self.promote_args
        ]
        return promote(self.promote, parts)

    def half_type(self, static: tuple, specs: tuple) -> Any:
        """The half type that the operands have in common; None if it is another type."""
        names = self.names(static, len(specs))
        common = result_type(
            [
                NUMBER_TYPES[s] if type(s) is str else (s.dtype, s.ndim)
                for n, s in zip(names, specs, strict=True)
                if n in self.promote_args
            ]
        )
        return common.np if common.name in ("float16", "bfloat16") else None

    def _rounded_first(self, spec: Any, half: Any) -> bool:
        """Whether an operand is rounded to the half type before anything is computed: tensors of other types are,
        numbers and 0-dim tensors only where PyTorch's kernel does not take them as they are."""
        if type(spec) is not str and (spec.ndim or spec.dtype.np == half):
            return spec.dtype.np != half
        return self.rounds_numbers

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        dtypes = self.resolve(static, specs)
        function = self.fn
        if dtypes is not None:
            names = self.names(static, len(specs))
            half = self.half_type(static, specs) if dtypes[0].name == "float32" else None
            if half is not None:
                arrays = [
                    cast(cast(a, dtypes[0].np), half) if a.dtype.kind != "c" and self._rounded_first(s, half) else a
                    for s, a in zip(specs, arrays, strict=True)
                ]
            arrays = [self._cast_in(n, s, a, dtypes[0]) for n, s, a in zip(names, specs, arrays, strict=True)]
            if half is not None and self.half is not None:
                function = self.half
                arrays = [
                    cast(a, half)
                    if type(s) is not str and (s.ndim or s.dtype.np == half) and n in self.promote_args
                    else a
                    for n, s, a in zip(names, specs, arrays, strict=True)
                ]
        out = function(**self.bind(static, arrays))
        outs = out if isinstance(out, tuple) else (out,)
        if dtypes is not None:
            result = dtypes[1].np
            outs = (cast(outs[0], result), *outs[1:])
            if self.elementwise:
                outs = tuple(cast(o, result) for o in outs)
        return outs

    def _cast_in(self, name: str, spec: Any, array: Any, compute: DType) -> Any:
        if name in self.promote_args:
            return cast(array, compute.np)
        if type(spec) is str and not (spec == "c" and not compute.is_complex):
            return cast(array, compute.np)  # an S operand: alpha, a slope, …
        return array

    # -- abstract results -----------------------------------------------------------------------------------

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        """The results' avals; raises PyTorch's error for operands that do not fit."""
        if self.check is not None:
            self.check(**self._checked_arguments(static, specs))
        device = result_device(self, specs)
        if self.elementwise and self.outputs is None:
            shape = broadcast_shapes(*[s.shape for s in specs if type(s) is not str])
            dtypes = self.resolve(static, specs)
            if dtypes is not None:
                return (aval(shape, dtypes[1], device),)
        if self.shape is not None:
            outs = self.shape(**self._checked_arguments(static, specs))
            return outs if isinstance(outs, tuple) else (outs,)
        return infer_by_tracing(self, static, specs)

    def _checked_arguments(self, static: tuple, specs: Sequence) -> dict[str, Any]:
        return self.bind(static, [NUMBER_TYPES[s] if type(s) is str else s for s in specs])


class Faults(RawOp):
    """What may be wrong with the values of an operator's operands; the engine looks when it has run (engine/checks.py).

    `codes(**arrays)` takes parameters by name as gradient rules do (`<name>_aval` for a shape and dtype) and gives an
    int64 array: FINE, or a number that says what is wrong, for each condition. `error(code=, number=, ...)` makes
    PyTorch's error of the code of condition `number`; it may take avals and static parameters. Where `when(...)` of
    avals and static parameters is false, there is nothing to check. The number of conditions depends on no shape."""

    def __init__(self, codes: Callable, error: Callable, when: Callable | None = None) -> None:
        super().__init__(codes, "faults of " + codes.__name__)
        self.error = error
        self.when = when
        self.count: int | None = None

    def of(self, forward: "Kernel") -> "tuple[Kernel, tuple[int, ...]] | None":
        """(the kernel that computes the codes, which of `forward`'s operands it takes), or None."""
        if self.when is not None and not self._call(self.when, forward, {}):
            return None
        wanted = parameter_names(self.fn)
        names = forward.op.names(forward.static, len(forward.specs))
        positions = tuple(k for k, n in enumerate(names) if n in wanted)
        return self.make_kernel((forward, positions), tuple(forward.specs[k] for k in positions)), positions

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        forward, positions = static
        return (self._call(self.fn, forward, dict(zip(positions, arrays, strict=True))),)

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        if self.count is None:
            ((shape, _),) = result_types(lambda *a: self.execute(static, specs, a), [shape_struct(s) for s in specs])
            self.count = shape[0]
        return (aval((self.count,), by_name("int64"), CPU),)

    def error_of(self, forward: "Kernel", number: int, code: int) -> Exception:
        return self._call(self.error, forward, {}, code=code, number=number)

    @staticmethod
    def _call(function: Callable, forward: "Kernel", arrays: dict, **more: Any) -> Any:
        op, static, specs = forward.op, forward.static, forward.specs
        avals = op.bind(static, [NUMBER_TYPES[s] if type(s) is str else s for s in specs])
        known = op.bind(static, [arrays.get(k) for k in range(len(specs))]) | more
        known |= {n + "_aval": avals[n] for n, _ in op.operands}
        return function(**{n: known[n] for n in parameter_names(function)})


FINE = -(1 << 63)
"""The code of a condition that holds."""


def first_bad(bad: Any, values: Any) -> Any:
    """The first of `values` (int64) where `bad`, as a code; FINE if there is none."""
    bad, values = bad.reshape(-1), jnp.broadcast_to(values, bad.shape).reshape(-1)
    if not bad.shape[0]:
        return jnp.full((), FINE, jnp.int64)
    at = jnp.argmax(bad)
    return jnp.where(bad[at], jnp.maximum(values[at].astype(jnp.int64), FINE + 1), FINE)


class Kernel:
    """An operator with everything static resolved: what a program is made of. Interned by the engine."""

    __slots__ = ("__weakref__", "cache", "grad_plans", "op", "outs", "plans", "pullbacks", "specs", "static")

    def __init__(self, op: Any, static: tuple, specs: tuple, outs: tuple[Aval, ...]) -> None:
        self.op = op
        self.static = static
        self.specs = specs
        self.outs = outs
        self.plans: dict = {}
        self.grad_plans: dict = {}
        self.pullbacks: dict = {}
        self.cache: dict = {}

    def plan(self, need: tuple[bool, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(operand positions, output positions) to save for the gradient of the operands in `need`."""
        found = self.plans.get(need)
        if found is None:
            found = self.plans[need] = save_plan(self, need)
        return found

    def __call__(self, *arrays: Any) -> tuple:
        """JAX arrays (or tracers) in operand order -> tuple of arrays."""
        return self.op.execute(self.static, self.specs, arrays)

    def __repr__(self) -> str:
        return f"{self.op.name}({', '.join(map(str, self.specs))})"


class Pullback(RawOp):
    """The gradient of a kernel with respect to some operands, itself a kernel's op: saved values and output
    gradients in, operand gradients out. `jax.vjp` of it gives second derivatives."""

    def __init__(self, forward: Kernel, need: tuple[bool, ...], given: tuple[bool, ...]) -> None:
        self.forward = forward
        self.need = need
        self.given = given
        self.name = forward.op.name + "_backward"
        self.plan = save_plan(forward, need)
        self.by_rule = forward.op.vjp is not None or forward.op.linear
        self.kernel: Kernel | None = None

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        inputs, outputs = self.plan
        saved = arrays[: len(inputs) + len(outputs)]
        given = iter(arrays[len(saved) :])
        grads = [
            next(given) if here else jnp.zeros(a.shape, a.dtype.np)
            for here, a in zip(self.given, self.forward.outs, strict=True)
        ]
        if self.forward.op.linear:
            return self.finish(self._transpose(saved, grads))
        if not self.by_rule:
            return self.finish(self.generic(saved, grads))
        return self.finish(
            self._by_rules(
                dict(zip(inputs, saved, strict=False)), dict(zip(outputs, saved[len(inputs) :], strict=True)), grads
            )
        )

    def _transpose(self, numbers: Sequence, grads: list) -> list:
        """Gradients of a linear kernel: its transpose, which needs no operand but the numbers."""
        forward = self.forward
        given = iter(numbers)
        fixed = {k: next(given) for k, s in enumerate(forward.specs) if type(s) is str}
        wanted = [k for k, n in enumerate(self.need) if n]
        rest = {
            k: jnp.zeros(s.shape, s.dtype.np) for k, s in enumerate(forward.specs) if k not in fixed and k not in wanted
        }

        def run(*some: Any) -> tuple:
            full = fixed | rest | dict(zip(wanted, some, strict=True))
            return forward(*(full[k] for k in range(len(forward.specs))))

        transposed = jax.linear_transpose(run, *[shape_struct(forward.specs[k]) for k in wanted])
        # Conjugated on the way in and out: PyTorch's gradient of a complex number is the conjugate of JAX's.
        return [
            _conj(d)
            for d in transposed(tuple(_conj(cast(g, o.dtype.np)) for g, o in zip(grads, forward.outs, strict=True)))
        ]

    def generic(self, primals: Sequence, grads: list) -> list:
        """Gradients of the needed operands by jax.vjp of the forward kernel."""
        return self.linearise(primals)[1](grads)

    def linearise(self, primals: Sequence) -> tuple[tuple, Callable]:
        """(outputs, pull): runs the forward kernel once and keeps what its gradient needs."""
        wanted = [k for k, n in enumerate(self.need) if n]

        def forward(*some: Any) -> tuple:
            full = list(primals)
            for k, a in zip(wanted, some, strict=True):
                full[k] = a
            return self.forward(*full)

        outs, pull = jax.vjp(forward, *(primals[k] for k in wanted))

        def pull_torch(grads: list) -> list:
            cotangents = tuple(_cotangent(g, o) for g, o in zip(grads, outs, strict=True))
            return [_conj(d) for d in pull(cotangents)]

        return outs, pull_torch

    def _by_rules(self, inputs: dict, outputs: dict, grads: list) -> list:
        op, static, specs = self.forward.op, self.forward.static, self.forward.specs
        dtypes = op.resolve(static, specs)
        names = op.names(static, len(specs))
        compute = None if dtypes is None else dtypes[0]
        if compute is not None and compute.np.kind != "b":
            inputs = {k: op._cast_in(names[k], specs[k], a, compute) for k, a in inputs.items()}
            # Gradients of results that are not in the compute dtype (comparisons, indices) have no rule.
            grads = [cast(g, compute.np) if g.dtype.kind not in "biu" and _casts(g, compute) else g for g in grads]
            outputs = {
                k: cast(a, compute.np) if a.dtype.kind not in "biu" and _casts(a, compute) else a
                for k, a in outputs.items()
            }
        flat: list = [inputs.get(k) for k in range(len(specs))]
        known = op.bind(static, flat)
        avals = op.bind(static, [s if type(s) is not str else None for s in specs])
        known |= {n + "_aval": avals[n] for n, a in op.operands}
        many = op.outputs is not None or len(self.forward.outs) > 1
        for k, a in enumerate(self.forward.outs):
            suffix = str(k) if many else ""
            known |= {"g" + suffix: grads[k], f"out{suffix}_aval": a, "out" + suffix: outputs.get(k)}
        known.setdefault("g", grads[0])
        results: list = []
        done: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for k, needed in enumerate(self.need):
            name = names[k]
            position = seen.get(name, 0)
            seen[name] = position + 1
            if not needed:
                continue
            if name not in done:
                if name not in op.vjp:
                    raise NotImplementedError(
                        f"the derivative of '{op.name}' with respect to '{name}' is not implemented"
                    )
                rule = op.vjp[name]
                found = rule(**{n: known[n] for n in parameter_names(rule)})
                done |= found if type(found) is dict else {name: found}
            d = done[name]
            results.append(d[position] if isinstance(d, (tuple, list)) else d)
        return results

    def finish(self, results: list) -> tuple:
        wanted = [s for s, n in zip(self.forward.specs, self.need, strict=True) if n]
        return tuple(fit(d, s) for d, s in zip(results, wanted, strict=True))

    def infer(self, static: tuple, specs: tuple) -> tuple[Aval, ...]:
        return tuple(s for s, n in zip(self.forward.specs, self.need, strict=True) if n)


def op(**options: Any) -> Callable[[Callable], Op]:
    """Declare an operator. Options (see the module's text): name, promote, promote_args (which operands decide the
    dtype), rounds_numbers, half, elementwise, vjp, differentiable, check(**avals and statics) raising PyTorch's error,
    shape(**avals and statics) -> Aval or tuple (quicker than tracing), namespaces, method, inplace, out, dunders,
    aliases, outputs (field names of a tuple result), grad_name, autocast ("lower", "float32", "promote"), linear
    (linear in its tensor operands together: the gradient is the transpose, nothing is saved)."""

    def declare(fn: Callable) -> Op:
        declared = Op(fn, **options)
        if declared.name in OPS:
            raise ValueError(
                f"op {declared.name!r} is declared twice: {OPS[declared.name].fn.__module__}, {fn.__module__}"
            )
        OPS[declared.name] = declared
        return declared

    return declare


_PLANS: dict = {}


def save_plan(forward: Kernel, need: tuple[bool, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(operand positions, output positions) that backward of `forward` needs for the operands in `need`."""
    op = forward.op
    if op.linear:
        return tuple(k for k, s in enumerate(forward.specs) if type(s) is str), ()
    if op.vjp is None:
        return tuple(range(len(forward.specs))), ()
    layout = () if op.simple else forward.static[-1]
    key = (op, layout, need, len(forward.outs))
    plan = _PLANS.get(key)
    if plan is None:
        names = op.names(forward.static, len(forward.specs))
        takes: set[str] = set()
        for k, needed in enumerate(need):
            if needed:
                takes |= set(parameter_names(op.vjp[names[k]])) if names[k] in op.vjp else set()
        many = op.outputs is not None or len(forward.outs) > 1
        inputs = tuple(k for k, n in enumerate(names) if n in takes)
        outputs = tuple(k for k in range(len(forward.outs)) if (f"out{k}" if many else "out") in takes)
        plan = _PLANS[key] = (inputs, outputs)
    return plan


def pullback(forward: Kernel, need: tuple[bool, ...], given: tuple[bool, ...]) -> Pullback:
    """The gradient of `forward` for the operands in `need`, where `given` says which outputs' gradients exist."""
    found = forward.pullbacks.get((need, given))
    if found is None:
        found = forward.pullbacks[(need, given)] = Pullback(forward, need, given)
    return found


def infer_by_tracing(op: Any, static: tuple, specs: tuple) -> tuple[Aval, ...]:
    """Abstract results by tracing the implementation with JAX (about a millisecond; the engine caches it)."""
    device = result_device(op, specs)
    outs = result_types(lambda *a: op.execute(static, specs, a), [shape_struct(s) for s in specs])
    return tuple(aval(shape, from_numpy(kind), device) for shape, kind in outs)


def result_device(op: Any, specs: tuple) -> Any:
    device = None
    zero_dim = None
    for s in specs:
        if type(s) is str:
            continue
        if s.ndim == 0 and s.device.type == "cpu":
            zero_dim = zero_dim or s.device
        elif device is None:
            device = s.device
        elif s.device is not device and s.device != device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {device} and "
                f"{s.device}!"
            )
    return device or zero_dim or CPU


def shape_struct(spec: Any) -> jax.ShapeDtypeStruct:
    if type(spec) is str:
        return jax.ShapeDtypeStruct((), NUMBER_DTYPES[spec])
    return jax.ShapeDtypeStruct(spec.shape, spec.dtype.np)


def cast(array: Any, np_dtype: Any) -> Any:
    """`array` in another dtype; complex to real keeps the real part."""
    if array.dtype == np_dtype:
        return array
    if array.dtype.kind == "c" and jnp.dtype(np_dtype).kind not in "cb":
        array = jnp.real(array)
    kind = jnp.dtype(np_dtype).kind
    if kind in "iu" and array.dtype.kind not in "iubc":
        return to_integer(array, jnp.dtype(np_dtype))
    return array.astype(np_dtype)


def to_integer(array: Any, target: Any) -> Any:
    """Floats as integers the way C compilers do it on x86, where XLA saturates: through int32 or int64, whose smallest
    number stands for NaN and for what does not fit; then the lowest bits."""
    wide = jnp.dtype("int64" if target.itemsize == 8 or target.name == "uint32" else "int32")
    low = float(jnp.iinfo(wide).min)
    if array.dtype.itemsize == 2:
        array = array.astype("float32")
    fits = (array >= low) & (array < -low)
    found = jax.lax.select(fits, array.astype(wide), jax.lax.full(array.shape, int(low), wide))
    return found.astype(target)


def fit(gradient: Any, spec: Aval) -> Any:
    """A gradient summed over the dims its operand was broadcast along, in the operand's dtype."""
    if gradient.dtype == jax.dtypes.float0:  # jax.vjp's gradient of an integer operand
        return jnp.zeros(spec.shape, spec.dtype.np)
    if gradient.shape != spec.shape:
        lead = gradient.ndim - spec.ndim
        if lead > 0:
            gradient = column_sum(gradient, spec.ndim)
        axes = tuple(k for k, n in enumerate(spec.shape) if n == 1 and gradient.shape[k] != 1)
        if axes:
            gradient = gradient.sum(axes, keepdims=True)
        if gradient.shape != spec.shape:
            gradient = jnp.broadcast_to(gradient, spec.shape)
    return cast(gradient, spec.dtype.np)


def camel(name: str) -> str:
    """'log_softmax' -> 'LogSoftmaxBackward0', the name that PyTorch gives the node."""
    return "".join(part[:1].upper() + part[1:] for part in re.split("_+", name.strip("_"))) + "Backward0"


def _casts(array: Any, compute: DType) -> bool:
    return (array.dtype.kind == "c") <= compute.is_complex


def _conj(d: Any) -> Any:
    return jnp.conj(d) if d.dtype.kind == "c" else d


def _cotangent(g: Any, out: Any) -> Any:
    import numpy as np

    if out.dtype.kind in "biu":
        return np.zeros(out.shape, jax.dtypes.float0)
    return _conj(cast(g, out.dtype))
