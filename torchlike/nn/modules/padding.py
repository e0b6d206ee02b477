"""Padding layers."""

from collections.abc import Sequence

from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.modules.module import Module
from torchlike.nn.modules.utils import _ntuple, _pair, _quadruple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

_sextuple = _ntuple(6)


class _PadNd(Module):
    """What all padding layers share."""

    __constants__ = ["padding"]
    _mode: str
    padding: Sequence[int]

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"
    _dims: tuple[int, int]

    def _check_input_dim(self, input: Tensor) -> None:
        low, high = self._dims
        if input.dim() not in self._dims:
            raise ValueError(f"expected {low}D or {high}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded by what lies at the other end."""
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with its last dimensions padded by `value`."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """Pads (N, C, W) or (C, W) by what lies at the other end; padding: one number, or (left, right)."""

    _dims = (2, 3)

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _pair(padding)


class CircularPad2d(_CircularPadNd):
    """Pads (N, C, H, W) or (C, H, W) by what lies at the other end; padding: one number, or (left, right, top,
    bottom)."""

    _dims = (3, 4)

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class CircularPad3d(_CircularPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) by what lies at the other end; padding: one number, or (left, right, top,
    bottom, front, back)."""

    _dims = (4, 5)

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class ConstantPad1d(_ConstantPadNd):
    """Pads (N, C, W) or (C, W) by `value`; padding: one number, or (left, right)."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(value)
        self.padding = _pair(padding)


class ConstantPad2d(_ConstantPadNd):
    """Pads (N, C, H, W) or (C, H, W) by `value`; padding: one number, or (left, right, top, bottom)."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(value)
        self.padding = _quadruple(padding)


class ConstantPad3d(_ConstantPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) by `value`; padding: one number, or (left, right, top, bottom, front,
    back)."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(value)
        self.padding = _sextuple(padding)


class ReflectionPad1d(_ReflectionPadNd):
    """Pads (N, C, W) or (C, W) by its mirror image, the edge not repeated; padding: one number, or (left, right)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReflectionPad2d(_ReflectionPadNd):
    """Pads (N, C, H, W) or (C, H, W) by its mirror image, the edge not repeated; padding: one number, or (left, right,
    top, bottom)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReflectionPad3d(_ReflectionPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) by its mirror image, the edge not repeated; padding: one number, or (left,
    right, top, bottom, front, back)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class ReplicationPad1d(_ReplicationPadNd):
    """Pads (N, C, W) or (C, W) by its edge values; padding: one number, or (left, right)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _pair(padding)


class ReplicationPad2d(_ReplicationPadNd):
    """Pads (N, C, H, W) or (C, H, W) by its edge values; padding: one number, or (left, right, top, bottom)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _quadruple(padding)


class ReplicationPad3d(_ReplicationPadNd):
    """Pads (N, C, D, H, W) or (C, D, H, W) by its edge values; padding: one number, or (left, right, top, bottom,
    front, back)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _sextuple(padding)


class ZeroPad1d(ConstantPad1d):
    """Pads (N, C, W) or (C, W) by zeros; padding: one number, or (left, right)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads (N, C, H, W) or (C, H, W) by zeros; padding: one number, or (left, right, top, bottom)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads (N, C, D, H, W) or (C, D, H, W) by zeros; padding: one number, or (left, right, top, bottom, front,
    back)."""

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"
