"""torch._C: the few names of PyTorch's compiled core that programs ask for. There is no compiled core."""

import enum
from typing import Any

import torchlike as torch
from torchlike._src.core.absent import absent as _absent
from torchlike.nn.modules._conversion import parse_to as _parse_to

Generator = torch.Generator
_TensorMeta = type(torch.Tensor)
Size = torch.Size
device, dtype = torch.device, torch.dtype
_LinAlgError = torch.linalg.LinAlgError


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _is_tracing() -> bool:
    """False."""
    return False


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


def _get_accelerator() -> Any:
    """The accelerator's device, or the CPU's."""
    return torch.accelerator.current_accelerator() or torch.device("cpu")


def _cuda_isInBadFork() -> bool:
    """False."""
    return False


class Node:
    """A node of TorchScript's graphs: for annotations."""


class Graph:
    """A graph of TorchScript: for annotations."""


class Value:
    """A value of TorchScript's graphs: for annotations."""


def _disabled_torch_function_impl(func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    """func(*args, **kwargs): what a subclass sets `__torch_function__` to in order not to be asked."""
    return func(*args, **(kwargs or {}))


class DispatchKey(enum.Enum):
    """Keys of a dispatcher that is not here: libraries name them when they are imported."""

    CPU = 0
    CUDA = 1
    AutocastCPU = 2
    AutocastCUDA = 3
    AutocastXPU = 4


class DispatchKeySet:
    """A set of DispatchKeys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self.keys = frozenset(keys)

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(*self.keys, *other.keys)


globals().update(_absent(__name__, [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "PyTorchFileReader", "PyTorchFileWriter",
    "_ExcludeDispatchKeyGuard",
]))  # fmt: skip


class _nn:
    """torch._C._nn"""

    _parse_to = staticmethod(_parse_to)
