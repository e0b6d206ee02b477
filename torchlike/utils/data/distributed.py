"""The sampler for data-parallel training: each process gets its own part of a dataset."""

import math
from collections.abc import Iterator, Sized
from typing import Any, TypeVar

import torchlike as torch
from torchlike.utils.data._utils.draws import seeded_permutation
from torchlike.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every `num_replicas`-th index, starting at `rank`, of one order that all processes share.

    Args:
        dataset: its length must not change.
        num_replicas, rank: how many processes there are and which this is; asked of the default process group if None.
        shuffle: a new order for each epoch; call `set_epoch` before each.
        seed: the same in all processes.
        drop_last: cut the tail so that all parts are equal, instead of repeating samples from the front.

    Raises:
        RuntimeError: `num_replicas` or `rank` is left out and there is no torch.distributed.
        ValueError: `rank` outside 0 ... num_replicas - 1.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = _distributed().get_world_size()
        if rank is None:
            rank = _distributed().get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        n = len(dataset)
        if drop_last and n % num_replicas:
            self.num_samples = math.ceil((n - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[Any]:
        n = len(self.dataset)
        if self.shuffle:
            order = seeded_permutation(self.seed + self.epoch, n)
        else:
            order = list(range(n))
        if not self.drop_last and self.total_size > n:
            order = (order * math.ceil(self.total_size / n))[: self.total_size]
        order = order[: self.total_size]
        if len(order) != self.total_size:
            raise AssertionError(f"Number of indices ({len(order)}) does not match total_size ({self.total_size})")
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch; without it every epoch has the same order."""
        self.epoch = epoch


def _distributed() -> Any:
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return distributed
