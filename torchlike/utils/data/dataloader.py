"""The DataLoader: batches of a dataset, made in this process or by worker processes."""

import math
import multiprocessing
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from torchlike.utils.data import _utils
from torchlike.utils.data._iterators import (
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from torchlike.utils.data._utils.fetch import _DatasetKind
from torchlike.utils.data.datapipes.datapipe import IterDataPipe
from torchlike.utils.data.dataset import Dataset, IterableDataset
from torchlike.utils.data.graph_settings import apply_shuffle_settings
from torchlike.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

default_collate = _utils.collate.default_collate
default_convert = _utils.collate.default_convert
get_worker_info = _utils.worker.get_worker_info

_T_co = TypeVar("_T_co", covariant=True)

# What the running iterators have already taken over, or what other attributes were made from.
_FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))


class _InfiniteConstantSampler(Sampler[None]):
    """None for ever: the sampler of an iterable-style dataset, which knows itself when it ends."""

    def __iter__(self) -> Any:
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Iterates over a dataset in batches.

    Args:
        dataset: map style (``__getitem__``) or an IterableDataset.
        batch_size: samples per batch; None gives single samples, converted by `default_convert`.
        shuffle: visit the samples in a new random order each time.
        sampler: indices in the order to visit; excludes `shuffle`.
        batch_sampler: lists of indices; excludes `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: how many processes load data; 0 means this one does.
        collate_fn: makes a batch from a list of samples.
        pin_memory: call ``pin_memory()`` on what is in a batch, if there is an accelerator.
        drop_last: leave out a last batch that is not full.
        timeout: seconds to wait for a worker's batch before a RuntimeError; 0 waits for ever.
        worker_init_fn: called with the worker's number in each worker, after seeding.
        multiprocessing_context: a start method ("fork", "spawn", "forkserver") or a context of `multiprocessing`.
        generator: draws the order and the workers' seeds; the default generator if None.
        prefetch_factor: how many batches each worker prepares in advance (2 if there are workers).
        persistent_workers: keep the workers from one iteration to the next.
        pin_memory_device: deprecated; the accelerator is used.
        in_order: whether batches come in the sampler's order; otherwise as the workers finish them.

    A batch of a TensorDataset (or of Subsets of one) with the default collation is gathered at once.

    Raises:
        ValueError, TypeError: arguments that exclude each other or make no sense.
    """

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler[Any] | Iterable[Any]
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.prefetch_factor = _checked_prefetch(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            piped = isinstance(dataset, IterDataPipe)  # whose own shuffling the loader switches
            _refuse_for_iterable(None if piped else shuffle, sampler, batch_sampler)
            if piped:
                self.dataset = apply_shuffle_settings(dataset, shuffle=shuffle)
                shuffle = False
        else:
            self._dataset_kind = _DatasetKind.Map
            shuffle = bool(shuffle)
        _refuse_clashes(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """The context that makes the workers; None for the default one."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context: Any) -> None:
        if multiprocessing_context is not None:
            multiprocessing_context = _checked_context(multiprocessing_context, self.num_workers)
        self.__multiprocessing_context = multiprocessing_context

    def __setattr__(self, attr: str, val: Any) -> None:
        if attr in _FIXED and self.__initialized:
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # A guess, which iterating checks: the dataset may split itself between workers in any way.
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are to be more workers than processors that this process may use."""
        if not self.num_workers:
            return
        bounded = hasattr(os, "sched_getaffinity")
        limit = len(os.sched_getaffinity(0)) if bounded else os.cpu_count()
        if limit is None:
            advice = "DataLoader is not able to compute a suggested max number of worker in current system."
        elif self.num_workers > limit:
            note = "" if bounded else " (`cpuset` is not taken into account)"
            advice = (
                f"Our suggested max number of worker in current system is {limit}{note}, which is smaller than what "
                "this DataLoader is going to create."
            )
        else:
            return
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {advice} Please be aware that "
            "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to "
            "avoid potential slowness/freeze if necessary.",
            stacklevel=2,
        )


def _checked_prefetch(workers: int, timeout: float, prefetch: int | None, persistent: bool) -> int | None:
    """The prefetch factor to use; ValueError for arguments about workers that make no sense."""
    if workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if workers == 0 and prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return 2 if workers > 0 and prefetch is None else prefetch


def _refuse_for_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """An iterable-style dataset decides its order itself."""
    given: list[tuple[str, Any]] = [("sampler", sampler), ("batch_sampler", batch_sampler)]
    if shuffle not in {False, None}:
        given.insert(0, ("shuffle", shuffle))
    for name, value in given:
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def _refuse_clashes(batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    """Options that exclude each other."""
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _checked_context(context: Any, workers: int) -> Any:
    """A context object from one or from a start method's name."""
    if workers <= 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context
