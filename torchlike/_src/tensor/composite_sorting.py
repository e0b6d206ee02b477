"""sort and argsort of integers that are known (lengths, labels): equal elements in the order that PyTorch's unstable
sort leaves them in. Every other sort is the operator, which is stable."""

from typing import Any

import numpy as np

from torchlike._src.core.introsort import PIECE, order
from torchlike._src.tensor.composite import known_array, public
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.publish import PUBLIC, return_type
from torchlike._src.tensor.tensor import Tensor

LONGEST = 4096
SORTED = return_type("sort", ("values", "indices"))


def _order(input: Any, dim: Any, descending: Any, stable: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """(data, order) of 1-d integers that are known; None if it is anything else, or a stable sort will do."""
    if stable or type(input) is not Tensor or dim not in (0, -1):
        return None
    a = input._aval
    if a.ndim != 1 or not PIECE < a.numel <= LONGEST or a.dtype.is_floating_point or a.dtype.is_complex:
        return None
    array = known_array(input)
    return None if array is None else (array, np.array(order(array.tolist(), bool(descending)), np.int64))


@public("torch")
def sort(input, dim=-1, descending=False, *, stable=None, out=None):
    """(values, indices) along `dim`. stable: equal elements keep their order."""
    found = None if out is not None else _order(input, dim, descending, stable)
    if found is None:
        return PUBLIC["sort"](input, dim, descending, stable=stable, out=out)
    array, where = found
    return SORTED([from_array(array[where]), from_array(where)])


@public("torch")
def argsort(input, dim=-1, descending=False, *, stable=False):
    """The indices that sort `input` along `dim`. stable: equal elements keep their order."""
    found = _order(input, dim, descending, stable)
    if found is None:
        return PUBLIC["argsort"](input, dim, descending, stable=stable)
    return from_array(found[1])


Tensor.sort, Tensor.argsort = sort, argsort  # type: ignore[attr-defined]
