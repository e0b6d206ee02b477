"""From declarations to public functions: each `@op` becomes a `def` with PyTorch's signature, generated once.

Generated source, because binding `*args` by signature costs ten times what a plain `def` costs, and because
tracebacks, `help()` and `inspect.signature` then show real parameters."""

import builtins
import inspect
import keyword
import linecache
import operator
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MAIN_MODE
from torchlike._src.autograd.tape import OpNode, _sequence, grad_plan
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.native import NATIVE
from torchlike._src.engine import Value
from torchlike._src.ops.declare import OPS, TL, TO, TS, Op, S, StaticFloat, T
from torchlike._src.ops.indexing import INDEX_CHECKS, check_bounds
from torchlike._src.storage.storage import Storage
from torchlike._src.tensor import call
from torchlike._src.tensor.call import apply, check_result, check_writable, write, write_out
from torchlike._src.tensor.hot import GIVEN, function_lines, operator_lines, unary_lines
from torchlike._src.tensor.numpy_names import STUB, prologue, renamed, scope_of, without_defaults
from torchlike._src.tensor.tensor import TENSOR_TYPES, Tensor, TensorBase

recorder = sys.modules["torchlike._src.engine.record"]
NUMBERS = {int, float, bool, complex}
INTEGER = {int}


def tensor_argument(value: Any, name: str, parameter: str, position: int) -> Any:
    """A tensor operand that is not exactly a Tensor: a subclass, or PyTorch's TypeError."""
    if isinstance(value, TensorBase):
        return value
    raise TypeError(
        f"{name}(): argument '{parameter}' (position {position}) must be Tensor, not {type(value).__name__}"
    )


def operand_argument(value: Any, name: str, parameter: str, position: int) -> Any:
    """A tensor-or-number operand: NumPy scalars become Python numbers."""
    if isinstance(value, TensorBase):
        return value
    number = python_number(value)
    if number is None:
        raise TypeError(
            f"{name}(): argument '{parameter}' (position {position}) must be Tensor, not {type(value).__name__}"
        )
    return number


def number_argument(value: Any, name: str, parameter: str, position: int) -> Any:
    """A number that enters as data: Python and NumPy numbers, one-element tensors."""
    if isinstance(value, TensorBase):
        return value.item()
    number = python_number(value)
    if number is None:
        raise TypeError(
            f"{name}(): argument '{parameter}' (position {position}) must be Number, not {type(value).__name__}"
        )
    return number


def python_number(value: Any) -> Any:
    """A Python number for anything that is one, else None."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (complex, np.complexfloating)):
        return complex(value)
    return None


def _static_argument(value: Any) -> Any:
    kind = type(value)
    if kind is int or kind is bool or value is None or kind is str or kind is DType:
        return value
    if kind is float:
        return StaticFloat(value)
    if kind is tuple and INTEGER.issuperset(map(type, value)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple([static_argument(v) for v in value])
    if isinstance(value, TensorBase):
        return static_argument(value.tolist())
    if isinstance(value, np.bool_):
        return bool(value)
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, (float, np.floating)):
        return StaticFloat(value)
    return value


static_argument: Callable[[Any], Any] = _static_argument if NATIVE is None else NATIVE.static_argument
"""A static argument in hashable form: lists as tuples, integers as int."""
if NATIVE is not None:
    NATIVE.configure_arguments(_static_argument, StaticFloat, DType)


def tensor_list(value: Any, name: str, parameter: str, position: int) -> list:
    """A sequence of tensors."""
    if isinstance(value, TensorBase):
        raise TypeError(f"{name}(): argument '{parameter}' (position {position}) must be tuple of Tensors, not Tensor")
    try:
        items = list(value)
    except TypeError:
        raise TypeError(
            f"{name}(): argument '{parameter}' (position {position}) must be tuple of Tensors, not "
            f"{type(value).__name__}"
        ) from None
    for k, item in enumerate(items):
        if not isinstance(item, TensorBase):
            raise TypeError(f"expected Tensor as element {k} in argument {position - 1}, but got {type(item).__name__}")
    return items


NUMBERS_ALONE = {"add", "sub", "mul", "div", "floor_divide"}
"""Functions that take numbers for all of their operands; the others refuse."""


def numbers_alone(name: str, numbers: tuple) -> None:
    """PyTorch's TypeError for a function that wants a tensor among its operands."""
    got = ", ".join(type(n).__name__ for n in numbers)
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        " * (Tensor input, Tensor other, *, Tensor out = None)\n * (Number self, Tensor other, *, Tensor out = None)\n"
    )


def as_tensor_operand(number: Any) -> Tensor:
    """A Python number as a 0-dim tensor, where every operand of a function is a number."""
    from torchlike._src.tensor.creation import tensor

    return tensor(number)


def _parameter_source(signature: inspect.Signature, extra: str) -> str:
    parts: list[str] = []
    seen_star = False
    aliases = renamed(signature.parameters)
    required = without_defaults(signature.parameters) if aliases else ()
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not seen_star:
            parts.append("*")
            seen_star = True
        text = p.name + ("_" if keyword.iskeyword(p.name) else "")
        if p.name in required:
            text += "=MISSING"
        elif p.default is not p.empty:
            text += (
                f"=_defaults[{p.name!r}]"
                if not isinstance(p.default, (int, float, str, type(None), tuple))
                else f"={_literal(p.default)}"
            )
        parts.append(text)
    extras = [*([extra] if extra else []), *(f"{new}=MISSING" for new in aliases)]
    if extras and not seen_star:
        parts.append("*")
    return ", ".join(parts + extras)


def _literal(value: Any) -> str:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    return repr(value)


def check_indices(declared: Op, static: tuple, operands: tuple) -> None:
    """Raise PyTorch's error for an index out of range, where the indices' values are at hand: in host memory, or in an
    array that is ready. Values still to be computed are not waited for."""
    spec = INDEX_CHECKS[declared.name]
    key = (declared, static, *[t._aval if isinstance(t, TensorBase) else type_letter(t) for t in operands])
    found = BOUNDS.get(key)
    if found is None:
        if len(BOUNDS) >= MAX_BOUNDS:
            BOUNDS.clear()
        names = declared.names(static, len(operands))
        found = BOUNDS[key] = [[k for k, name in enumerate(names) if name == spec.operand], None]
    arrays = []
    for k in found[0]:
        t = operands[k]
        array = t._s.value.array if t._view is None else (t._vv.array if t._vv is not None else None)
        if array is not None and type(array) is not np.ndarray:
            array = np.asarray(array) if getattr(array, "is_ready", None) is not None and array.is_ready() else None
        if array is not None and array.shape != t._aval.shape:
            array = None
        arrays.append(array)
    if any([a is not None for a in arrays]):  # noqa: C419 - HOT
        if found[1] is None:
            found[1] = spec.bounds(**declared._checked_arguments(static, key[2:]))
        check_bounds(spec, found[1], arrays)


BOUNDS: dict[tuple, list] = {}
"""(operator, its static arguments, operands' avals and numbers' letters) -> [where the indices are, their bounds]."""
MAX_BOUNDS = 10_000


def type_letter(x: Any) -> str:
    return {bool: "b", int: "i", float: "f", complex: "c"}[type(x)]


def save(plan: Any, tensors: tuple, values: tuple, result: Any) -> tuple:
    """What a node keeps for backward: (value or number, storage, version) in the order of the plan."""
    out = []
    for k in plan.inputs:
        t = tensors[k]
        if t is None:
            out.append((values[k], None, 0))
        else:
            if t._is_inference:
                raise RuntimeError(call.INFERENCE_SAVED)
            s = t._s
            out.append((values[k], s, s.version))
    for _ in plan.outputs:
        out.append((result.value, result, 0))
    return tuple(out)


def generate(declared: Op, name: str, with_out: bool) -> Callable:
    """The public function of an operator. Its body is generated and compiled when it is first called: compiling all of
    them would be most of the time that importing takes."""
    scope: dict[str, Any] = {"__name__": __name__, "__builtins__": builtins}
    function = types.FunctionType(STUB, scope, name)
    scope["_materialise"] = lambda: materialise(declared, name, with_out, function, scope)
    function.__signature__ = public_signature(declared, with_out)  # type: ignore[attr-defined]
    function.__doc__ = declared.doc
    function.__module__ = "torch"
    function.__qualname__ = name
    return function


_compiling = threading.Lock()


def _after_fork() -> None:
    """Another thread may have held the lock when this process was forked."""
    global _compiling
    _compiling = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def materialise(declared: Op, name: str, with_out: bool, function: Any, scope: dict) -> Callable:
    """Give a stub its real code. The function stays the same object, so nothing that refers to it changes."""
    with _compiling:
        if function.__code__ is STUB:
            scope.update(environment(declared))
            source, filename = source_of(declared, name, with_out)
            local: dict[str, Any] = {}
            exec(compile(source, filename, "exec"), scope, local)
            linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
            real = local[name]
            function.__defaults__, function.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
            function.__code__ = real.__code__
            if not renamed(declared.signature.parameters):
                del function.__signature__
    return function


def public_signature(declared: Op, with_out: bool) -> inspect.Signature:
    """The signature without our annotations, and with out=. Read off the code object: `inspect` would take ten times as
    long, hundreds of times while importing."""
    fn = declared.fn
    defaults, keyword_defaults = fn.__defaults__ or (), fn.__kwdefaults__ or {}
    count = fn.__code__.co_argcount
    parameters = []
    for k, name in enumerate(declared.parameters):
        if k < count:
            at = k - count + len(defaults)
            default = defaults[at] if at >= 0 else inspect.Parameter.empty
            parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
        else:
            default = keyword_defaults.get(name, inspect.Parameter.empty)
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    if with_out:
        parameters.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters, __validate_parameters__=False)


def source_of(declared: Op, name: str, with_out: bool) -> tuple[str, str]:
    """(source text, file name) of an operator's public function."""
    signature = declared.signature
    positions = {n: k for k, n in enumerate(signature.parameters, 1)}
    lines = [f"def {name}({_parameter_source(signature, 'out=None' if with_out else '')}):"]
    lines += ["    " + line for line in prologue(name, signature.parameters)]
    tensors_possible_numbers = [n for n, a in declared.operands if a is TS]
    required = [n for n, a in declared.operands if a is T]
    for n, a in declared.operands:
        at = positions[n]
        if a is T:
            lines.append(f"    if type({n}) not in TENSOR_TYPES: {n} = tensor_argument({n}, {name!r}, {n!r}, {at})")
        elif a is TS:
            lines.append(
                f"    if type({n}) not in TENSOR_TYPES and type({n}) not in NUMBERS: "
                f"{n} = operand_argument({n}, {name!r}, {n!r}, {at})"
            )
        elif a is S:
            lines.append(f"    if type({n}) not in NUMBERS: {n} = number_argument({n}, {name!r}, {n!r}, {at})")
        elif a is TO:
            lines.append(
                f"    if {n} is not None and type({n}) not in TENSOR_TYPES: "
                f"{n} = tensor_argument({n}, {name!r}, {n!r}, {at})"
            )
        elif a is TL:
            lines.append(f"    {n} = tensor_list({n}, {name!r}, {n!r}, {at})")
    if tensors_possible_numbers and not required:
        first = tensors_possible_numbers[0]
        condition = " and ".join(f"type({n}) in NUMBERS" for n in tensors_possible_numbers)
        if name in NUMBERS_ALONE:
            lines.append(f"    if {condition}: {first} = as_tensor_operand({first})")
        else:
            shown = "special_" + name if declared.namespaces[:1] == ("torch.special",) else name
            lines.append(f"    if {condition}: numbers_alone({shown!r}, ({', '.join(tensors_possible_numbers)},))")
    statics = [f"{n} if type({n}) is int or {n} is None else static_argument({n})" for n in declared.statics]
    if declared.simple:
        static = "(" + "".join(s + ", " for s in statics) + ")"
        operands = "(" + "".join(n + ", " for n, _ in declared.operands) + ")"
    else:
        layout = []
        flat = []
        for n, a in declared.operands:
            if a is TO:
                layout.append(f"None if {n} is None else -1")
                flat.append(f"*(() if {n} is None else ({n},))")
            elif a is TL:
                layout.append(f"len({n})")
                flat.append(f"*{n}")
            else:
                layout.append("-1")
                flat.append(n)
        static = "(" + "".join(s + ", " for s in statics) + "(" + "".join(x + ", " for x in layout) + "),)"
        operands = "(" + "".join(x + ", " for x in flat) + ")"
    if declared.name in INDEX_CHECKS and not declared.name.startswith("_index"):
        lines.append(f"    check_indices(_op, {static}, {operands})")
    hot = function_lines(declared)
    if hot is not None:
        if with_out:
            lines.append("    if out is None:")
            lines += ["        " + line for line in hot]
        else:
            lines += ["    " + line for line in hot]
    if declared.outputs is not None:
        result = f"named(apply(_op, {static}, {operands}, True))"
    else:
        result = f"apply(_op, {static}, {operands})"
    if with_out:
        lines.append(f"    _result = {result}")
        tensors = ", ".join(n for n, a in declared.operands if a in (T, TS))
        lines.append("    if out is None: return _result")
        if declared.outputs is None:
            lines.append(f"    return write_out(out, _result, {name!r}, ({tensors}{',' if tensors else ''}))")
        else:
            lines.append(
                f"    return named([write_out(o, r, {name!r}, ({tensors},)) "
                "for o, r in zip(out, _result, strict=True)])"
            )
    else:
        lines.append(f"    return {result}")
    source = "\n".join(lines) + "\n"
    return source, f"<torchlike {name}>"


def environment(declared: Op) -> dict[str, Any]:
    """The global names of a generated function."""
    signature = declared.signature
    return {
        **scope_of(signature.parameters),
        "_op": declared,
        "_defaults": {n: p.default for n, p in signature.parameters.items()},
        "TENSOR_TYPES": TENSOR_TYPES,
        "NUMBERS": NUMBERS,
        "apply": apply,
        "write_out": write_out,
        "tensor_argument": tensor_argument,
        "operand_argument": operand_argument,
        "number_argument": number_argument,
        "static_argument": static_argument,
        "tensor_list": tensor_list,
        "as_tensor_operand": as_tensor_operand,
        "numbers_alone": numbers_alone,
        "SLOW": recorder.SLOW,
        "MAIN": recorder.MAIN,
        "MAIN_THREAD": recorder.MAIN_THREAD,
        "GRAD": MAIN_MODE,
        "SMALLEST": recorder.SMALLEST,
        "LARGEST": recorder.LARGEST,
        "get_ident": threading.get_ident,
        "wrapped": recorder.wrapped,
        "NEW": object.__new__,
        "GIVEN": GIVEN,
        "OpNode": OpNode,
        "Storage": Storage,
        "Tensor": Tensor,
        "Value": Value,
        "check_length": recorder.check_length,
        "grad_plan": grad_plan,
        "grow_or_recover": recorder.grow_or_recover,
        "new_leaf": recorder.new_leaf,
        "next_sequence": _sequence,
        "_native": None if NATIVE is None else NATIVE.Operator(declared, declared.differentiable),
        "check_indices": check_indices,
        "save": save,
        "named": return_type(declared.name, declared.outputs) if declared.outputs is not None else None,
    }


RETURN_TYPES: dict[str, Callable] = {}


def return_type(name: str, fields: Sequence[str]) -> Callable:
    """The named tuple that a function with several results returns, as torch.return_types has it."""
    import collections

    public = name.strip("_").removesuffix("_dim")
    key = public + "/" + ",".join(fields)
    found = RETURN_TYPES.get(key)
    if found is None:
        base: Any = collections.namedtuple(public, fields)  # type: ignore[misc]  # name and fields are data

        def show(self: Any) -> str:
            body = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
            return f"torch.return_types.{public}(\n{body})"

        base.__repr__ = show  # type: ignore[method-assign]
        base.__module__ = "torch.return_types"
        found = RETURN_TYPES[key] = lambda items: base(*items)
        found.type = base  # type: ignore[attr-defined]
    return found


def inplace_method(function: Callable, name: str) -> Callable:
    """`x.name_(...)`: the function's result stored in x."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_writable(self, False)
        new = function(self, *args, **kwargs)
        check_result(self, new)
        if new._rg and not self._rg:
            check_writable(self, True)
        return write(self, new)

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"In-place version of {function.__name__}."
    return method


def operator_method(function: Callable, name: str, declared: Op | None = None) -> Callable:
    """`x + y` and the like: NotImplemented for what cannot be an operand."""
    reverse = is_reverse(name)
    hot = None if declared is None else operator_lines(declared, reverse)
    if hot is not None:
        method = generated_method(function, name, declared, hot)
    elif reverse:

        def method(self: Tensor, other: Any) -> Any:
            if type(other) not in TENSOR_TYPES and type(other) not in NUMBERS:
                other = foreign_operand(other)
                if other is NotImplemented:
                    return NotImplemented
            return function(other, self)
    else:

        def method(self: Tensor, other: Any) -> Any:
            if type(other) not in TENSOR_TYPES and type(other) not in NUMBERS:
                other = foreign_operand(other)
                if other is NotImplemented:
                    return NotImplemented
            return function(self, other)

    if name in ARRAY_OPERATORS:
        method = with_arrays(method, ARRAY_OPERATORS[name])
    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    return method


def is_reverse(name: str) -> bool:
    """Whether a Python operator has its operands the other way round."""
    return name.startswith("__r") and name != "__rshift__"


def generated_method(function: Callable, name: str, declared: Any, hot: list[str]) -> Callable:
    """A Python operator with the lines of the hot path, written when it is first called."""
    binary = len(declared.operands) == 2
    lines = [f"def {name}(self{', other' if binary else ''}):", *("    " + line for line in hot)]
    if binary:
        lines += [
            "    if type(other) not in TENSOR_TYPES and type(other) not in NUMBERS:",
            "        other = foreign_operand(other)",
            "        if other is NotImplemented: return NotImplemented",
        ]
    operands = ("other, self" if is_reverse(name) else "self, other") if binary else "self"
    source = "\n".join([*lines, f"    return _function({operands})\n"])
    scope: dict[str, Any] = {"__name__": __name__, "__builtins__": builtins}
    method = types.FunctionType(STUB, scope, name)

    def write_out_method() -> Callable:
        with _compiling:
            if method.__code__ is STUB:
                scope.update(environment(declared), _function=function, foreign_operand=foreign_operand)
                defaults = declared.signature.parameters
                scope["_static"] = tuple([static_argument(defaults[n].default) for n in declared.statics])
                filename = f"<torchlike Tensor.{name}>"
                local: dict[str, Any] = {}
                exec(compile(source, filename, "exec"), scope, local)
                linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
                method.__code__ = local[name].__code__
        return method

    scope["_materialise"] = write_out_method
    return method


def with_arrays(method: Callable, on_array: Callable) -> Callable:
    """An operator that takes NumPy arrays, too, where NumPy's own reflected one would not be called."""

    def operator_with_arrays(self: Tensor, other: Any) -> Any:
        return on_array(self, other) if isinstance(other, np.ndarray) else method(self, other)

    return operator_with_arrays


def _equal_array(self: Tensor, array: np.ndarray) -> Tensor:
    from torchlike._src.tensor.creation import from_array

    return from_array(np.asarray(np.asarray(self) == array))


ARRAY_OPERATORS = {"__eq__": _equal_array, "__rtruediv__": lambda self, array: self.reciprocal() * array}


def foreign_operand(value: Any) -> Any:
    """An operand of a Python operator that is neither a plain tensor nor a Python number."""
    if isinstance(value, TensorBase):
        return value
    number = python_number(value)
    if number is not None:
        return number
    return NotImplemented  # also for arrays: NumPy's own operators take over, as with PyTorch's tensors


def unary_operator(function: Callable, name: str, declared: Op | None = None) -> Callable:
    hot = None if declared is None else unary_lines(declared)
    if hot is not None:
        return generated_method(function, name, declared, hot)

    def method(self: Tensor) -> Tensor:
        return function(self)

    method.__name__ = name
    return method


INPLACE_OPERATORS = {
    "__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__", "__and__", "__or__",
    "__xor__", "__lshift__", "__rshift__",
}  # fmt: skip
UNARY_OPERATORS = {"__neg__", "__abs__", "__invert__", "__pos__"}


def publish(namespaces: dict[str, dict[str, Any]]) -> None:
    """Fill the namespaces ("torch", "torch.nn.functional", …) and Tensor from the declared operators. Names that are
    already there (hand-written) are kept."""
    torch = namespaces["torch"]
    for declared in list(OPS.values()):
        function = generate(declared, declared.name, declared.out and not declared.name.startswith("_"))
        PUBLIC[declared.name] = function
        if declared.name.startswith("_"):
            continue
        for space in declared.namespaces:
            target = namespaces.setdefault(space, {})
            for name in (declared.name, *declared.aliases):
                target.setdefault(name, function)
        names = (declared.name, *declared.aliases)
        if declared.method:
            for name in names:
                _method(name, function)
        if declared.inplace:
            for name in names:
                in_place = inplace_method(function, name + "_")
                _method(name + "_", in_place)
                if len(declared.operands) == 1 and "torch" in declared.namespaces:
                    torch.setdefault(name + "_", in_place)
                if "torch.nn.functional" in declared.namespaces:
                    namespaces["torch.nn.functional"].setdefault(name + "_", in_place)
        for dunder in declared.dunders:
            add_operator(dunder, function, declared)


PUBLIC: dict[str, Callable] = {}
"""Every generated function, internal ones (leading underscore) too."""


def _method(name: str, function: Callable) -> None:
    if name not in Tensor.__dict__:
        setattr(Tensor, name, function)


def add_operator(dunder: str, function: Callable, declared: Op | None = None) -> None:
    """Install a Python operator, and its in-place form where there is one. declared: what `function` is made of."""
    if dunder in Tensor.__dict__ and dunder not in ("__hash__", "__eq__"):
        return
    if dunder in UNARY_OPERATORS:
        setattr(Tensor, dunder, unary_operator(function, dunder, declared))
        return
    setattr(Tensor, dunder, operator_method(function, dunder, declared))
    if dunder in INPLACE_OPERATORS:
        name = "__i" + dunder[2:]
        if name not in Tensor.__dict__:
            setattr(Tensor, name, inplace_operator(function, name))


def inplace_operator(function: Callable, name: str) -> Callable:
    in_place = inplace_method(function, name)

    def method(self: Tensor, other: Any) -> Any:
        if type(other) not in TENSOR_TYPES and type(other) not in NUMBERS:
            other = foreign_operand(other)
            if other is NotImplemented:
                return NotImplemented
        return in_place(self, other)

    method.__name__ = name
    return method


_ = call
