"""What runs in a worker process.

The worker reads tasks from its own queue and writes results to its own pipe, so that no lock is shared with another
worker: one that is killed at any point takes nothing with it. Results are pickled by the worker's main thread (an
error in that is an ordinary result) and sent by another, so that the next batch is made meanwhile.
"""

import importlib
import os
import pickle
import queue
import random
import threading
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

import torchlike as torch
from torchlike._src.random.sampler_seeds import worker_numpy_seed, worker_seed
from torchlike.utils.data._utils.exceptions import ExceptionWrapper
from torchlike.utils.data._utils.fetch import _DatasetKind
from torchlike.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from torchlike.utils.data.graph_settings import apply_random_seed, apply_sharding

# The module: the package gives its function the same name.
_flush = importlib.import_module("torchlike._src.engine.flush")

STATUS_INTERVAL = 5.0
"""Seconds between two looks at whether the other side is still alive."""

RESUME = "resume"
"""A task that starts a new iteration in a worker that is kept, and its answer."""

STOP = None
"""The task that ends a worker."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows of itself: its number, how many there are, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a worker process its WorkerInfo, in the main process None."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """The result of a worker whose iterable-style dataset has ended."""

    worker_id: int


@dataclass(frozen=True)
class Job:
    """All that a worker is told when it starts."""

    kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Any
    worker_id: int
    num_workers: int
    shared_seed: int | None = None

    def fetcher(self) -> Any:
        return _DatasetKind.create_fetcher(
            self.kind, self.dataset, self.auto_collation, self.collate_fn, self.drop_last
        )

    def failure(self) -> ExceptionWrapper:
        """The exception being handled, as a result."""
        return ExceptionWrapper(where=f"in DataLoader worker process {self.worker_id}")


class _Sender:
    """Sends results from a thread of its own."""

    def __init__(self, results: Any) -> None:
        self._results = results
        self._waiting: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, job: Job, index: Any, data: Any) -> None:
        try:
            message = ForkingPickler.dumps((index, data), pickle.HIGHEST_PROTOCOL)
        except Exception:
            message = ForkingPickler.dumps((index, job.failure()), pickle.HIGHEST_PROTOCOL)
        self._waiting.put(message)

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (message := self._waiting.get()) is not None:
                self._results.send_bytes(message)
        except OSError:
            pass  # nobody reads any more
        self._results.close()


def _worker_loop(job: Job, tasks: Any, results: Any, done: Any) -> None:
    """A worker's whole life. `done` is a shared flag without a lock: tasks still waiting need not be done any more."""
    parent = os.getppid()
    try:
        _prepare(job)
        sender = _Sender(results)
        try:
            _shard_pipes(job)
            if job.init_fn is not None:
                job.init_fn(job.worker_id)
            fetcher, failed = job.fetcher(), None
        except Exception:
            fetcher, failed = None, job.failure()
        ended = False
        while os.getppid() == parent:
            try:
                task = tasks.get(timeout=STATUS_INTERVAL)
            except queue.Empty:
                continue
            if task is STOP:
                break
            if done.value or (ended and task[0] != RESUME):
                continue
            if task[0] == RESUME:
                ended = False
                if task[1] is not None:
                    seed_pipes(job.dataset, task[1])
                if failed is None:
                    try:
                        fetcher = job.fetcher()
                    except Exception:
                        failed = job.failure()
                sender.put(job, RESUME, None)
                continue
            number, index = task
            if failed is not None:
                data, failed = failed, None
            else:
                data = _fetch(job, fetcher, index)
                ended = isinstance(data, _IterableDatasetStopIteration)
            sender.put(job, number, data)
            del data, task, index  # a large batch must not live until the next one is ready
        else:
            os._exit(1)  # the main process is gone, and the sender may wait for it for ever
        if not done.value:
            sender.close()
    except KeyboardInterrupt:
        pass  # the main process got it too, and raises it


def _fetch(job: Job, fetcher: Any, index: Any) -> Any:
    try:
        return fetcher.fetch(index)
    except StopIteration:
        if job.kind == _DatasetKind.Iterable:
            return _IterableDatasetStopIteration(job.worker_id)
        return job.failure()
    except Exception:
        return job.failure()


def seed_pipes(pipe: Any, seed: int) -> None:
    """Seed what shuffles in a data pipe from one seed, which all processes have."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    apply_random_seed(pipe, generator)


def _shard_pipes(job: Job) -> None:
    """A data pipe with a sharding_filter gives each worker its part."""
    if isinstance(job.dataset, (IterDataPipe, MapDataPipe)):
        if job.shared_seed is not None:
            seed_pipes(job.dataset, job.shared_seed)
        apply_sharding(job.dataset, job.num_workers, job.worker_id)


def _prepare(job: Job) -> None:
    """Seeds, WorkerInfo, and no accelerator."""
    if not _flush.host_only:
        # A process of its own (spawn, forkserver): it must not take the accelerator's memory from the main process.
        import jax

        jax.config.update("jax_platforms", "cpu")
    seed = worker_seed(job.base_seed, job.worker_id)
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(worker_numpy_seed(job.base_seed, job.worker_id))
    global _worker_info
    _worker_info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
