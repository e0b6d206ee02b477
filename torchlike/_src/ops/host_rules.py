"""NumPy functions for common kernels, written out: what the host tier would generate, without tracing by JAX first.

Tracing a kernel and generating its NumPy function takes a millisecond, and sequences of varying length make new
kernels in every step. Each rule here gives, to the last bit, what `compile_host` makes of the kernel's jaxpr; the
tests compare the two. A rule returns None for kernels that it does not cover."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.core.build_target import ONE_THREAD
from torchlike._src.ops.declare import OPS, Pullback
from torchlike._src.ops.kernels import ADD, FILL, ONES, ZEROS
from torchlike._src.ops.products import form, sums_by_product
from torchlike._src.ops.views import EXPAND, PERMUTE, RESHAPE, SELECT, SLICE, SPLIT

HostFunction = Callable[..., Sequence[np.ndarray]]
Rule = Callable[[Any], HostFunction | None]
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

INTERNAL = {RESHAPE, PERMUTE, EXPAND, SELECT, SLICE, SPLIT, ADD, ONES, ZEROS, FILL}

_forward: dict[str, Rule] = {}
_backward: dict[str, Rule] = {}
_partial: set[Rule] = set()
"""Rules for gradients that look at which results have one."""


def host_function(kernel: Any) -> HostFunction | None:
    """The NumPy function of a kernel: arrays of exactly its operands' shapes and dtypes -> its results, as
    `compile_host` would give them; None if there is no rule."""
    op = kernel.op
    if type(op) is Pullback:
        rule = _backward.get(op.forward.op.name)
        if rule is None or not declared(op.forward.op):
            return None
        return rule(kernel) if all(op.given) or rule in _partial else None
    rule = _forward.get(op.name)
    return rule(kernel) if rule is not None and declared(op) else None


def declared(op: Any) -> bool:
    """Whether it is the operator of that name, and not an internal kernel that is called the same."""
    return OPS.get(op.name) is op or op in INTERNAL


def of(*names: str, backward: bool = False, partial: bool = False) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for name in names:
            (_backward if backward else _forward)[name] = rule
        if partial:
            _partial.add(rule)
        return rule

    return register


def floating(*avals: Any) -> np.dtype | None:
    """The floating dtype that all have, if they are arrays of one that NumPy computes in, with elements."""
    first = avals[0]
    if type(first) is not Aval or first.dtype.np not in FLOATS:
        return None
    return first.dtype.np if all(type(a) is Aval and a.dtype is first.dtype and a.numel for a in avals) else None


def _array(x: Any) -> np.ndarray:
    return x if type(x) is np.ndarray else np.asarray(x)


# -- constants ---------------------------------------------------------------------------------------------------------


@of("ones", "zeros")
def _constant(kernel: Any) -> HostFunction | None:
    out = kernel.outs[0]
    if out.dtype.np.kind not in "biuf":
        return None
    shape, dtype, number = out.shape, out.dtype.np, int(kernel.op is ONES)
    return lambda: (np.full(shape, number, dtype),)


@of("fill")
def _fill(kernel: Any) -> HostFunction | None:
    out = kernel.outs[0]
    if kernel.specs[0] not in ("f", "i") or floating(out) is None:
        return None
    shape, dtype = out.shape, out.dtype.np
    return lambda number: (np.full(shape, number, dtype),)


# -- views -------------------------------------------------------------------------------------------------------------


@of("view")
def _view(kernel: Any) -> HostFunction | None:
    shape = kernel.outs[0].shape
    return lambda a: (a.reshape(shape),)


@of("view", backward=True)
def _view_back(kernel: Any) -> HostFunction | None:
    shape = kernel.outs[0].shape
    return lambda g: (g.reshape(shape),)


@of("permute")
def _permute(kernel: Any) -> HostFunction | None:
    dims = dict(kernel.static)["dims"]
    return lambda a: (a.transpose(dims),)


@of("permute", backward=True)
def _permute_back(kernel: Any) -> HostFunction | None:
    dims = dict(kernel.op.forward.static)["dims"]
    inverse = tuple(np.argsort(dims).tolist())
    return lambda g: (g.transpose(inverse),)


def _broadcaster(given: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype) -> Callable[[Any], np.ndarray]:
    """`np.broadcast_to(a, shape)` for arrays of the shape `given`, several times faster."""
    if math.prod(given) == math.prod(shape):
        return lambda a: _array(a).reshape(shape)
    strides = np.broadcast_to(np.empty(given, dtype), shape).strides

    def run(a: Any) -> np.ndarray:
        if type(a) is not np.ndarray or not a.flags.c_contiguous:
            return np.broadcast_to(a, shape)
        out = np.ndarray(shape, dtype, a, 0, strides)
        out.flags.writeable = False
        return out

    return run


@of("expand")
def _expand(kernel: Any) -> HostFunction | None:
    x, shape = kernel.specs[0], kernel.outs[0].shape
    if x.dtype.np.kind not in "biufc" or not x.numel:
        return lambda a: (np.broadcast_to(a, shape),)
    expand = _broadcaster(x.shape, shape, x.dtype.np)
    return lambda a: (expand(a),)


def _start(index: Any, size: int, span: int) -> int:
    """Where JAX's dynamic slice begins: negative numbers count from the end, and the slice is kept inside."""
    k = int(index)
    k = k + size if k < 0 else k
    return min(max(k, 0), size - span)


@of("select")
def _select(kernel: Any) -> HostFunction | None:
    dim = dict(kernel.static)["dim"]
    size = kernel.specs[0].shape[dim]
    before = (slice(None),) * dim
    if kernel.specs[1] != "i" or not size:
        return None
    return lambda a, k: (_array(a[(*before, _start(k, size, 1))]),)


@of("slice")
def _slice(kernel: Any) -> HostFunction | None:
    static = dict(kernel.static)
    dim, length, step = static["dim"], static["length"], static["step"]
    size = kernel.specs[0].shape[dim]
    before = (slice(None),) * dim
    if kernel.specs[1] != "i" or not length:
        return None
    if length == size:
        return lambda a, k: (a,)
    span = (length - 1) * step + 1

    def run(a: np.ndarray, k: Any) -> Sequence[np.ndarray]:
        first = _start(k, size, span)
        return (a[(*before, slice(first, first + span, step))],)

    return run


@of("select", "slice", backward=True)
def _slice_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    static = dict(forward.static)
    dim, length, step = static["dim"], static.get("length", 1), static.get("step", 1)
    out = kernel.outs[0]
    size = out.shape[dim]
    if kernel.specs[0] != "i" or floating(kernel.specs[1]) is None or not length or step != 1:
        return None
    if "length" in static and length == size:
        return lambda k, g: (g,)
    before = (slice(None),) * dim
    one = "length" not in static
    shape, dtype = out.shape, out.dtype.np

    def run(k: Any, g: np.ndarray) -> Sequence[np.ndarray]:
        first = _start(k, size, length)
        full = np.zeros(shape, dtype)
        full[(*before, first if one else slice(first, first + length))] = g
        return (full,)

    return run


@of("cat")
def _cat(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None or any(s.ndim != kernel.specs[0].ndim for s in kernel.specs):
        return None
    dim = kernel.static[0] % kernel.specs[0].ndim
    return lambda *arrays: (np.concatenate(arrays, dim),)


@of("split", backward=True)
def _split_back(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None:
        return None
    dim = dict(kernel.op.forward.static)["dim"]
    return lambda *arrays: (np.concatenate(arrays, dim),)


@of("stack")
def _stack(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None:
        return None
    dim = kernel.static[0] % kernel.outs[0].ndim
    return lambda *arrays: (np.stack(arrays, dim),)


@of("cat", "stack", backward=True)
def _join_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    if floating(*forward.specs, *kernel.specs) is None or not all(kernel.op.need) or len(kernel.specs) != 1:
        return None
    if any(s.ndim != forward.specs[0].ndim for s in forward.specs):
        return None
    dim = forward.static[0] % forward.outs[0].ndim
    before = (slice(None),) * dim
    if forward.op.name == "stack":
        count = len(forward.specs)
        return lambda g: [_array(g[(*before, k)]) for k in range(count)]
    ends = np.cumsum([s.shape[dim] for s in forward.specs]).tolist()
    parts = [(*before, slice(first, last)) for first, last in zip([0, *ends], ends, strict=False)]
    return lambda g: [g[p] for p in parts]


# -- reductions --------------------------------------------------------------------------------------------------------


def _reduced(static: tuple, ndim: int) -> tuple[int, ...] | None:
    """The reduced dims of sum and mean; None if a dtype is given."""
    dim, _, dtype = static
    if dtype is not None:
        return None
    if dim is None or dim == ():
        return tuple(range(ndim))
    return tuple(sorted({d % ndim for d in ((dim,) if isinstance(dim, int) else dim)})) if ndim else None


@of("sum", "mean")
def _sum(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    dtype = floating(x, *kernel.outs)
    dims = None if dtype is None or not x.ndim else _reduced(kernel.static, x.ndim)
    if dtype is None or not dims:
        return None
    shape = kernel.outs[0].shape
    count = math.prod(x.shape[d] for d in dims)
    axis = None if len(dims) == x.ndim else dims[0] if len(dims) == 1 else dims
    add = np.add.reduce
    if kernel.op.name == "sum":
        return lambda a: (_array(add(a, axis)).reshape(shape),)
    divisor = dtype.type(count)
    return lambda a: (_array(add(a, axis) / divisor).reshape(shape),)


@of("sum", "mean", backward=True)
def _sum_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    (x,) = forward.specs
    dtype = floating(x, *kernel.specs)
    dims = None if dtype is None or not x.ndim else _reduced(forward.static, x.ndim)
    if dtype is None or not dims:
        return None
    kept = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    expand = _broadcaster(kept, x.shape, dtype)
    if forward.op.name == "sum":
        return lambda g: (expand(g.reshape(kept)),)
    divisor = dtype.type(math.prod(x.shape[d] for d in dims))
    return lambda g: (expand(_array(g / divisor).reshape(kept)),)


@of("var", "std")
def _variance(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    dtype = floating(x)
    static = kernel.op.bind(kernel.static, kernel.specs)
    if dtype is None or not x.ndim or static["dim"] is not None or static["keepdim"] or x.numel < 2:
        return None
    if static["unbiased"] is not None or static["correction"] is not None:
        return None
    count, divisor = dtype.type(x.numel), dtype.type(x.numel - 1)
    add, root = np.add.reduce, kernel.op.name == "std"

    def run(a: np.ndarray) -> Sequence[np.ndarray]:
        d = a - add(a, None) / count
        found = add(d * d, None) / divisor
        return (_array(np.sqrt(found) if root else found),)

    return run


@of("softmax", "log_softmax")
def _softmax(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    dim, dtype = kernel.static
    if floating(x) is None or dtype is not None or not x.ndim:
        return None
    dim = dim % x.ndim
    largest, add = np.maximum.reduce, np.add.reduce

    def softmax(a: np.ndarray) -> Sequence[np.ndarray]:
        e = np.exp(a - largest(a, dim, keepdims=True))
        return (e / add(e, dim, keepdims=True),)

    def log_softmax(a: np.ndarray) -> Sequence[np.ndarray]:
        shifted = a - largest(a, dim, keepdims=True)
        return (shifted - np.log(add(np.exp(shifted), dim, keepdims=True)),)

    return softmax if kernel.op.name == "softmax" else log_softmax


@of("softmax", "log_softmax", backward=True)
def _softmax_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    dim, dtype = forward.static
    if len(kernel.specs) != 2 or floating(*kernel.specs) is None or dtype is not None or not forward.specs[0].ndim:
        return None
    dim = dim % forward.specs[0].ndim
    add = np.add.reduce

    def softmax(out: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
        weighted = g * out
        return (weighted - out * add(weighted, dim, keepdims=True),)

    def log_softmax(out: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
        return (g - np.exp(out) * add(g, dim, keepdims=True),)

    return softmax if forward.op.name == "softmax" else log_softmax


# -- matrix products ---------------------------------------------------------------------------------------------------


def note_multiplications(kernel: Any, multiplications: int) -> None:
    """Note how much work a product is, for the engine's estimate."""
    kernel.cache["multiplications"] = multiplications
    kernel.cache["threads"] = multiplications > ONE_THREAD


def note_work(kernel: Any, calls: int, elements: int) -> None:
    """Note how many calls of NumPy a rule makes, if more than two, and how many elements these read and write together,
    for the engine's estimate."""
    kernel.cache["work"] = calls, elements


BLOCKS = 64
"""More blocks than these gain nothing: then BLAS's threads are worth their waiting."""


def blocked(kernel: Any, rows: int, inner: int, columns: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The product of (rows, inner) and (inner, columns), a small one in blocks that need no second thread: BLAS's wait
    for each other without sleeping, and where another process is busy, too, they wait for milliseconds."""
    note_multiplications(kernel, rows * inner * columns)
    height = min(rows, max(8, ONE_THREAD // max(inner * columns, 1)))
    width = min(columns, ONE_THREAD // max(height * inner, 1))
    if rows * inner * columns <= ONE_THREAD or width < min(columns, 16) or rows * inner * columns > BLOCKS * ONE_THREAD:
        return np.dot
    kernel.cache["threads"] = False
    starts = range(0, rows, height)
    parts = [slice(j, j + width) for j in range(0, columns, width)]
    dtype = kernel.outs[0].dtype.np

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.empty((rows, columns), dtype)
        for i in starts:
            if width == columns:
                np.dot(a[i : i + height], b, out[i : i + height])
            else:
                for part in parts:
                    out[i : i + height, part] = np.dot(a[i : i + height], b[:, part])
        return out

    return run


def _rows(a: np.ndarray) -> np.ndarray:
    """For BLAS, which wants one of the last two dims without gaps."""
    if a.strides[-1] != a.itemsize and a.strides[-2] != a.itemsize:
        return np.ascontiguousarray(a)
    return a


def _matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.matmul(_rows(a), _rows(b))


def _stacks(a: Any, b: Any) -> bool:
    """Whether both are matrices, or equally many of them; sums over one element are another matter."""
    return 2 <= a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2] and min(*a.shape[-2:], b.shape[-1]) > 1


@of("matmul", "bmm", "mm")
def _product(kernel: Any) -> HostFunction | None:
    a, b = kernel.specs
    if floating(a, b) is None or not _stacks(a, b):
        return None
    note_multiplications(kernel, a.numel * b.shape[-1])
    return (lambda x, y: (np.dot(x, y),)) if a.ndim == 2 else (lambda x, y: (_matmul(x, y),))


@of("matmul", "bmm", "mm", backward=True)
def _product_back(kernel: Any) -> HostFunction | None:
    op = kernel.op
    a, b = op.forward.specs
    if floating(a, b, *kernel.specs) is None or not _stacks(a, b):
        return None
    product = np.dot if a.ndim == 2 else _matmul
    note_multiplications(kernel, a.numel * b.shape[-1] * sum(op.need))
    if op.need == (True, True) and op.plan == ((0, 1), ()):
        return lambda x, y, g: (product(g, y.swapaxes(-1, -2)), product(x.swapaxes(-1, -2), g))
    if op.need == (True, False) and op.plan == ((1,), ()):
        return lambda y, g: (product(g, y.swapaxes(-1, -2)),)
    if op.need == (False, True) and op.plan == ((0,), ()):
        return lambda x, g: (product(x.swapaxes(-1, -2), g),)
    return None


def _fits_linear(specs: tuple) -> bool:
    """Rows, a matrix and perhaps a vector; sums over one element are another matter."""
    x, w = specs[:2]
    return (
        floating(*specs) is not None
        and x.ndim >= 2
        and w.ndim == 2
        and all(b.ndim == 1 for b in specs[2:])
        and min(*w.shape, math.prod(x.shape[:-1])) > 1
    )


@of("linear")
def _linear(kernel: Any) -> HostFunction | None:
    x, w = kernel.specs[:2]
    if not _fits_linear(kernel.specs):
        return _linear_row(kernel) or _linear_vector(kernel)
    rows, shape = (math.prod(x.shape[:-1]), x.shape[-1]), kernel.outs[0].shape
    note_multiplications(kernel, x.numel * w.shape[0])
    if form(rows[0], w.shape[0], w.shape[1], w.dtype.np) == "swapped":
        if len(kernel.specs) == 2:
            return lambda a, w: (np.dot(w, a.reshape(rows).T).T.reshape(shape),)
        return lambda a, w, b: (np.dot(w, a.reshape(rows).T).T.reshape(shape) + b,)
    if len(kernel.specs) == 2:
        return lambda a, w: (np.dot(a.reshape(rows), w.T).reshape(shape),)
    return lambda a, w, b: (np.dot(a.reshape(rows), w.T).reshape(shape) + b,)


def _linear_row(kernel: Any) -> HostFunction | None:
    """One row and a large matrix, part by part in this thread; see `blocked`."""
    x, w = kernel.specs[:2]
    if floating(*kernel.specs) is None or w.ndim != 2 or x.ndim < 2 or x.numel != w.shape[1]:
        return None
    if any(b.ndim != 1 for b in kernel.specs[2:]):
        return None
    outs, inner = w.shape
    height = ONE_THREAD // (2 * inner)
    if not ONE_THREAD < w.numel <= BLOCKS * ONE_THREAD or height < 8:
        return None
    note_multiplications(kernel, w.numel)
    kernel.cache["threads"] = False
    dtype, shape = x.dtype.np, kernel.outs[0].shape
    parts = [slice(i, i + height) for i in range(0, outs, height)]

    def run(a: np.ndarray, w: np.ndarray, *bias: np.ndarray) -> Sequence[np.ndarray]:
        out = np.empty((1, outs), dtype)
        a = a.reshape(1, inner)
        for part in parts:
            out[:, part] = np.dot(a, w[part].T)
        if bias:
            out += bias[0]
        return (out.reshape(shape),)

    return run


def _linear_vector(kernel: Any) -> HostFunction | None:
    """A vector, or one row, and a small matrix."""
    x, w = kernel.specs[:2]
    if floating(*kernel.specs) is None or w.ndim != 2 or any(b.ndim != 1 for b in kernel.specs[2:]):
        return None
    if x.ndim != 1 and (x.ndim != 2 or min(w.shape) == 1 or form(1, w.shape[0], w.shape[1], w.dtype.np) == "swapped"):
        return None
    note_multiplications(kernel, w.numel)
    if w.shape[0] == 1:
        if len(kernel.specs) == 2:
            return lambda a, w: (np.dot(a, w.reshape(-1, 1)),)
        return lambda a, w, b: (np.dot(a, w.reshape(-1, 1)) + b,)
    if w.shape[1] == 1:
        return None
    return (lambda a, w: (np.dot(a, w.T),)) if len(kernel.specs) == 2 else (lambda a, w, b: (np.dot(a, w.T) + b,))


def _linear_vector_back(kernel: Any) -> HostFunction | None:
    op = kernel.op
    x, w = op.forward.specs[:2]
    need, (saved, outputs) = op.need, op.plan
    if floating(*op.forward.specs, *kernel.specs) is None or w.ndim != 2 or w.shape[1] == 1:
        return None
    one = w.shape[0] == 1
    if one and x.ndim != 1:
        return None
    if x.ndim not in (1, 2) or x.numel != x.shape[-1]:
        return None
    if outputs or set(saved) - {0, 1} or (need[0] and 1 not in saved) or (need[1] and 0 not in saved):
        return None
    if any(b.ndim != 1 for b in op.forward.specs[2:]):
        return None
    note_multiplications(kernel, w.numel * sum(need[:2]))
    bias = len(need) > 2 and need[2]

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        g = arrays[-1]
        found = []
        if need[0]:
            w = arrays[saved.index(1)]
            found.append(np.multiply(g, w.reshape(-1)) if one else np.dot(g, w))
        if need[1]:
            found.append(np.multiply(g.reshape(-1, 1), arrays[0]))
        if bias:
            found.append(g.reshape(-1))
        return found

    if saved == (0, 1) and need[0] and need[1] and bias and not one:
        return lambda x, w, g: (np.dot(g, w), np.multiply(g.reshape(-1, 1), x), g.reshape(-1))
    return run


@of("linear", backward=True)
def _linear_back(kernel: Any) -> HostFunction | None:
    op = kernel.op
    x, w = op.forward.specs[:2]
    if not _fits_linear(op.forward.specs) or floating(x, *kernel.specs) is None:
        return _linear_vector_back(kernel)
    need, (saved, outputs) = op.need, op.plan
    if outputs or set(saved) - {0, 1} or (need[0] and 1 not in saved) or (need[1] and 0 not in saved):
        return None
    rows, shape = math.prod(x.shape[:-1]), x.shape
    outs = w.shape[0]
    note_multiplications(kernel, x.numel * outs * sum(need[:2]))
    leading = tuple(range(x.ndim - 1))
    axis = leading[0] if len(leading) == 1 else leading
    ones = np.ones(rows, w.dtype.np) if sums_by_product(rows, outs, w.dtype.np) else None

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        g = arrays[-1]
        known = dict(zip(saved, arrays, strict=False))
        found = []
        if need[0]:
            found.append(np.dot(g.reshape(rows, outs), known[1]).reshape(shape))
        if need[1]:
            found.append(np.dot(g.reshape(rows, outs).T, known[0].reshape(rows, -1)))
        if need[2:] and need[2]:
            found.append(np.dot(ones, g.reshape(rows, outs)) if ones is not None else np.add.reduce(g, axis))
        return found

    return run


# -- classes -----------------------------------------------------------------------------------------------------------


def _classes(kernel: Any) -> tuple[np.dtype, int, int] | None:
    """(dtype, rows, classes) of a negative log likelihood of rows without weights."""
    x, target = kernel.specs[:2]
    if len(kernel.specs) != 2 or floating(x) is None or x.ndim != 2 or target.dtype.np != np.int64:
        return None
    return x.dtype.np, *x.shape


def _ignored_and_reduction(kernel: Any) -> tuple[int, str]:
    found = kernel.op.bind(kernel.static, kernel.specs)
    return found["ignore_index"], found["reduction"]


@of("_nll_loss")
def _nll_loss(kernel: Any) -> HostFunction | None:
    found = _classes(kernel)
    if found is None:
        return None
    dtype, rows, classes = found
    ignored, reduction = _ignored_and_reduction(kernel)
    first = np.arange(rows) * classes
    add = np.add.reduce

    def run(x: np.ndarray, t: np.ndarray) -> Sequence[np.ndarray]:
        valid = t != ignored
        w = valid.astype(dtype)
        safe = t if valid.all() else np.where(valid, t, 0)
        if np.maximum.reduce(safe.view(np.uint64)) < classes:
            picked = x.reshape(-1).take(first + safe)
        else:  # a class out of range is NaN, as in a compiled program
            good = (safe >= 0) & (safe < classes)
            picked = np.where(good, x.reshape(-1).take(first + np.where(good, safe, 0)), dtype.type(np.nan))
        loss = -w * picked
        if reduction == "none":
            return loss, np.zeros((), dtype)
        total = add(w, None)
        out = add(loss, None)
        return _array(out / total if reduction == "mean" else out), _array(total)

    return run


@of("_nll_loss", backward=True, partial=True)
def _nll_loss_back(kernel: Any) -> HostFunction | None:
    op = kernel.op
    found = _classes(op.forward)
    if found is None:
        return None
    dtype, rows, classes = found
    ignored, reduction = _ignored_and_reduction(op.forward)
    mean = reduction == "mean"
    if op.given[1] or op.plan != ((1,), (1,)) or kernel.specs[-1].dtype.np != dtype:
        return None
    numbers = np.arange(classes, dtype=np.int32)
    zero = np.zeros((), dtype)

    def run(t: np.ndarray, *rest: np.ndarray) -> Sequence[np.ndarray]:
        scale = -(t != ignored).astype(dtype) * rest[-1]
        if mean:
            scale = scale / rest[0]
        return (np.where(numbers == t.astype(np.int32)[:, None], scale[:, None], zero),)

    return run


# -- tables ------------------------------------------------------------------------------------------------------------


@of("embedding")
def _embedding(kernel: Any) -> HostFunction | None:
    weight, indices = kernel.specs
    if floating(weight) is None or indices.dtype.np != np.int64 or not indices.numel:
        return None
    return lambda w, k: (w.take(k, 0) if k.min() >= 0 and k.max() < len(w) else _take_rows(w, k),)


def _take_rows(w: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Rows out of range are NaN, as in a compiled program."""
    good = (k >= 0) & (k < len(w))
    out = w[np.where(good, k, 0)]
    out[~good] = np.nan
    return out


def _one_embedding_back(count: int, width: int, padding_idx: int, dtype: np.dtype) -> HostFunction:
    def run(k: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
        table = np.zeros((count, width), dtype)
        row = int(k.reshape(-1)[0])
        if 0 <= row < count and row != padding_idx:
            table[row] += g.reshape(-1)
        return (table,)

    return run


@of("embedding", backward=True)
def _embedding_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    weight = forward.specs[0]
    padding_idx, by_frequency, _ = forward.static
    if floating(weight, kernel.specs[-1]) is None or len(kernel.specs) != 2 or by_frequency or weight.shape[1] < 2:
        return None
    count, width = weight.shape
    dtype = weight.dtype.np
    if kernel.specs[0].dtype.np != np.int64:
        return None
    if kernel.specs[0].numel == 1:
        return _one_embedding_back(count, width, padding_idx, dtype)
    columns, step = np.arange(width), max(1, (1 << 20) // width)

    def run(k: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
        table = np.zeros((count, width), dtype)
        rows, updates = k.reshape(-1), g.reshape(-1, width)
        if padding_idx >= 0 or np.maximum.reduce(rows.view(np.uint64)) >= count:  # negative numbers are large ones here
            good = (rows >= 0) & (rows < count) & (rows != padding_idx)
            rows, updates = rows[good], updates[good]
        line = table.reshape(-1)
        for i in range(0, rows.size, step):
            at = rows[i : i + step, None] * width + columns
            np.add.at(line, at.reshape(-1), updates[i : i + step].reshape(-1))
        return (table,)

    return run
