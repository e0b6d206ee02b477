"""The Timer."""

import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

import torchlike as torch
from torchlike.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Seconds, after everything pending has been computed."""
    torch.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """Of the statement."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times a Python statement, as timeit.Timer does: what it leaves pending is computed, as part of its time, after
    each run of `number` executions.

    stmt, setup, global_setup: statements as text. globals: names they may use. label, sub_label, description, env: for
    the report. num_threads: as torch.set_num_threads, which has no effect on XLA. NotImplementedError: C++."""

    _timer_cls = timeit.Timer

    def __init__(
        self, stmt: str = "pass", setup: str = "pass", global_setup: str = "", timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None, label: str | None = None, sub_label: str | None = None,
        description: str | None = None, env: str | None = None, num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:  # fmt: skip
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        names = {"py": Language.PYTHON, "python": Language.PYTHON, "cpp": Language.CPP, "c++": Language.CPP}
        found = names.get(str(language).lower()) if not isinstance(language, Language) else language
        if found is None:
            raise ValueError(f"Invalid language `{language}`.")
        if found is Language.CPP:
            raise NotImplementedError("torchlike: torch.utils.benchmark.Timer(language='cpp')")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        self._globals = {**(globals or {})}
        self._globals.setdefault("torch", torch)
        stmt, setup = (textwrap.dedent(text).strip("\n").rstrip() for text in (stmt, setup))
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        # At least a nanosecond, so that later divisions are sound.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One run of `number` executions, after some to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """NotImplementedError, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable | None = None) -> None:
        """NotImplementedError, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """How many executions make a run long enough for the timer's own cost (a thousandth of it, or less)."""
        with set_torch_threads(self._task_spec.num_threads):
            overhead = float(np.median([self._timeit(0) for _ in range(5)]))
            number = 1
            while True:
                taken = self._timeit(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time:
                    return number
                number *= 10

    def _run_for(
        self, min_run_time: float, max_run_time: float, number: int, enough: Callable, callback: Callable | None
    ) -> list[float]:  # fmt: skip
        total = 0.0
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or (not enough(times) and total < max_run_time):
                taken = self._timeit(number)
                times.append(taken)
                total += taken
                if callback is not None:
                    callback(number, taken)
        return times

    def blocked_autorange(self, callback: Callable | None = None, min_run_time: float = 0.2) -> Measurement:
        """Runs of as many executions as the timer needs, for min_run_time seconds in all."""
        number = self._estimate_block_size(min_run_time)
        times = self._run_for(min_run_time, min_run_time, number, lambda _: True, callback)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0,
        callback: Callable | None = None,
    ) -> Measurement:  # fmt: skip
        """As blocked_autorange, until the interquartile range is below `threshold` of the median."""
        number = self._estimate_block_size(0.05)

        def enough(times: list[float]) -> bool:
            return len(times) >= 4 and Measurement(number, times, self._task_spec).meets_confidence(threshold)

        return Measurement(number, self._run_for(min_run_time, max_run_time, number, enough, callback), self._task_spec)

    def collect_callgrind(
        self, number: int = 100, *, repeats: int | None = None, collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:  # fmt: skip
        """NotImplementedError."""
        raise NotImplementedError("torchlike: torch.utils.benchmark.Timer.collect_callgrind")
