"""The names by which pickles call functions: those of PyTorch's compiled modules are read, and ours are written so that
both find them."""

from types import FunctionType
from typing import Any

import torchlike as torch

_COMPILED = {
    "torch._C._nn": ("nn.functional", ""),
    "torch._C._linalg": ("linalg", "linalg_"),
    "torch._C._special": ("special", "special_"),
    "torch._C._fft": ("fft", "fft_"),
}
"""Where PyTorch's compiled modules have their functions from, and what stands before each name."""
_OTHER_NAMES = {"log_sigmoid": "logsigmoid"}
_OWNERS = {"torch._C._VariableFunctionsClass": lambda: torch, "torch._C.TensorBase": lambda: torch.Tensor}
"""Classes of which pickles take functions with getattr."""
_PUBLIC = ("", "nn.functional", "linalg", "special", "fft")


def _module(path: str) -> Any:
    found: Any = torch
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    return found


def read_name(module: str, name: str) -> Any:
    """What a pickle's name in one of PyTorch's compiled modules means; None for other names."""
    if module in _COMPILED:
        path, prefix = _COMPILED[module]
        name = name.removeprefix(prefix)
        return getattr(_module(path), _OTHER_NAMES.get(name, name), None)
    owner = _OWNERS.get(f"{module}.{name}")
    return None if owner is None else owner()


def written_name(function: Any) -> tuple[str, str] | None:
    """The public module under torch that has a function, and its name there; None for other objects."""
    if not isinstance(function, FunctionType):
        return None
    for path in _PUBLIC:
        if vars(_module(path)).get(function.__name__) is function:
            return f"torch.{path}".rstrip("."), function.__name__
    return None
