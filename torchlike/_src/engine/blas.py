"""The threads of NumPy's BLAS.

OpenBLAS's threads wait for each other without sleeping. Where another process is busy, too, a product that one thread
computes in fifty microseconds takes them a slice of the scheduler's time: eight milliseconds. On an idle machine of two
cores they would save twenty."""

import ctypes
import functools
from collections.abc import Callable

import numpy as np


@functools.cache
def controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """(how many threads there are, set that), or None where NumPy has another BLAS."""
    try:
        library = ctypes.CDLL(np.linalg._umath_linalg.__file__)  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            try:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}")
                put = getattr(library, f"{prefix}_set_num_threads{suffix}")
            except AttributeError:
                continue
            get.restype, get.argtypes = ctypes.c_int, []
            put.restype, put.argtypes = None, [ctypes.c_int]
            return get, put
    return None


def one_thread() -> int:
    """Let products run in the calling thread; returns what `restore` takes. Holds for the whole process meanwhile."""
    found = controls()
    if found is None:
        return 0
    before = found[0]()
    if before > 1:
        found[1](1)
    return before


def restore(before: int) -> None:
    """As many threads as there were."""
    found = controls()
    if found is not None and before > 1:
        found[1](before)
