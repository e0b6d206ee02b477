"""``torch.Size``: a tuple of ints that says what it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple of ints.

    ``Size(iterable)`` checks every item; code that has a tuple of plain ints already takes
    ``tuple.__new__(Size, shape)``, which does not.
    """

    __slots__ = ()

    def __new__(cls, *args: Iterable[Any], **kwargs: Any) -> Size:
        items = tuple(*args, **kwargs)
        for item in items:
            if type(item) is not int:
                return tuple.__new__(cls, _checked(items))
        return tuple.__new__(cls, items)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if type(item) is tuple else item

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return _reflected(  # type: ignore[no-any-return]
                self, other, "__radd__", f"can only concatenate tuple (not {type(other).__name__}) to torch.Size"
            )
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(tuple(other), self))

    def __mul__(self, other: SupportsIndex) -> Size:
        if not isinstance(other, (int, np.integer)):
            return _reflected(  # type: ignore[no-any-return]
                self, other, "__rmul__", f"can't multiply sequence by non-int of type '{type(other).__name__}'"
            )
        return tuple.__new__(Size, tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, map(int, self)))}])"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (tuple(self),)


Size.__module__ = "torch"


def _restore(items: tuple[int, ...]) -> Size:
    return tuple.__new__(Size, items)


def _reflected(left: Size, right: Any, method: str, failure: str) -> Any:
    """``right``'s own answer to ``left + right`` or ``left * right`` (NumPy arrays have one), else TypeError."""
    reflect = getattr(type(right), method, None)
    answer = NotImplemented if reflect is None else reflect(right, left)
    if answer is NotImplemented:
        raise TypeError(failure)
    return answer


def _checked(items: tuple[Any, ...]) -> list[Any]:
    """``items`` with one-element integer tensors made ints; TypeError at the first that is no integer."""
    checked = []
    for position, item in enumerate(items):
        if not isinstance(item, (int, np.integer)):
            name = type(item).__name__
            if type(item).__module__ == "numpy":
                name = "numpy." + name
            try:
                item = item.__index__()
            except (AttributeError, TypeError):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{name}')") from None
        checked.append(item)
    return checked
