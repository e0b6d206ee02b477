"""The process group: one process, so that there is nobody to talk to."""

import datetime
import enum
import os
import threading
import time
from typing import Any
from urllib.parse import parse_qs, urlparse

from torchlike import cuda
from torchlike.futures import Future


class DistError(RuntimeError):
    """An error of torch.distributed."""


class DistBackendError(DistError):
    """An error of a backend."""


class DistNetworkError(DistError):
    """An error of the network."""


class DistStoreError(DistError):
    """An error of a store."""


class QueueEmptyError(DistStoreError):
    """A store's queue is empty."""


class ReduceOp(enum.IntEnum):
    """How values of several processes are put together."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]


class Backend(str):
    """A backend's name, in lower case."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    FAKE = "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]

    def __new__(cls, name: str) -> "Backend":
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class Store:
    """Keys and values. Only this process sees them."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self.timeout = datetime.timedelta(seconds=300)

    def set(self, key: str, value: Any) -> None:
        """Set a value, as bytes."""
        with self._changed:
            self._values[key] = value if isinstance(value, bytes) else str(value).encode()
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        """The value, once it is there. DistStoreError after the timeout."""
        self.wait([key])
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """Count up, from 0, and return the sum."""
        with self._changed:
            total = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(total).encode()
            self._changed.notify_all()
        return total

    def wait(self, keys: list[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait for keys. DistStoreError after the timeout."""
        deadline = time.monotonic() + (timeout or self.timeout).total_seconds()
        with self._changed:
            while missing := [key for key in keys if key not in self._values]:
                if not self._changed.wait(deadline - time.monotonic()):
                    raise DistStoreError(f"wait timeout for the keys {', '.join(missing)}")

    def check(self, keys: list[str]) -> bool:
        """Whether all keys are there."""
        return all(key in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether it was there."""
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """How long `get` and `wait` wait."""
        self.timeout = timeout


class HashStore(Store):
    """A store in memory."""


class Work:
    """An operation that is done."""

    def __init__(self, result: Any = None) -> None:
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        """True."""
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def exception(self) -> None:
        """None."""

    def result(self) -> Any:
        """The tensors."""
        return self._result

    def get_future(self) -> Future:
        """A Future of the tensors."""
        done: Future = Future()
        done.set_result(self._result)
        return done


class ProcessGroup:
    """This process."""

    def __init__(self, backend: str, name: str) -> None:
        self._backend = Backend(backend)
        self.group_name = name
        self.group_desc = name

    def rank(self) -> int:
        """0"""
        return 0

    def size(self) -> int:
        """1"""
        return 1

    def name(self) -> str:
        """The backend's name."""
        return str(self._backend)


class _World(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group, or None."""
        return State.default


class group(metaclass=_World):
    """group.WORLD is the default group."""


class GroupMember(metaclass=_World):
    """GroupMember.WORLD is the default group."""

    NON_GROUP_MEMBER = -100


class State:
    """The default group, and how many groups have been made."""

    default: ProcessGroup | None = None
    made = 0


NOT_INITIALISED = "Default process group has not been initialized, please make sure to call init_process_group."


def found(group: ProcessGroup | None) -> ProcessGroup:
    """The group, by default the default one. ValueError if there is none."""
    if State.default is None:
        raise ValueError(NOT_INITIALISED)
    return State.default if group is None else group


def _from_environment(name: str, where: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ValueError(
            f"Error initializing torch.distributed using {where} rendezvous: environment variable {name} expected, "
            "but not set"
        )
    return value


def _rendezvous(init_method: str, rank: int, world_size: int) -> tuple[int, int]:
    parts = urlparse(init_method)
    query = parse_qs(parts.query)
    rank = int(query["rank"][0]) if "rank" in query else rank
    world_size = int(query["world_size"][0]) if "world_size" in query else world_size
    if parts.scheme == "env":
        rank = rank if rank != -1 else int(_from_environment("RANK", "env://"))
        world_size = world_size if world_size != -1 else int(_from_environment("WORLD_SIZE", "env://"))
        _from_environment("MASTER_ADDR", "env://")
        _from_environment("MASTER_PORT", "env://")
    elif parts.scheme in ("tcp", "file"):
        for name, value in (("rank", rank), ("world size", world_size)):
            if value == -1:
                raise ValueError(
                    f"Error initializing torch.distributed using {parts.scheme}:// rendezvous: {name} parameter missing"
                )
    else:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return rank, world_size


def _checked_backend(backend: str | None) -> str:
    if backend is None:
        return Backend.UNDEFINED
    names = [part.partition(":")[2] or part for part in backend.lower().split(",")]
    for name in names:
        if name == Backend.NCCL and not cuda.is_available():
            raise RuntimeError("Distributed package doesn't have NCCL built in")
        if name == Backend.MPI:
            raise RuntimeError(
                "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source "
                "on a host that has MPI installed."
            )
        if name in (Backend.UCC, Backend.XCCL):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        if name not in Backend.backend_list:
            raise AssertionError(f"Unknown backend type {name}")
    return backend.lower()


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: datetime.timedelta | None = None,
    world_size: int = -1, rank: int = -1, store: Store | None = None, group_name: str = "", pg_options: Any = None,
    device_id: Any = None, _ranks: list[int] | None = None,
) -> None:  # fmt: skip
    """Make the default group, of this process alone.

    backend: "gloo", or "nccl" if there is a GPU; it only gives the group its name. init_method, RANK, WORLD_SIZE,
    MASTER_ADDR, MASTER_PORT: as in PyTorch, but no connection is made. ValueError: something of that is missing, or
    there is a group already. NotImplementedError: more than one process."""
    if State.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size <= 0:
            raise AssertionError("world_size must be positive if using store")
        if rank < 0:
            raise AssertionError("rank must be non-negative if using store")
    else:
        rank, world_size = _rendezvous(init_method or "env://", rank, world_size)
    if world_size != 1:
        raise NotImplementedError(
            f"torchlike: torch.distributed with {world_size} processes; a group of one process is supported"
        )
    if rank != 0:
        raise ValueError(f"rank {rank} is outside a group of one process")
    name = _checked_backend(backend)
    State.default = ProcessGroup(name, group_name or "0")
    State.made += 1


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group, by default all. AssertionError if there is none."""
    if group is None or group is State.default:
        if State.default is None:
            raise AssertionError("Process group cannot be None")
        State.default, State.made = None, 0
