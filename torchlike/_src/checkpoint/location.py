"""Where storages are and go: the tags in files, `map_location`, and what the user registers for tags of their own."""

import re
from collections.abc import Callable
from typing import Any

from torchlike._src.checkpoint.rebuild import META, Bytes, LoadedBytes, taken_over
from torchlike._src.core.device import device as Device
from torchlike._src.tensor.devices import gpus
from torchlike._src.tensor.misc import UntypedStorage
from torchlike._src.tensor.namespace import torch


def _cpu_tag(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_deserialize(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _cuda_tag(storage: Any) -> str | None:
    return f"cuda:{storage.device.index or 0}" if storage.device.type == "cuda" else None


def _cuda_deserialize(storage: Any, location: str) -> Any:
    if location == "cuda" or re.match("cuda(:|[0-9]+)", location):
        return storage.to(device=validate_cuda(location))
    return None


def _meta_tag(storage: Any) -> str | None:
    return "meta" if storage.device.type == "meta" else None


def _meta_deserialize(storage: Any, location: str) -> Any:
    if location != "meta":
        return None
    return UntypedStorage(torch.empty(storage.nbytes(), dtype=torch.uint8, device="meta")._s)


REGISTRY: list[tuple[int, Callable, Callable]] = [
    (10, _cpu_tag, _cpu_deserialize),
    (20, _cuda_tag, _cuda_deserialize),
    (22, _meta_tag, _meta_deserialize),
]
_BUILT_IN = list(REGISTRY)


def validate_cuda(location: str) -> Device:
    """The GPU that a location names. RuntimeError if this machine does not have it."""
    device = Device(location)
    count = len(gpus())
    if not count:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
            "to map your storages to the CPU."
        )
    if (device.index or 0) >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {device.index} but torch.cuda.device_count() is {count}. "
            "Please use torch.load with map_location to map your storages to an existing device."
        )
    return device if device.index is not None else Device("cuda", 0)


def location_tag(storage: Any) -> str:
    """The tag of the device that a storage is on."""
    for _, tagger, _ in REGISTRY:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_typename(storage)}")


def tag_of(storage: Any, device: Any) -> str:
    """`location_tag` of a tensor's storage on `device`."""
    if REGISTRY != _BUILT_IN:
        return location_tag(UntypedStorage(storage))
    return "cpu" if device.type == "cpu" else f"{device.type}:{device.index or 0}"


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage where its tag wants it."""
    for _, _, deserializer in REGISTRY:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(f"don't know how to restore data location of {_typename(storage)} (tagged with {location})")


def _typename(storage: Any) -> str:
    return f"torch.storage.{type(storage).__name__}"


def is_meta(map_location: Any) -> bool:
    """Whether nothing needs to be read, because everything goes to the meta device."""
    return map_location == "meta" if isinstance(map_location, str) else map_location == META


def restored(content: Callable[[], Bytes], location: str, dtype: Any, map_location: Any) -> Bytes:
    """A storage from a file, where it shall be.

    content: reads it, as one on the CPU. location: its tag in the file. dtype: what the file says of its elements."""
    chosen: Any = location
    if isinstance(map_location, dict):
        chosen = map_location.get(location, location)
    elif isinstance(map_location, bytes):
        raise TypeError("cannot use a string pattern on a bytes-like object")
    elif isinstance(map_location, (str, Device)):
        chosen = str(map_location)
    elif map_location is not None:
        loaded = content()
        given = LoadedBytes(loaded, dtype)
        result = map_location(given, location)
        if result is not None:
            return taken_over(result)
    if REGISTRY == _BUILT_IN and isinstance(chosen, str):
        if chosen == "cpu":
            return content()
        if chosen == "cuda" or re.match("cuda(:|[0-9]+)", chosen):
            device = validate_cuda(chosen)
            loaded = content()
            loaded.device = device
            return loaded
    loaded = content()
    return taken_over(default_restore_location(LoadedBytes(loaded, dtype), chosen))
