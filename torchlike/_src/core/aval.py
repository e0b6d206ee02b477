"""Abstract values: what is known of an array before it exists."""

import math
from typing import Any

from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import dtype as DType

_INTERNED: dict[tuple[Any, ...], "Aval"] = {}


class Aval:
    """Shape, dtype and device of an array. Interned: equal abstract values are the same object, so that the
    recorder can key on identity. Make one with `aval(shape, dtype, device)`, never with the class."""

    __slots__ = ("device", "dtype", "ndim", "numel", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: DType, device: Device) -> None:
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.ndim = len(shape)
        self.numel = math.prod(shape)

    def __repr__(self) -> str:
        place = "" if self.device is CPU else f"@{self.device}"
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]{place}"

    def with_shape(self, shape: tuple[int, ...]) -> "Aval":
        return aval(shape, self.dtype, self.device)

    def with_dtype(self, dtype: DType) -> "Aval":
        return aval(self.shape, dtype, self.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return aval, (self.shape, self.dtype, self.device)


CPU = Device("cpu")
META = Device("meta")


def aval(shape: tuple[int, ...], dtype: DType, device: Device = CPU) -> Aval:
    """The one Aval of this shape (a tuple of ints), dtype and device."""
    key = (shape, dtype, device)
    found = _INTERNED.get(key)
    if found is None:
        if device == CPU:
            device = CPU
        if len(_INTERNED) > 200_000:
            _INTERNED.clear()  # shapes of a very long, irregular run; identity only matters while a trace uses it
        found = _INTERNED.setdefault(key, Aval(tuple(map(int, shape)), dtype, device))
    return found
