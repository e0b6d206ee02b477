"""torch.cpu: what device-agnostic code asks of a device, for the CPU."""

import contextlib
import types
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from torchlike._src.tensor import devices as _devices
from torchlike.cpu import amp as amp

__all__ = [
    "Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities",
    "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1, however many cores there are."""
    return 1


def current_device() -> str:
    """Always "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one CPU device."""


def synchronize(device: Any = None) -> None:
    """Compute what is pending and wait for it."""
    _devices.synchronize()


class Stream:
    """A queue of work, of which the CPU has one."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: "Stream") -> None:
        """Nothing to wait for: there is one queue."""

    def record_event(self) -> None:
        """Nothing."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for: there is one queue."""


class Event:
    """A place in the one queue."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""


_current = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream that `stream` put in force, or the default one."""
    return _current


class StreamContext(AbstractContextManager):
    """Puts a stream in force."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: Stream | None = None

    def __enter__(self) -> None:
        global _current
        if self.stream is not None:
            self._before, _current = _current, self.stream

    def __exit__(self, *unused: object) -> None:
        global _current
        if self._before is not None:
            _current = self._before


def stream(stream: Stream | None) -> AbstractContextManager:
    """A context in which `stream` is the current one."""
    return StreamContext(stream)


def get_capabilities() -> Mapping[str, Any]:
    """What the CPU can do, as the operating system names it: {"architecture": …, "avx2": True, …}."""
    import platform

    flags: set[str] = set()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith(("flags", "Features")):
                flags = set(line.split(":", 1)[1].split())
                break
    names = (
        "sse", "sse2", "sse4_1", "sse4_2", "avx", "avx2", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16",
        "amx_int8", "amx_tile", "f16c", "bmi1", "bmi2", "popcnt", "neon", "sve",
    )  # fmt: skip
    found: dict[str, Any] = {"architecture": platform.machine(), "avx512_f": "avx512f" in flags, "fma3": "fma" in flags}
    found.update({n: n in flags for n in names})
    return types.MappingProxyType(found)
