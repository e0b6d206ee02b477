"""torch.utils.flop_counter: floating-point operations of matrix products, convolutions and attention.

They are counted when the operations are recorded, forward and backward, from their shapes."""

import math
import sys
import threading
import warnings
from collections import defaultdict
from typing import Any

from torchlike._src.core.absent import absent as _absent
from torchlike._src.engine import flush_all
from torchlike._src.ops.declare import Pullback
from torchlike.utils.module_tracker import ModuleTracker

_ABSENT = ["register_flop_formula"]
__all__ = ["FlopCounterMode", *_ABSENT]

record: Any = sys.modules["torchlike._src.engine.record"]  # the package gives its function the same name

_KINDS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_SUFFIXES = ["", "K", "M", "B", "T"]


def _product(a: tuple, b: tuple) -> int:
    """Of (..., M, K) @ (..., K, N)."""
    columns = b[-1] if len(b) > 1 else 1
    rows = math.prod(a[:-1])
    batch = math.prod(b[:-2]) if len(b) > 2 and len(a) <= 2 else 1
    return 2 * rows * columns * a[-1] * batch


def _convolution(x: tuple, weight: tuple, out: tuple, transposed: bool) -> int:
    """Of (N, C, *S) with (O, C/groups, *K), or transposed."""
    positions = math.prod((x if transposed else out)[2:])
    return 2 * positions * math.prod(weight) * (x[0] if len(x) == len(weight) else 1)


def _forward(op: Any, shapes: list[tuple], outs: list[tuple], static: tuple) -> tuple[str, int, tuple[int, ...]] | None:
    """(PyTorch's name, operations, which operands they are a product of), or None if nothing is counted."""
    name = op.name.strip("_")
    if name in ("matmul", "mm", "bmm", "linear"):
        a, b = shapes[:2]
        if name == "matmul" and (len(a) < 2 or len(b) < 2):
            return None  # PyTorch counts products of matrices only
        if name == "linear":
            b = b[::-1]
        kind = "bmm" if len(a) > 2 and len(b) > 2 else "mm"
        if name == "linear" and len(shapes) > 2:
            kind = "addmm"
        return kind, _product(a, b), (0, 1)
    if name in ("addmm", "baddbmm"):
        return name, _product(shapes[1], shapes[2]), (1, 2)
    if name in _KINDS:
        return "convolution", _convolution(shapes[0], shapes[1], outs[0], "transpose" in name), (0, 1)
    if name == "einsum":
        sizes: dict[str, int] = {}
        for letters, shape in zip(static[0].partition("->")[0].split(","), shapes, strict=True):
            sizes.update(zip(letters, shape, strict=True))
        summed = len(sizes) > len(static[0].partition("->")[2])
        return ("bmm", 2 * math.prod(sizes.values()), tuple(range(len(shapes)))) if summed else None
    if name == "attention":
        q, k, v = shapes[:3]
        scores = math.prod(q[:-1]) * k[-2]
        return "_scaled_dot_product_attention", 2 * scores * (q[-1] + v[-1]), (0, 1, 2)
    return None


class FlopCounterMode:
    """Counts within it. `get_flop_counts()` is {module: {operator: count}}, "Global" for all together.

    A module's counts are those of its forward pass; what backward adds is in "Global" alone. Attention counts as on a
    GPU: two products of (L, E) and (E, S) forward, five with backward.

    mods: not needed. depth: of the modules in the table. display: print the table at the end.
    NotImplementedError: custom_mapping."""

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None) -> None:
        if custom_mapping:
            raise NotImplementedError("torchlike: FlopCounterMode(custom_mapping=...)")
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.mod_tracker = ModuleTracker()
        self._thread = 0

    def __enter__(self) -> "FlopCounterMode":
        flush_all("counting operations")
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._thread = threading.get_ident()
        self._before = record._record
        record.set_slow("flop_counter", True)
        record._record = self._counting
        return self

    def __exit__(self, *args: object) -> None:
        record._record = self._before
        record.set_slow("flop_counter", False)
        self.mod_tracker.__exit__(*args)
        if self.display:
            print(self.get_table(self.depth))

    def _counting(self, trace: Any, op: Any, static: tuple, operands: Any) -> Any:
        out = self._before(trace, op, static, operands)
        if threading.get_ident() == self._thread:
            if isinstance(op, Pullback):
                self._count_backward(op)
            else:
                shapes = [tuple(v.aval.shape) for v in operands if hasattr(v, "aval")]
                found = _forward(op, shapes, [tuple(v.aval.shape) for v in out[1]], static)
                if found is not None:
                    for module in self.mod_tracker.parents:
                        self._add(module, found[0], found[1])
        return out

    def _count_backward(self, op: Any) -> None:
        forward = op.forward
        shapes = [tuple(s.shape) for s in forward.specs if hasattr(s, "shape")]
        found = _forward(forward.op, shapes, [tuple(a.shape) for a in forward.outs], forward.static)
        if found is None:
            return
        name, count, factors = found
        needed = sum(bool(op.need[k]) for k in factors if k < len(op.need))
        if name == "_scaled_dot_product_attention":
            self._add("Global", name + "_backward", count * 5 // 2)
        elif name == "convolution":
            self._add("Global", name + "_backward", count * needed)
        else:
            self._add("Global", name if name in ("mm", "bmm") else "bmm" if "b" in name else "mm", count * needed)

    def _add(self, module: str, name: str, count: int) -> None:
        if count:
            self.flop_counts[module][f"aten.{name}"] += count

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module: {operator: count}}"""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, for modules down to a depth. (No package tabulate is needed.)"""
        depth = 999999 if depth is None and self.depth is None else self.depth if depth is None else depth
        total = self.get_total_flops()
        counted = sorted((m for m in self.flop_counts if m != "Global"), key=str)
        rows: list[tuple[str, str, str]] = []
        whole = False
        for module in counted:
            if module.count(".") + 1 > depth:
                continue
            part = self._rows(module, total)
            whole |= sum(self.flop_counts[module].values()) >= total
            rows += part
        if "Global" in self.flop_counts and not whole:
            rows = self._rows("Global", total) + rows
        rows = rows or [("Global", "0", "0%")]
        heads = ("Module", "FLOP", "% Total")
        widths = [max(len(h) + (2 if i else 0), *(len(r[i]) for r in rows)) for i, h in enumerate(heads)]
        lines = ["  ".join((heads[0].ljust(widths[0]), heads[1].rjust(widths[1]), heads[2].rjust(widths[2])))]
        lines.append("  ".join("-" * w for w in widths))
        lines += ["  ".join((r[0].ljust(widths[0]), r[1].rjust(widths[1]), r[2].rjust(widths[2]))) for r in rows]
        return "\n".join(lines)

    def _rows(self, module: str, total: int) -> list[tuple[str, str, str]]:
        counts = self.flop_counts[module]
        shown = [(module, sum(counts.values())), *((f"- {name}", n) for name, n in counts.items())]
        return [(name, _suffixed(n, total), f"{n / total * 100:.2f}%" if total else "0%") for name, n in shown]


def _suffixed(number: int, total: int) -> str:
    """In the unit that suits the total."""
    index = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))
    return f"{number / 1000**index:.3f}{_SUFFIXES[index]}"


globals().update(_absent(__name__, _ABSENT, "counts are made from the engine's own operators"))
