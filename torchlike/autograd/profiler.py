"""torch.autograd.profiler: timing stretches of a program.

While a profile runs, operators take the engine's general path, so that each one's recording is timed, and the engine's
launches, compilations and runs on the host tier are timed with their results waited for. `record_function` ranges also
reach `jax.profiler`, whose traces show what happens inside a program."""

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import jax

from torchlike._src.engine import flush_all, program, stats
from torchlike._src.engine.program import compile_program
from torchlike.autograd.profiler_util import EventList, FunctionEvent, nested

__all__ = [
    "EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker", "MemRecordsAcc", "emit_itt", "emit_nvtx",
    "load_nvprof", "parse_nvprof_trace", "profile", "record_function",
]  # fmt: skip

# The package's names `flush` and `record` are functions; these are their modules, some of whose steps a profile
# replaces while it runs.
FLUSH: Any = sys.modules["torchlike._src.engine.flush"]
record: Any = sys.modules["torchlike._src.engine.record"]
_launch, _run_cold = FLUSH._launch, FLUSH._run_cold


class Recorder:
    """Collects events; at most one is active in a process."""

    active: "Recorder | None" = None

    def __init__(self, shapes: bool = False, lines: bool = False) -> None:
        self.shapes = shapes
        self.lines = lines
        self.events: list[tuple] = []
        self.counts: dict[str, float] = {}

    def start(self) -> None:
        """Begin. RuntimeError if a profile is running already."""
        if Recorder.active is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        flush_all("a profile")
        Recorder.active = self
        self.before = stats.counts()
        record.set_slow("profiler", True)
        self.plain = record._record
        record._record = self._timed_record  # type: ignore[assignment]
        FLUSH._launch = self._waited("torchlike::launch", _launch)
        FLUSH._run_cold = self._waited("torchlike::run_on_host", _run_cold)
        program.compile_program = self._timed("torchlike::compile", compile_program)

    def stop(self) -> None:
        """Compute what is pending, and end."""
        if Recorder.active is not self:
            return
        try:
            flush_all("a profile")
        finally:
            record._record = self.plain
            FLUSH._launch, FLUSH._run_cold, program.compile_program = _launch, _run_cold, compile_program
            record.set_slow("profiler", False)
            Recorder.active = None
        after = stats.counts()
        self.counts = {k: v - self.before[k] for k, v in after.items()}

    def add(self, name: str, began: float, ended: float, **more: Any) -> None:
        self.events.append((name, threading.get_ident(), began, ended, more))

    def _timed(self, name: str, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any) -> Any:
            began = time.perf_counter()
            try:
                return function(*args)
            finally:
                self.add(name, began, time.perf_counter())

        return call

    def _waited(self, name: str, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(trace: Any, ready: Any, live: tuple) -> None:
            results = [trace.values[k] for k in live]
            began = time.perf_counter()
            function(trace, ready, live)
            jax.block_until_ready([v.array for v in results])
            self.add(name, began, time.perf_counter())

        return call

    def _timed_record(self, trace: Any, op: Any, static: tuple, operands: Any) -> Any:
        began = time.perf_counter()
        out = self.plain(trace, op, static, operands)
        ended = time.perf_counter()
        more: dict[str, Any] = {}
        if self.shapes:
            more["input_shapes"] = [list(v.aval.shape) if hasattr(v, "aval") else [] for v in operands]
        if self.lines:
            more["stack"] = [record.user_line()]
        self.add("aten::" + op.name.strip("_"), began, ended, **more)
        return out

    def finished(self) -> EventList:
        """The events so far, in the order of their beginning, with times in microseconds since the first."""
        threads: dict[int, int] = {}
        found = []
        ordered = sorted(self.events, key=lambda e: (e[2], -e[3]))
        origin = ordered[0][2] if ordered else 0.0
        for number, (name, thread, began, ended, more) in enumerate(ordered, 1):
            if self.shapes:
                more.setdefault("input_shapes", [])
            thread = threads.setdefault(thread, len(threads) + 1)
            found.append(FunctionEvent(number, name, thread, (began - origin) * 1e6, (ended - origin) * 1e6, **more))
        return nested(found)


class record_function:
    """Names what runs within it, in profiles and for `jax.profiler`; also a decorator. What is only recorded within
    it is computed where it is read: there it belongs to the range that reads it."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args

    def __enter__(self) -> "record_function":
        self._annotation = jax.profiler.TraceAnnotation(self.name)
        self._annotation.__enter__()
        self._began = time.perf_counter()
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        active = Recorder.active
        if active is not None:
            active.add(self.name, self._began, time.perf_counter(), is_user_annotation=True)
        self._annotation.__exit__(exc_type, exc_value, traceback)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return call


def refuse(**options: Any) -> None:
    """NotImplementedError for the first option that is set."""
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"torchlike: profile({name}=...)")


class profile:
    """A context that times operators and programs; `torch.profiler.profile` is the newer interface.

    enabled: False makes it do nothing. record_shapes: note operands' shapes. with_stack: note the user's line.
    NotImplementedError for memory, flops and device profiling."""

    def __init__(
        self, enabled=True, *, use_cuda=False, use_device=None, record_shapes=False, with_flops=False,
        profile_memory=False, with_stack=False, with_modules=False, use_kineto=False, use_cpu=True,
        experimental_config=None, acc_events=False, custom_trace_id_callback=None,
        post_processing_timeout_s: float | None = None, activity_filters=None,
    ):  # fmt: skip
        refuse(
            use_cuda=use_cuda, use_device=use_device, with_flops=with_flops, profile_memory=profile_memory,
            experimental_config=experimental_config, custom_trace_id_callback=custom_trace_id_callback,
            activity_filters=activity_filters, use_cpu=not use_cpu,
        )  # fmt: skip
        self.enabled = enabled
        self.entered = False
        self.record_shapes = record_shapes
        self.with_stack = with_stack
        self.with_modules = with_modules  # as in PyTorch, about TorchScript modules only
        self.acc_events = acc_events
        self.function_events: EventList | None = None
        self._recorder = Recorder(record_shapes, with_stack)

    def __enter__(self) -> "profile | None":
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._recorder.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False]:
        if self.enabled:
            self._recorder.stop()
            self.function_events = self._recorder.finished()
        return False

    def _finished(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
        max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None,
    ):  # fmt: skip
        """`EventList.table` of all events."""
        return self._finished().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only, time_unit,
        )  # fmt: skip

    def export_chrome_trace(self, path):
        """Write the events for chrome://tracing, with the engine's counters."""
        self._finished().export_chrome_trace(path, {"torchlike": self._recorder.counts})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total"):
        """Write source lines and times; needs with_stack=True."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        return self._finished().export_stacks(path, metric)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False):
        """Sums by name."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """One sum over everything."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        return self._finished().self_cpu_time_total


class KinetoStepTracker:
    """Counts steps for several callers: the step of the process is that of the one who is furthest."""

    _current_step = 0
    _steps: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count for a caller, from the current step."""
        cls._steps[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a caller; whether it was known."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One more step of a caller; returns the current step."""
        if requester not in cls._steps:
            cls.init_step_count(requester)
        cls._steps[requester] += 1
        cls._current_step = max(cls._current_step, max(cls._steps.values()))
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The current step."""
        return cls._current_step


class EnforceUnique:
    """Raises an error if a key is seen more than once."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key: Any) -> None:
        """RuntimeError if `key` was seen before."""
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class MemRecordsAcc:
    """Not available: memory is not profiled."""

    def __init__(self, mem_records: Any) -> None:
        raise NotImplementedError("torchlike: torch.autograd.profiler.MemRecordsAcc")


class emit_nvtx:
    """Not available."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        raise NotImplementedError("torchlike: torch.autograd.profiler.emit_nvtx")


class emit_itt:
    """Not available."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        raise NotImplementedError("torchlike: torch.autograd.profiler.emit_itt")


def load_nvprof(path: Any) -> Any:
    """Not available."""
    raise NotImplementedError("torchlike: torch.autograd.profiler.load_nvprof")


def parse_nvprof_trace(path: Any) -> Any:
    """Not available."""
    raise NotImplementedError("torchlike: torch.autograd.profiler.parse_nvprof_trace")
