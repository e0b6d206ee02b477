"""torch.overrides: asking which functions and types take part in `__torch_function__`.

Operators call the `__torch_function__` of nobody here; `handle_torch_function`, in functions of one's own, does."""

import functools
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torchlike as torch
from torchlike._src.core.absent import absent as _absent

_ABSENT = ["enable_reentrant_dispatch", "get_testing_overrides", "redispatch_function"]
__all__ = [
    "get_ignored_functions", "get_overridable_functions", "handle_torch_function", "has_torch_function",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
    *_ABSENT,
]  # fmt: skip


def _overrides(value: Any) -> bool:
    return type(value) is not torch.Tensor and hasattr(type(value), "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether an argument's type defines `__torch_function__`."""
    return any(_overrides(arg) for arg in relevant_args)


def has_torch_function_unary(arg: Any) -> bool:
    """As has_torch_function, for one argument."""
    return _overrides(arg)


def has_torch_function_variadic(*args: Any) -> bool:
    """As has_torch_function, with arguments one by one."""
    return has_torch_function(args)


def _ordered(relevant_args: Iterable[Any]) -> list[Any]:
    """One argument of each overriding type, subclasses before their base classes."""
    found: list[Any] = []
    for arg in relevant_args:
        if _overrides(arg) and all(type(arg) is not type(other) for other in found):
            at = next((i for i, other in enumerate(found) if issubclass(type(arg), type(other))), len(found))
            found.insert(at, arg)
    return found


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The first answer of the arguments' `__torch_function__(public_api, types, args, kwargs)`.

    TypeError: all of them return NotImplemented."""
    found = _ordered(relevant_args)
    kinds = tuple(map(type, found))
    for arg in found:
        result = arg.__torch_function__(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(kinds)}")


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """A decorator: the function is dispatched on the arguments that `dispatcher(*args, **kwargs)` returns."""

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor or defines `__torch_function__`."""
    return isinstance(inp, torch.Tensor) or hasattr(type(inp), "__torch_function__")


_SPACES = (
    "torch",
    "torch.Tensor",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.linalg",
    "torch.fft",
    "torch.special",
)


@functools.cache
def _members() -> dict[Any, list[tuple[str, Callable]]]:
    out: dict[Any, list[tuple[str, Callable]]] = {}
    for path in _SPACES:
        space: Any = torch
        for part in path.split(".")[1:]:
            space = getattr(space, part)
        names = [n for n in dir(space) if not n.startswith("_") or (n.startswith("__") and path == "torch.Tensor")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [(n, getattr(space, n)) for n in names]
        out[space] = [
            (f"{path}.{n}", f) for n, f in found
            if isinstance(f, (types.FunctionType, types.BuiltinFunctionType)) and f not in _ignored()
        ]  # fmt: skip
    return out


@functools.cache
def _ignored() -> frozenset:
    names = (
        "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "can_cast", "compile", "empty",
        "empty_strided", "eye", "from_numpy", "frombuffer", "full", "get_default_dtype", "get_num_threads",
        "get_rng_state", "hamming_window", "hann_window", "initial_seed", "is_grad_enabled", "is_storage", "is_tensor",
        "kaiser_window", "linspace", "load", "logspace", "manual_seed", "ones", "rand", "randn", "randperm", "range",
        "result_type", "save", "seed", "set_default_device", "set_default_dtype", "set_num_threads", "set_rng_state",
        "sparse_coo_tensor", "tensor", "typename", "vmap", "zeros",
    )  # fmt: skip
    return frozenset(getattr(torch, name) for name in names if hasattr(torch, name))


def get_ignored_functions() -> set[Callable]:
    """Functions of torch without tensor arguments to dispatch on."""
    return set(_ignored())


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions of each namespace that take tensors."""
    return {space: [f for _, f in members] for space, members in _members().items()}


def resolve_name(f: Callable) -> str | None:
    """Under which name a function is public, such as "torch.Tensor.add"; None if it is not."""
    return next((name for members in _members().values() for name, g in members if g is f), None)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether it is a member of Tensor."""
    return getattr(func, "__name__", None) == "__get__" or any(g is func for _, g in _members()[torch.Tensor])


globals().update(_absent(__name__, _ABSENT))


class TorchFunctionMode:
    """Not implemented: operators are dispatched to nobody."""

    def __init__(self) -> None:
        raise NotImplementedError("torchlike: torch.overrides.TorchFunctionMode")
