"""Pooling and unpooling layers."""

from collections.abc import Sequence
from typing import Any

from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn.modules.module import Module
from torchlike.nn.modules.utils import _ntuple, _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

Sizes = int | tuple[int, ...]


class _MaxPoolNd(Module):
    """Arguments of the three max pools."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum over windows of (N, C, L) or (C, L); the arguments are those of MaxPool2d."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, C, *'), with return_indices and their int64 positions"""
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool2d(_MaxPoolNd):
    """The maximum over windows of (N, C, H, W) or (C, H, W).

    kernel_size, stride (kernel_size if left out), padding, dilation: one number, or one for each dimension.
    return_indices: also give where the maxima are, for MaxUnpool2d. ceil_mode: round the output size up."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, C, *'), with return_indices and their int64 positions"""
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool3d(_MaxPoolNd):
    """The maximum over windows of (N, C, D, H, W) or (C, D, H, W); the arguments are those of MaxPool2d."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, C, *'), with return_indices and their int64 positions"""
        return F.max_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class _WindowRepr(Module):
    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxUnpoolNd(_WindowRepr):
    """Arguments of the three unpools."""

    _ndim: int

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        each = _ntuple(self._ndim)
        self.kernel_size = each(kernel_size)
        self.stride = each(stride if stride is not None else kernel_size)
        self.padding = each(padding)


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the values of a MaxPool1d back to where they were, zeros elsewhere."""

    _ndim = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, C, *), the indices that the pool gave -> (N, C, *'); output_size settles which of several sizes"""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the values of a MaxPool2d back to where they were, zeros elsewhere."""

    _ndim = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, C, *), the indices that the pool gave -> (N, C, *'); output_size settles which of several sizes"""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the values of a MaxPool3d back to where they were, zeros elsewhere."""

    _ndim = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """(N, C, *), the indices that the pool gave -> (N, C, *'); output_size settles which of several sizes"""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class AvgPool1d(_WindowRepr):
    """The mean over windows of (N, C, L) or (C, L); the arguments are those of AvgPool2d."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) -> (N, C, L')"""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolNd(_WindowRepr):
    """Arguments of AvgPool2d and AvgPool3d."""

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _arguments(self) -> tuple:
        return (
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolNd):
    """The mean over windows of (N, C, H, W) or (C, H, W).

    kernel_size, stride (kernel_size if left out), padding: one number, or one for each dimension. ceil_mode: round the
    output size up. count_include_pad: padding counts as zeros. divisor_override: divide by this instead of the
    count."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H', W')"""
        return F.avg_pool2d(input, *self._arguments())


class AvgPool3d(_AvgPoolNd):
    """The mean over windows of (N, C, D, H, W) or (C, D, H, W); the arguments are those of AvgPool2d."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, D, H, W) -> (N, C, D', H', W')"""
        return F.avg_pool3d(input, *self._arguments())

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        for name, default in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True)):
            self.__dict__.setdefault(name, default)


class _FractionalMaxPoolNd(Module):
    """Arguments of the two fractional max pools."""

    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]

    def _set(self, each: Any, kernel_size: Sizes, output_size: Any, output_ratio: Any, return_indices: bool) -> None:
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maximum over windows at random places (Graham, 2014), for an output of output_size, or of output_ratio times
    the input's size. ValueError: neither or both, or a ratio not between 0 and 1."""

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.register_buffer("_random_samples", _random_samples)
        self._set(_pair, kernel_size, output_size, output_ratio, return_indices)

    def forward(self, input: Tensor) -> Any:
        """(N, C, H, W) -> (N, C, H', W'), with return_indices and their int64 positions"""
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """As FractionalMaxPool2d, over (N, C, D, H, W) or (C, D, H, W)."""

    def __init__(
        self,
        kernel_size: Sizes,
        output_size: Sizes | None = None,
        output_ratio: float | tuple[float, float, float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if not all(k > 0 for k in _triple(kernel_size)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.register_buffer("_random_samples", _random_samples)
        self._set(_triple, kernel_size, output_size, output_ratio, return_indices)

    def forward(self, input: Tensor) -> Any:
        """(N, C, D, H, W) -> (N, C, D', H', W'), with return_indices and their int64 positions"""
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class _LPPoolNd(Module):
    """Arguments of the three power-average pools."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """(Σ x**p) ** (1/p), p = norm_type, over windows of (N, C, L) or (C, L)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *')"""
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """(Σ x**p) ** (1/p), p = norm_type, over windows of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *')"""
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """(Σ x**p) ** (1/p), p = norm_type, over windows of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *')"""
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum over windows of (N, C, L) or (C, L) that give output_size (None: the input's); return_indices: also
    give where the maxima are."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, C, *output_size)"""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum over windows of (N, C, H, W) or (C, H, W) that give output_size (None: the input's); return_indices:
    also give where the maxima are."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, C, *output_size)"""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum over windows of (N, C, D, H, W) or (C, D, H, W) that give output_size (None: the input's);
    return_indices: also give where the maxima are."""

    def forward(self, input: Tensor) -> Any:
        """(N, C, *) -> (N, C, *output_size)"""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean over windows of (N, C, L) or (C, L) that give output_size (None: the input's)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *output_size)"""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean over windows of (N, C, H, W) or (C, H, W) that give output_size (None: the input's)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *output_size)"""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean over windows of (N, C, D, H, W) or (C, D, H, W) that give output_size (None: the input's)."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *output_size)"""
        return F.adaptive_avg_pool3d(input, self.output_size)
