"""torch.profiler.profile and its schedules."""

import contextlib
import enum
import gzip
import json
import os
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torchlike._src.engine import backend
from torchlike.autograd.profiler import EventList, KinetoStepTracker, Recorder, record_function, refuse

__all__ = [
    "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "profile", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip

PROFILER_STEP_NAME = "ProfilerStep"


class ProfilerActivity(enum.Enum):
    """What to record. Only CPU is recorded here: a program's launch is waited for, so its row holds the device's
    time."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a schedule says about a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def kineto_available() -> bool:
    """False: there is no Kineto here."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What `profile(activities=...)` can record."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable:
    """A function from a step's number to what to do in it: skip_first steps nothing, then cycles of `wait` steps
    nothing, `warmup` steps unrecorded and `active` steps recorded, `repeat` times (0: for ever)."""

    def chosen(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    return chosen


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable:
    """An `on_trace_ready` that writes a Chrome trace into a folder, one file a cycle."""

    def handler(prof: "profile") -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class ExecutionTraceObserver:
    """Not available."""

    def __init__(self) -> None:
        raise NotImplementedError("torchlike: torch.profiler.ExecutionTraceObserver")


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Profile what runs within it, or the steps that a schedule chooses.

    activities: CPU; others are left out with a warning. schedule: see `schedule`; then call `step()` after each step.
    on_trace_ready: called with the profile at the end of each recorded cycle. record_shapes: note operands' shapes.
    with_stack: note the user's line of each operator. NotImplementedError for memory and flops profiling.

    With `key_averages().table()`: `aten::` rows are the host's time for recording an operator, computing is in the
    `torchlike::` rows (see `torch.autograd.profiler_util`)."""

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        refuse(
            profile_memory=profile_memory, with_flops=with_flops, experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer, custom_trace_id_callback=custom_trace_id_callback,
        )  # fmt: skip
        self.activities = set(activities) if activities else supported_activities()  # type: ignore[arg-type]
        if len(self.activities) == 0:
            raise AssertionError("No valid profiler activities found")
        if self.activities - supported_activities():
            names = ", ".join(sorted(a.name for a in self.activities - supported_activities()))  # type: ignore[union-attr]
            if backend.platform() == "cpu":
                warnings.warn(f"{names} is not available, disabling {names} profiling", stacklevel=2)
            else:
                warnings.warn(
                    f"torchlike: {names} events are not recorded one by one; torchlike::launch is a program's time on "
                    "the "
                    "device", stacklevel=2,
                )  # fmt: skip
        self.record_shapes = record_shapes
        self.with_stack = with_stack
        self.with_modules = with_modules  # as in PyTorch, about TorchScript modules only
        self.with_flops = False
        self.profile_memory = False
        self.acc_events = acc_events
        self.record_steps = schedule is not None
        self.schedule = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: record_function | None = None
        self._recorder: Recorder | None = None
        self._metadata: dict[str, Any] = {}
        self._kept: list[tuple] = []
        self._events: EventList | None = None

    # -- the course of a profile -----------------------------------------------------------------------------

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        KinetoStepTracker.init_step_count(PROFILER_STEP_NAME)
        self._change(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        """End; what is being recorded is handed to on_trace_ready."""
        self._close_step()
        if self._recorder is not None:
            self._save()
        KinetoStepTracker.erase_step_count(PROFILER_STEP_NAME)

    def step(self) -> None:
        """The program's next step begins."""
        self._close_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        KinetoStepTracker.increment_step(PROFILER_STEP_NAME)
        self._open_step()

    def _open_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change(self, before: ProfilerAction, after: ProfilerAction) -> None:
        if before is ProfilerAction.RECORD_AND_SAVE or before in _RECORDING and after not in _RECORDING:
            self._save()
        if after in _RECORDING and self._recorder is None:
            self._recorder = Recorder(self.record_shapes, self.with_stack)
            self._recorder.start()

    def _save(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.stop()
        if self.acc_events:
            recorder.events = self._kept = self._kept + recorder.events
        self._events = recorder.finished()
        self._counts = recorder.counts
        if self.on_trace_ready:
            self.on_trace_ready(self)

    # -- results ---------------------------------------------------------------------------------------------

    def events(self) -> EventList:
        """All events of the last recorded cycle."""
        if self._events is None:
            raise AssertionError("Profiler must be initialized before getting key averages")
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Sums by name; see `EventList.table`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the events for chrome://tracing or Perfetto, with the engine's counters; gzip if the name ends in
        .gz."""
        plain = path.removesuffix(".gz")
        self.events().export_chrome_trace(plain, {"torchlike": self._counts, **self._metadata})
        if plain != path:
            with open(plain, "rb") as source, gzip.open(path, "wb") as target:
                shutil.copyfileobj(source, target)
            os.remove(plain)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write source lines and times; needs with_stack=True."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Not available."""
        raise NotImplementedError("torchlike: torch.profiler.profile.export_memory_timeline")

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Not available."""
        raise NotImplementedError("torchlike: torch.profiler.profile.toggle_collection_dynamic")

    def add_metadata(self, key: str, value: str) -> None:
        """A string for the exported trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A JSON value for the exported trace."""
        with contextlib.suppress(json.JSONDecodeError):
            self._metadata[key] = json.loads(value)
            return
        self._metadata[key] = value

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback: Any) -> None:
        """Not available."""
        raise NotImplementedError("torchlike: torch.profiler.profile.set_custom_trace_id_callback")
