"""The C heap: what a compilation took and freed goes back to the system."""

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable

LEAST = 32 << 20
"""Bytes whose return is worth the call: it walks the whole heap, and the pages must be fetched again if needed."""


@functools.cache
def trimmer() -> Callable[[int], int] | None:
    """glibc's malloc_trim, or None where there is another C library."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    trim.argtypes = [ctypes.c_size_t]
    return trim


def resident_bytes() -> int:
    """The process's resident size; 0 if the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def give_back(before: int) -> None:
    """Return free pages to the system if the process has grown by LEAST from `before`. Compiling takes hundreds of
    megabytes, in pieces so small that programs' buffers cannot use what they leave."""
    trim = trimmer()
    if trim is not None and resident_bytes() - before >= LEAST:
        trim(0)
