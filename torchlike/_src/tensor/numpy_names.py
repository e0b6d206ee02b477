"""NumPy's argument names: `axis` for `dim` and `keepdims` for `keepdim`, which PyTorch's functions take as keywords.
Generated functions carry them in their own source; hand-written ones are published behind a function that does."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

from torchlike._src.tensor.namespace import SPACES, names
from torchlike._src.tensor.tensor import Tensor

NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
SPACES_WITH_NAMES = ("torch", "torch.linalg", "torch.special", "torch.fft")
WITHOUT = {"norm", "split", "unique", "unique_consecutive", "size", "stride"}
"""Python functions in PyTorch, which take its own names only; and two methods called too often to pay for it."""
IN_PLACE = ("squeeze_", "unsqueeze_")


class _Missing:
    def __repr__(self) -> str:
        return "<required>"


MISSING = _Missing()


def renamed(parameters: Mapping[str, inspect.Parameter]) -> dict[str, str]:
    """{NumPy's name: PyTorch's} for a function's parameters."""
    return {new: old for old, new in NUMPY_NAMES.items() if old in parameters and new not in parameters}


def without_defaults(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The required parameters from the first renamed one on: they get MISSING as their default."""
    order = list(parameters)
    start = min(order.index(old) for old in renamed(parameters).values())
    return [n for n in order[start:] if parameters[n].default is inspect.Parameter.empty]


def prologue(name: str, parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The lines that put NumPy's names where PyTorch's belong, and find what is missing then."""
    found = renamed(parameters)
    lines = [
        f"if {new} is not MISSING: {old} = once({name!r}, {new!r}, {new}, {old}, _default_{old})"
        for new, old in found.items()
    ]
    required = without_defaults(parameters) if found else []
    if required:
        condition = " or ".join(f"{n} is MISSING" for n in required)
        given = ", ".join(f"{n}={n}" for n in required)
        lines.append(f"if {condition}: raise missing({name!r}, {given})")
    return lines


def scope_of(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    """The global names of those lines."""
    defaults = {
        f"_default_{old}": MISSING if parameters[old].default is inspect.Parameter.empty else parameters[old].default
        for old in renamed(parameters).values()
    }
    return {"MISSING": MISSING, "once": once, "missing": missing, **defaults}


def once(function: str, new: str, value: Any, old_value: Any, default: Any) -> Any:
    """`value`, unless the argument was given under both names."""
    if old_value is not default and old_value != default:
        raise TypeError(f"{function}() got an unexpected keyword argument '{new}'")
    return value


def missing(function: str, **given: Any) -> TypeError:
    lacking = [f'"{n}"' for n, value in given.items() if value is MISSING]
    plural = "s" if len(lacking) == 1 else ""  # as PyTorch has it
    return TypeError(f"{function}() missing {len(lacking)} required positional argument{plural}: {', '.join(lacking)}")


def _parameters(function: Callable) -> Mapping[str, inspect.Parameter]:
    """A function's parameters, if it is a plain one that can be renamed; else nothing."""
    inner = inspect.unwrap(function)
    code = getattr(inner, "__code__", None)
    if code is None or not {*NUMPY_NAMES} & {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}:
        return {}
    found = inspect.signature(inner).parameters
    plain = all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in found.values())
    return found if plain and renamed(found) else {}


def taking_numpy_names(function: Callable, name: str, parameters: Mapping[str, inspect.Parameter]) -> Callable:
    """`function` behind one of the same signature that takes NumPy's names, too. Written when it is first called."""
    name = name.rpartition(".")[2]
    scope: dict[str, Any] = {"__name__": __name__, "_function": function, **scope_of(parameters)}
    wrapper = types.FunctionType(STUB, scope, name)
    scope["_materialise"] = lambda: _write(wrapper, scope, name, parameters)
    functools.update_wrapper(wrapper, function)
    return wrapper


def _stub_code() -> types.CodeType:
    def stub(*args: Any, **kwargs: Any) -> Any:
        return _materialise()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821 - in the function's own globals

    return stub.__code__


STUB = _stub_code()


def _write(wrapper: Any, scope: dict, name: str, parameters: Mapping[str, inspect.Parameter]) -> Callable:
    required = without_defaults(parameters)
    heads, passed, star = [], [], False
    for p in parameters.values():
        if p.kind is p.KEYWORD_ONLY and not star:
            heads.append("*")
            star = True
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name)
        if p.name in required:
            heads.append(f"{p.name}=MISSING")
        elif p.default is p.empty:
            heads.append(p.name)
        else:
            scope[f"_value_{p.name}"] = p.default
            heads.append(f"{p.name}=_value_{p.name}")
    heads += [*([] if star else ["*"]), *(f"{new}=MISSING" for new in renamed(parameters))]
    body = [*prologue(name, parameters), f"return _function({', '.join(passed)})"]
    local: dict[str, Any] = {}
    source = f"def {name}({', '.join(heads)}):\n" + "".join(f"    {line}\n" for line in body)
    exec(compile(source, f"<torchlike {name}>", "exec"), scope, local)
    real = local[name]
    wrapper.__defaults__, wrapper.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
    wrapper.__code__ = real.__code__
    return wrapper


def _in_place(method: Callable) -> Callable:
    @functools.wraps(method)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return method(self, *args, **{"dim" if k == "axis" else k: v for k, v in kwargs.items()})

    return call


def install(generated: set[int]) -> None:
    """Publish the hand-written functions and methods behind such functions. generated: the ids of the others."""
    known: dict[int, tuple[Callable, Callable]] = {}

    def published(name: str, function: Any) -> Any:
        if name in WITHOUT or name.startswith("_") or id(function) in generated or not inspect.isfunction(function):
            return None
        if id(function) not in known:
            parameters = _parameters(function)
            if not parameters:
                return None
            known[id(function)] = (taking_numpy_names(function, name, parameters), function)
        return known[id(function)][0]

    for space in SPACES_WITH_NAMES:
        if space in SPACES:
            table = names(space)
            for name, function in list(table.items()):
                public = f"linalg.{name}" if space == "torch.linalg" else name
                table[name] = published(public, function) or function
    for name, function in list(Tensor.__dict__.items()):
        new = _in_place(function) if name in IN_PLACE else published(name, function)
        if new is not None:
            setattr(Tensor, name, new)
