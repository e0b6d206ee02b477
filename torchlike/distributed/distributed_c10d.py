"""torch.distributed.distributed_c10d: where PyTorch defines the functions of torch.distributed."""

from typing import Any

import torchlike.distributed as _distributed
from torchlike.distributed import *  # noqa: F403 - the same names
from torchlike.distributed._group import found as _found


def _get_default_group() -> Any:
    """The default group. ValueError if there is none."""
    return _found(None)


def _rank_not_in_group(group: Any) -> bool:
    """False: the one process is in each group."""
    return False


__all__ = _distributed.__all__
