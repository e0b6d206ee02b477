"""What a Timer returns."""

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import torchlike as torch

__all__ = [
    "Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english",
]  # fmt: skip

_UNITS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
_WARN_FROM, _STRONGLY_FROM = 0.1, 0.25


@dataclass(repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured: the statement, its setup, and how the user calls it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and the sub-label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        lines = "".join(f"  {line}\n" for line in self.stmt.splitlines())
        return f"stmt:\n{lines}\n"

    def setup_str(self) -> str:
        """The setup as the report shows it."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return "setup:\n" + "".join(f"  {line}\n" for line in self.setup.splitlines())
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, one to a line."""
        return "\n".join(part for part in (self.title, self.description or "", self.setup_str()) if part)


@dataclass(repr=False)
class Measurement:
    """Times of one statement. raw_times: seconds for number_per_run executions each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(TaskSpec, name) and name not in TaskSpec.__dataclass_fields__:
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of one execution, for each run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, q: float) -> float:
        if not self.raw_times:
            raise AssertionError("raw_times must not be empty")
        return float(np.quantile(np.asarray(self.times), q))

    @property
    def mean(self) -> float:
        """Seconds."""
        return float(np.mean(self.times))

    @property
    def median(self) -> float:
        """Seconds."""
        return self._quantile(0.5)

    @property
    def iqr(self) -> float:
        """Between the quartiles, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median the interquartile range leaves, one to five."""
        count = len(self.raw_times)
        spread = min(self.iqr, self.median)
        lower = self.median - 1.7 * 1.253 * spread / math.sqrt(count)
        upper = self.median + 1.7 * 1.253 * spread / math.sqrt(count)
        relative = (upper - lower) / 2 / self.median if self.median else 0.0
        return max(min(math.ceil(-math.log10(relative)), 5), 1) if relative else 5

    @property
    def has_warnings(self) -> bool:
        """Whether the interquartile range is a tenth of the median or more."""
        return len(self.raw_times) > 0 and not self.meets_confidence()

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the interquartile range is below that part of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The task's environment."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """What its row is called in Compare's table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        address = super().__repr__()
        head = f"{address}\n{self.task_spec.summarize()}\n"
        count = len(self.raw_times)
        unit, scale = select_unit(self.median)
        number = "" if self.number_per_run is None else f"{self.number_per_run} runs "
        lines = [f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}"]
        if count >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = f"{self.task_spec.num_threads} thread{'s' if self.task_spec.num_threads > 1 else ''}"
        plural = "s" if count > 1 else ""
        per = "per measurement" if count > 1 else ""
        lines.append(f"  {count} measurement{plural}, {number}{per}, {threads}")
        relative = self.iqr / self.median
        if count >= 4 and relative >= _WARN_FROM:
            lines.append(f"  WARNING: Interquartile range is {relative * 100:.1f}% of the median measurement.")
            strong = relative >= _STRONGLY_FROM
            lines.append(
                "           This suggests significant environmental influence."
                if strong
                else "           This could indicate system fluctuation."
            )
        return head + "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """One Measurement for each task, with the times of all of its measurements per single execution."""
        by_task: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            by_task.setdefault(m.task_spec, []).append(m)
        return [Measurement(1, [t for m in group for t in m.times], task) for task, group in by_task.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit for a time: (name, seconds in it)."""
    scale = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.floor(math.log10(t) / 3)), "s")
    return scale, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[scale]


def unit_to_english(u: str) -> str:
    """ "us" -> "microsecond" """
    return _UNITS[u]


def trim_sigfig(x: float, n: int) -> float:
    """x with n significant digits."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    magnitude = int(math.ceil(math.log10(abs(x))))
    scale = 10 ** (magnitude - n)
    return float(np.float32(np.round(np.float32(x) / np.float32(scale)) * np.float32(scale)))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order of their first appearance."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A context with torch.set_num_threads(n)."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(n)
        yield
    finally:
        torch.set_num_threads(before)
