"""torch.cuda: JAX's GPU, if there is one. Without one every question has PyTorch's answer for a machine without CUDA."""

from typing import Any

from torchlike._src.core.device import device as _Device
from torchlike._src.tensor import devices as _devices
from torchlike._src.tensor.random import default_generator as _generator

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_name", "is_available", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device",
    "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether JAX has a GPU."""
    return bool(_devices.gpus())


def device_count() -> int:
    """How many GPUs JAX has."""
    return len(_devices.gpus())


def _gpu(device: Any = None) -> Any:
    found = _devices.gpus()
    if not found:
        raise AssertionError("Torch not compiled with CUDA enabled")
    if device is None:
        return found[0]
    if isinstance(device, int):
        return found[device]
    return found[_Device(device).index or 0]


def current_device() -> int:
    """The index of the current GPU."""
    _gpu()
    return 0


def set_device(device: Any) -> None:
    """Only device 0 can be current."""
    index = device if isinstance(device, int) else (_Device(device).index or 0)
    _gpu(index)
    if index != 0:
        raise NotImplementedError("torchlike: cuda.set_device to a device other than 0; pass device= explicitly")


def get_device_name(device: Any = None) -> str:
    """The GPU's name."""
    return _gpu(device).device_kind


def synchronize(device: Any = None) -> None:
    """Compute what is pending and wait for the GPU."""
    _gpu(device)
    _devices.synchronize()


def _statistic(name: str, device: Any) -> int:
    if not _devices.gpus():
        return 0
    return int((_gpu(device).memory_stats() or {}).get(name, 0))


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on the GPU; 0 without one."""
    return _statistic("bytes_in_use", device)


def max_memory_allocated(device: Any = None) -> int:
    """Peak bytes in use on the GPU; 0 without one."""
    return _statistic("peak_bytes_in_use", device)


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator holds; 0 without a GPU."""
    return _statistic("bytes_reserved", device) or _statistic("bytes_in_use", device)


def max_memory_reserved(device: Any = None) -> int:
    """Peak bytes that the allocator held; 0 without a GPU."""
    return _statistic("peak_bytes_reserved", device) or _statistic("peak_bytes_in_use", device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """JAX's counters cannot be reset: nothing to do without a GPU, an error with one."""
    if _devices.gpus():
        raise NotImplementedError("torchlike: cuda.reset_peak_memory_stats (JAX's peak counters cannot be reset)")


def empty_cache() -> None:
    """XLA's allocator keeps no cache that it would not give to the next program; nothing to do."""


def manual_seed(seed: int) -> None:
    """Seed the generator: random numbers are drawn on the host for every device."""
    if _devices.gpus():
        _generator.manual_seed(int(seed))


manual_seed_all = manual_seed
