"""torch.autograd.profiler_util: what a profile holds, as a table, sums by name, and a trace for chrome://tracing.

Times are in microseconds. On a lazy engine an operator's own row (`aten::mul`) is the time its recording took on the
host; computing is in the rows `torchlike::launch` (a compiled program, waited for), `torchlike::run_on_host` and
`torchlike::compile`."""

import collections
import enum
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel"]


class DeviceType(enum.Enum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1
    XPU = 12
    PrivateUse1 = 20


Interval = collections.namedtuple("Interval", ["start", "end"])
Kernel = collections.namedtuple("Kernel", ["name", "device", "duration"])
Interval.elapsed_us = lambda self: self.end - self.start  # type: ignore[attr-defined]


def _format_time(us: float, unit: str | None = None) -> str:
    """12.3us, 1.234ms or 1.234s; `unit` fixes which."""
    if unit == "s" or unit is None and us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or unit is None and us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def _format_time_share(part: float, total: float) -> str:
    if total == 0:
        assert part == 0, f"Expected time_us == 0 but got {part}"
        return "NaN"
    return f"{part * 100.0 / total:.2f}%"


def _text(name: str) -> property:
    return property(lambda self: _format_time(getattr(self, name)))


class FormattedTimesMixin:
    """Times as text, and averages over `count`."""

    count: int
    cpu_time_total: float
    cpu_time_str = _text("cpu_time")
    cpu_time_total_str = _text("cpu_time_total")
    self_cpu_time_total_str = _text("self_cpu_time_total")
    device_time_str = _text("device_time")
    device_time_total_str = _text("device_time_total")
    self_device_time_total_str = _text("self_device_time_total")
    device_time = 0.0
    device_time_total = 0.0
    self_device_time_total = 0.0
    cpu_memory_usage = 0
    device_memory_usage = 0
    self_cpu_memory_usage = 0
    self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """The average over calls, in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    cuda_time = property(lambda self: self.device_time)


class FunctionEvent(FormattedTimesMixin):
    """One interval: an operator's recording, a program's run, or a `record_function` range."""

    def __init__(
        self, id, name, thread, start_us, end_us, overload_name=None, fwd_thread=None, input_shapes=None, stack=None,
        scope=0, use_device=None, cpu_memory_usage=0, device_memory_usage=0, is_async=False, is_remote=False,
        sequence_nr=-1, node_id=-1, device_type=DeviceType.CPU, device_index=0, device_resource_id=None,
        is_legacy=False, flops=None, trace_name=None, concrete_inputs=None, kwinputs=None, is_user_annotation=False,
        is_python_function=False, activity_type=None, metadata_json=None, flow_id=None, flow_type=None,
        flow_start=None, external_id=0, linked_correlation_id=0, extra_meta=None, structured_input_shapes=None,
        structured_input_strides=None, input_dtypes=None, python_id=-1, python_parent_id=-1, python_module_id=-1,
    ):  # fmt: skip
        given = dict(locals())
        for key in ("self", "start_us", "end_us", "extra_meta", "metadata_json"):
            given.pop(key)
        given.pop("__class__", None)
        for key, value in given.items():
            setattr(self, key, value)
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.event_metadata = extra_meta
        self._metadata_json = metadata_json
        self.count = 1
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def append_cpu_child(self, child: "FunctionEvent") -> None:
        """Note an event that ran within this one."""
        assert isinstance(child, FunctionEvent)
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: "FunctionEvent") -> None:
        """Note the event that this one ran within."""
        assert isinstance(parent, FunctionEvent)
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        return self.name  # type: ignore[attr-defined, no-any-return]

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """How long it took, in microseconds."""
        return self.time_range.end - self.time_range.start

    @property
    def self_cpu_time_total(self) -> float:
        """How long it took without what ran within it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name or ''} "  # type: ignore[attr-defined]
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "  # type: ignore[attr-defined]
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "  # type: ignore[attr-defined]
            f"input_shapes={self.input_shapes}>"  # type: ignore[attr-defined]
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Sums over events of one name."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.use_device = None
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.input_shapes: Any = None
        self.overload_name: str | None = None
        self.stack: Any = None
        self.scope: int | None = None
        self.cpu_parent: Any = None
        self.cpu_children: list = []
        self.device_type = DeviceType.CPU
        self.is_legacy = False
        self.is_user_annotation = False
        self.flops = 0

    def add(self, other: Any) -> "FunctionEventAvg":
        """Add an event, or another sum of the same name."""
        if self.key is None:
            self.key = other.key
            for name in ("input_shapes", "overload_name", "stack", "scope", "cpu_parent", "device_type"):
                setattr(self, name, getattr(other, name))
            self.is_user_annotation = other.is_user_annotation
        assert isinstance(other, (FunctionEvent, FunctionEventAvg)) and other.key == self.key
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.count += other.count
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes or ''} "
            f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """A list of events that can be summed, printed and exported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)

    def __str__(self) -> str:
        return self.table()

    def _nest(self) -> None:
        """Find, per thread, which event ran within which."""
        threads = collections.defaultdict(list)
        for event in self:
            threads[event.thread].append(event)
        for events in threads.values():
            open_: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while open_ and (
                    event.time_range.start >= open_[-1].time_range.end
                    or event.time_range.end > open_[-1].time_range.end
                ):
                    open_.pop()
                if open_:
                    open_[-1].append_cpu_child(event)
                    event.set_cpu_parent(open_[-1])
                open_.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> "EventList":
        """Sums by name (and by input shapes, and by the source line)."""
        sums: dict[tuple, FunctionEventAvg] = collections.defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.is_user_annotation]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key += (event.stack or [])[:group_by_stack_n]
            sums[tuple(key)].add(event)
        out = EventList(sums.values(), use_device=self._use_device)
        for one in out:
            one.stack = (one.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                one.input_shapes = ""
            if not group_by_overload_name:
                one.overload_name = ""
        return out

    def total_average(self) -> FunctionEventAvg:
        """One sum over everything, called Total."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55,
        max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None,
    ) -> str:  # fmt: skip
        """The events as text; sort_by names a time attribute such as "cpu_time_total"."""
        rows = [e for e in self if not (top_level_events_only and e.cpu_parent is not None)]
        if not rows:
            return ""
        if sort_by is not None:
            sort_by = sort_by.replace("cuda", "device")
            if not hasattr(rows[0], sort_by):
                raise AttributeError(f"'{type(rows[0]).__name__}' object has no attribute '{sort_by}'")
            rows = sorted(rows, key=lambda e: getattr(e, sort_by), reverse=True)
        total = sum(e.self_cpu_time_total for e in self)
        rows = rows[: row_limit if row_limit >= 0 else None]

        def short(text: str, width: int | None) -> str:
            return text if width is None or len(text) <= width else text[: width - 3] + "..."

        columns: list[tuple[str, int, str, Callable[[Any], str]]] = []

        def column(
            title: str, align: str, cell: Callable[[Any], str], width: int = 12, limit: int | None = None
        ) -> None:
            columns.append((title, width if limit is None else min(width, limit), align, cell))

        names = max(len(str(e.key)) for e in rows) + 4
        column("Name", ">", lambda e: short(str(e.key), max_name_column_width), names, max_name_column_width)
        column("Self CPU %", ">", lambda e: _format_time_share(e.self_cpu_time_total, total))
        column("Self CPU", ">", lambda e: _format_time(e.self_cpu_time_total, time_unit))
        column("CPU total %", ">", lambda e: _format_time_share(e.cpu_time_total, total))
        column("CPU total", ">", lambda e: _format_time(e.cpu_time_total, time_unit))
        column("CPU time avg", ">", lambda e: _format_time(e.cpu_time, time_unit))
        column("# of Calls", ">", lambda e: str(e.count))
        if any(e.input_shapes for e in rows):
            width = max(len(str(e.input_shapes)) for e in rows) + 4
            column("Input Shapes", ">", lambda e: short(str(e.input_shapes), max_shapes_column_width), width,
                   max_shapes_column_width)  # fmt: skip
        if any(e.stack for e in rows):
            width = max(max(map(len, e.stack), default=0) for e in rows) + 4
            column("Source Location", "<", lambda e: short(e.stack[0] if e.stack else "", max_src_column_width), width,
                   max_src_column_width)  # fmt: skip

        line = "  ".join("-" * width for _, width, _, _ in columns) + "  "
        head = "  ".join(f"{title:>{width}}" for title, width, _, _ in columns) + "  "
        out = [line, head, line]
        out += ["  ".join(f"{cell(e):{align}{width}}" for _, width, align, cell in columns) + "  " for e in rows]
        out += [line, f"Self CPU time total: {_format_time(total)}"]
        if header is not None:
            out = ["=" * len(line), header, *(["top-level events only"] if top_level_events_only else []), *out]
        return "\n".join(out) + "\n"

    def export_chrome_trace(self, path: str | os.PathLike, extra: dict[str, Any] | None = None) -> None:
        """Write the events in the Trace Event Format, for chrome://tracing or Perfetto."""
        events: list[dict[str, Any]] = []
        for event in self:
            arguments: dict[str, Any] = {}
            if event.input_shapes:
                arguments["Input Dims"] = event.input_shapes
            if event.stack:
                arguments["Source"] = event.stack[0]
            events.append(
                {
                    "ph": "X",
                    "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                    "name": event.trace_name,
                    "pid": os.getpid(),
                    "tid": event.thread,
                    "ts": event.time_range.start,
                    "dur": event.time_range.end - event.time_range.start,
                    "args": arguments,
                }
            )
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "traceEvents": events, **(extra or {})}, file)

    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write one line `source value` per event with a source line, for flame graph tools."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError("metric should be one of: " + str(self.supported_export_stacks_metrics()))
        if metric != "self_cpu_time_total":
            raise NotImplementedError(f"torchlike: export_stacks of {metric}: device times are not recorded")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(event.self_cpu_time_total)
                if event.stack and value > 0:
                    file.write(";".join(s.replace(" ", "_") for s in reversed(event.stack)) + f" {value}\n")


def nested(events: Iterable[FunctionEvent]) -> EventList:
    """The events, each knowing what ran within it."""
    out = EventList(events)
    out._nest()
    return out
