"""What `iter(loader)` returns: one class for loading in this process, one for loading by workers."""

import itertools
import multiprocessing
import os
import pickle
import signal
import time
import warnings
import weakref
from collections.abc import Sequence
from multiprocessing import connection
from typing import Any

from torchlike._src.engine.backend import platform
from torchlike._src.random.sampler_seeds import base_seed
from torchlike._src.tensor.devices import gpus
from torchlike._src.tensor.generators import host_source
from torchlike.utils.data._utils import host, worker
from torchlike.utils.data._utils.exceptions import ExceptionWrapper
from torchlike.utils.data._utils.fetch import _DatasetKind
from torchlike.utils.data._utils.pin_memory import pin_memory
from torchlike.utils.data.datapipes.datapipe import IterDataPipe


class _BaseDataLoaderIter:
    """One pass over a loader's batches."""

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = _pins(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        # In this order, because all three may draw from the same generator.
        self._shared_seed = self._seed_pipes(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = base_seed(host_source(loader.generator))
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    def __iter__(self) -> "_BaseDataLoaderIter":
        return self

    def _seed_pipes(self, loader: Any) -> int | None:
        """Seed the shufflers of a data pipe, alike in all processes; returns the seed."""
        if not isinstance(self._dataset, IterDataPipe):
            return None
        seed = base_seed(host_source(loader.generator))
        worker.seed_pipes(self._dataset, seed)
        return seed

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._shared_seed = self._seed_pipes(loader)  # as PyTorch, which seeds twice at first

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        if self._pin_memory:
            data = pin_memory(data)
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if promised is not None and self._num_yielded > promised and self._dataset_kind == _DatasetKind.Iterable:
            self._warn_of_length(promised)
        return data

    def _warn_of_length(self, promised: int) -> None:
        message = (
            f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), "
            f"but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(message, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


def _pins(loader: Any) -> bool:
    """Whether batches go to pinned memory, which is for accelerators."""
    if not loader.pin_memory:
        return False
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=4,
        )
    if gpus():
        return True
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        stacklevel=4,
    )
    return False


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in this process."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(next(self._sampler_iter))


class _Worker:
    """A worker process as the main process sees it.

    Attributes:
        process: its multiprocessing Process.
        results: the reading end of its pipe.
        active: whether it gets more tasks in this pass.
        waiting: how many of its results are still to be received.
    """

    def __init__(self, context: Any, job: worker.Job, done: Any) -> None:
        self.tasks = context.Queue()
        # What is not delivered when this process ends needs no delivery.
        self.tasks.cancel_join_thread()
        self.results, sending = context.Pipe(duplex=False)
        self.process = context.Process(target=worker._worker_loop, args=(job, self.tasks, sending, done), daemon=True)
        with warnings.catch_warnings():
            # JAX warns of every fork, and Python of one with threads running: forked workers never touch XLA.
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
            warnings.filterwarnings("ignore", r".*use of fork\(\) may lead to deadlocks", DeprecationWarning)
            self.process.start()
        # The worker alone holds the writing end, so that its death ends the pipe.
        sending.close()
        self.restart()

    def restart(self) -> None:
        self.active = True
        self.waiting = 0


class _Crew:
    """All workers of an iterator, and their end. It outlives the iterator, so that the end finds everything intact."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.members: list[_Worker] = []
        self.done = context.RawValue("b", 0)
        self.closed = False
        self._owner = os.getpid()

    def hire(self, job: worker.Job) -> None:
        self.members.append(_Worker(self.context, job, self.done))

    def close(self) -> None:
        """End the workers: politely, and after a while by force. Does nothing in a forked copy of this process."""
        if self.closed or os.getpid() != self._owner:
            return
        self.closed = True
        self.done.value = 1
        for w in self.members:
            w.tasks.put(worker.STOP)
            w.results.close()  # a worker in the middle of sending stops
        deadline = time.monotonic() + worker.STATUS_INTERVAL
        for w in self.members:
            w.process.join(max(deadline - time.monotonic(), 0))
        for w in self.members:
            for end in (w.process.terminate, w.process.kill):
                if w.process.is_alive():
                    end()
                    w.process.join(1)
            w.tasks.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads in worker processes.

    Tasks (a number and the indices of a batch) go round the active workers. In order, the next batch is received
    from the worker that has the next number, whatever the others have ready; each waits with its own results.
    """

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context = loader.multiprocessing_context or multiprocessing.get_context()
        if context.get_start_method() == "fork" and platform() != "cpu":
            host.settle(self._dataset)
        self._crew = _Crew(context)
        self._workers = self._crew.members
        # Not __del__: a garbage collection may have taken the queues and pipes apart before it. And not at Python's
        # exit, when multiprocessing itself ends its daemonic processes.
        weakref.finalize(self, self._crew.close).atexit = False
        try:
            for i in range(self._num_workers):
                self._crew.hire(self._job(loader, i))
        except BaseException as error:
            self._crew.close()
            if isinstance(error, (TypeError, AttributeError, pickle.PicklingError)):
                _warn_of_pickling()
            raise
        self._reset(loader, first_iter=True)

    def _job(self, loader: Any, worker_id: int) -> worker.Job:
        return worker.Job(
            kind=self._dataset_kind,
            dataset=self._dataset,
            auto_collation=self._auto_collation,
            collate_fn=self._collate_fn,
            drop_last=self._drop_last,
            base_seed=self._base_seed,
            init_fn=loader.worker_init_fn,
            worker_id=worker_id,
            num_workers=self._num_workers,
            shared_seed=self._shared_seed,
        )

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        if not first_iter:
            for w in self._workers:
                w.active = True
                w.tasks.put((worker.RESUME, self._shared_seed))
            for w in self._workers:
                # What comes before the answer was asked for by a pass that was broken off.
                while self._receive([w])[1] != worker.RESUME:
                    pass
        for w in self._workers:
            w.restart()
        self._cycle = itertools.cycle(self._workers)
        self._owners: dict[int, _Worker] = {}
        self._sent = 0
        self._expected = 0
        for _ in range(self._prefetch_factor * self._num_workers):
            self._send_task()

    # -- tasks and results ----------------------------------------------------------------------------------

    def _send_task(self) -> None:
        """The next batch's indices to the next worker that takes some."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        for w in itertools.islice(self._cycle, self._num_workers):
            if w.active and (self._in_order or w.waiting < self._share()):
                break
        else:
            return
        w.tasks.put((self._sent, index))
        w.waiting += 1
        self._owners[self._sent] = w
        self._sent += 1

    def _share(self) -> int:
        """How many tasks at a time are a worker's share."""
        return self._prefetch_factor * self._num_workers // sum(w.active for w in self._workers)

    def _next_data(self) -> Any:
        while True:
            # Tasks of a worker whose iterable-style dataset has ended get no answer.
            while self._expected < self._sent:
                owner = self._owners.get(self._expected)
                if owner is not None and owner.active:
                    break
                self._owners.pop(self._expected, None)
                self._expected += 1
            else:
                if not self._persistent_workers:
                    self._crew.close()
                raise StopIteration
            sources = [owner] if self._in_order else [w for w in self._workers if w.active and w.waiting]
            w, number, data = self._receive(sources)
            w.waiting -= 1
            self._owners.pop(number, None)
            if isinstance(data, worker._IterableDatasetStopIteration):
                w.active = False
                if not self._persistent_workers:
                    w.tasks.put(worker.STOP)
                self._send_task()
                continue
            self._send_task()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return data

    def _receive(self, workers: Sequence[_Worker]) -> tuple[_Worker, Any, Any]:
        """(worker, number, result) from the first of `workers` that has one; RuntimeError if any worker died."""
        if self._crew.closed:
            raise AssertionError("Invalid iterator state: its workers were shut down")
        pipes = {w.results: w for w in workers}
        expected_alive = [w for w in self._workers if w.active or self._persistent_workers]
        ready = connection.wait([*pipes, *[w.process.sentinel for w in expected_alive]], self._timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        for pipe, w in pipes.items():
            if pipe in ready:
                try:
                    message = pipe.recv_bytes()
                except (EOFError, OSError):
                    break
                return w, *pickle.loads(message)
        self._report_death(expected_alive)
        raise AssertionError("unreachable")

    def _shutdown_workers(self) -> None:
        """End the workers now."""
        self._crew.close()

    def _report_death(self, workers: Sequence[_Worker]) -> None:
        deadline = time.monotonic() + worker.STATUS_INTERVAL
        dead: list[Any] = []
        while not dead and time.monotonic() < deadline:
            # A worker's pipe ends a moment before its process does.
            connection.wait([w.process.sentinel for w in workers], 0.1)
            dead = [w.process for w in workers if not w.process.is_alive()]
        self._crew.close()
        pids = ", ".join(str(p.pid) for p in dead)
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from _cause(dead)


def _warn_of_pickling() -> None:
    warnings.warn(
        "Got pickle error when attempting to start a worker Process. This might be because the worker Process "
        "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX "
        "platforms to 'forkserver', which requires the worker Process arguments to be picklable. You can also try "
        "multiprocessing.set_start_method('fork').",
        stacklevel=5,
    )


def _cause(processes: Sequence[Any]) -> RuntimeError | None:
    """What is known of the first death that was a signal."""
    for p in processes:
        if p.exitcode is not None and p.exitcode < 0:
            name = signal.strsignal(-p.exitcode) or f"signal {-p.exitcode}"
            return RuntimeError(f"DataLoader worker (pid {p.pid}) is killed by signal: {name}. ")
    return None
