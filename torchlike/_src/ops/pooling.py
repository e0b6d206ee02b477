"""Pooling: max, average, adaptive, unpooling, fractional.

Windows are strided slices combined elementwise, which XLA fuses; `reduce_window` and its select-and-scatter
gradient are several times slower on CPU. Max pooling keeps the number of the winning window element (`code`, one
byte as a rule) for backward and for the indices. The first maximum wins, and the last NaN, as in PyTorch.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import by_name
from torchlike._src.core.errors import shape_text
from torchlike._src.ops.convolution_cpu import first, last
from torchlike._src.ops.declare import Promote, T, op

MAX_SLICES = 48
INT64 = by_name("int64")


def ntuple(value: Any, n: int) -> tuple[int, ...]:
    """An int or a sequence (of 1 or n) as n ints."""
    if isinstance(value, (tuple, list)):
        value = tuple(value)
        return value * n if len(value) == 1 else value
    return (value,) * n


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    span = size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)
    out = span // stride + 1
    if ceil_mode and (out - 1) * stride >= size + padding:
        out -= 1  # the last window must start inside the input or the left padding
    return out


def _slice_dim(x: Any, dim: int, start: int, count: int, stride: int) -> Any:
    return lax.slice_in_dim(x, start, start + (count - 1) * stride + 1, stride, dim)


def _pad_dim(x: Any, dim: int, low: int, high: int, value: Any) -> Any:
    if low == 0 and high == 0:
        return x
    config = [(0, 0, 0)] * x.ndim
    config[dim] = (low, high, 0)
    return lax.pad(x, jnp.asarray(value, x.dtype), config)


def _pad_windows(x: Any, plan: Sequence[tuple], value: Any, lead: int) -> Any:
    """Pads each spatial dim so that every window of the plan lies inside (crops where windows end early)."""
    for k, (kernel, stride, padding, dilation, count) in enumerate(plan):
        dim = lead + k
        need = (count - 1) * stride + dilation * (kernel - 1) + 1
        x = _pad_dim(x, dim, padding, need - padding - x.shape[dim], value)
    return x


def _lowest(dtype: Any) -> Any:
    return -math.inf if dtype.kind not in "iub" else np.iinfo(dtype).min


# -- max pooling ----------------------------------------------------------------------------------------------


def _plan(shape: tuple, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> list[tuple]:
    n = len(kernel_size)
    sizes = shape[len(shape) - n :]
    return [
        (k, s, p, d, pooled_size(size, k, s, p, d, ceil_mode))
        for size, k, s, p, d in zip(sizes, kernel_size, stride, padding, dilation, strict=True)
    ]


def _code_dtype(plan: Sequence[tuple]) -> str:
    return "uint8" if math.prod(p[0] for p in plan) <= 255 else "int32"


def _better(value: Any, best: Any) -> Any:
    return value > best if value.dtype.kind in "iub" else (value > best) | (value != value)


def _running_max(x: Any, plan: Sequence[tuple], code_dtype: str, lead: int) -> tuple[Any, Any]:
    """Every window element in turn, row-major: (maximum, its number)."""
    n = len(plan)
    best: Any = None
    code: Any = None
    for number, at in enumerate(np.ndindex(*[p[0] for p in plan])):
        value = x
        for k in range(n):
            _, stride, _, dilation, count = plan[k]
            value = _slice_dim(value, lead + k, at[k] * dilation, count, stride)
        if best is None:
            best, code = value, jnp.zeros(value.shape, code_dtype)
        else:
            wins = _better(value, best)
            best = jnp.where(wins, value, best)
            code = jnp.where(wins, jnp.asarray(number, code_dtype), code)
    return best, code


def _reduced_max(x: Any, plan: Sequence[tuple], code_dtype: str, lead: int) -> tuple[Any, Any]:
    """For many elements: one dim after the other, last first. The first maximum of each row, then the first row that
    has it, is the first in row-major order."""
    best: Any = x
    code: Any = None
    inner = 1
    for k in reversed(range(len(plan))):
        kernel, stride, _, dilation, count = plan[k]
        dim = lead + k
        if kernel > MAX_SLICES:
            best, winner, code = _gathered_max(best, code, dim, plan[k], code_dtype)
        else:
            values = [_slice_dim(best, dim, i * dilation, count, stride) for i in range(kernel)]
            codes = (
                None if code is None else [_slice_dim(code, dim, i * dilation, count, stride) for i in range(kernel)]
            )
            best = values[0]
            winner = jnp.zeros(best.shape, code_dtype)
            code = None if codes is None else codes[0]
            for i in range(1, kernel):
                wins = _better(values[i], best)
                best = jnp.where(wins, values[i], best)
                winner = jnp.where(wins, jnp.asarray(i, code_dtype), winner)
                code = None if codes is None else jnp.where(wins, codes[i], code)
        code = winner if code is None else code + winner * jnp.asarray(inner, code_dtype)
        inner *= kernel
    return best, code


def _gathered_max(x: Any, code: Any, dim: int, plan: tuple, code_dtype: str) -> tuple[Any, Any, Any]:
    """One dim with a long window: windows as a new dim, then a reduction."""
    kernel, stride, _, dilation, count = plan
    starts = np.arange(count)[:, None] * stride + np.arange(kernel)[None, :] * dilation
    windows = jnp.take(x, jnp.asarray(starts), axis=dim)  # (..., count, kernel, ...)
    winner = lax.argmax(windows, dim + 1, jnp.int32)
    best = windows.max(dim + 1)
    if code is not None:
        codes = jnp.take(code, jnp.asarray(starts), axis=dim)
        code = jnp.take_along_axis(codes, jnp.expand_dims(winner, dim + 1), dim + 1).squeeze(dim + 1)
    return best, winner.astype(code_dtype), code


def _spread(g: Any, code: Any, sizes: tuple, plan: Sequence[tuple], lead: int) -> Any:
    """The gradient of max pooling: g at the element that won; `sizes` are the input's spatial dims, which follow `lead`
    others."""
    rest = [(0, 0, 0)] * (g.ndim - lead - len(plan))
    if all(k == s and d == 1 for k, s, _, d, _ in plan):
        out = _spread_tiles(g, code, plan, lead)
    else:
        out = None
        for number, at in enumerate(np.ndindex(*[p[0] for p in plan])):
            part = jnp.where(code == jnp.asarray(number, code.dtype), g, jnp.zeros((), g.dtype))
            config = [(0, 0, 0)] * lead
            for i, (kernel, stride, _, dilation, _) in zip(at, plan, strict=True):
                config.append((i * dilation, (kernel - 1 - i) * dilation, stride - 1))
            part = lax.pad(part, jnp.zeros((), g.dtype), config + rest)
            out = part if out is None else out + part
    return _unpad(out, sizes, plan, lead)


def _spread_tiles(g: Any, code: Any, plan: Sequence[tuple], lead: int) -> Any:
    """Windows that do not overlap: one comparison of the code with each element's number."""
    kernels = [p[0] for p in plan]
    before, counts, after = g.shape[:lead], g.shape[lead : lead + len(plan)], g.shape[lead + len(plan) :]
    numbers = np.arange(math.prod(kernels)).reshape(kernels)
    tiled = before + tuple(n for pair in zip(counts, kernels, strict=True) for n in pair) + after
    thin = before + tuple(n for count in counts for n in (count, 1)) + after
    grid = [1] * lead + [n for k in kernels for n in (1, k)] + [1] * len(after)
    code, g = lax.optimization_barrier((code, g))  # otherwise the winner is searched for again at every element
    match = code.reshape(thin) == jnp.asarray(numbers.reshape(grid), code.dtype)
    out = jnp.where(match, g.reshape(thin), jnp.zeros((), g.dtype))
    final = before + tuple(c * k for c, k in zip(counts, kernels, strict=True)) + after
    return jnp.broadcast_to(out, tiled).reshape(final)


def _unpad(padded: Any, sizes: tuple, plan: Sequence[tuple], lead: int) -> Any:
    config = [(0, 0, 0)] * padded.ndim
    for k, (p, size) in enumerate(zip(plan, sizes, strict=True)):
        config[lead + k] = (-p[2], size + p[2] - padded.shape[lead + k], 0)
    if all(c == (0, 0, 0) for c in config):
        return padded
    return lax.pad(padded, jnp.zeros((), padded.dtype), config)


def max_pool_grad(
    g0: Any, out1: Any, input_aval: Aval, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> Any:
    n = len(kernel_size)
    plan = _plan(input_aval.shape, kernel_size, stride, padding, dilation, ceil_mode)
    sizes = input_aval.shape[g0.ndim - n :]
    if g0.ndim == n + 2:
        return first(_spread(last(g0), last(out1), sizes, plan, 1))
    return _spread(g0, out1, sizes, plan, g0.ndim - n)


def _size_text(plan_in: Sequence[int], plan_out: Sequence[int], channels: int) -> str:
    ins = "x".join(map(str, (channels, *plan_in)))
    outs = "x".join(map(str, (channels, *plan_out)))
    return f"Given input size: ({ins}). Calculated output size: ({outs}). Output size is too small"


def check_max_pool(
    input: Aval, kernel_size: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool
) -> None:
    n = len(kernel_size)
    name = f"max_pool{n}d"
    words = {2: "two", 3: "three"}
    for value, label in (
        (stride, "stride must either be omitted,"),
        (padding, "padding must either be"),
        (dilation, "dilation must be either"),
    ):
        if n > 1 and len(value) != n:
            raise RuntimeError(f"{name}: {label} a single int, or a tuple of {words[n]} ints")
    if n == 1:
        _check_max_pool1d(input, kernel_size[0], stride[0], padding[0], dilation[0], ceil_mode)
    else:
        _check_max_poolnd(input, kernel_size, stride, padding, dilation, ceil_mode, n)
    if input.dtype.name == "bool" or input.dtype.is_complex:
        raise NotImplementedError(f"\"max_pool{n}d\" not implemented for '{input.dtype.scalar_name}'")


def _check_max_pool1d(a: Aval, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    if a.ndim not in (2, 3) or 0 in a.shape[-2:]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{shape_text(a.shape)}"
        )
    for label, value in (("kernel_size", kernel), ("stride", stride)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {label} must be greater than zero, but got {value}")
    if padding < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding}")
    if padding > kernel // 2:
        raise RuntimeError(
            "max_pool1d() padding should be at most half of kernel size, but got "
            f"padding={padding} and kernel_size={kernel}"
        )
    if dilation <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {dilation}")
    out = pooled_size(a.shape[-1], kernel, stride, padding, dilation, ceil_mode)
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")


def _check_max_poolnd(
    a: Aval, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool, n: int
) -> None:
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0:
        raise RuntimeError(
            "kernel size should be greater than zero, but got "
            + _labels(("kH", "kW") if n == 2 else ("kT", "kH", "kW"), kernel)
        )
    if min(stride) <= 0:
        raise RuntimeError(
            "stride should be greater than zero, but got "
            + _labels(("dH", "dW") if n == 2 else ("dT", "dH", "dW"), stride)
        )
    if min(dilation) <= 0:
        names = ("dilationH", "dilationW") if n == 2 else ("dilationT", "dilationH", "dilationW")
        raise RuntimeError("dilation should be greater than zero, but got " + _labels(names, dilation))
    if a.ndim not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    if 0 in a.shape[-n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{shape_text(a.shape)}"
        )
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
    outs = [p[4] for p in _plan(a.shape, kernel, stride, padding, dilation, ceil_mode)]
    if min(outs) < 1:
        raise RuntimeError(_size_text(a.shape[-n:], outs, a.shape[-n - 1]))


def _labels(names: Sequence[str], values: Sequence[int]) -> str:
    return " ".join(f"{n}: {v}" for n, v in zip(names, values, strict=True))


def max_pool_shape(
    input: Aval, kernel_size: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool
) -> tuple[Aval, Aval]:
    plan = _plan(input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    shape = input.shape[: input.ndim - len(plan)] + tuple(p[4] for p in plan)
    return input.with_shape(shape), aval(shape, by_name(_code_dtype(plan)), input.device)


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "code"),
    check=check_max_pool,
    shape=max_pool_shape,
    grad_name=lambda kernel_size, **_: (
        "SqueezeBackward1" if len(kernel_size) == 1 else f"MaxPool{len(kernel_size)}DWithIndicesBackward0"
    ),
    vjp={"input": max_pool_grad},
)
def _max_pool(input: T, kernel_size: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool):
    """Max pooling over the last len(kernel_size) dims, every setting a tuple: (maximum, number of the winning window
    element, row-major)."""
    plan = _plan(input.shape, kernel_size, stride, padding, dilation, ceil_mode)
    reduce = _reduced_max if math.prod(kernel_size) > 25 else _running_max
    batched = input.ndim == len(kernel_size) + 2  # then channels-last, as convolutions have it on CPU
    x, lead = (last(input), 1) if batched else (input, input.ndim - len(kernel_size))
    best, code = reduce(_pad_windows(x, plan, _lowest(input.dtype), lead), plan, _code_dtype(plan), lead)
    return (first(best), first(code)) if batched else (best, code)


@op(
    namespaces=(),
    method=False,
    out=False,
    differentiable=False,
    shape=lambda code, input_size, kernel_size, stride, padding, dilation: aval(code.shape, INT64, code.device),
)
def _max_pool_indices(code: T, input_size: tuple, kernel_size: tuple, stride: tuple, padding: tuple, dilation: tuple):
    """The winning element's flat position in the input's spatial dims (`input_size`), int64."""
    n = len(kernel_size)
    rest = code.astype(jnp.int64)
    flat = None
    factor = 1
    for k in reversed(range(n)):
        dim = code.ndim - n + k
        here = rest % kernel_size[k] if k else rest
        rest = rest // kernel_size[k] if k else rest
        start = lax.broadcasted_iota(jnp.int64, code.shape, dim) * stride[k] - padding[k]
        at = start + here * dilation[k]
        if padding[k]:  # a window of nothing but -inf: the first position that is not padding
            at = jnp.where(at < 0, at + dilation[k] * ((-at + dilation[k] - 1) // dilation[k]), at)
        flat = at * factor if flat is None else flat + at * factor
        factor *= input_size[k]
    return flat


# -- average pooling ------------------------------------------------------------------------------------------


def _window_sum(x: Any, plan: Sequence[tuple], lead: int) -> Any:
    """Sums over windows, one dim after the other."""
    for k, (kernel, stride, _, _, count) in enumerate(plan):
        dim = lead + k
        if kernel == stride or count == 1:
            x = lax.slice_in_dim(x, 0, count * kernel, 1, dim)
            x = x.reshape(*x.shape[:dim], count, kernel, *x.shape[dim + 1 :]).sum(dim + 1, dtype=x.dtype)
        elif kernel <= MAX_SLICES:
            total = _slice_dim(x, dim, 0, count, stride)
            for i in range(1, kernel):
                total = total + _slice_dim(x, dim, i, count, stride)
            x = total
        else:
            starts = np.arange(count)[:, None] * stride + np.arange(kernel)[None, :]
            x = jnp.take(x, jnp.asarray(starts), axis=dim).sum(dim + 1, dtype=x.dtype)
    return x


def _window_sum_grad(g: Any, plan: Sequence[tuple], lead: int) -> Any:
    """Each output's gradient at every element of its window (of the padded input)."""
    for k, (kernel, stride, _, _, _) in enumerate(plan):
        dim = lead + k
        if kernel == stride or g.shape[dim] == 1:
            count = g.shape[dim]
            g = jnp.broadcast_to(jnp.expand_dims(g, dim + 1), (*g.shape[: dim + 1], kernel, *g.shape[dim + 1 :]))
            g = g.reshape(*g.shape[:dim], count * kernel, *g.shape[dim + 2 :])
            continue
        total = None
        for i in range(kernel):
            config = [(0, 0, 0)] * g.ndim
            config[dim] = (i, kernel - 1 - i, stride - 1)
            part = lax.pad(g, jnp.zeros((), g.dtype), config)
            total = part if total is None else total + part
        g = total
    return g


def _avg_plan(shape: tuple, kernel_size: tuple, stride: Any, padding: tuple, ceil_mode: bool) -> list[tuple]:
    return _plan(shape, kernel_size, stride or kernel_size, padding, (1,) * len(kernel_size), ceil_mode)


def _divisor(shape: tuple, plan: Sequence[tuple], count_include_pad: bool, divisor_override: int | None) -> Any:
    """Elements per window: an int where all windows agree, else an array over the output's spatial dims."""
    if divisor_override is not None:
        return divisor_override
    sizes = shape[len(shape) - len(plan) :]
    counts: Any = np.ones((), np.int64)
    for size, (kernel, stride, padding, _, count) in zip(sizes, plan, strict=True):
        start = np.arange(count) * stride - padding
        end = np.minimum(start + kernel, size + padding)
        n = end - start if count_include_pad else np.minimum(end, size) - np.maximum(start, 0)
        counts = np.multiply.outer(counts, n)
    return int(counts.flat[0]) if counts.size and (counts == counts.flat[0]).all() else counts


def _divide(total: Any, divisor: Any) -> Any:
    divisor = jnp.asarray(divisor, total.dtype)
    if total.dtype.kind in "iu":
        return lax.div(total, jnp.broadcast_to(divisor, total.shape))
    return total / divisor


def _avg_pool(x: Any, n: int, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, override: Any) -> Any:
    kernel, padding = ntuple(kernel, n), ntuple(padding, n)
    stride = ntuple(stride, n) if stride not in (None, ()) else kernel
    plan = _avg_plan(x.shape, kernel, stride, padding, ceil)
    divisor = _divisor(x.shape, plan, include, override)
    if x.ndim == n + 2:  # channels-last, as convolutions have it on CPU
        return first(_divide(_window_sum(_pad_windows(last(x), plan, 0, 1), plan, 1), _beside_channels(divisor)))
    lead = x.ndim - n
    return _divide(_window_sum(_pad_windows(x, plan, 0, lead), plan, lead), divisor)


def _beside_channels(divisor: Any) -> Any:
    return divisor if isinstance(divisor, int) else divisor[..., None]


def _avg_grad(
    g: Any, a: Aval, n: int, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, over: Any
) -> Any:
    kernel, padding = ntuple(kernel, n), ntuple(padding, n)
    stride = ntuple(stride, n) if stride not in (None, ()) else kernel
    plan = _avg_plan(a.shape, kernel, stride, padding, ceil)
    divisor, sizes = _divisor(a.shape, plan, include, over), a.shape[a.ndim - n :]
    if a.ndim == n + 2:
        g = _divide(last(g), _beside_channels(divisor))
        return first(_unpad(_window_sum_grad(g, plan, 1), sizes, plan, 1))
    g = _divide(g, divisor)
    return _unpad(_window_sum_grad(g, plan, a.ndim - n), sizes, plan, a.ndim - n)


def avg_pool1d_grad(g, input_aval, kernel_size, stride, padding, ceil_mode, count_include_pad):
    return _avg_grad(g, input_aval, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d_grad(g, input_aval, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return _avg_grad(g, input_aval, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d_grad(g, input_aval, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return _avg_grad(g, input_aval, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _check_avg(a: Aval, n: int, kernel: Any, stride: Any, padding: Any, ceil: bool, override: Any) -> None:
    name, words = f"avg_pool{n}d", {1: "one", 2: "two", 3: "three"}[n]
    if n == 1 and a.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {a.ndim}-dimensional tensor for argument #1 'self' "
            "(while checking arguments for avg_pool1d)"
        )
    for value, label in (
        (kernel, "kernel_size must either be"),
        (stride, "stride must either be omitted,"),
        (padding, "padding must either be"),
    ):
        if isinstance(value, tuple) and len(value) not in ((0, 1, n) if value is stride else (1, n)):
            if n == 1:
                what = label.split(" ", 1)[0]
                raise RuntimeError(
                    f"avg_pool1d() {what} must be an int, list of ints or tuple of ints of size 1 but got size "
                    f"{len(value)}"
                )
            raise RuntimeError(f"{name}: {label} a single int, or a tuple of {words} ints")
    kernel, padding = ntuple(kernel, n), ntuple(padding, n)
    stride = ntuple(stride, n) if stride not in (None, ()) else kernel
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    if override == 0:
        raise RuntimeError("divisor must be not zero")
    if n == 2 and a.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(a.ndim, 1)}, {max(a.ndim, 1) - 1}], but got -3)"
        )
    _check_max_poolnd(a, kernel, stride, padding, (1,) * n, ceil, n) if n > 1 else _check_avg1d(
        a, kernel, stride, padding, ceil
    )
    if not (a.dtype.is_floating_point or a.dtype is INT64):
        raise NotImplementedError(f"\"avg_pool{max(n, 2)}d\" not implemented for '{a.dtype.scalar_name}'")


def _check_avg1d(a: Aval, kernel: tuple, stride: tuple, padding: tuple, ceil: bool) -> None:
    lifted = aval((*a.shape[:-1], 1, a.shape[-1]), a.dtype)
    _check_max_poolnd(lifted, (1, *kernel), (1, *stride), (0, *padding), (1, 1), ceil, 2)


def _avg_shape(a: Aval, n: int, kernel: Any, stride: Any, padding: Any, ceil: bool) -> Aval:
    kernel, padding = ntuple(kernel, n), ntuple(padding, n)
    stride = ntuple(stride, n) if stride not in (None, ()) else kernel
    plan = _avg_plan(a.shape, kernel, stride, padding, ceil)
    return a.with_shape(a.shape[: a.ndim - n] + tuple(p[4] for p in plan))


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad: _check_avg(
        input, 1, kernel_size, stride, padding, ceil_mode, None
    ),
    shape=lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad: _avg_shape(
        input, 1, kernel_size, stride, padding, ceil_mode
    ),
    grad_name="SqueezeBackward1",
    vjp={"input": avg_pool1d_grad},
)
def avg_pool1d(input: T, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """(N, C, L) or (C, L): means over windows of kernel_size, every stride (default: kernel_size)."""
    return _avg_pool(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@op(
    namespaces=("torch.nn.functional",),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: _check_avg(
        input, 2, kernel_size, stride, padding, ceil_mode, divisor_override
    ),
    shape=lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: _avg_shape(
        input, 2, kernel_size, stride, padding, ceil_mode
    ),
    grad_name="AvgPool2DBackward0",
    vjp={"input": avg_pool2d_grad},
)
def avg_pool2d(
    input: T, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """(N, C, H, W) or (C, H, W): means over windows; `divisor_override` replaces the number of elements."""
    return _avg_pool(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@op(
    namespaces=("torch.nn.functional",),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: _check_avg(
        input, 3, kernel_size, stride, padding, ceil_mode, divisor_override
    ),
    shape=lambda input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: _avg_shape(
        input, 3, kernel_size, stride, padding, ceil_mode
    ),
    autocast="float32",
    grad_name="AvgPool3DBackward0",
    vjp={"input": avg_pool3d_grad},
)
def avg_pool3d(
    input: T, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """(N, C, D, H, W) or (C, D, H, W): means over windows."""
    return _avg_pool(input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
