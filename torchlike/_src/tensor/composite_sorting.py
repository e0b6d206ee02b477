"""sort and argsort of integers that are known (lengths, labels): equal elements in the order that PyTorch's unstable
sort leaves them in. Every other sort is the operator, which is stable."""

from typing import Any

import numpy as np

from torchlike._src.core.introsort import PIECE, order
from torchlike._src.tensor.composite import public
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.publish import PUBLIC, return_type
from torchlike._src.tensor.tensor import Tensor

LONGEST = 4096
SORTED = return_type("sort", ("values", "indices"))


def _order(input: Any, dim: Any, descending: Any, stable: Any) -> np.ndarray | None:
    """The order of the 1-d integers of a tensor whose data is known; None if it is anything else, or a stable one will do."""
    if stable or type(input) is not Tensor or input._view is not None or dim not in (0, -1):
        return None
    a = input._aval
    if a.ndim != 1 or not PIECE < a.numel <= LONGEST or a.dtype.is_floating_point or a.dtype.is_complex:
        return None
    array = input._s.value.array
    if a.device.type != "cpu" or (type(array) is not np.ndarray and not hasattr(array, "is_ready")):
        return None  # still to be computed, or a tracer
    if array.shape != a.shape:
        return None
    return np.array(order(np.asarray(array).tolist(), bool(descending)), np.int64)


@public("torch")
def sort(input, dim=-1, descending=False, *, stable=None, out=None):
    """(values, indices) along `dim`. stable: equal elements keep their order."""
    found = None if out is not None else _order(input, dim, descending, stable)
    if found is None:
        return PUBLIC["sort"](input, dim, descending, stable=stable, out=out)
    return SORTED([from_array(np.asarray(input._s.value.array)[found]), from_array(found)])


@public("torch")
def argsort(input, dim=-1, descending=False, *, stable=False):
    """The indices that sort `input` along `dim`. stable: equal elements keep their order."""
    found = _order(input, dim, descending, stable)
    if found is None:
        return PUBLIC["argsort"](input, dim, descending, stable=stable)
    return from_array(found)


Tensor.sort, Tensor.argsort = sort, argsort  # type: ignore[assignment, method-assign]
