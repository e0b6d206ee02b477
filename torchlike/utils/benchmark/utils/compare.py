"""Measurements side by side, as a table."""

import enum
import math
from typing import Any

from torchlike.utils.benchmark.utils.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD = "\033[92m", "\033[34m"
_BAD, _VERY_BAD = "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m"


class Colorize(enum.Enum):
    """What is compared with what."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _row_key(m: Measurement) -> tuple:
    return m.task_spec.num_threads, m.task_spec.env, m.as_row_name


class _Column:
    """The cells of one column: the numbers are aligned at the point, the warnings after them."""

    def __init__(self, cells: list[Measurement | None], scale: float, trim: bool, warn: bool, name: str) -> None:
        self.name = name
        self.cells = cells
        self.medians: list[float | None] = []
        for m in cells:
            value = None if m is None else m.median / scale
            self.medians.append(trim_sigfig(value, m.significant_figures) if trim and value and m else value)
        leading = [math.ceil(math.log10(v)) if v else 1 for v in self.medians if v is not None]
        digits = 1
        if trim:
            used = [m.significant_figures for m in cells if m is not None]
            digits = max([d - n for d, n in zip(used, leading)] + [0])
        self.texts = ["" if v is None else f"{v:.{digits}f}" for v in self.medians]
        width = max(len(t) for t in self.texts)
        self.texts = [t.rjust(width) for t in self.texts]
        notes = []
        for m in cells:
            flawed = warn and m is not None and m.has_warnings
            notes.append(f" (! {m.iqr / m.median * 100:.0f}%)" if flawed and m is not None else "")
        wide = max(map(len, notes))
        self.notes = [n.ljust(wide) if n else " " * max(wide - 1, 0) for n in notes]
        self.width = max(len(name), width + wide)

    def text(self, row: int, colours: str) -> str:
        """A cell as wide as the column."""
        text = (self.texts[row] + self.notes[row]).rjust(self.width) if self.cells[row] is not None else ""
        return f"{colours}{text}{_END}{_END}" if colours and text else text.ljust(self.width)


class Compare:
    """Measurements as one table for each label: rows by sub-label, columns by description."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Any) -> None:
        """Add Measurements. ValueError for anything else."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show only the digits that the measurements support."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the good and the bad, in each column or in each row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Note measurements that vary much."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def _render(self) -> list[str]:
        groups: dict[Any, list[Measurement]] = {}
        for m in Measurement.merge(self._results):
            groups.setdefault(m.task_spec.label, []).append(m)
        return [self._table(label, group) for label, group in groups.items()]

    def _table(self, label: Any, group: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in group))
        rows = sorted(ordered_unique(map(_row_key, group)), key=lambda key: key[:2])
        names = ordered_unique(m.task_spec.description for m in group)
        cells = {(_row_key(m), m.task_spec.description): m for m in group}
        columns = [
            _Column(
                [cells.get((row, name)) for row in rows], scale, self._trim_significant_figures,
                self._highlight_warnings, name or "",
            )
            for name in names
        ]  # fmt: skip
        colours = self._colours(columns, [threads for threads, _, _ in rows])
        with_env = len({env for _, env, _ in rows}) > 1
        env_width = max(len(f"({env})") for _, env, _ in rows) if with_env else 0
        name_width = max(len(name) for _, _, name in rows)
        threads = max(len(f"{n} threads: ") for n, _, _ in rows)
        heads = [
            (f"  {f'({env})'.rjust(env_width)}  " if with_env else "      ") + name.rjust(name_width)
            for _, env, name in rows
        ]
        first = max(map(len, heads))
        body: list[str] = []
        before = None
        top = "  |  ".join([" " * first, *(c.name.center(c.width) for c in columns)])
        width = len(top)
        for k, row in enumerate(rows):
            if row[0] != before:
                before = row[0]
                head = f"{before} threads: ".ljust(threads)
                body.append(head + "-" * (width - len(head)))
            body.append("  |  ".join([heads[k], *(c.text(k, colours[k][i]) for i, c in enumerate(columns))]))
        title = f" {label or ''} "
        text = "\n".join(["[" + title.center(width - 2, "-") + "]", top, *body])
        end = f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n"
        if self._highlight_warnings and any(m.has_warnings for m in group):
            end += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return text + end

    def _colours(self, columns: list[_Column], threads: list[int]) -> list[list[str]]:
        out = [[""] * len(columns) for _ in threads]
        if self._colorize is Colorize.NONE:
            return out
        places = [(r, c) for r in range(len(threads)) for c in range(len(columns)) if columns[c].medians[r] is not None]
        by = 0 if self._colorize is Colorize.ROWWISE else 1
        for place in places:
            best = min(
                columns[c].medians[r] or 0
                for r, c in places
                if (r, c)[by] == place[by] and threads[r] == threads[place[0]]
            )
            value = columns[place[1]].medians[place[0]] or 0
            ratio = value / best if best else 1.0
            out[place[0]][place[1]] = (
                _BEST + _BOLD if ratio <= 1.1 else _GOOD + _BOLD if ratio <= 1.3 else ""
                if ratio < 1.5 else _BAD if ratio < 5 else _VERY_BAD + _BOLD
            )  # fmt: skip
        return out
