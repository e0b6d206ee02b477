"""Addresses of tensors' memory, for code that compares or reads them (`data_ptr`).

A storage has no memory of its own: its value is replaced by every write, lives on the device, or is still pending. So
whoever asks for an address gets that of a copy in host memory, which belongs to the storage from then on: it is renewed
each time the address is asked for, and stays where it is, through writes, as long as the storage lives. What is written
to that address does not reach the tensor. The exception is a storage over a NumPy array in use elsewhere: there the
address is the array's own, and both ways work."""

import weakref
from typing import Any

import jax
import numpy as np

from torchlike._src.engine import host_array, value_array
from torchlike._src.tensor.tensor import SharedStorage

ALIGNMENT = 64


class _Copy:
    """A copy of a storage's bytes at a fixed address."""

    __slots__ = ("address", "memory")

    def __init__(self, size: int) -> None:
        self.memory = np.empty(size + ALIGNMENT, np.uint8)
        start: int = self.memory.ctypes.data
        self.address = start + -start % ALIGNMENT

    def renew(self, value: Any) -> None:
        array = host_array(value)
        offset = self.address - self.memory.ctypes.data
        np.ndarray(array.shape, array.dtype, self.memory, offset)[...] = array


_COPIES: "weakref.WeakKeyDictionary[Any, _Copy]" = weakref.WeakKeyDictionary()


def address(storage: Any) -> int:
    """Where the storage's bytes begin; 0 if there are none. On other devices than the CPU, and under JAX's
    transformations, only a number that identifies the storage."""
    if type(storage) is SharedStorage:
        return storage.shared.ctypes.data if storage.shared.size else 0  # type: ignore[no-any-return]
    value = storage.value
    a = value.aval
    if a.device.type == "meta" or not a.numel:
        return 0
    if a.device.type != "cpu" or isinstance(value_array(value), jax.core.Tracer):
        return id(storage) * ALIGNMENT
    copy = _COPIES.get(storage)
    if copy is None:
        copy = _COPIES[storage] = _Copy(a.numel * a.dtype.itemsize)
    copy.renew(value)
    return copy.address
