"""torch.cuda.memory: what JAX tells about the GPU's memory. Without a GPU there is none in use."""

import collections
import contextlib
from collections.abc import Iterator
from typing import Any

from torchlike._src.tensor import devices as _devices
from torchlike.cuda._device import gpu

__all__ = [
    "CUDAPluggableAllocator", "MemPool", "caching_allocator_alloc", "caching_allocator_delete",
    "caching_allocator_enable", "change_current_allocator", "empty_cache", "get_allocator_backend",
    "get_per_process_memory_fraction", "list_gpu_processes", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot",
    "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "host_memory_stats",
    "host_memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "set_per_process_memory_fraction", "use_mem_pool",
]  # fmt: skip


def _statistics(device: Any) -> dict:
    return (gpu(device).memory_stats() or {}) if _devices.gpus() else {}


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on the GPU; 0 without one."""
    return int(_statistics(device).get("bytes_in_use", 0))


def max_memory_allocated(device: Any = None) -> int:
    """Peak bytes in use on the GPU; 0 without one."""
    return int(_statistics(device).get("peak_bytes_in_use", 0))


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds; 0 without a GPU."""
    found = _statistics(device)
    return int(found.get("bytes_reserved") or found.get("bytes_in_use", 0))


def max_memory_reserved(device: Any = None) -> int:
    """Peak bytes that the allocator held; 0 without a GPU."""
    found = _statistics(device)
    return int(found.get("peak_bytes_reserved") or found.get("peak_bytes_in_use", 0))


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes that JAX may use."""
    found = gpu(device).memory_stats() or {}
    total = int(found.get("bytes_limit", 0))
    return total - int(found.get("bytes_in_use", 0)), total


def memory_stats(device: Any = None) -> dict[str, Any]:
    """JAX's counters under PyTorch's names, as far as there are such; empty without a GPU."""
    found = _statistics(device)
    out: collections.OrderedDict[str, Any] = collections.OrderedDict()
    for name, ours in (
        ("allocated_bytes.all.current", "bytes_in_use"), ("allocated_bytes.all.peak", "peak_bytes_in_use"),
        ("reserved_bytes.all.current", "bytes_reserved"), ("reserved_bytes.all.peak", "peak_bytes_reserved"),
        ("allocation.all.allocated", "num_allocs"),
    ):  # fmt: skip
        if ours in found:
            out[name] = int(found[ours])
    return out


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """memory_stats, by parts of the names."""
    out: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        at = out
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return out


def host_memory_stats() -> dict[str, Any]:
    """Nothing: there is no allocator of pinned memory."""
    return collections.OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Nothing: there is no allocator of pinned memory."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """memory_stats as text, one a line."""
    return "\n".join(f"{k:40}{v:>20}" for k, v in memory_stats(device).items())


def _reset(name: str) -> None:
    if _devices.gpus():
        raise NotImplementedError(f"torchlike: cuda.{name} (JAX's peak counters cannot be reset)")


def reset_peak_memory_stats(device: Any = None) -> None:
    """JAX's counters cannot be reset: nothing to do without a GPU, an error with one."""
    _reset("reset_peak_memory_stats")


def reset_max_memory_allocated(device: Any = None) -> None:
    """See reset_peak_memory_stats."""
    _reset("reset_max_memory_allocated")


def reset_max_memory_cached(device: Any = None) -> None:
    """See reset_peak_memory_stats."""
    _reset("reset_max_memory_cached")


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """See reset_peak_memory_stats."""
    _reset("reset_accumulated_memory_stats")


def empty_cache() -> None:
    """XLA's allocator keeps no cache that it would not give to the next program; nothing to do."""


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """JAX reads its share of the memory when it starts, from XLA_PYTHON_CLIENT_MEM_FRACTION."""
    gpu(device)
    raise NotImplementedError(
        "torchlike: cuda.set_per_process_memory_fraction (set the environment variable XLA_PYTHON_CLIENT_MEM_FRACTION "
        "instead)"
    )


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The share of the GPU's memory that JAX may use."""
    import os

    gpu(device)
    return float(os.environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", 0.75))


def list_gpu_processes(device: Any = None) -> str:
    """Other processes are not visible."""
    return "pynvml module not found, please install nvidia-ml-py"


def _no_allocator(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        gpu()
        raise NotImplementedError(f"torchlike: cuda.{name} (XLA owns the GPU's memory)")

    function.__name__ = name
    function.__doc__ = "Not supported: XLA owns the GPU's memory."
    return function


caching_allocator_alloc = _no_allocator("caching_allocator_alloc")
caching_allocator_delete = _no_allocator("caching_allocator_delete")
caching_allocator_enable = _no_allocator("caching_allocator_enable")
change_current_allocator = _no_allocator("change_current_allocator")
CUDAPluggableAllocator = _no_allocator("CUDAPluggableAllocator")
MemPool = _no_allocator("MemPool")
memory_snapshot = _no_allocator("memory_snapshot")


def get_allocator_backend() -> str:
    """Always "native": XLA's own."""
    return "native"


@contextlib.contextmanager
def use_mem_pool(pool: Any, device: Any = None) -> Iterator[None]:
    """Not supported: XLA owns the GPU's memory."""
    raise NotImplementedError("torchlike: cuda.use_mem_pool (XLA owns the GPU's memory)")
    yield
