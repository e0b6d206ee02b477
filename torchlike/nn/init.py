"""Filling parameters with their first values. All functions write in place, record no gradient, and return the
tensor."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from torchlike._src.tensor.namespace import linalg, torch
from torchlike._src.tensor.random import memory_order
from torchlike._src.tensor.tensor import Tensor

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain before a nonlinearity; `param` is leaky_relu's negative slope (0.01).

    ValueError: an unknown name, or a slope that is no number."""
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from U(a, b)."""
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from N(mean, std²)."""
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Draw from N(mean, std²) restricted to [a, b], by rejection: of normal draws while most are inside, of uniform
    ones otherwise. Every round draws for the whole tensor."""
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=2,
        )
    mass = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with torch.no_grad():
        fill = _reject_normal if mass > 0.3 else _reject_uniform
        fill(tensor, mean, std, a, b, generator)
    return tensor


def _beside(tensor: Tensor) -> Tensor:
    """A tensor to be filled that lies in memory as `tensor` does, which decides the order of the draws."""
    order = memory_order(tensor)
    if order is None:
        return torch.empty_like(tensor)
    shape = [tensor.shape[k] for k in order]
    return torch.empty(shape, dtype=tensor.dtype, device=tensor.device).permute(
        sorted(range(len(order)), key=order.__getitem__)
    )


def _reject_normal(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    # The bounds as the tensor's dtype rounds them.
    low = torch.tensor(a, dtype=tensor.dtype).item()
    high = torch.tensor(b, dtype=tensor.dtype).item()
    result = tensor.normal_(mean, std, generator=generator)
    redrawn = False
    while True:
        outside = (result < low) | (result > high)
        if not outside.any():
            break
        redrawn = True
        result = torch.where(outside, _beside(tensor).normal_(mean, std, generator=generator), result)
    if redrawn:
        tensor.copy_(result)


def _reject_uniform(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> None:
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    tensor.uniform_(a, b, generator=generator)
    result = tensor
    pending = None
    candidates = tensor
    while True:
        log_density = ((candidates - mean) / std).pow(2).mul(-0.5).sub(log_peak)
        rejected = _beside(tensor).uniform_(generator=generator).log() > log_density
        pending = rejected if pending is None else pending & rejected
        if not pending.any():
            break
        candidates = _beside(tensor).uniform_(a, b, generator=generator)
        result = torch.where(pending, candidates, result)
    if result is not tensor:
        tensor.copy_(result)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`."""
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0."""
    with torch.no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal, zeros elsewhere. ValueError: not 2-dimensional."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        tensor.copy_(torch.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution weight that passes as many channels through as it can, for each of `groups` alike.

    ValueError: not 3-, 4- or 5-dimensional, or groups does not divide the first size."""
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if tensor.is_meta:
        return tensor
    per_group = sizes[0] // groups
    centre = tuple(n // 2 for n in sizes[2:])
    with torch.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output depends on, and the reverse, for a weight (out, in, *kernel)."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    shape = tensor.shape
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    valid = ["fan_in", "fan_out"]
    if mode not in valid:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid}")
    return _calculate_fan_in_and_fan_out(tensor)[valid.index(mode)]


def _bias_uniform_(bias: Tensor | None, weight: Tensor) -> None:
    """A layer's bias, drawn from U(±1/√fan_in) of its weight."""
    if bias is not None:
        fan_in, _ = _calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        uniform_(bias, -bound, bound)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from U(-b, b), b = gain · √(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Draw from N(0, σ²), σ = gain · √(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Draw from U(-b, b), b = gain · √(3 / fan) (He et al., 2015); `a` is leaky_relu's slope."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Draw from N(0, σ²), σ = gain / √fan."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A (semi-)orthogonal matrix (Saxe et al., 2013); further dimensions are flattened into the second.

    ValueError: fewer than 2 dimensions."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or tensor.is_meta:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with torch.no_grad():
        draws = torch.empty((rows, cols), dtype=tensor.dtype, device=tensor.device).normal_(0, 1, generator=generator)
        q, r = linalg.qr(draws.t() if rows < cols else draws)
        # QR is unique, and q uniformly distributed, once r's diagonal is positive.
        q = q * torch.diag(r, 0).sign()
        tensor.copy_((q.t() if rows < cols else q).reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Draw from N(0, std²) and set that share of each column to zero. ValueError: not 2-dimensional."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if tensor.is_meta:
        return tensor
    rows, cols = tensor.shape
    count = math.ceil(sparsity * rows)
    with torch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            # PyTorch draws the rows from the default generator, whatever `generator` is.
            tensor[torch.randperm(rows)[:count], col] = 0
    return tensor


def _deprecated(new: Callable) -> Callable:
    old_name = new.__name__[:-1]

    @functools.wraps(new)
    def old(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new.__name__}`.", FutureWarning, stacklevel=2
        )
        return new(*args, **kwargs)

    old.__name__ = old.__qualname__ = old_name
    old.__doc__ = f"Deprecated: use `{new.__name__}`."
    return old


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
