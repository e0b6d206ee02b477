"""A storage is one mutable cell: the current Value of a base tensor, and the count of writes to it.

A view is a recipe: a chain of view operators from the base. Reading it replays the chain on the current base value;
writing through it writes the chain back, innermost view first, and replaces the base value. So every tensor of a
storage sees every write, and a write is an ordinary recorded operation that the compiler turns into an update."""

import functools
from typing import Any

from torchlike._src.core.aval import Aval
from torchlike._src.engine import Value, record
from torchlike._src.ops.views import fused


class Storage:
    """The cell that a tensor and all its views share.

    `value` has the shape of the tensor that the storage was made for. `version` counts in-place writes. `shared`,
    if set, is the NumPy array whose memory the user can also write to (see `tensor.interop`)."""

    __slots__ = ("__weakref__", "shared", "value", "version")

    def __init__(self, value: Value) -> None:
        self.value = value
        self.version = 0
        self.shared: Any = None


class View:
    """What one view tensor sees of its storage: steps from the base, and PyTorch's geometry.

    A step is (view operator, static arguments, numbers); numbers are data (an index, a slice's start). `made` says what
    forbids tracked writes through it: MULTI, NO_GRAD, INFERENCE or FUNCTION, else None."""

    __slots__ = ("aval", "made", "offset", "steps", "strides")

    def __init__(
        self, steps: tuple, aval: Aval, strides: tuple[int, ...], offset: int, made: str | None = None
    ) -> None:
        self.steps = steps
        self.aval = aval
        self.strides = strides
        self.offset = offset
        self.made = made


MULTI = "multi"
NO_GRAD = "no_grad"
INFERENCE = "inference"
FUNCTION = "function"


def read_view(base: Value, steps: tuple) -> Value:
    """The value that a view sees when the base holds `base`."""
    value = base
    for op, static, numbers in steps:
        value = record(op, static, (value, *numbers))[0]
    return value


def write_view(base: Value, steps: tuple, new: Value) -> Value:
    """The base value after `new` is written through the view."""
    steps = fused(steps)
    seen = [base]
    for op, static, numbers in steps[:-1]:
        seen.append(record(op, static, (seen[-1], *numbers))[0])
    for (op, static, numbers), outer in zip(reversed(steps), reversed(seen), strict=True):
        new = record(op.write, static, (outer, new, *numbers))[0]
    return new


@functools.lru_cache(maxsize=16384)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))
