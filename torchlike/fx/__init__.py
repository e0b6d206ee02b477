"""torch.fx: there are no graphs of Python code; the names raise NotImplementedError when they are used."""

from typing import Any

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "map_arg",
    "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip

globals().update(_absent(__name__, [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "map_arg", "replace_pattern",
    "symbolic_trace",
], "the engine records operators, not Python code"))  # fmt: skip


def wrap(fn_or_name: Any) -> Any:
    """A mark for symbolic_trace, which changes nothing: itself. RuntimeError: neither function nor name."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name


def has_side_effect(fn: Any) -> Any:
    """A mark that changes nothing: its argument itself."""
    return fn
