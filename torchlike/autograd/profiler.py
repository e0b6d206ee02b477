"""torch.autograd.profiler: names for stretches of a program. The profiler itself is JAX's (`jax.profiler`)."""

import functools
from collections.abc import Callable
from typing import Any

import jax

__all__ = ["emit_itt", "emit_nvtx", "profile", "record_function"]


class record_function:
    """Names what runs within it, for `jax.profiler`; also a decorator. What is only recorded here runs later, under the
    name of the line that reads it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> "record_function":
        self._annotation = jax.profiler.TraceAnnotation(self.name)
        self._annotation.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._annotation.__exit__(*error)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return call


class profile:
    """Not available: use `jax.profiler.trace`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.autograd.profiler.profile; use jax.profiler.trace")


class emit_nvtx:
    """Not available."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.autograd.profiler.emit_nvtx")


class emit_itt:
    """Not available."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.autograd.profiler.emit_itt")
