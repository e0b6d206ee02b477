"""Batches in pinned memory, for machines with an accelerator."""

from collections.abc import Mapping, Sequence
from typing import Any

import torchlike as torch
from torchlike.utils.data._utils.collate import _like_mapping, _like_sequence


def pin_memory(data: Any, device: Any = None) -> Any:
    """`data` with everything inside that has a method ``pin_memory`` replaced by what it returns."""
    if isinstance(data, torch.Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, lambda key: pin_memory(data[key], device))
    if isinstance(data, tuple):
        items = [pin_memory(d, device) for d in data]
        return type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if isinstance(data, Sequence):
        return _like_sequence(data, data, lambda d: pin_memory(d, device))
    return data
