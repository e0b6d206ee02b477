"""torch.multiprocessing: Python's multiprocessing. Tensors are sent by value; memory shared between processes does not
exist here."""

import multiprocessing as _multiprocessing
from multiprocessing import *

from torchlike.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", *_multiprocessing.__all__]

_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """PyTorch's strategies on Linux."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """What set_sharing_strategy was given."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Noted: tensors are sent by value, whatever it is. AssertionError: an unknown name."""
    global _strategy
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"unknown sharing strategy: {new_strategy}")
    _strategy = new_strategy


def init_reductions() -> None:
    """Nothing to prepare: tensors pickle by value."""
