"""Convolutions and pooling of one image by NumPy, for the host tier: the padded image's patches are one strided view
of it, and one matrix product does the rest. What follows a convolution (normalisation by running statistics, ReLU, max
pooling) is joined with it where nothing else needs what lies between: the normalisation goes into the weight, and the
maximum is taken before ReLU and bias are applied to what is left.

Unlike the other host rules these sum in an order of their own: results may differ from a compiled program's in the last
bits."""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.core.native import NATIVE
from torchlike._src.ops import host_cells as host_cells  # their rules, too
from torchlike._src.ops import host_elementwise as host_elementwise
from torchlike._src.ops.convolution import config, conv_sizes
from torchlike._src.ops.host_rules import HostFunction, blocked, declared, floating, of
from torchlike._src.ops.host_rules import host_function as host_function  # with the rules of this file
from torchlike._src.ops.pooling import ntuple, pooled_size

Chain = Callable[[Sequence[Any]], tuple[int, HostFunction] | None]

_chains: dict[str, Chain] = {}

LONG_ROW = 8
"""Output columns from which rows are computed with their padding: longer runs to copy, some results too many."""
KEPT = 1 << 16
"""Elements of a padded image up to which its memory is kept for the next run: its border stays zero."""
MAX_WINDOW = 16
"""Elements of a window in one dim up to which it is combined slice by slice."""


def starts_chain(op: Any) -> bool:
    return op.name in _chains


def host_chain(kernels: Sequence[Any]) -> tuple[int, HostFunction] | None:
    """How many of these kernels, from the first on, one NumPy function computes, and that function; None if there is
    none. Each kernel's first operand is the first result of the one before, which nobody else needs; nobody needs other
    results at all. The function takes the operands of the first and then, without their first, of the others."""
    rule = _chains.get(kernels[0].op.name)
    return rule(kernels) if rule is not None and all(declared(k.op) for k in kernels) else None


def chain(*names: str) -> Callable[[Chain], Chain]:
    def register(rule: Chain) -> Chain:
        for name in names:
            _chains[name] = rule
        return rule

    return register


# -- convolution -------------------------------------------------------------------------------------------------------


def _product(kernel: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """(an image, the weight as (O, C * taps)) -> (O, *out), perhaps with gaps between rows; None if there is no rule
    for this convolution."""
    x, w = kernel.specs[:2]
    given = kernel.op.bind(kernel.static, kernel.specs)
    n = w.ndim - 2
    if floating(*kernel.specs) is None or given["groups"] != 1 or (x.ndim == n + 2 and x.shape[0] != 1):
        return None
    c = config(w.shape[2:], given["stride"], given["padding"], given["dilation"], 1)
    outs, channels, *kernel_size = w.shape
    sizes, out = x.shape[-n:], conv_sizes(x.shape[-n:], tuple(kernel_size), c)
    if 0 in out:
        return None
    dtype, item = x.dtype.np, x.dtype.np.itemsize
    if math.prod(kernel_size) == 1 and not any(map(any, c.pads)):
        steps = (slice(None), *(slice(0, (o - 1) * s + 1, s) for o, s in zip(out, c.stride, strict=True)))
        image, flat = (channels, *sizes), (channels, math.prod(out))
        dot = blocked(kernel, outs, *flat)
        return lambda x, w: dot(w, x.reshape(image)[steps].reshape(flat)).reshape(outs, *out)
    padded = [size + low + high for size, (low, high) in zip(sizes, c.pads, strict=True)]
    # Strides of one channel, in elements.
    stride = [math.prod(padded[k + 1 :]) for k in range(n)]
    rows = n == 2 and set(c.stride) == {1} and kernel_size[-1] > 1 and out[-1] >= LONG_ROW
    length = math.prod(padded) + ((kernel_size[-1] - 1) * c.dilation[-1] if rows else 0)
    inside = sum(low * s for (low, _), s in zip(c.pads, stride, strict=True)) * item
    inner = (length * item, *(s * item for s in stride))
    inner = (0, *inner) if x.ndim == n + 2 else inner
    taps = [d * s * item for d, s in zip(c.dilation, stride, strict=True)]
    if rows:  # each row with its padding: (C, *kernel, all but the last out, padded width)
        computed = (*out[:-1], padded[-1])
        shape = (channels, *kernel_size, math.prod(computed))
        strides = (length * item, *taps, item)
    else:
        computed = out
        shape = (channels, *kernel_size, *out)
        strides = (length * item, *taps, *(a * s * item for a, s in zip(c.stride, stride, strict=True)))
    flat = (channels * math.prod(kernel_size), math.prod(computed))
    dot = blocked(kernel, outs, *flat)
    image = x.shape
    plain = not rows and not any(map(any, c.pads))
    result = (outs, *computed)
    wanted = (..., slice(out[-1]))
    idle: list = []
    kept = channels * length <= KEPT

    def padded_image() -> tuple[np.ndarray, np.ndarray]:
        """(its inside, its patches)"""
        memory = np.zeros((channels, length), dtype)
        return np.ndarray(image, dtype, memory, inside, inner), np.ndarray(shape, dtype, memory, 0, strides)

    def run(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        if plain:
            columns = np.ndarray(shape, dtype, np.ascontiguousarray(x), 0, strides).reshape(flat)
        else:
            try:
                memory = idle.pop()
            except IndexError:  # the first run; another thread's, in direct mode; one that an interrupt ended
                memory = padded_image()
            memory[0][...] = x
            columns = memory[1].reshape(flat)
            if kept:
                idle.append(memory)
        y = dot(w, columns).reshape(result)
        return y[wanted] if rows else y

    return run


def of_the_same(function: Callable) -> Callable:
    """`function` of some arrays, computed again only if one of them is another array than last time: what depends on
    parameters alone. It keeps none of them alive."""
    last: tuple = ((), None)

    def forget(_: Any) -> None:
        nonlocal last
        last = ((), None)

    def run(*arrays: np.ndarray) -> Any:
        nonlocal last
        refs, found = last
        if refs:
            for ref, array in zip(refs, arrays, strict=True):
                if ref() is not array:
                    break
            else:
                return found
        found = function(*arrays)
        last = (tuple([weakref.ref(a, forget) for a in arrays]), found)
        return found

    return run


@of("conv1d", "conv2d", "conv3d")
def _conv(kernel: Any) -> HostFunction | None:
    product = _product(kernel)
    if product is None:
        return None
    outs, shape = kernel.specs[1].shape[0], kernel.outs[0].shape
    per_channel = (outs, *[1] * (kernel.specs[1].ndim - 2))
    if len(kernel.specs) == 2:
        return lambda x, w: (product(x, w.reshape(outs, -1)).reshape(shape),)
    return lambda x, w, b: ((product(x, w.reshape(outs, -1)) + b.reshape(per_channel)).reshape(shape),)


@chain("conv1d", "conv2d", "conv3d")
def _conv_chain(kernels: Sequence[Any]) -> tuple[int, HostFunction] | None:
    """A convolution, normalisation by running statistics, ReLU and max pooling, each of the last three if it is there,
    as one function of the operands of all."""
    conv, *rest = kernels
    norm = pool = None
    relu = False
    n = conv.specs[1].ndim - 2
    batched = conv.specs[0].ndim == n + 2
    if rest and rest[0].op.name == "_batch_norm_eval" and batched and floating(*rest[0].specs) is not None:
        norm = rest.pop(0)
    if rest and rest[0].op.name == "relu":
        relu = bool(rest.pop(0))
    if rest and rest[0].op.name == "_max_pool" and len(rest[0].static[0]) == n:
        pool = _maximum(rest[0])
    used = 1 + (norm is not None) + relu + (pool is not None)
    whole = _native_maximum(kernels[used - 1]) if pool is not None else None
    product = _product(conv) if used > 1 else None
    if product is None:
        return None
    dtype, outs = conv.specs[1].dtype.np, conv.specs[1].shape[0]
    per_channel, shape = (outs, *[1] * n), kernels[used - 1].outs[0].shape
    biased = len(conv.specs) == 3
    given = {} if norm is None else norm.op.bind(norm.static, norm.specs)
    weighted, shifted = given.get("weight") is not None, given.get("bias") is not None
    eps, one, zero = np.array(given.get("eps", 0), dtype), np.ones((), dtype), np.zeros((), dtype)

    def parameters(w: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """(the weight as (O, C * taps), what is added to each channel), with the normalisation in them."""
        w = w.reshape(outs, -1)
        shift = others[0] if biased else None
        if norm is not None:
            *affine, mean, variance = others[1:] if biased else others
            scale = (affine[0] if weighted else one) / np.sqrt(variance + eps)
            w = w * scale.reshape(outs, 1)
            shift = (-mean if shift is None else shift - mean) * scale
            if shifted:
                shift = shift + affine[-1]
        return w, None if shift is None else shift.reshape(per_channel)

    settled = parameters if norm is None else of_the_same(parameters)

    def run(x: np.ndarray, *others: np.ndarray) -> Sequence[np.ndarray]:
        w, shift = settled(*others)
        y = product(x, w)
        if whole is not None:
            return (whole(y, shift, relu).reshape(shape),)
        if pool is not None:
            y = pool(y)
        if shift is not None:
            y = y + shift if y.base is not None else np.add(y, shift, out=y)
        if relu:
            y = np.maximum(y, zero, out=y)
        return (y.reshape(shape),)

    return used, run


# -- pooling -----------------------------------------------------------------------------------------------------------


def _combiner(size: int, after: int, parts: Sequence[slice], ufunc: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What combines the windows of one dim, of this size and with so many dims after it."""
    places: list[Any] = [(..., part, *(slice(None),) * after) for part in parts]
    first, *rest = places
    if not rest:
        return lambda a: a[first]
    second, *rest = rest
    count = len(parts)
    # Windows side by side: one loop over all rows.
    side_by_side = not after and parts[0].step == count and parts[1].start == 1 and parts[-1].stop == size
    flat_first, flat_second, *flat_rest = [slice(p.start, None, p.step) for p in parts]

    def run(a: np.ndarray) -> np.ndarray:
        if side_by_side and a.flags.c_contiguous:
            shape = (*a.shape[:-1], size // count)
            a = a.reshape(-1)
            out = ufunc(a[flat_first], a[flat_second])
            for part in flat_rest:
                ufunc(out, a[part], out=out)
            return out.reshape(shape)
        out = ufunc(a[first], a[second])
        for place in rest:
            ufunc(out, a[place], out=out)
        return out

    return run


def _combiners(parts: Sequence[Sequence[slice]], sizes: Sequence[int], ufunc: Any) -> list[Callable]:
    """One for each of the last dims, which have these sizes."""
    return [
        _combiner(size, len(sizes) - 1 - k, slices, ufunc)
        for k, (size, slices) in enumerate(zip(sizes, parts, strict=True))
    ]


def _parts(kernel: int, stride: int, dilation: int, out: int) -> list[slice]:
    """Where each element of all windows lies in one dim."""
    return [slice(i * dilation, i * dilation + (out - 1) * stride + 1, stride) for i in range(kernel)]


def _windows(kernel: Any) -> tuple[list[list[slice]], list[tuple[int, int]]] | None:
    """(the slices of each spatial dim, its padding); None if there is no rule."""
    given = kernel.op.bind(kernel.static, kernel.specs)
    x = kernel.specs[0]
    sizes = given["kernel_size"]
    n = len(sizes) if isinstance(sizes, tuple) else int(kernel.op.name[-2])
    stride = given["stride"] if given["stride"] not in (None, ()) else sizes
    settings = [ntuple(v, n) for v in (sizes, stride, given["padding"], given.get("dilation", 1))]
    parts, pads = [], []
    for size, k, s, p, d in zip(x.shape[-n:], *settings, strict=True):
        out = pooled_size(size, k, s, p, d, given["ceil_mode"])
        if k > MAX_WINDOW or out < 1:
            return None
        pads.append((p, max((out - 1) * s + d * (k - 1) + 1 - p - size, 0)))
        parts.append(_parts(k, s, d, out))
    return parts, pads


def _maximum(kernel: Any) -> Callable[[np.ndarray], np.ndarray] | None:
    """Max pooling without the winners' numbers, over an array's last dims."""
    found = _windows(kernel) if floating(kernel.specs[0]) is not None else None
    if found is None:
        return None
    parts, pads = found
    n, dtype = len(parts), kernel.specs[0].dtype.np
    sizes = kernel.specs[0].shape[-n:]
    lowest = dtype.type(-math.inf)
    padded = tuple(size + low + high for size, (low, high) in zip(sizes, pads, strict=True))
    inside: tuple = (..., *[slice(low, low + size) for size, (low, _) in zip(sizes, pads, strict=True)])
    grows = any(map(any, pads))
    combiners = _combiners(parts, padded, np.maximum)

    def run(a: np.ndarray) -> np.ndarray:
        if grows:
            image, a = a, np.full((*a.shape[: a.ndim - n], *padded), lowest)
            a[inside] = image
        for combine in combiners:
            a = combine(a)
        return a

    return run


def _native_maximum(kernel: Any) -> Callable[[np.ndarray, np.ndarray | None, bool], np.ndarray] | None:
    """Max pooling in two dims, a number added per channel and ReLU, by the C extension: (C, H, W) -> (C, H', W')."""
    parts, pads = _windows(kernel) or ((), ())
    if NATIVE is None or len(parts) != 2 or any(map(any, pads)):
        return None
    first = [p[0] for p in parts]
    outs = tuple([(s.stop - s.start - 1) // s.step + 1 for s in first])
    kernel_size, stride = tuple(map(len, parts)), tuple([s.step for s in first])
    dilation = tuple([p[1].start if len(p) > 1 else 1 for p in parts])

    dtype, pool = kernel.specs[0].dtype.np, NATIVE.max_pool

    def run(a: np.ndarray, shift: np.ndarray | None, relu: bool) -> np.ndarray:
        out = np.empty((len(a), *outs), dtype)
        pool(a, out, shift if shift is None else np.ascontiguousarray(shift), relu, kernel_size, stride, dilation)
        return out

    return run


@chain("_max_pool")
def _max_pool_chain(kernels: Sequence[Any]) -> tuple[int, HostFunction] | None:
    """Max pooling whose winners nobody asks for."""
    run = _maximum(kernels[0])
    return None if run is None else (1, lambda a: (run(a),))


@of("avg_pool1d", "avg_pool2d", "avg_pool3d")
def _avg_pool(kernel: Any) -> HostFunction | None:
    found = _windows(kernel) if floating(kernel.specs[0], *kernel.outs) is not None else None
    given = kernel.op.bind(kernel.static, kernel.specs)
    if found is None or any(map(any, found[1])) or given["ceil_mode"]:
        return None
    parts = found[0]
    combiners = _combiners(parts, kernel.specs[0].shape[-len(parts) :], np.add)
    divisor = given.get("divisor_override") or math.prod(map(len, parts))
    divisor = kernel.specs[0].dtype.np.type(divisor)

    def run(a: np.ndarray) -> Sequence[np.ndarray]:
        for combine in combiners:
            a = combine(a)
        return (a / divisor,)

    return run
