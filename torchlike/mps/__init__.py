"""torch.mps: answers as on a machine without Apple's GPU."""

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "Event", "compile_shader", "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache",
    "get_rng_state", "is_available", "load_metallib", "manual_seed", "recommended_max_memory", "seed",
    "set_per_process_memory_fraction", "set_rng_state", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0"""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def _needs(what: str) -> NoReturn:
    raise RuntimeError(f"Cannot execute {what}() without MPS backend.")


def _refusing(name: str, what: str) -> Callable:
    def function() -> Any:
        _needs(what)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "RuntimeError: there is no MPS backend."
    return function


seed = _refusing("seed", "getDefaultGenerator")
synchronize = _refusing("synchronize", "deviceSynchronize")
empty_cache = _refusing("empty_cache", "emptyCache")
current_allocated_memory = _refusing("current_allocated_memory", "getCurrentAllocatedMemory")
driver_allocated_memory = _refusing("driver_allocated_memory", "getDriverAllocatedMemory")
recommended_max_memory = _refusing("recommended_max_memory", "getRecommendedMaxMemory")


def get_rng_state(device: Any = "mps") -> Any:
    """RuntimeError: there is no MPS backend."""
    _needs("getDefaultGenerator")


def set_rng_state(new_state: Any, device: Any = "mps") -> None:
    """RuntimeError: there is no MPS backend."""
    _needs("getDefaultGenerator")


def set_per_process_memory_fraction(fraction) -> None:
    """RuntimeError: there is no MPS backend."""
    _needs("setMemoryFraction")


def compile_shader(source: str) -> Any:
    """RuntimeError: there is no MPS backend."""
    raise RuntimeError("MPS is not available")


def load_metallib(source) -> Any:
    """RuntimeError: there is no MPS backend."""
    raise RuntimeError("MPS is not available")


class Event:
    """RuntimeError: there is no MPS backend."""

    def __init__(self, enable_timing: bool = False) -> None:
        _needs("acquireEvent")
