"""Activations; MultiheadAttention lives in `_attention`."""

import warnings
from typing import Any

from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn import functional as F
from torchlike.nn import init as _init
from torchlike.nn.modules._attention import MultiheadAttention
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]

MultiheadAttention.__module__ = __name__  # where pickles look for it


class _Inplace(Module):
    """An activation whose only argument is `inplace`."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class _Elementwise(Module):
    """What activations with further arguments share."""

    inplace: bool = False

    def _and_inplace(self) -> str:
        return ", inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(0, x)"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.relu(input, inplace=self.inplace)


class SiLU(_Inplace):
    """x · sigmoid(x), also known as swish"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.silu(input, inplace=self.inplace)


class Mish(_Inplace):
    """x · tanh(softplus(x))"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.mish(input, inplace=self.inplace)


class SELU(_Inplace):
    """scale · (max(0, x) + min(0, α (exp(x) - 1))), with Klambauer's constants"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.selu(input, self.inplace)


class Hardsigmoid(Module):
    """0 below -3, 1 above 3, x / 6 + 1 / 2 between"""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """x · Hardsigmoid(x)"""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.hardswish(input, self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return torch.sigmoid(input)


class Tanh(Module):
    """tanh(x)"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return torch.tanh(input)


class LogSigmoid(Module):
    """log(sigmoid(x))"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x)"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.tanhshrink(input)


class ELU(_Elementwise):
    """x above 0, α (exp(x) - 1) below"""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{self._and_inplace()}"


class CELU(_Elementwise):
    """max(0, x) + min(0, α (exp(x / α) - 1))"""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}{self._and_inplace()}"


class LeakyReLU(_Elementwise):
    """x above 0, negative_slope · x below"""

    __constants__ = ["negative_slope", "inplace"]

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}{self._and_inplace()}"


class Hardshrink(Module):
    """x where |x| > lambd, 0 elsewhere"""

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """x moved by lambd towards 0, and 0 where |x| <= lambd"""

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Threshold(_Elementwise):
    """x above `threshold`, `value` elsewhere"""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}{self._and_inplace()}"


class RReLU(_Elementwise):
    """LeakyReLU whose slope is drawn from U(lower, upper) for each element; in evaluation it is their mean"""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{self._and_inplace()}"


class Hardtanh(_Elementwise):
    """x, but at least min_val and at most max_val. AssertionError: these are not in order."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn(
                "keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning, stacklevel=2
            )
            min_val = min_value
        if max_value is not None:
            warnings.warn(
                "keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning, stacklevel=2
            )
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}{self._and_inplace()}"


class ReLU6(Hardtanh):
    """min(max(0, x), 6)"""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class GLU(Module):
    """a · sigmoid(b), where a and b are the halves of the input along `dim`"""

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """(*, 2n, *) -> (*, n, *)"""
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """x · Φ(x), Φ the normal distribution function; approximate: "none", or "tanh" for its approximation by tanh"""

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + exp(beta · x)) / beta, and x itself where beta · x > threshold"""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class PReLU(Module):
    """LeakyReLU with a learned slope: one (num_parameters=1), or one for each channel; all begin as `init`"""

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self.num_parameters = num_parameters
        super().__init__()
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, *) -> (N, C, *)"""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class _AlongDim(Module):
    """What the softmaxes share."""

    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """exp(-x) / Σ exp(-x) along `dim`"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """exp(x) / Σ exp(x) along `dim`"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """log(softmax(x)) along `dim`"""

    def forward(self, input: Tensor) -> Tensor:
        """Any shape -> the same shape"""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of each position. ValueError: the input is not 3- or 4-dimensional."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H, W)"""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
