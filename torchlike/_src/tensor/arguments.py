"""PyTorch's binding of arguments to signatures, with its TypeErrors. Slow: for calls that a short way does not take."""

import ast
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.size import Size
from torchlike._src.tensor.tensor import TensorBase

LAYOUT_OPTIONS = (
    "torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, "
    "bool requires_grad = False"
)
OPTIONS = f"Tensor out = None, {LAYOUT_OPTIONS}"
GENERATOR = "torch.Generator? generator"
LIKE = f"torch.memory_format memory_format = None, {LAYOUT_OPTIONS}"
UNPACKED = (
    "{}(): argument '{}' failed to unpack the object at pos {} with error \"type must be tuple of ints,but got {}\""
)

SIGNATURES: dict[str, tuple[str, ...]] = {
    "zeros": (f"tuple of ints size, *, {OPTIONS}",),
    "ones": (f"tuple of ints size, *, {OPTIONS}",),
    "empty": (f"tuple of ints size, *, torch.memory_format memory_format = None, {OPTIONS}",),
    "full": (f"tuple of ints size, Number fill_value, *, {OPTIONS}",),
    "rand": tuple(f"tuple of ints size, *, {head}{OPTIONS}" for head in (f"{GENERATOR}, ", "")),
    "randint": tuple(
        f"{bounds}, tuple of ints size, *, {head}{OPTIONS}"
        for bounds in ("int high", "int low, int high")
        for head in (f"{GENERATOR}, ", "")
    ),
    "randint_like": tuple(
        f"Tensor input, {bounds}, *, {head}{LIKE}"
        for bounds in ("int low, int high", "Tensor high", "int high")
        for head in (f"{GENERATOR}, ", "")
    ),
    "rand_like": tuple(f"Tensor input, *, {head}{LIKE}" for head in (f"{GENERATOR}, ", "")),
    "zeros_like": (f"Tensor input, *, {LIKE}",),
    "full_like": (f"Tensor input, Number fill_value, *, {LIKE}",),
    "randperm": tuple(f"int n, *, {head}{OPTIONS}" for head in (f"{GENERATOR}, ", "")),
    "normal": (
        "Tensor mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
        "Tensor mean, float std = 1, *, torch.Generator generator = None, Tensor out = None",
        "float mean, Tensor std, *, torch.Generator generator = None, Tensor out = None",
        f"float mean, float std, tuple of ints size, *, torch.Generator generator = None, {OPTIONS}",
    ),
    "bernoulli": (
        "Tensor input, *, torch.Generator generator = None, Tensor out = None",
        "Tensor input, float p, *, torch.Generator generator = None",
    ),
    "multinomial": (
        "Tensor input, int num_samples, bool replacement = False, *, torch.Generator generator = None, "
        "Tensor out = None",
    ),
    "poisson": ("Tensor input, torch.Generator generator = None",),
    "binomial": ("Tensor count, Tensor prob, torch.Generator generator = None",),
    "_standard_gamma": ("Tensor input, torch.Generator generator = None",),
    "_sample_dirichlet": ("Tensor input, torch.Generator generator = None",),
    "arange": (
        f"Number end, *, {OPTIONS}",
        f"Number start, Number end, *, {LAYOUT_OPTIONS}",
        f"Number start, Number end, Number step = 1, *, {OPTIONS}",
    ),
    "range": (f"Number start, Number end, Number step = 1, *, {OPTIONS}",),
    "linspace": tuple(
        f"{ends}, int steps, *, {OPTIONS}"
        for ends in ("Tensor start, Tensor end", "Number start, Tensor end", "Tensor start, Number end",
                     "Number start, Number end")
    ),
    "logspace": tuple(
        f"{ends}, int steps, float base = 10.0, *, {OPTIONS}"
        for ends in ("Tensor start, Tensor end", "Number start, Tensor end", "Tensor start, Number end",
                     "Number start, Number end")
    ),
    "eye": (f"int n, *, {OPTIONS}", f"int n, int m, *, {OPTIONS}"),
    "empty_strided": (f"tuple of ints size, tuple of ints stride, *, {LAYOUT_OPTIONS}",),
    "empty_permuted": (f"tuple of ints size, tuple of ints physical_layout, *, {LAYOUT_OPTIONS}",),
    "scalar_tensor": (f"Number s, *, {LAYOUT_OPTIONS}",),
    "new_zeros": (f"tuple of ints size, *, {LAYOUT_OPTIONS}",),
    "new_full": (f"tuple of ints size, Number fill_value, *, {LAYOUT_OPTIONS}",),
    "view": ("torch.dtype dtype", "tuple of ints size"),
    "reshape": ("tuple of ints shape",),
    "torch.reshape": ("Tensor input, tuple of ints shape",),
    "torch.permute": ("Tensor input, tuple of ints dims",),
    "torch.as_strided": ("Tensor input, tuple of ints size, tuple of ints stride, int storage_offset = None",),
    "torch.tile": ("Tensor input, tuple of ints dims",),
    "torch.broadcast_to": ("Tensor input, tuple of ints size",),
    "torch.flip": ("Tensor input, tuple of ints dims",),
    "expand": ("tuple of ints size, *, bool implicit = False",),
    "repeat": ("tuple of ints repeats",),
    "permute": ("tuple of ints dims",),
    "tile": ("tuple of ints dims",),
    "flip": ("tuple of ints dims",),
    "resize_": ("tuple of ints size, *, torch.memory_format memory_format = None",),
    "broadcast_to": ("tuple of ints size",),
    "sum_to_size": ("tuple of ints size",),
    "uniform_": ("float from = 0, float to = 1, *, torch.Generator generator = None",),
    "normal_": ("float mean = 0, float std = 1, *, torch.Generator generator = None",),
    "random_": (
        "*, torch.Generator generator = None",
        "int from, int? to, *, torch.Generator generator = None",
        "int to, *, torch.Generator generator = None",
    ),
    "bernoulli_": (
        "Tensor p, *, torch.Generator generator = None",
        "float p = 0.5, *, torch.Generator generator = None",
    ),
    "exponential_": ("float lambd = 1, *, torch.Generator generator = None",),
    "cauchy_": ("float median = 0, float sigma = 1, *, torch.Generator generator = None",),
    "log_normal_": ("float mean = 1, float std = 2, *, torch.Generator generator = None",),
    "geometric_": ("float p, *, torch.Generator generator = None",),
    "Generator": ("torch.device device = None",),
}  # fmt: skip
"""PyTorch's signatures, as its error texts write them; a "?" marks a type that takes None without having a default."""
ALIKE = {
    "randn": "rand", "randn_like": "rand_like", "ones_like": "zeros_like", "empty_like": "zeros_like",
    "new_ones": "new_zeros", "new_empty": "new_zeros",
}  # fmt: skip


NUMPY_NAMES = {"input": ("x", "a", "x1"), "other": ("x2",), "dim": ("axis",), "keepdim": ("keepdims",)}
"""What PyTorch's parameters may be called, too."""


class Parameter(NamedTuple):
    """One parameter of a signature."""

    kind: str
    name: str
    optional: bool
    takes_none: bool
    keyword_only: bool
    default: Any = None


HEAP_TYPE = 1 << 9


def type_name(value: Any) -> str:
    """A type's name in PyTorch's messages: with the module for types written in C there."""
    kind = type(value)
    in_c = not kind.__flags__ & HEAP_TYPE and kind.__module__ != "builtins"
    in_c = in_c or kind.__module__ in ("torch", "torch._C") and not isinstance(value, TensorBase)
    return f"{kind.__module__}.{kind.__name__}" if in_c else kind.__name__


def is_whole(value: Any) -> bool:
    """May stand for an int: an int but no bool, what has __index__, a tensor of one whole number."""
    if isinstance(value, TensorBase):
        a = value._aval
        return a.numel == 1 and not a.dtype.is_floating_point and not a.dtype.is_complex
    return not isinstance(value, (bool, np.bool_)) and hasattr(type(value), "__index__") and _indexed(value) is not None


def _indexed(value: Any) -> int | None:
    try:
        return value.__index__()
    except (TypeError, ValueError):
        return None


def is_whole_list(value: Any) -> bool:
    """May stand for a tuple of ints; only the first one is looked at."""
    return isinstance(value, (tuple, list)) and (not value or is_whole(value[0]))


def _is_number(value: Any) -> bool:
    if isinstance(value, TensorBase):
        return not value._aval.ndim and not value._rg
    return isinstance(value, (int, float, complex, np.number, np.bool_))


def _is_real(value: Any) -> bool:
    return _is_number(value) and not isinstance(value, (complex, np.complexfloating))


CHECKS = {
    "Tensor": lambda value: isinstance(value, TensorBase),
    "Number": _is_number,
    "float": _is_real,
    "int": is_whole,
    "bool": lambda value: isinstance(value, (bool, np.bool_)),
    "tuple of ints": is_whole_list,
    "torch.dtype": lambda value: isinstance(value, DType) or any(value is t for t in (float, int, bool, complex)),
    "torch.device": lambda value: isinstance(value, (str, Device)) or type(value) is int,
    "torch.layout": lambda value: type(value).__name__ == "layout",
    "torch.memory_format": lambda value: type(value).__name__ == "memory_format",
    "torch.Generator": lambda value: hasattr(value, "_host") and hasattr(value, "get_state"),
}
_PARAMETER = re.compile(r"(?P<kind>.+?)(?P<none>\?)? (?P<name>\w+)(?: = (?P<default>.+))?$")


def _literal(text: str | None) -> Any:
    return None if text is None else ast.literal_eval(text)


class Signature:
    """One way to call a function."""

    def __init__(self, function: str, text: str) -> None:
        self.function, self.text = function.rpartition(".")[2], text.replace("?", "")
        self.parameters: list[Parameter] = []
        keyword_only = False
        for part in text.split(", ") if text else ():
            if part == "*":
                keyword_only = True
                continue
            found = _PARAMETER.match(part)
            assert found is not None, part
            default = found["default"]
            takes_none = bool(found["none"]) or default == "None" or found["kind"] == "bool"
            self.parameters.append(
                Parameter(
                    found["kind"], found["name"], default is not None, takes_none, keyword_only, _literal(default)
                )
            )
        positional = [p for p in self.parameters if not p.keyword_only]
        self.least = sum(not p.optional for p in self.parameters)
        self.most = len(self.parameters)
        self.positional, self.required = len(positional), sum(not p.optional for p in positional)
        self.spread = self.positional == 1 and positional[0].kind == "tuple of ints"
        """f(2, 3) means f((2, 3))."""

    def bind(self, args: Sequence, kwargs: dict[str, Any], report: bool) -> dict[str, Any] | None:
        """The given arguments by parameter name; None, or with `report` a TypeError, if they do not fit."""
        taken, used = 0, 0
        out: dict[str, Any] = {}
        if len(args) > self.positional and not self.spread:
            return self._too_many(len(args), report)
        for k, p in enumerate(self.parameters):
            by_name = taken >= len(args)
            if not by_name:
                if p.keyword_only:
                    return self._too_many(len(args), report)
                value = args[taken]
                given = True
            else:
                key = next((k for k in (p.name, *NUMPY_NAMES.get(p.name, ())) if k in kwargs), None)
                value, given = (None, False) if key is None else (kwargs[key], True)
            if (not given and p.optional) or (given and value is None and p.takes_none):
                pass
            elif not given:
                return self._missing(k, report)
            elif CHECKS[p.kind](value):
                out[p.name] = value
            elif self.spread and not taken and not by_name and is_whole_list(tuple(args)):
                out[p.name] = tuple(args)
                taken = len(args)
                continue
            elif report:
                self._wrong(p, value, None if by_name else taken + 1)
            else:
                return None
            if not by_name:
                taken += 1
            elif given:
                used += 1
        if taken < len(args):
            return self._too_many(len(args), report)
        if used < len(kwargs):
            return self._unexpected(args, kwargs, report)
        return out

    def _too_many(self, count: int, report: bool) -> dict[str, Any] | None:
        if not report:
            return None
        low, high = self.required, self.positional
        takes = f"{high} positional argument{'' if high == low == 1 else 's'}"
        if low < high:
            takes = f"from {low} to {takes}"
        raise TypeError(f"{self.function}() takes {takes} but {count} {'was' if count == 1 else 'were'} given")

    def _missing(self, k: int, report: bool) -> dict[str, Any] | None:
        if not report:
            return None
        names = [f'"{p.name}"' for p in self.parameters[k:] if not p.optional]
        raise TypeError(
            f"{self.function}() missing {len(names)} required positional argument{'s' if len(names) == 1 else ''}: "
            + ", ".join(names)
        )

    def _wrong(self, p: Parameter, value: Any, position: int | None) -> NoReturn:
        where = f"{self.function}(): argument '{p.name}'" + (f" (position {position})" if position else "")
        if position and p.kind == "tuple of ints" and isinstance(value, (tuple, list)):
            what = f"but found element of type {type_name(value[0])} at pos 0"
        else:
            what = f"not {type_name(value)}"
        raise TypeError(f"{where} must be {p.kind}, {what}")

    def _unexpected(self, args: Sequence, kwargs: dict[str, Any], report: bool) -> dict[str, Any] | None:
        if not report:
            return None
        names = [p.name for p in self.parameters]
        for name in kwargs:
            if name not in names and not any(name in NUMPY_NAMES.get(n, ()) for n in names):
                raise TypeError(f"{self.function}() got an unexpected keyword argument '{name}'")
        twice = next(name for name in kwargs if name not in names or names.index(name) < len(args))
        raise TypeError(f"{self.function}() got multiple values for argument '{twice}'")

    def accepts_count(self, count: int) -> bool:
        return self.least <= count <= self.most

    def mismatch(self, args: Sequence, kwargs: dict[str, Any]) -> str:
        """What an error text says below this signature; nothing if the number of arguments does not fit (PyTorch
        counts the star as one)."""
        slots: list[Parameter | None] = list(self.parameters)
        if any(p.keyword_only for p in self.parameters):
            slots.insert(self.positional, None)
        if len(args) + len(kwargs) != len(slots):
            return ""
        by_name = {p.name: p for p in self.parameters}
        unknown = [name for name in kwargs if name not in by_name]
        if unknown:
            return "      didn't match because some of the keywords were incorrect: " + ", ".join(unknown) + "\n"
        given = [("", p, value) for p, value in zip(slots, args, strict=False)]
        given += [(f"{name}=", by_name[name], value) for name, value in kwargs.items()]
        described = []
        for name, p, value in given:
            text = name + _described(value)
            described.append(text if p is not None and CHECKS[p.kind](value) else f"!{text}!")
        return f"      didn't match because some of the arguments have invalid types: ({', '.join(described)})\n"


def _described(value: Any) -> str:
    if type(value) in (tuple, list):
        inner = ", ".join(type_name(v) for v in value)
        if isinstance(value, list):
            return f"list of [{inner}]"
        return f"tuple of ({inner}{',' * (len(value) == 1)})"
    return type_name(value)


def given(**options: Any) -> dict[str, Any]:
    """The options that differ from their defaults."""
    return {k: v for k, v in options.items() if v is not None and v is not False}


def signed(name: str) -> Callable[[Callable], Callable]:
    """A decorator for f(*args, **kwargs): tools see the parameters of PyTorch's last signature."""

    def decorate(function: Callable) -> Callable:
        parameters = []
        for p in signatures(name)[-1].parameters:
            kind = inspect.Parameter.KEYWORD_ONLY if p.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
            default = inspect.Parameter.empty if not p.optional else p.default
            parameters.append(inspect.Parameter(p.name, kind, default=default))
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return function

    return decorate


_PARSED: dict[str, list[Signature]] = {}


def signatures(function: str) -> list[Signature]:
    """The signatures of a function."""
    found = _PARSED.get(function)
    if found is None:
        found = [Signature(function, text) for text in SIGNATURES[ALIKE.get(function, function)]]
        _PARSED[function] = found
    return found


SEQUENCES = (tuple, list, Size)


def are_plain(values: Any) -> bool:
    """A tuple or list of nothing but Python's ints."""
    if type(values) not in SEQUENCES:
        return False
    for n in values:
        if n.__class__ is not int:
            return False
    return True


MOST = 1 << 63


def _plain_number(value: Any) -> bool:
    return value.__class__ is float or value.__class__ is int and -MOST <= value < MOST


def _plain_int(value: Any) -> bool:
    return value.__class__ is int and -MOST <= value < MOST


def _plain_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def _usual(**parameters: Callable[[Any], bool]) -> tuple:
    return tuple(parameters.items())


USUAL: dict[tuple[str, int], tuple] = {
    ("full", 2): _usual(size=are_plain, fill_value=_plain_number),
    ("new_full", 2): _usual(size=are_plain, fill_value=_plain_number),
    ("full_like", 2): _usual(input=_plain_tensor, fill_value=_plain_number),
    ("arange", 1): _usual(end=_plain_number),
    ("arange", 2): _usual(start=_plain_number, end=_plain_number),
    ("arange", 3): _usual(start=_plain_number, end=_plain_number, step=_plain_number),
    ("linspace", 3): _usual(start=_plain_number, end=_plain_number, steps=_plain_int),
    ("eye", 1): _usual(n=_plain_int),
    ("eye", 2): _usual(n=_plain_int, m=_plain_int),
    ("randint", 2): _usual(high=_plain_int, size=are_plain),
    ("randint", 3): _usual(low=_plain_int, high=_plain_int, size=are_plain),
    ("randperm", 1): _usual(n=_plain_int),
    ("normal", 3): _usual(mean=_plain_number, std=_plain_number, size=are_plain),
    ("rand_like", 1): _usual(input=_plain_tensor),
    ("randn_like", 1): _usual(input=_plain_tensor),
    ("random_", 1): (("to", _plain_int),),
    ("random_", 2): (("from", _plain_int), ("to", _plain_int)),
}
"""What nearly every call looks like, by function and number of positional arguments: the short way through `bind`."""


def _usual_options(kwargs: dict[str, Any]) -> bool:
    for name, value in kwargs.items():
        kind = value.__class__
        if not (
            name == "dtype" and kind is DType
            or name == "device" and (kind is str or kind is Device)
            or name == "requires_grad" and kind is bool
        ):  # fmt: skip
            return False
    return True


def bind(function: str, args: Sequence, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The given arguments by parameter name, tuples of ints as such; PyTorch's TypeError for a call it refuses."""
    usual = USUAL.get((function, len(args)))
    if usual is not None and (not kwargs or _usual_options(kwargs)):
        found = kwargs.copy()
        for (name, fits), value in zip(usual, args, strict=True):
            if not fits(value):
                break
            found[name] = value
        else:
            if "size" in found:
                found["size"] = tuple(found["size"])
            return found
    options = signatures(function)
    if len(options) == 1:
        bound = options[0].bind(args, kwargs, report=True)
        assert bound is not None
        return _unpacked(options[0], bound)
    for option in options:
        bound = option.bind(args, kwargs, report=False)
        if bound is not None:
            return _unpacked(option, bound)
    count = len(args) + len(kwargs)
    plausible = [option for option in options if option.accepts_count(count)]
    if len(plausible) == 1:
        plausible[0].bind(args, kwargs, report=True)
    raise combination(function, args, kwargs)


def combination(function: str, args: Sequence, kwargs: dict[str, Any]) -> TypeError:
    """The error for arguments that fit none of several signatures."""
    got = ", ".join([type_name(a) for a in args] + [f"{k}={type_name(v)}" for k, v in reversed(kwargs.items())])
    if kwargs and not args:
        got += ", "  # as PyTorch has it
    lines = "".join(f" * ({option.text})\n{option.mismatch(args, kwargs)}" for option in signatures(function))
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({got}), but expected one of:\n{lines}"
    )


def _unpacked(signature: Signature, bound: dict[str, Any]) -> dict[str, Any]:
    for p in signature.parameters:
        if p.kind == "tuple of ints" and p.name in bound:
            bound[p.name] = whole_numbers(signature.function, p.name, bound[p.name])
        elif p.kind == "int" and p.name in bound:
            bound[p.name] = whole_number(bound[p.name])
    return bound


def whole_number(value: Any) -> int:
    """An int argument that `is_whole`; RuntimeError for one beyond 64 bits."""
    n = _tensor_int(value) if isinstance(value, TensorBase) else int(value.__index__())
    if not -(1 << 63) <= n < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return n


def _tensor_int(t: TensorBase) -> int:
    if t._aval.dtype.category == "bool" or t._aval.dtype.name == "bool":
        raise RuntimeError(
            "Expected scalar.isIntegral( false) to be true, but got false.  (Could this error message be improved?  "
            "If so, please report an enhancement request to PyTorch.)"
        )
    return int(t._host().reshape(-1)[0])


def whole_numbers(function: str, parameter: str, values: Sequence) -> tuple[int, ...]:
    """A tuple of ints argument; TypeError for an element that is none."""
    out = []
    for k, value in enumerate(values):
        if isinstance(value, TensorBase) and is_whole(value):
            out.append(_tensor_int(value))
            continue
        n = None if isinstance(value, TensorBase) else _indexed(value) if hasattr(type(value), "__index__") else None
        if n is None:
            raise TypeError(UNPACKED.format(function, parameter, k + 1, type_name(value)))
        if not -(1 << 63) <= n < 1 << 63:
            raise TypeError(
                f"{function}(): argument '{parameter}' failed to unpack the object at pos {k + 1} with error "
                '"Overflow when unpacking long long"'
            )
        out.append(n)
    return tuple(out)


def whole_tuple(function: str, args: Sequence, kwargs: dict[str, Any] | None = None) -> tuple[int, ...]:
    """The sizes of a function whose first parameter is a tuple of ints, given as f(2, 3) or f((2, 3))."""
    if not kwargs:
        values = args[0] if len(args) == 1 and type(args[0]) in SEQUENCES else args
        for n in values:
            if n.__class__ is not int or n >= MOST:
                break
        else:
            if args:
                return tuple(values)
    bound = bind(function, args, kwargs or {})
    return next(iter(bound.values()))
