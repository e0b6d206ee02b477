"""Batches made in host memory by NumPy: one gather or one join for a whole batch, no operator per sample.

Each function returns None where that is not possible (or would lose a gradient), and its caller then does what
PyTorch does, operator by operator. The results are the same.
"""

import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.core.aval import aval
from torchlike._src.engine import host_array
from torchlike._src.storage.storage import contiguous_strides
from torchlike._src.tensor.creation import from_value
from torchlike._src.tensor.tensor import SharedStorage, Tensor, strided


def is_plain(t: Any) -> bool:
    """Whether `t` is a tensor in host memory, of no subclass, that no gradient must flow to."""
    return type(t) is Tensor and t._aval.device.type == "cpu" and not (t._rg and MODE.enabled)


def memory(storage: Any) -> np.ndarray:
    """A storage's elements as they are now, computed if they are pending. Not a copy: do not write to it."""
    return storage.shared if type(storage) is SharedStorage else host_array(storage.value)


def elements(t: Tensor) -> np.ndarray:
    """A tensor's elements. Not a copy: do not write to it, do not keep it."""
    base = memory(t._s)
    return base if t._view is None else strided(base, t._view)


def rows(t: Tensor, indices: np.ndarray) -> Tensor:
    """t[indices] along dimension 0 as a new tensor. IndexError (NumPy's) for an index out of range."""
    source = elements(t)
    # take() is the faster of the two, but would first copy the whole of a source that is not row-major.
    picked = source.take(indices, 0) if source.flags.c_contiguous else np.ascontiguousarray(source[indices])
    known = t._aval
    return from_value(aval((len(indices), *known.shape[1:]), known.dtype, known.device), picked)


def stack(batch: Sequence[Any]) -> Tensor | None:
    """torch.stack(batch, 0), or None if torch.stack has to do it: gradients, subclasses, devices, sizes. HOT."""
    first = batch[0]
    if not is_plain(first):
        return None
    known = first._aval
    tracked = MODE.enabled
    storage = first._s
    one_storage = first._view is not None
    for t in batch:
        if type(t) is not Tensor or t._aval is not known or (t._rg and tracked):
            return None
        if t._s is not storage or t._view is None:
            one_storage = False
    array = _rows_of_one_storage(batch) if one_storage else None
    if array is None:
        array = _joined([elements(t) for t in batch])
    return from_value(aval((len(batch), *known.shape), known.dtype, known.device), array)


def _rows_of_one_storage(batch: Sequence[Any]) -> np.ndarray | None:
    """The stack of views that are rows of one array, as `self.data[i]` gives: gathered at once."""
    first = batch[0]
    row = first._aval.numel
    strides = first._view.strides
    base = memory(first._s)
    if not row or base.size % row or not base.flags.c_contiguous or base.dtype != first._aval.dtype.np:
        return None
    shape = first._aval.shape
    offsets = []
    for t in batch:
        view = t._view
        if view.strides != strides or view.offset % row:
            return None
        offsets.append(view.offset // row)
    if shape:
        if strides != contiguous_strides(shape):
            return None
        return base.reshape(-1, row).take(offsets, 0).reshape(len(batch), *shape)
    return base.reshape(-1).take(offsets)


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """np.stack(arrays), without its cost per array."""
    first = arrays[0]
    if first.ndim:
        return np.concatenate(arrays).reshape(len(arrays), *first.shape)
    out = np.empty(len(arrays), first.dtype)
    for i, a in enumerate(arrays):
        out[i] = a
    return out


def stack_arrays(batch: Sequence[Any]) -> np.ndarray | None:
    """np.stack of NumPy arrays, or None if they are not all plain, writable and of one shape and dtype."""
    first = batch[0]
    shape, dtype = first.shape, first.dtype
    if type(first) is not np.ndarray or not dtype.isnative:
        return None
    for a in batch:
        if type(a) is not np.ndarray or a.shape != shape or a.dtype != dtype or not a.flags.writeable:
            return None
        if not a.flags.c_contiguous and any(s < 0 for s in a.strides):
            return None
    return _joined(list(batch))


def settle(root: Any) -> None:
    """Bring the tensors inside a dataset into host memory: a forked worker cannot ask an accelerator for them.

    On an accelerator, what was computed from a CPU tensor lies in the accelerator's memory until somebody reads it.
    Looks into containers and the attributes of objects.
    """
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        x = waiting.pop()
        if id(x) in seen or isinstance(x, (str, bytes, int, float, type, types.ModuleType, np.ndarray)):
            continue
        seen.add(id(x))
        if isinstance(x, Tensor):
            if x._aval.device.type == "cpu" and type(x._s) is not SharedStorage:
                x._s.value.array = host_array(x._s.value)
        elif isinstance(x, dict):
            waiting += x.values()
        elif isinstance(x, (list, tuple, set)):
            waiting += x
        else:
            waiting += getattr(x, "__dict__", {}).values()
