"""The text of a tensor, to the letter of PyTorch's, from a NumPy array of its elements.

The layout is NumPy's old one: every element takes the width of the widest, a vector breaks into lines of
``linewidth``, and beyond ``threshold`` elements only ``edgeitems`` at each end of each dimension are shown.
Width and notation are chosen from the elements shown.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device

# Floats go to scientific notation if the largest is more than this many times the smallest, or beyond these limits.
_SCI_RATIO = 1000.0
_SCI_LARGEST = 1.0e8
_SCI_SMALLEST = 1.0e-4


@dataclasses.dataclass
class PrintOptions:
    """What ``torch.set_printoptions`` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrintOptions()

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed. What is None stays as it is, but for ``sci_mode``, which goes back to automatic.

    Args:
        precision: digits after the decimal point (at first 4).
        threshold: tensors of more elements than this are summarised (1000).
        edgeitems: elements shown at each end of a summarised dimension (3).
        linewidth: characters a line may have (80).
        profile: ``'default'``, ``'short'`` or ``'full'``: sets the four above, before they are applied.
        sci_mode: scientific notation always, never or (None) when the values call for it.
    """
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    # PyTorch takes an unknown profile as none
    settings = dict(_PROFILES.get(profile, {})) if profile is not None else {}
    settings.update((name, value) for name, value in given.items() if value is not None)
    for name, value in settings.items():
        setattr(PRINT_OPTS, name, value)
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keywords for `set_printoptions`."""
    return dataclasses.asdict(PRINT_OPTS)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Options of `set_printoptions` for the time of a ``with`` block."""
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


# --- elements -------------------------------------------------------------------------------------


def plain_array(array: np.ndarray) -> np.ndarray:
    """``array`` in a type whose ``tolist()`` gives Python numbers: half and float8 types become float64."""
    if array.dtype.kind in "biu":
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def format_scalar(array: np.ndarray, spec: str) -> str:
    """``format(t, spec)`` of a 0-dim tensor: what its Python number gives."""
    return format(plain_array(array).item(), spec)


class _Style:
    """How the elements of one tensor (or their real or imaginary parts) are written, all to one width."""

    def __init__(self, shown: np.ndarray, nan_counts: bool = False) -> None:
        self.is_float = shown.dtype.kind == "f"
        self.sci = False
        self.whole = True  # only whole numbers: written as '3.'
        self.width = 1
        if not self.is_float:
            self.width = max(map(len, map(str, shown.reshape(-1).tolist())), default=1)
            return
        # PyTorch's isfinite() takes nan for finite in float8_e8m0fnu, which makes nan choose the notation there
        values = shown[(np.isfinite(shown) | nan_counts) & (shown != 0)]
        if values.size == 0:
            return  # zeros, infinities and nan set no width: PyTorch pads them to nothing
        self.whole = bool(np.all(values == np.ceil(values)))
        largest, smallest = np.abs(values).max(), np.abs(values).min()
        if PRINT_OPTS.sci_mode is None:
            with np.errstate(over="ignore"):
                ratio = largest / smallest
            self.sci = bool(ratio > _SCI_RATIO or largest > _SCI_LARGEST or smallest < _SCI_SMALLEST)
        else:
            self.sci = PRINT_OPTS.sci_mode
        self.width = max(len(self._digits(value)) for value in values.tolist())

    def _digits(self, value: float) -> str:
        if self.sci:
            return f"{value:.{PRINT_OPTS.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{PRINT_OPTS.precision}f}"

    def text(self, value: Any) -> str:
        """``value`` padded on the left to the common width."""
        return (self._digits(value) if self.is_float else str(value)).rjust(self.width)


class _Writer:
    """Writes nested brackets of one array's elements."""

    def __init__(self, shown: np.ndarray, summarize: bool) -> None:
        self.summarize = summarize
        nan_counts = shown.dtype == dt.float8_e8m0fnu.np
        shown = plain_array(shown)
        self.imag: _Style | None = None
        if shown.dtype.kind == "c":
            self.real, self.imag = _Style(shown.real), _Style(shown.imag)
            self.element_length = self.real.width + self.imag.width + 3  # ', ' and 'j'
        else:
            self.real = _Style(shown, nan_counts)
            self.element_length = self.real.width + 2

    def element(self, value: Any) -> str:
        if self.imag is None:
            return self.real.text(value)
        imag = self.imag.text(value.imag).lstrip() + "j"
        return self.real.text(value.real) + ("" if imag[0] in "+-" else "+") + imag

    def cut(self, length: int) -> bool:
        return self.summarize and length > 2 * PRINT_OPTS.edgeitems

    def vector(self, array: np.ndarray, indent: int) -> str:
        edge = PRINT_OPTS.edgeitems
        if self.summarize and not edge:
            items = ["..."]
        elif self.cut(len(array)):
            items = [self.element(value) for value in plain_array(array[:edge]).tolist()]
            items.append(" ...")
            items += [self.element(value) for value in plain_array(array[-edge:]).tolist()]
        else:
            items = [self.element(value) for value in plain_array(array).tolist()]
        per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / self.element_length))
        lines = [", ".join(items[start : start + per_line]) for start in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    def write(self, array: np.ndarray, indent: int) -> str:
        if array.ndim == 0:
            return self.element(plain_array(array).item())
        if array.ndim == 1:
            return self.vector(array, indent)
        if self.cut(len(array)):
            edge = PRINT_OPTS.edgeitems
            parts = [self.write(array[i], indent + 1) for i in range(edge)]
            parts.append("...")
            parts += [self.write(array[i], indent + 1) for i in range(len(array) - edge, len(array))]
        else:
            parts = [self.write(row, indent + 1) for row in array]
        return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _edges(array: np.ndarray) -> np.ndarray:
    """The elements of ``array`` that a summary shows."""
    edge = PRINT_OPTS.edgeitems
    for axis, length in enumerate(array.shape):
        if length > 2 * edge:
            array = array.take([*range(edge), *range(length - edge, length)], axis)
    return array


def contents(array: np.ndarray, indent: int) -> str:
    """The elements of ``array`` in brackets, as they stand after ``indent`` characters of a line."""
    if array.size == 0:
        return "[]"
    summarize = array.size > PRINT_OPTS.threshold
    return _Writer(_edges(array) if summarize else array, summarize).write(array, indent)


# --- the whole ------------------------------------------------------------------------------------


def _grad_fn_name(grad_fn: Any) -> str:
    if isinstance(grad_fn, str):
        return grad_fn
    name = getattr(grad_fn, "name", None)
    # C++ nodes carry a namespace, such as torch::autograd::CopySlices
    return str(name()).rsplit("::", 1)[-1] if callable(name) else type(grad_fn).__name__


def _join(text: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """``text`` and its suffixes, each on the same line if the line's width allows."""
    parts = [text]
    # one more than the line has: PyTorch counts so, and where lines break depends on it
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            length = indent + len(suffix)
            force_newline = False
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def tensor_repr(
    array: np.ndarray | None,
    dtype: dt.dtype,
    shape: Sequence[int],
    *,
    device: Device | None = None,
    requires_grad: bool = False,
    grad_fn: Any = None,
    class_name: str = "tensor",
    indent: int = 0,
    tangent: Any = None,
    text: str | None = None,
) -> str:
    """``repr`` of a tensor.

    Args:
        array: the elements, of NumPy type ``dtype.np`` and of ``shape``; None for a tensor without data (meta).
        device: shown unless it is a CPU or None.
        requires_grad: shown if there is no ``grad_fn``.
        grad_fn: the node, or its name as it is to appear.
        class_name: what stands before the bracket: ``'tensor'``, or a subclass's name. Lines above it
            (``'Parameter containing:\\ntensor'``) stay above.
        indent: characters that stand to the left of the text already.
        tangent: forward-mode tangent, shown by its ``str``.
        text: contents to show in place of the elements.
    """
    header, newline, prefix = class_name.rpartition("\n")
    prefix += "("
    indent += len(prefix)
    default = dt.default_dtype()
    suffixes = []
    if device is not None and device.type != "cpu":
        suffixes.append(f"device='{device}'")
    size = f"size={tuple(map(int, shape))}"
    if array is None:
        suffixes.append(size)
        if dtype is not default:
            suffixes.append(f"dtype={dtype}")
        text = "..." if text is None else text
    elif array.size == 0:
        if len(shape) != 1:
            suffixes.append(size)
        # nothing shown tells the dtype, so int64 and bool are named too
        if dtype is not default:
            suffixes.append(f"dtype={dtype}")
        text = "[]" if text is None else text
    else:
        if not PRINT_OPTS.edgeitems:
            suffixes.append(size)
        # PyTorch takes cfloat as the complex default unless the default is double, also where it is half
        default_complex = dt.complex128 if default is dt.float64 else dt.complex64
        if dtype not in (default, default_complex, dt.int64, dt.bool_):
            suffixes.append(f"dtype={dtype}")
        text = contents(array, indent) if text is None else text
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{_grad_fn_name(grad_fn)}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return header + newline + _join(prefix + text, suffixes, indent, force_newline=False)
