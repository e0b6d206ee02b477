"""Batch, layer, group, instance and RMS normalisation.

All statistics are formed in float32 for half types. Backward uses the saved mean and 1/std, as PyTorch's does.
Outputs after the first (statistics) carry no gradient.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import by_name
from torchlike._src.core.errors import shape_text
from torchlike._src.ops.convolution_cpu import first, last, last_sum
from torchlike._src.ops.declare import TO, T, op
from torchlike._src.ops.matmul import HALF, conj
from torchlike._src.ops.products import column_sum

FLOAT32 = by_name("float32")


def full(a: Any) -> Any:
    """Half types in float32, for arithmetic."""
    return a.astype(jnp.float32) if a is not None and a.dtype.name in HALF else a


def full_dtype(a: Aval) -> Any:
    return FLOAT32 if a.dtype.name in HALF else a.dtype


def _mixed(a: Aval, *parameters: Aval | None) -> None:
    """Parameters share the input's dtype; a half input also takes float32 parameters, all alike."""
    given = [p for p in parameters if p is not None]
    if any(p.dtype is not given[0].dtype for p in given[1:]):
        raise RuntimeError(
            "mixed dtype (CPU): all the parameters must have the same dtype."
            if a.dtype.name in HALF
            else "mixed dtype (CPU): all inputs must share same datatype."
        )
    if given and given[0].dtype is not a.dtype and not (a.dtype.name in HALF and given[0].dtype is FLOAT32):
        if a.dtype.name in HALF:
            raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def _floating(a: Aval, name: str) -> None:
    if not a.dtype.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{a.dtype.scalar_name}'")


# -- batch norm -----------------------------------------------------------------------------------------------


def _axes(ndim: int) -> tuple[int, ...]:
    return tuple(k for k in range(ndim) if k != 1)


def _channel(v: Any, ndim: int) -> Any:
    """(C,) against (N, C, ...)."""
    return None if v is None else full(v).reshape(1, -1, *[1] * (ndim - 2))


def check_batch_norm(input: Aval, eps: float, rounded: bool = False, **tensors: Aval | None) -> None:
    channels = input.shape[1] if input.ndim > 1 else 0
    for name in ("running_mean", "running_var", "weight", "bias"):
        t = tensors.get(name)
        if t is not None and t.numel != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel}")
    if input.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    _floating(input, "batch_norm")
    _mixed(input, *tensors.values())


def in_memory(a: Any) -> Any:
    """(N, C, ...) -> (N, ..., C), formed once for all the passes over it; on CPU convolutions have it so already, see
    `convolution_cpu`."""
    return lax.optimization_barrier(last(a))


def channel_sum(a: Any) -> Any:
    """(N, C, ...) -> (C,), see `last_sum`."""
    return last_sum(in_memory(a))


def batch_norm_sums(g: Any, x: Any, mean: Any) -> tuple[Any, Any]:
    """g and x channels-last."""
    return last_sum(g), last_sum(g * (x - mean))


def batch_norm_grad_input(g0: Any, input: Any, weight: Any, out1: Any, out2: Any) -> Any:
    g, x = in_memory(full(g0)), in_memory(full(input))
    total, dotted = batch_norm_sums(g, x, out1)
    n = jnp.asarray(x.size // max(x.shape[-1], 1), x.dtype)
    slope = dotted * out2 * out2 / n
    scale = out2 if weight is None else out2 * full(weight)
    return first((g - total / n - (x - out1) * slope) * scale)


def batch_norm_grad_weight(g0: Any, input: Any, out1: Any, out2: Any) -> Any:
    return batch_norm_sums(in_memory(full(g0)), in_memory(full(input)), out1)[1] * out2


def batch_norm_shape(input: Aval, weight: Aval | None, bias: Aval | None, eps: float, rounded: bool) -> tuple:
    stat = aval((input.shape[1],), full_dtype(input), input.device)
    return input, stat, stat, stat


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "mean", "invstd", "var"),
    check=check_batch_norm,
    shape=batch_norm_shape,
    grad_name="NativeBatchNormBackward0",
    vjp={
        "input": batch_norm_grad_input,
        "weight": batch_norm_grad_weight,
        "bias": lambda g0: channel_sum(full(g0)),
    },
)
def _batch_norm_train(input: T, weight: TO, bias: TO, *, eps: float, rounded: bool = False):
    """(N, C, ...) -> (out, mean, 1/std, biased variance), the statistics over all dims but 1, of shape (C,).

    running_mean takes `mean`; running_var takes `var * n / (n - 1)` with n = input.numel() / C. `rounded`: the mean and
    1/std are kept in the input's half type, as PyTorch does where the parameters are of that type too."""
    x = in_memory(full(input))
    n = jnp.asarray(x.size // max(x.shape[-1], 1), x.dtype)
    mean = lax.optimization_barrier(last_sum(x) / n)
    centred = x - mean
    total = last_sum(centred * centred)
    var = total / n
    invstd = lax.optimization_barrier(lax.rsqrt(var + jnp.asarray(eps, x.dtype)))
    if rounded:
        mean, var, invstd = _half_statistics(mean, total, n, eps, input.dtype)
        centred = x - mean
    scale = invstd if weight is None else invstd * full(weight)
    out = centred * scale
    if bias is not None:
        out = out + full(bias)
    return first(out).astype(input.dtype), mean, invstd, var


def _rounded(a: Any, half: Any) -> Any:
    """float32 with a half type's precision, which XLA must not undo."""
    info = jnp.finfo(half)
    return lax.reduce_precision(a, info.nexp, info.nmant)


def _half_statistics(mean: Any, squares: Any, n: Any, eps: float, half: Any) -> tuple[Any, Any, Any]:
    """(mean, variance, 1/std) as PyTorch has them where it keeps sums of squares and results in a half type."""
    var = _rounded(squares, half) / n
    invstd = lax.rsqrt(_rounded(var, half) + jnp.asarray(eps, var.dtype))
    return _rounded(mean, half), var, _rounded(invstd, half)


def _eval_scale(running_var: Any, eps: float) -> Any:
    v = full(running_var)
    return lax.rsqrt(v + jnp.asarray(eps, v.dtype))


def batch_norm_eval_grad_input(g: Any, weight: Any, running_var: Any, eps: float) -> Any:
    scale = _eval_scale(running_var, eps)
    scale = scale if weight is None else scale * full(weight)
    return full(g) * _channel(scale, g.ndim)


def batch_norm_eval_grad_weight(g: Any, input: Any, running_mean: Any, running_var: Any, eps: float) -> Any:
    sums = batch_norm_sums(in_memory(full(g)), in_memory(full(input)), full(running_mean))
    return sums[1] * _eval_scale(running_var, eps)


@op(
    namespaces=(),
    method=False,
    out=False,
    check=check_batch_norm,
    shape=lambda input, **_: input,
    grad_name="NativeBatchNormBackward0",
    vjp={
        "input": batch_norm_eval_grad_input,
        "weight": batch_norm_eval_grad_weight,
        "bias": lambda g: channel_sum(full(g)),
    },
)
def _batch_norm_eval(input: T, weight: TO, bias: TO, running_mean: T, running_var: T, *, eps: float):
    """(N, C, ...) normalised by given statistics of shape (C,)."""
    x = full(input)
    scale = _eval_scale(running_var, eps)
    scale = scale if weight is None else scale * full(weight)
    out = (x - _channel(running_mean, x.ndim)) * _channel(scale, x.ndim)
    if bias is not None:
        out = out + _channel(bias, x.ndim)
    return out.astype(input.dtype)


# -- layer norm -----------------------------------------------------------------------------------------------


def check_layer_norm(input: Aval, normalized_shape: tuple, weight: Aval | None, bias: Aval | None, eps: float) -> None:
    n = len(normalized_shape)
    if n == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != normalized_shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{shape_text(p.shape)} and normalized_shape = {shape_text(normalized_shape)}"
            )
    if input.shape[-n:] != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={shape_text(normalized_shape)}, expected input with shape "
            f"[*, {', '.join(map(str, normalized_shape))}], but got input of size{shape_text(input.shape)}"
        )
    _floating(input, "LayerNormKernelImpl")
    _mixed(input, weight, bias)


def layer_norm_shape(input: Aval, normalized_shape: tuple, weight: Aval | None, bias: Aval | None, eps: float) -> tuple:
    n = len(normalized_shape)
    stat = aval((*input.shape[:-n], *[1] * n), full_dtype(input), input.device)
    return input, stat, stat


def _last(normalized_shape: tuple) -> tuple[int, ...]:
    return tuple(range(-len(normalized_shape), 0))


def layer_norm_grad_input(g0: Any, input: Any, normalized_shape: tuple, weight: Any, out1: Any, out2: Any) -> Any:
    g, x = full(g0), full(input)
    g = g if weight is None else g * full(weight)
    axes = _last(normalized_shape)
    n = jnp.asarray(math.prod(normalized_shape), x.dtype)
    xhat = (x - out1) * out2
    mean_g = g.sum(axes, keepdims=True) / n
    mean_gx = (g * xhat).sum(axes, keepdims=True) / n
    return (g - mean_g - xhat * mean_gx) * out2


def layer_norm_grad_weight(g0: Any, input: Any, normalized_shape: tuple, out1: Any, out2: Any) -> Any:
    return column_sum(full(g0) * (full(input) - out1) * out2, len(normalized_shape))


def layer_norm_grad_bias(g0: Any, normalized_shape: tuple) -> Any:
    return column_sum(full(g0), len(normalized_shape))


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "mean", "rstd"),
    check=check_layer_norm,
    shape=layer_norm_shape,
    vjp={"input": layer_norm_grad_input, "weight": layer_norm_grad_weight, "bias": layer_norm_grad_bias},
)
def _native_layer_norm(input: T, normalized_shape, weight: TO, bias: TO, eps):
    """(..., *normalized_shape) -> (normalised over the last dims, mean, 1/std); the statistics keep dims of 1."""
    x = full(input)
    axes = _last(normalized_shape)
    n = jnp.asarray(math.prod(normalized_shape), x.dtype)
    mean = x.sum(axes, keepdims=True) / n
    centred = x - mean
    var = (centred * centred).sum(axes, keepdims=True) / n
    rstd = lax.rsqrt(var + jnp.asarray(eps, x.dtype))
    mean, rstd = lax.optimization_barrier((mean, rstd))  # else their reductions are fused into backward's again
    out = (x - mean) * rstd
    if weight is not None:
        out = out * full(weight)
    if bias is not None:
        out = out + full(bias)
    return out.astype(input.dtype), mean, rstd


# -- RMS norm -------------------------------------------------------------------------------------------------


def check_rms_norm(input: Aval, normalized_shape: tuple, weight: Aval | None, eps: Any) -> None:
    n = len(normalized_shape)
    if n == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if weight is not None and weight.shape != normalized_shape:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{shape_text(weight.shape)} and normalized_shape = {shape_text(normalized_shape)}"
        )
    if input.shape[-n:] != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={shape_text(normalized_shape)}, expected input with shape "
            f"[*{', '.join(map(str, normalized_shape))}], but got input of size{shape_text(input.shape)}"
        )


def _rms_scale(x: Any, normalized_shape: tuple, eps: Any) -> Any:
    """1 / rms. Without eps: the machine epsilon of the compute dtype."""
    axes = _last(normalized_shape)
    n = jnp.asarray(math.prod(normalized_shape), x.dtype)
    mean = (x * x).sum(axes, keepdims=True) / n  # of complex values too, as in PyTorch
    eps = float(np.finfo(mean.dtype).eps) if eps is None else eps
    return lax.rsqrt(mean + jnp.asarray(eps, mean.dtype))


def rms_norm_grad_input(g: Any, input: Any, normalized_shape: tuple, weight: Any, eps: Any) -> Any:
    g, x = full(g), conj(full(input))
    g = g if weight is None else g * conj(full(weight))
    scale = _rms_scale(x, normalized_shape, eps)
    n = jnp.asarray(math.prod(normalized_shape), x.dtype)
    projected = (g * x).sum(_last(normalized_shape), keepdims=True) / n
    return (g - x * projected * scale * scale) * scale


def rms_norm_grad_weight(g: Any, input: Any, normalized_shape: tuple, eps: Any) -> Any:
    x = conj(full(input))
    return column_sum(full(g) * x * _rms_scale(x, normalized_shape, eps), len(normalized_shape))


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    check=check_rms_norm,
    grad_name=lambda input, **_: "ToCopyBackward0" if input.dtype.name in HALF else "MulBackward0",
    vjp={"input": rms_norm_grad_input, "weight": rms_norm_grad_weight},
)
def rms_norm(input: T, normalized_shape, weight: TO = None, eps=None):
    """(..., *normalized_shape): divided by the root mean square over the last dims, times weight."""
    x = full(input)
    out = x * _rms_scale(x, normalized_shape, eps)
    if weight is not None:
        out = out * full(weight)
    same = weight is None or weight.dtype == input.dtype
    return out.astype(input.dtype if same else jnp.promote_types(input.dtype, weight.dtype))


# -- group and instance norm ----------------------------------------------------------------------------------


def check_group_norm(input: Aval, weight: Aval | None, bias: Aval | None, num_groups: int, eps: float) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    channels = input.shape[1]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape_text(input.shape)} and num_groups={num_groups}"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and p.shape != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {shape_text((weight or p).shape)} and input of shape {shape_text(input.shape)}"
            )  # (PyTorch's message about the bias names the weight's shape)
    _floating(input, "GroupNormKernelImpl")
    _mixed(input, weight, bias)


def _grouped(x: Any, num_groups: int) -> Any:
    """(N, C, ...) -> (N, G, C / G * positions)."""
    size = math.prod(x.shape[1:]) // num_groups
    return x.reshape(x.shape[0], num_groups, size)


def group_norm_grad_input(g0: Any, input: Any, weight: Any, out1: Any, out2: Any, num_groups: int) -> Any:
    g = full(g0)
    g = g if weight is None else g * _channel(weight, g.ndim)
    x, g = _grouped(full(input), num_groups), _grouped(g, num_groups)
    mean, rstd = out1[..., None], out2[..., None]
    n = jnp.asarray(x.shape[2], x.dtype)
    xhat = (x - mean) * rstd
    d = (g - g.sum(2, keepdims=True) / n - xhat * ((g * xhat).sum(2, keepdims=True) / n)) * rstd
    return d.reshape(input.shape)


def group_norm_grad_weight(g0: Any, input: Any, out1: Any, out2: Any, num_groups: int) -> Any:
    x = _grouped(full(input), num_groups)
    xhat = ((x - out1[..., None]) * out2[..., None]).reshape(input.shape)
    return (full(g0) * xhat).sum(_axes(input.ndim))


def _group_norm_stats(input: Any, weight: Any, bias: Any, num_groups: int, eps: float, rounded: bool = False) -> tuple:
    x = _grouped(full(input), num_groups)
    n = jnp.asarray(x.shape[2], x.dtype)
    mean = x.sum(2, keepdims=True) / n
    centred = x - mean
    total = (centred * centred).sum(2, keepdims=True)
    var = total / n
    rstd = lax.rsqrt(var + jnp.asarray(eps, x.dtype))
    if rounded:
        mean, var, rstd = _half_statistics(mean, total, n, eps, input.dtype)
        centred = x - mean
    out = (centred * rstd).reshape(input.shape)
    if weight is not None:
        out = out * _channel(weight, input.ndim)
    if bias is not None:
        out = out + _channel(bias, input.ndim)
    return out.astype(input.dtype), mean[..., 0], rstd[..., 0], var[..., 0]


def _group_stat(input: Aval, num_groups: int) -> Aval:
    return aval((input.shape[0], num_groups), full_dtype(input), input.device)


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "mean", "rstd"),
    check=check_group_norm,
    shape=lambda input, weight, bias, num_groups, eps: (input, *[_group_stat(input, num_groups)] * 2),
    grad_name="NativeGroupNormBackward0",
    vjp={
        "input": group_norm_grad_input,
        "weight": group_norm_grad_weight,
        "bias": lambda g0: full(g0).sum(_axes(g0.ndim)),
    },
)
def _group_norm(input: T, weight: TO, bias: TO, *, num_groups: int, eps: float):
    """(N, C, ...) -> (normalised per sample and group of channels, mean, 1/std), statistics of shape (N, groups)."""
    return _group_norm_stats(input, weight, bias, num_groups, eps)[:3]


def instance_norm_grad_input(g0: Any, input: Any, weight: Any, out1: Any, out2: Any) -> Any:
    return group_norm_grad_input(g0, input, weight, out1, out2, input.shape[1])


def instance_norm_grad_weight(g0: Any, input: Any, out1: Any, out2: Any) -> Any:
    return group_norm_grad_weight(g0, input, out1, out2, input.shape[1])


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "mean", "rstd", "var"),
    check=check_batch_norm,
    shape=lambda input, weight, bias, eps, rounded: (input, *[_group_stat(input, input.shape[1])] * 3),
    grad_name="ViewBackward0",
    vjp={
        "input": instance_norm_grad_input,
        "weight": instance_norm_grad_weight,
        "bias": lambda g0: full(g0).sum(_axes(g0.ndim)),
    },
)
def _instance_norm(input: T, weight: TO, bias: TO, *, eps: float, rounded: bool = False):
    """(N, C, ...) -> (normalised per sample and channel, mean, 1/std, biased variance), statistics of shape (N, C)."""
    return _group_norm_stats(input, weight, bias, input.shape[1], eps, rounded)
