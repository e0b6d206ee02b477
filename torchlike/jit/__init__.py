"""torch.jit: scripts and traces are the functions and modules themselves, since each step is compiled anyway.

TorchScript as a format (its code, graphs and files) does not exist here: asking for it raises NotImplementedError."""

import builtins as _builtins
import contextlib
import typing
from collections.abc import Callable
from typing import Any, Final, TypeVar

import torchlike as torch
from torchlike.futures import Future

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate",
    "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "ignore", "interface", "is_scripting",
    "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
    "script_if_tracing", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_T = TypeVar("_T")


class Error(RuntimeError):
    """What PyTorch raises for errors inside TorchScript."""


def _no_torchscript(name: str) -> NotImplementedError:
    return NotImplementedError(f"torchlike: torch.jit.{name} (there is no TorchScript; use torch.save and state_dict)")


class _NeverMade(type):
    """A class for `isinstance` and annotations that has no instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise _no_torchscript(cls.__name__)


class ScriptFunction(metaclass=_NeverMade):
    """The class of scripted functions. Nothing is an instance: `script` returns the function itself."""


class CompilationUnit(metaclass=_NeverMade):
    """Functions compiled from text: NotImplementedError."""


class ScriptModule(torch.nn.Module):
    """The class of scripted modules. `script` returns the module itself, which is no instance of it.

    NotImplementedError when it is made."""

    def __init__(self) -> None:
        raise _no_torchscript("ScriptModule")


class RecursiveScriptModule(ScriptModule):
    """As ScriptModule."""


class TopLevelTracedModule(ScriptModule):
    """As ScriptModule."""


class TracedModule(ScriptModule):
    """As ScriptModule."""


class Attribute(typing.NamedTuple):
    """A value and the type that TorchScript should give it."""

    value: Any
    type: Any


def script(
    obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None
) -> Any:  # fmt: skip
    """`obj` itself: a function, module or class keeps running as Python."""
    return obj


def trace(
    func: Any, example_inputs: Any = None, optimize: None = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: dict[str, Any] | None = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """`func` itself, run once on the example inputs. Control flow stays what it is in Python.

    TypeError: no example inputs."""
    if example_kwarg_inputs is not None:
        if not _builtins.isinstance(example_kwarg_inputs, dict):
            raise RuntimeError("example_kwarg_inputs should be a dict")
        func(**example_kwarg_inputs)
        return func
    func(*_as_arguments(example_inputs))
    return func


def _as_arguments(inputs: Any) -> tuple[Any, ...]:
    return (inputs,) if _builtins.isinstance(inputs, (torch.Tensor, dict)) else tuple(inputs)


def trace_module(
    mod: Any, inputs: dict[str, Any], optimize: None = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """`mod` itself, each of its methods named in `inputs` run once on the example given there.

    AttributeError: `inputs` is no dict."""
    if not _builtins.isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        if example_inputs_is_kwarg:
            method(**example)
        else:
            method(*_as_arguments(example))
    return mod


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Any:
    """`mod` itself. RuntimeError: it is in training mode."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """`mod` itself."""
    return mod


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """NotImplementedError."""
    raise _no_torchscript("save")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """NotImplementedError."""
    raise _no_torchscript("load")


def export_opnames(m: Any) -> list[str]:
    """NotImplementedError."""
    raise _no_torchscript("export_opnames")


# -- marks for the compiler, which change nothing ----------------------------------------------------------------------


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a method as Python: a decorator, with or without arguments."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Callable) -> Callable:
    """Mark a method as not for TorchScript."""
    return fn


def export(fn: Callable) -> Callable:
    """Mark a method as an entry point."""
    return fn


def interface(obj: _T) -> _T:
    """Mark a class as an interface."""
    return obj


def script_if_tracing(fn: Callable) -> Callable:
    """`fn` itself."""
    return fn


class TracerWarning(Warning):
    """A warning of PyTorch's tracer, which is not here."""


def _get_trace_graph(*args: Any, **kwargs: Any) -> Any:
    raise _no_torchscript("_get_trace_graph")


def _overload(func: Callable) -> Callable:
    return func


_overload_method = _script_if_tracing = _overload


def annotate(the_type: Any, the_value: _T) -> _T:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether obj is of a type, which may be a generic one: List[int] looks into the list.

    RuntimeError for List, Dict, Tuple and Optional without their parameters."""
    if _builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    origin, parts = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        for bare, text in ((typing.List, "List"), (typing.Dict, "Dict"), (typing.Tuple, "Tuple")):  # noqa: UP006
            if target_type in (bare, getattr(_builtins, text.lower())):
                raise RuntimeError(
                    f"Attempted to use {text} without a contained type. Please add a contained type, e.g. {text}[int]"
                )
        return obj is None if target_type is None else _builtins.isinstance(obj, target_type)
    if origin is list:
        return _builtins.isinstance(obj, list) and all(isinstance(x, parts[0]) for x in obj)
    if origin is dict:
        return _builtins.isinstance(obj, dict) and all(
            isinstance(k, parts[0]) and isinstance(v, parts[1]) for k, v in obj.items()
        )
    if origin is tuple:
        return (
            _builtins.isinstance(obj, tuple)
            and len(obj) == len(parts)
            and all(isinstance(x, part) for x, part in zip(obj, parts, strict=True))
        )
    return any(isinstance(obj, part) for part in parts)  # a Union


_fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]


class strict_fusion(contextlib.AbstractContextManager):
    """A context in which PyTorch's fuser must fuse everything: XLA decides that itself."""

    def __exit__(self, *unused: object) -> None:
        pass


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Noted, for the next call; XLA decides what to fuse. Returns the strategy before."""
    global _fusion_strategy
    before, _fusion_strategy = _fusion_strategy, strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """NotImplementedError for True: there is no oneDNN fusion."""
    if enabled:
        raise NotImplementedError("torchlike: torch.jit.enable_onednn_fusion")


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


def is_scripting() -> bool:
    """False."""
    return False


def is_tracing() -> bool:
    """False: traces are made of the function itself."""
    return False


# -- asynchronous calls ------------------------------------------------------------------------------------------------


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """A Future with func(*args, **kwargs), which is called at once, as PyTorch does outside TorchScript."""
    done: Future = Future()
    done.set_result(func(*args, **kwargs))
    return done


def wait(future: Future) -> Any:
    """The future's result."""
    return future.wait()


_fork, _wait = fork, wait
