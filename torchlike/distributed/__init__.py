"""torch.distributed: a group of one process, in which a script written for several runs unchanged.

More processes, and what is for several only (stores, rpc, sharding), raise NotImplementedError."""

import enum as _enum
import os as _os
from typing import Any

from torchlike import cuda as _cuda
from torchlike._src.core.absent import absent as _absent
from torchlike.distributed import _group
from torchlike.distributed._collectives import *
from torchlike.distributed._group import (
    Backend,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    GroupMember,
    HashStore,
    ProcessGroup,
    QueueEmptyError,
    ReduceOp,
    Store,
    Work,
    destroy_process_group,
    init_process_group,
)
from torchlike.distributed._group import State as _State
from torchlike.distributed._group import found as _found

GroupName = str


class DebugLevel(_enum.Enum):
    """How much PyTorch checks."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def is_available() -> bool:
    """True: with one process."""
    return True


def is_initialized() -> bool:
    """Whether init_process_group was called."""
    return _State.default is not None


def get_rank(group: Any = None) -> int:
    """0. ValueError, here and below: init_process_group was not called."""
    return _found(group).rank()


def get_world_size(group: Any = None) -> int:
    """1"""
    return _found(group).size()


def get_backend(group: Any = None) -> Backend:
    """The backend's name."""
    return _found(group)._backend


def get_backend_config(group: Any = None) -> str:
    """Which backend each kind of device has."""
    name = _found(group)._backend
    return name if ":" in name else f"cpu:{name},cuda:{name}"


def get_default_backend_for_device(device: Any) -> str:
    """ "gloo" for the CPU, "nccl" for GPUs."""
    kind = str(getattr(device, "type", device)).partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.NCCL if kind == "cuda" else Backend.GLOO


def get_process_group_ranks(group: Any) -> list[int]:
    """[0]"""
    _found(group)
    return [0]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the default group."""
    if group is _found(None):
        return group_rank
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return 0


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group."""
    if group is _found(None):
        return global_rank
    if global_rank != 0:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return 0


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """$LOCAL_RANK, else fallback_rank. RuntimeError if there is neither."""
    if "LOCAL_RANK" in _os.environ:
        return int(_os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def get_pg_count() -> int:
    """How many groups have been made."""
    return _State.made


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization: bool = False, group_desc=None,
    device_id=None, sort_ranks: bool = True,
) -> ProcessGroup:  # fmt: skip
    """Another group of this process. ValueError for more processes."""
    default = _found(None)
    if ranks is not None and len(ranks) > 1:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if ranks is not None and any(rank != 0 for rank in ranks):
        bad = next(rank for rank in ranks if rank != 0)
        raise ValueError(f"Rank {bad} is out of range. Valid ranks are 0 to 0 (world_size=1)")
    made = ProcessGroup(backend or default._backend, str(_State.made))
    _State.made += 1
    return made


def is_gloo_available() -> bool:
    """True: one process needs no library."""
    return True


def is_nccl_available() -> bool:
    """Whether there is a GPU."""
    return _cuda.is_available()


def is_mpi_available() -> bool:
    """False."""
    return False


def is_ucc_available() -> bool:
    """False."""
    return False


def is_xccl_available() -> bool:
    """False."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether init_process_group takes this name."""
    return backend.lower() == "gloo" or (backend.lower() == "nccl" and is_nccl_available())


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return _os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_debug_level() -> DebugLevel:
    """OFF"""
    return DebugLevel.OFF


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether complex tensors can be reduced so."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def breakpoint(rank: int = 0, skip: int = 0, timeout_s=3600) -> None:
    """Python's breakpoint(), in the process of that rank."""
    if get_rank() == rank:
        import builtins

        builtins.breakpoint()


group = _group.group  # at the end: parameters above have its name

_ABSENT = [
    "AllToAllOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BackendConfig", "BarrierOptions",
    "BroadcastOptions", "BuiltinCommHookType", "DeviceMesh", "FileStore", "GatherOptions", "GradBucket", "Logger",
    "PrefixStore", "ProcessGroupGloo", "ReduceOptions", "ReduceScatterOptions", "Reducer", "ScatterOptions", "TCPStore",
    "init_device_mesh", "new_subgroups", "new_subgroups_by_enumeration", "record_comm", "register_rendezvous_handler",
    "rendezvous", "set_debug_level", "set_debug_level_from_env", "shrink_group", "split_group",
]  # fmt: skip
globals().update(_absent(__name__, _ABSENT, "several processes"))

__all__ = sorted(n for n in globals() if not n.startswith("_") and n not in ("Any",))
