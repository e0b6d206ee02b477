"""Names that a public module has so that it can be imported, and that raise NotImplementedError when they are used."""

from collections.abc import Callable, Sequence
from typing import Any


class Absent:
    """A class that cannot be made. It serves `isinstance`, annotations and subclasses."""

    _reason = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(_message(type(self).__module__, type(self).__name__, self._reason))


def _message(module: str, name: str, reason: str) -> str:
    public = module.replace("torchlike", "torch", 1)
    return f"torchlike: {public}.{name}" + (f" ({reason})" if reason else "")


def absent(module: str, names: Sequence[str], reason: str = "") -> dict[str, Any]:
    """For each name a class if it is capitalised, else a function."""
    return {name: (_class if name.lstrip("_")[0].isupper() else _function)(module, name, reason) for name in names}


def _class(module: str, name: str, reason: str) -> type:
    doc = f"Not implemented{': ' if reason else ''}{reason}."
    return type(name, (Absent,), {"__module__": module, "__doc__": doc, "_reason": reason})


def _function(module: str, name: str, reason: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(_message(module, name, reason))

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"Not implemented{': ' if reason else ''}{reason}."
    return function
