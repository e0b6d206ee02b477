"""torch._dynamo: the names that programs touch. Python is never rewritten here, so that there is nothing to control."""

import contextlib
from collections.abc import Callable
from typing import Any

from torchlike._dynamo import config as config
from torchlike._dynamo import eval_frame as eval_frame
from torchlike._dynamo.eval_frame import OptimizedModule as OptimizedModule
from torchlike.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from torchlike.compiler import set_stance as set_stance

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "explain", "export", "graph_break",
    "is_compiling", "list_backends", "mark_dynamic", "mark_static", "maybe_mark_dynamic", "optimize", "reset", "run",
]  # fmt: skip


def is_dynamo_supported() -> bool:
    """False."""
    return False


def is_inductor_supported() -> bool:
    """False."""
    return False


def graph_break(msg: str = "") -> None:
    """Nothing to break."""


def mark_dynamic(t: Any, index: Any, *, hint_override: Any = None, min: Any = None, max: Any = None, **kw: Any) -> None:
    """A hint that has no effect: each shape has its own program."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """A hint that has no effect: each shape has its own program."""


def mark_static(t: Any, index: Any = None) -> None:
    """A hint that has no effect: all shapes are static."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """A hint that has no effect."""


def run(fn: Callable | None = None) -> Any:
    """`fn` itself, or a decorator that returns it."""
    return fn if fn is not None else lambda fn: fn


def optimize(backend: Any = "inductor", **options: Any) -> Callable:
    """A decorator: torch.compile with this backend."""
    import torchlike as torch

    return lambda model: torch.compile(model, backend=backend)


def forbid_in_graph(fn: Any) -> Any:
    """`fn` itself."""
    return fn


disallow_in_graph = forbid_in_graph


@contextlib.contextmanager
def error_on_graph_break(error_on_graph_break: bool) -> Any:
    """A context without effect: there are no graph breaks."""
    yield


def explain(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """NotImplementedError."""
    raise NotImplementedError("torchlike: torch._dynamo.explain; see torchlike.report() for what was compiled")


def export(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """NotImplementedError."""
    raise NotImplementedError("torchlike: torch._dynamo.export")
