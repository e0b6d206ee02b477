"""torch.accelerator: JAX's GPU, if there is one, under the name "cuda"."""

from collections import OrderedDict
from typing import Any

from torchlike import cuda as _cuda
from torchlike._src.core.device import device as _Device
from torchlike._src.tensor import devices as _devices

__all__ = [
    "Graph", "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream",
    "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether JAX has a GPU."""
    return _cuda.is_available()


def device_count() -> int:
    """How many GPUs JAX has."""
    return _cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """device("cuda"), or None without a GPU."""
    return _Device("cuda") if is_available() else None


def _needed() -> None:
    if not _devices.gpus():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The index of the current GPU. RuntimeError, here and below, without one."""
    _needed()
    return _cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Only device 0 can be current."""
    _needed()
    _cuda.set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index


class device_index:
    """A context with this current device; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            set_device_index(self.idx)

    def __exit__(self, *unused: object) -> None:
        pass


def current_stream(device: Any = None, /) -> Any:
    """The one queue."""
    _needed()
    return _cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Nothing to choose: there is one queue."""
    _needed()
    _cuda.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Compute what is pending and wait for the GPU."""
    _needed()
    _cuda.synchronize(device)


def empty_cache() -> None:
    """As cuda.empty_cache."""
    _needed()
    _cuda.empty_cache()


def empty_host_cache() -> None:
    """Nothing: host memory is not kept."""
    _needed()


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """NotImplementedError: JAX does not tell."""
    _needed()
    raise NotImplementedError("torchlike: torch.accelerator.get_device_capability; see torch.cuda's")


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """(free, total) bytes."""
    _needed()
    return _cuda.mem_get_info(device_index)


def memory_stats(device_index: Any = None, /) -> "OrderedDict[str, Any]":
    """As cuda.memory_stats."""
    _needed()
    return OrderedDict(_cuda.memory_stats(device_index))


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes."""
    _needed()
    return _cuda.memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """Bytes."""
    _needed()
    return _cuda.max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes."""
    _needed()
    return _cuda.memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """Bytes."""
    _needed()
    return _cuda.max_memory_reserved(device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """As cuda.reset_accumulated_memory_stats."""
    _needed()
    _cuda.reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """As cuda.reset_peak_memory_stats."""
    _needed()
    _cuda.reset_peak_memory_stats(device_index)


class Graph:
    """Not supported: each step is compiled as a whole already."""

    def __init__(self, keep_graph: bool = False, *, pool: Any = None, capture_error_mode: str = "default") -> None:
        _needed()
        raise NotImplementedError("torchlike: torch.accelerator.Graph")
