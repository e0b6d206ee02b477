"""torch.cuda.nvtx: ranges for NVIDIA's profiler, which XLA's programs do not carry. RuntimeError, as without CUDA."""

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def _missing(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


mark = range_end = range_pop = range_push = range_start = _missing


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block."""
    _missing()
    yield
