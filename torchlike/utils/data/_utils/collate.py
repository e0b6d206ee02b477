"""Collation: a list of samples becomes one batch."""

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

import torchlike as torch
from torchlike._src.tensor.creation import from_array
from torchlike.utils.data._utils import host

CollateMap = dict[type | tuple[type, ...], Callable[..., Any]]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
"""Found in the dtype strings of arrays of text and objects, which cannot become tensors."""

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """NumPy arrays and scalars anywhere inside `data` as tensors; tuples become lists; the rest stays as it is.

    A loader without automatic batching applies it to each sample.
    """
    kind = type(data)
    if isinstance(data, torch.Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind.__name__ == "ndarray" and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return torch.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, lambda key: default_convert(data[key]))
    if isinstance(data, tuple):
        items = [default_convert(d) for d in data]
        return kind(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, data, default_convert)
    return data


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """One batch from a list of samples, descending into mappings, named tuples and sequences.

    Args:
        batch: samples of the same structure.
        collate_fn_map: for each type (or tuple of types) of leaves, a function ``f(batch, *, collate_fn_map)``. A
            sample's own type is looked up first, then the map's types in order, by isinstance.

    Raises:
        TypeError: leaves of a type that the map lacks.
        RuntimeError: sequences of different lengths.
    """
    sample = batch[0]
    kind = type(sample)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            function = next((f for types, f in collate_fn_map.items() if isinstance(sample, types)), None)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(sample, Mapping):
        return _like_mapping(sample, lambda key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map))
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return kind(*[collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)])
    if isinstance(sample, Sequence):
        if len(set(map(len, batch))) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = list(zip(*batch))
        if isinstance(sample, tuple):
            return [collate(column, collate_fn_map=collate_fn_map) for column in columns]
        return _like_sequence(sample, columns, lambda column: collate(column, collate_fn_map=collate_fn_map))
    raise TypeError(default_collate_err_msg_format.format(kind))


def _like_mapping(original: Mapping, convert: Callable[[Any], Any]) -> Any:
    """{key: convert(key)} in the original's own type if it can be made, else a dict."""
    try:
        if isinstance(original, MutableMapping):
            # A copy keeps what else the type carries, such as a default factory.
            out = copy.copy(original)
            out.update({key: convert(key) for key in original})
            return out
        return type(original)({key: convert(key) for key in original})  # type: ignore[call-arg]
    except TypeError:
        return {key: convert(key) for key in original}


def _like_sequence(original: Sequence, items: Sequence, convert: Callable[[Any], Any]) -> Any:
    """[convert(item), ...] in the original's own type if it can be made, else a list."""
    try:
        if isinstance(original, MutableSequence):
            out = copy.copy(original)
            for i, item in enumerate(items):
                out[i] = convert(item)
            return out
        return type(original)([convert(item) for item in items])  # type: ignore[call-arg]
    except TypeError:
        return [convert(item) for item in items]


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Tensors of one shape, stacked along a new first dimension."""
    out = host.stack(batch)
    return torch.stack(batch, 0) if out is None else out


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy arrays of one shape, stacked; TypeError for text and objects."""
    dtype = batch[0].dtype
    if np_str_obj_array_pattern.search(dtype.str):
        raise TypeError(default_collate_err_msg_format.format(dtype))
    if collate_fn_map is not None and collate_fn_map.get(torch.Tensor) is collate_tensor_fn:
        array = host.stack_arrays(batch)
        if array is not None:
            return from_array(array)
    return collate([torch.as_tensor(a) for a in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """NumPy scalars as a 1-dim tensor of their dtype."""
    return torch.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Floats as a 1-dim float64 tensor."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Integers as a 1-dim int64 tensor, booleans as a bool one."""
    return torch.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Text stays a list."""
    return batch


default_collate_fn_map: CollateMap = {
    torch.Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What `default_collate` does with leaves; programs may add types of their own."""

_ORIGINAL_MAP = dict(default_collate_fn_map)


def default_collate(batch: Any) -> Any:
    """One batch from a list of samples: what a loader uses unless told otherwise.

    Tensors and NumPy arrays are stacked along a new first dimension; numbers become a 1-dim tensor (floats a float64
    one); text stays a list; mappings, named tuples and sequences are collated element by element, tuples to lists.

    Raises:
        TypeError: samples of another type.
        RuntimeError: tensors, or sequences, of different sizes.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def is_untouched() -> bool:
    """Whether `default_collate` still does with tensors and tuples what it does by default."""
    return default_collate_fn_map == _ORIGINAL_MAP
