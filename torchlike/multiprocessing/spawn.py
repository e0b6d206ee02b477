"""Several processes that run one function, and whose errors arrive here."""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import tempfile
import time
import traceback
import warnings
from typing import Any

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """A process failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception; the message is its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal or with an exit code."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Any, index: int, args: tuple, error_file: str) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        raise SystemExit(1) from None


class ProcessContext:
    """The processes of one start."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends; True when all have ended well, False when some still run.

        The first failure ends the others, and is raised: ProcessRaisedException or ProcessExitedException."""
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            if self.sentinels:
                return False
            self._forget()
            return True
        self._end_all(grace_period)
        self._raise(failed)
        return True

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            deadline = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(deadline - time.monotonic(), 0))
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()
                process.join()

    def _forget(self) -> None:
        for name in self.error_files:
            if os.path.exists(name):
                os.unlink(name)

    def _raise(self, index: int) -> None:
        process, name = self.processes[index], self.error_files[index]
        text = None
        if os.path.exists(name) and os.path.getsize(name):
            with open(name, "rb") as file:
                text = pickle.load(file)
        self._forget()
        if text is not None:
            raise ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}", index, process.pid
            )
        code = process.exitcode
        if code < 0:
            try:
                known = signal.Signals(-code).name
            except ValueError:
                known = f"<Unknown signal {-code}>"
            raise ProcessExitedException(
                f"process {index} terminated with signal {known}", index, process.pid, code, known
            )
        raise ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Any, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:  # fmt: skip
    """Run fn(i, *args) in nprocs processes; waits for them unless `join` is False, which returns the context."""
    context = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for index in range(nprocs):
        handle, name = tempfile.mkstemp(prefix="pytorch-errorfile-", suffix=".pickle")
        os.close(handle)
        os.unlink(name)
        process: Any = context.Process(target=_run, args=(fn, index, args, name), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
        error_files.append(name)
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Any, args: tuple = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn"
) -> ProcessContext | None:  # fmt: skip
    """start_processes with the start method "spawn"; another one draws a FutureWarning."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
