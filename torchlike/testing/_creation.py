"""`make_tensor`: random tensors for tests."""

import math
from typing import Any

import torchlike as torch

_DEFAULTS = {"bool": (0, 2), "uint8": (0, 10), "int": (-9, 10), "float": (-9, 9)}
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def _kind(dtype: Any) -> str:
    if dtype is torch.bool:
        return "bool"
    if dtype.is_floating_point or dtype.is_complex:
        return "float"
    return "uint8" if str(dtype).removeprefix("torch.") in _UNSIGNED else "int"


def _limits(dtype: Any) -> tuple[float, float]:
    if dtype is torch.bool:
        return 0, 2
    if dtype.is_floating_point or dtype.is_complex:
        info = torch.finfo(dtype)
        return info.min, info.max
    info = torch.iinfo(dtype)
    return info.min, info.max + 1  # high is exclusive


def _bounds(low: float | None, high: float | None, dtype: Any) -> tuple[Any, Any]:
    default_low, default_high = _DEFAULTS[_kind(dtype)]
    low = default_low if low is None else low
    high = default_high if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    continuous = dtype.is_floating_point or dtype.is_complex
    if low > high or low == high and not continuous:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    least, most = _limits(dtype)
    if low > most or high < least:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, "
            f"{most})"
        )
    low, high = max(low, least), min(high, most)
    return (low, high) if continuous else (math.ceil(low), math.ceil(high))


def _fill_uniform(t: Any, low: float, high: float) -> None:
    if t.is_complex():
        t = torch.view_as_real(t)
    if high - low >= torch.finfo(t.dtype).max:  # the width itself would overflow
        t.uniform_(low / 2, high / 2).mul_(2)
    else:
        t.uniform_(low, high)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """A tensor of uniform values in [low, high), by default [-9, 9) ([0, 10) unsigned, both values of bool).

    noncontiguous: every other element of a larger one. exclude_zero: zeros become the smallest positive value (1 for
    integers). ValueError for bounds that make no interval, and for requires_grad of an integer dtype."""
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got {noncontiguous=} and "
            f"{memory_format=}"
        )
    low, high = _bounds(low, high, dtype)
    wanted = tuple(int(n) for n in shape)
    spread = noncontiguous and math.prod(wanted) > 1
    shape = (*wanted[:-1], 2 * wanted[-1]) if spread else wanted
    if dtype.is_floating_point or dtype.is_complex:
        made = torch.empty(shape, dtype=dtype, device=device)
        _fill_uniform(made, low, high)
    else:
        made = torch.randint(low, high, shape, dtype=dtype, device=device)
    if spread:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        smallest = torch.finfo(dtype).tiny if dtype.is_floating_point or dtype.is_complex else 1
        made[made == 0] = smallest
    if requires_grad:
        made.requires_grad = True
    return made
