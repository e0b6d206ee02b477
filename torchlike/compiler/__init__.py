"""torch.compiler: every step is compiled by XLA without being asked, so that these only answer questions."""

import contextlib
from collections.abc import Callable
from typing import Any

import torchlike as torch
from torchlike._src.core.absent import absent as _absent

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable",
    "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting", "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts", "load_compiled_function",
    "nested_compile_region", "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives",
    "set_stance", "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip

_default_backend: Any = "inductor"


def compile(*args: Any, **kwargs: Any) -> Any:
    """torch.compile"""
    return torch.compile(*args, **kwargs)


def reset() -> None:
    """Nothing to forget: the engine's programs are found by what they compute."""


def is_compiling() -> bool:
    """False: Python runs as Python in every step."""
    return False


def is_dynamo_compiling() -> bool:
    """False, as is_compiling."""
    return False


def is_exporting() -> bool:
    """False."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` itself, or a decorator that returns it: a function needs no exception from being compiled."""
    return fn if fn is not None else lambda fn: fn


def allow_in_graph(fn: Any) -> Any:
    """`fn` itself. AssertionError if it, or an element of a list, cannot be called."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: Callable) -> Callable:
    """`fn` itself; it is called each time."""
    return fn


def substitute_in_graph(
    original_fn: Callable, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable:
    """A decorator that returns the substitute: outside Dynamo, PyTorch calls the original function."""
    return lambda fn: fn


def nested_compile_region(
    fn: Callable | None = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """`fn` itself, or a decorator that returns it."""
    return fn if fn is not None else lambda fn: fn


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark: there are no CUDA graphs."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """["inductor"], the name that torch.compile takes by default; XLA compiles whatever it is called."""
    return ["inductor"]


def get_default_backend() -> Any:
    """What set_default_backend was given."""
    return _default_backend


def set_default_backend(backend: Any) -> None:
    """Noted. None: "inductor" again."""
    global _default_backend
    _default_backend = "inductor" if backend is None else backend


class set_stance(contextlib.ContextDecorator):
    """How PyTorch treats compiled functions, as a call, context or decorator: here they are Python functions anyway.

    RuntimeError: an unknown stance."""

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:  # fmt: skip
        known = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
                 "fail_on_recompile")  # fmt: skip
        if stance not in known:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if stance == "fail_on_recompile":
            raise NotImplementedError("torchlike: torch.compiler.set_stance('fail_on_recompile'); see torchlike.report")
        self.stance = stance

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        pass


def set_enable_guard_collectives(enabled: bool) -> bool:
    """The setting before, False. NotImplementedError for True: there is one process."""
    if enabled:
        raise NotImplementedError("torchlike: torch.compiler.set_enable_guard_collectives")
    return False


globals().update(_absent(__name__, [
    "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "load_cache_artifacts", "load_compiled_function",
    "save_cache_artifacts", "skip_all_guards_unsafe", "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe", "wrap_numpy",
]))  # fmt: skip
