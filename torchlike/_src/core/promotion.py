"""Type promotion: which dtype an operator computes in and which it returns.

An operand is ``(dtype, ndim)`` for a tensor, or the type ``bool``, ``int``, ``float`` or ``complex`` for a Python
number. Tensors with dimensions decide; a 0-dim tensor counts only if its category (bool < int < float < complex)
is higher than theirs, and a number only if its is higher than every tensor's.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from functools import cache, lru_cache

from torchlike._src.core import dtype as dt
from torchlike._src.core.dtype import dtype

Operand = tuple[dtype, int] | type


class Promote(enum.Enum):
    """How an operator's dtypes follow from its operands'."""

    DEFAULT = enum.auto()
    """``add``: the common dtype; half types are computed in float32."""
    NO_OPMATH = enum.auto()
    """``where``, ``cat``: the common dtype, nothing is computed."""
    INT_TO_FLOAT = enum.auto()
    """``sin``: as DEFAULT, but integers and bool give the default float dtype."""
    ALWAYS_BOOL = enum.auto()
    """``eq``: compared as DEFAULT, the result is bool."""
    COMPLEX_TO_FLOAT = enum.auto()
    """``abs``: as DEFAULT, but a complex result is the dtype of its parts."""
    BOOL_TO_LONG = enum.auto()
    """``sum``: as DEFAULT, but bool gives int64."""

    __hash__ = object.__hash__  # Enum's own hashes the name in Python: too slow for a cache key


# Rank within the lattice bool < uint8, int8 < int16 < int32 < int64 < float16, bfloat16 < float32 < …
_CHAIN = [
    [dt.bool_],
    [dt.uint8, dt.int8],
    [dt.int16],
    [dt.int32],
    [dt.int64],
    [dt.float16, dt.bfloat16],
    [dt.float32],
    [dt.float64],
]
_RANK = {d: rank for rank, level in enumerate(_CHAIN) for d in level}
_NEXT = {rank: _CHAIN[rank + 1][0] for rank, level in enumerate(_CHAIN) if len(level) == 2}
_COMPLEX_RANK = {dt.complex32: 0, dt.complex64: 1, dt.complex128: 2}

_OPMATH = {dt.float16: dt.float32, dt.bfloat16: dt.float32, dt.complex32: dt.complex64}


def opmath(d: dtype) -> dtype:
    """The dtype that arithmetic on ``d`` is done in: float32 for half types, complex64 for complex32, else ``d``."""
    return _OPMATH.get(d, d)


def _is_bare_unsigned(d: dtype) -> bool:
    return d.category == dt.INT and d not in _RANK and d.name[0] == "u"


@cache  # at most one entry for each pair of dtypes
def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest dtype that both can be cast to safely enough: ``torch.promote_types``.

    Raises:
        RuntimeError: the pair is not supported (float8, the wide unsigned integers, quantised and bits types).
        TypeError: an argument is not a dtype.
    """
    for position, given in enumerate((type1, type2), 1):
        if not isinstance(given, dtype):
            raise TypeError(
                f"promote_types(): argument 'type{position}' (position {position}) must be torch.dtype, "
                f"not {type(given).__name__}"
            )
    if type1 is type2:
        return type1
    names = (type1.scalar_name, type2.scalar_name)
    categories = (type1.category, type2.category)
    if dt.QUANTIZED in categories:
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {names[0]} {names[1]}"
        )
    if dt.BITS in categories:
        raise RuntimeError(f"Promotion from {names[0]} and {names[1]} is unsupported.")
    if "Float8" in names[0] or "Float8" in names[1]:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {names[0]} and {names[1]}"
        )
    if _is_bare_unsigned(type1) or _is_bare_unsigned(type2):
        for d in (type1, type2):
            if d.is_floating_point:
                return d
        raise RuntimeError(
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote "
            f"{names[0]} and {names[1]}"
        )
    for d in (type1, type2):
        if d not in _RANK and d not in _COMPLEX_RANK:
            raise RuntimeError(f"Promotion of {names[0]} and {names[1]} is not supported.")
    if type1.is_complex or type2.is_complex:
        parts = [d if d.is_complex else _complex_for(d) for d in (type1, type2)]
        return max((d for d in parts if d is not None), key=_COMPLEX_RANK.__getitem__)
    rank1, rank2 = _RANK[type1], _RANK[type2]
    if rank1 == rank2:  # uint8 with int8, float16 with bfloat16: neither holds the other
        return _NEXT[rank1]
    return type1 if rank1 > rank2 else type2


def _complex_for(d: dtype) -> dtype | None:
    return d.to_complex() if d.is_floating_point else None


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether PyTorch allows casting a result of ``from_`` to ``to`` (for ``out=`` and in-place operations).

    Complex does not go to real, floats not to integers, nothing but bool to bool.
    """
    for position, (name, given) in enumerate((("from_", from_), ("to", to)), 1):
        if not isinstance(given, dtype):
            raise TypeError(
                f"can_cast(): argument '{name}' (position {position}) must be torch.dtype, not {type(given).__name__}"
            )
    if from_.is_complex and not to.is_complex:
        return False
    if from_.is_floating_point and to.category == dt.INT and to.np is not None:
        return False
    return from_ is dt.bool_ or to is not dt.bool_


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """The dtype of two groups of operands of which the lower counts by category only."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:
        return lower
    if higher is dt.bool_ or lower.is_floating_point:
        return promote_types(higher, lower)
    return higher


def _number_dtype(kind: type, default: dtype) -> dtype:
    if kind is float:
        return default
    if kind is int:
        return dt.int64
    if kind is bool:
        return dt.bool_
    if kind is complex:
        return default.to_complex()
    raise TypeError(f"a number operand is one of bool, int, float and complex, not {kind!r}")


def _common(operands: tuple[Operand, ...], default: dtype) -> dtype:
    groups: list[dtype | None] = [None, None, None]  # tensors with dimensions, 0-dim tensors, numbers
    for operand in operands:
        if isinstance(operand, tuple):
            d, ndim = operand
            group = 0 if ndim else 1
        else:
            d, group = _number_dtype(operand, default), 2
        before = groups[group]
        groups[group] = d if before is None else promote_types(before, d)
    common = _combine(groups[0], _combine(groups[1], groups[2]))
    if common is None:
        raise ValueError("type promotion needs at least one operand")
    return common


@lru_cache(maxsize=4096)
def _result_type(operands: tuple[Operand, ...], default: dtype) -> dtype:
    return _common(operands, default)


def result_type(operands: Iterable[Operand]) -> dtype:
    """The common dtype of the operands: ``torch.result_type`` for any number of them."""
    return _result_type(tuple(operands), dt.default_dtype())


@lru_cache(maxsize=8192)
def _promote(kind: Promote, operands: tuple[Operand, ...], default: dtype) -> tuple[dtype, dtype]:
    result = _common(operands, default)
    if kind is Promote.NO_OPMATH:
        return result, result
    if kind is Promote.INT_TO_FLOAT and result.category <= dt.INT:
        result = default
    if kind is Promote.BOOL_TO_LONG and result is dt.bool_:
        result = dt.int64
    compute = opmath(result)
    if kind is Promote.ALWAYS_BOOL:
        result = dt.bool_
    elif kind is Promote.COMPLEX_TO_FLOAT:
        result = result.to_real()
    return compute, result


def promote(kind: Promote, operands: Iterable[Operand]) -> tuple[dtype, dtype]:
    """``(compute_dtype, result_dtype)`` of an operator. Hot: one cached look-up by the operands.

    Raises:
        RuntimeError: two of the dtypes do not promote.
    """
    return _promote(kind, tuple(operands), dt.default_dtype())
