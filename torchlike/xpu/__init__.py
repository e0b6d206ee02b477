"""torch.xpu: answers as on a machine without Intel's GPU."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = [
    "Event", "Stream", "current_device", "current_stream", "device", "device_count", "empty_cache", "get_arch_list",
    "get_device_capability", "get_device_name", "get_device_properties", "get_gencode_flags", "get_rng_state",
    "get_rng_state_all", "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "stream", "synchronize",
]  # fmt: skip


def _always(name: str, answer: Any) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        return answer.copy() if isinstance(answer, (list, dict)) else answer

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{answer!r}: there is no XPU."
    return function


def _refusing(name: str) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("Torch not compiled with XPU enabled")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "AssertionError: there is no XPU."
    return function


is_available = _always("is_available", False)
is_initialized = _always("is_initialized", False)
is_bf16_supported = _always("is_bf16_supported", False)
is_tf32_supported = _always("is_tf32_supported", False)
device_count = _always("device_count", 0)
get_arch_list = _always("get_arch_list", [])
get_gencode_flags = _always("get_gencode_flags", "")
get_rng_state_all = _always("get_rng_state_all", [])
memory_stats = _always("memory_stats", OrderedDict())
for _name in ("max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved"):
    globals()[_name] = _always(_name, 0)
for _name in ("empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state_all"):
    globals()[_name] = _always(_name, None)
for _name in (
    "current_device", "current_stream", "get_device_capability", "get_device_name", "get_device_properties",
    "get_rng_state", "init", "initial_seed", "mem_get_info", "set_device", "set_rng_state", "synchronize",
):  # fmt: skip
    globals()[_name] = _refusing(_name)


class Stream:
    """RuntimeError: there is no XPU."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Stream")


class Event:
    """RuntimeError: there is no XPU."""

    def __init__(self, enable_timing: bool = False) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Event")


class device:
    """A context that changes nothing: there is no XPU."""

    def __init__(self, device: Any) -> None:
        self.idx = -1

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        pass


class stream(device):
    """A context that changes nothing: there is no XPU."""
