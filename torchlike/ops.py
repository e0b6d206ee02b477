"""torch.ops: the operators made by torch.library.custom_op, as torch.ops.namespace.name."""

import functools as _functools
from typing import Any

import torchlike as _torch
from torchlike.library import REGISTERED as _REGISTERED


class _Namespace:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found: Any = _REGISTERED.get(f"{self._name}::{name}")
        if found is None and self._name == "aten" and not name.startswith("__"):
            found = _aten(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return found


class _Operator:
    """One of PyTorch's own operators: called, it is the function of torch or the method of Tensor of that name.

    NotImplementedError, when it is called, if there is neither.

    Its overloads (`.default`, `.Tensor`, ...) are the same: they serve as keys of tables."""

    def __init__(self, name: str, overload: str, function: Any) -> None:
        self._name, self._overload, self._function = name, overload, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise NotImplementedError(f"torchlike: torch.ops.{self}")
        return self._function(*args, **kwargs)

    def __getattr__(self, overload: str) -> "_Operator":
        if overload.startswith("__") or self._overload:
            raise AttributeError(overload)
        return _overload(self._name, overload, self._function)

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._name}', overload='{self._overload}')>" if self._overload else str(self)

    def __str__(self) -> str:
        return f"aten.{self._name}" + (f".{self._overload}" if self._overload else "")


_overload = _functools.cache(_Operator)


def _aten(name: str) -> _Operator:
    function = getattr(_torch, name, None) or getattr(_torch.Tensor, name, None)
    return _overload(name, "", function if callable(function) else None)


class _CannotLoad(NotImplementedError, OSError):
    """Libraries with optional extensions expect the OSError."""


def load_library(path: Any) -> None:
    """An error that is a NotImplementedError and an OSError: compiled extensions are made for PyTorch's library."""
    raise _CannotLoad("torchlike: torch.ops.load_library (extensions compiled for PyTorch)")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name)
