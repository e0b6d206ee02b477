"""torch.cuda.streams: stand-ins. XLA orders the work by itself, so that every stream is the one queue."""

import time
from typing import Any

from torchlike._src.tensor import devices as _devices
from torchlike.cuda._device import gpu, index

__all__ = [
    "Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream",
    "get_stream_from_external", "set_stream", "stream",
]  # fmt: skip


class Stream:
    """A name for the one queue; RuntimeError without a GPU."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not _devices.gpus():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        gpu(device)
        from torchlike._src.core.device import device as Device

        self.device = Device("cuda", index(device))
        self.priority = priority
        self.cuda_stream = self.stream_id = 0
        self.device_index = index(device)

    def wait_stream(self, stream: "Stream") -> None:
        """Nothing to wait for: there is one queue."""

    def wait_event(self, event: "Event") -> None:
        """Nothing to wait for: there is one queue."""

    def record_event(self, event: "Event | None" = None) -> "Event":
        """Note this place in the queue."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done: it is, after waiting for it."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Compute what is pending and wait."""
        _devices.synchronize()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """Not supported: XLA has its own streams."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: cuda.ExternalStream (XLA has its own streams)")


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Not supported: XLA has its own streams."""
    raise NotImplementedError("torchlike: cuda.get_stream_from_external (XLA has its own streams)")


class Event:
    """A moment, when all work recorded before it is done: `record` computes and waits, so that times are right."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if not _devices.gpus():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        if interprocess:
            raise NotImplementedError("torchlike: cuda.Event between processes")
        self._timing = enable_timing
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Note the time at which all work up to here is done."""
        if self._timing:
            _devices.synchronize()
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for: there is one queue."""

    def query(self) -> bool:
        """Whether the work is done: it is, after waiting for it."""
        _devices.synchronize()
        return True

    def synchronize(self) -> None:
        """Compute what is pending and wait."""
        _devices.synchronize()

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds between two events with enable_timing=True."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1000

    def __repr__(self) -> str:
        return "<torch.cuda.Event>"


def current_stream(device: Any = None) -> Stream:
    """The one queue."""
    gpu(device)
    return Stream(device)


def default_stream(device: Any = None) -> Stream:
    """The one queue."""
    return current_stream(device)


def set_stream(stream: Any) -> None:
    """Nothing: every stream is the one queue."""


class StreamContext:
    """`with torch.cuda.stream(s)`: changes nothing, since every stream is the one queue."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *unused: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """A context in which `stream` is current."""
    return StreamContext(stream)
