"""Errors that a user's `try` waits for: operations that fail by their data are computed at once where one is open.

`try: L = torch.linalg.cholesky(K)` with a larger jitter after `except` is an ordinary loop; an error that came with the
next read would come after the `except`. Without a `try` around the call, the operation stays in the step's program."""

import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from torchlike._src.engine import checks, current
from torchlike._src.engine.flush import flush
from torchlike._src.engine.record import is_ours

FRAMES = 12
"""How many of the user's calls to look through."""
_ranges: dict[CodeType, list[tuple[int, int]]] = {}


def settle(*results: Any) -> None:
    """Compute what is pending if the call stands in a `try` and its results are pending."""
    if any(r._s.value.array is None and r._s.value.epoch is current().epoch for r in results) and in_try():
        flush(current(), "an operation that may fail, inside a try")
        checks.examine()


def in_try() -> bool:
    """Whether one of the user's innermost calls stands in a `try` or `with`."""
    frame: FrameType | None = sys._getframe(1)
    seen = 0
    while frame is not None and seen < FRAMES:
        if not is_ours(frame):
            seen += 1
            at = frame.f_lasti // 2
            if any(first <= at < last for first, last in _protected(frame.f_code)):
                return True
            if frame.f_code.co_name == "<module>":
                return False
        frame = frame.f_back
    return False


def _protected(code: CodeType) -> list[tuple[int, int]]:
    """The ranges of instructions for which an exception has a handler."""
    found = _ranges.get(code)
    if found is None:
        if len(_ranges) > 10_000:
            _ranges.clear()
        found = _ranges[code] = list(_entries(code.co_exceptiontable))
    return found


def _entries(table: bytes) -> Iterator[tuple[int, int]]:
    """(first, end) of each entry: four numbers of six bits a byte (start, length, handler, depth), highest first; bit 6
    says that a number goes on."""
    data = iter(table)

    def number() -> int:
        byte = next(data)
        value = byte & 63
        while byte & 64:
            byte = next(data)
            value = value << 6 | byte & 63
        return value

    try:
        while True:
            first, length = number(), number()
            number()
            number()
            yield first, first + length
    except (StopIteration, RuntimeError):
        return
