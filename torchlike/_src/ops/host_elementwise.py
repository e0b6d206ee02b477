"""NumPy functions for elementwise kernels, their gradients and what else works on few elements at a time (scalars, a
row, one index), for the host tier; see `host_rules`."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.ops.host_rules import FLOATS, HostFunction, floating, of
from torchlike._src.ops.products import sums_by_product

as_array = np.asarray


# -- one operand -------------------------------------------------------------------------------------------------------

UNARY = {"neg": np.negative, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "abs": np.absolute}


@of(*UNARY)
def _unary(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    ufunc = UNARY[kernel.op.name]
    if floating(x) is None:
        return None
    return (lambda a: (ufunc(a),)) if x.ndim else (lambda a: (as_array(ufunc(a)),))


@of("relu")
def _relu(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    dtype = floating(x)
    if dtype is None or not x.ndim:
        return None
    zero = np.zeros((), dtype)
    return lambda a: (np.maximum(a, zero),)


@of("relu", backward=True)
def _relu_back(kernel: Any) -> HostFunction | None:
    dtype = floating(*kernel.specs)
    if dtype is None or len(kernel.specs) != 2 or not kernel.specs[0].ndim:
        return None
    zero = np.zeros((), dtype)
    return lambda out, g: (np.where(np.less_equal(out, zero), zero, g),)


@of("neg", backward=True)
def _neg_back(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None:
        return None
    return lambda g: (as_array(np.negative(g)),)


@of("exp", backward=True)
def _exp_back(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None or len(kernel.specs) != 2:
        return None
    return lambda out, g: (as_array(np.multiply(g, out)),)


@of("log", backward=True)
def _log_back(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None or len(kernel.specs) != 2:
        return None
    return lambda x, g: (as_array(np.divide(g, x)),)


@of("_pow_static")
def _square(kernel: Any) -> HostFunction | None:
    if floating(*kernel.specs) is None or kernel.static != (2,):
        return None
    return lambda x: (as_array(np.multiply(x, x)),)


@of("_pow_static", backward=True)
def _square_back(kernel: Any) -> HostFunction | None:
    dtype = floating(*kernel.specs)
    if dtype is None or len(kernel.specs) != 2 or kernel.op.forward.static != (2,):
        return None
    two = np.full((), 2, dtype)
    return lambda x, g: (as_array(np.multiply(g, np.multiply(two, x))),)


# -- two operands ------------------------------------------------------------------------------------------------------

BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@of(*BINARY)
def _arithmetic(kernel: Any) -> HostFunction | None:
    a, b = kernel.specs
    arrays = [s for s in (a, b) if type(s) is Aval]
    dtype = floating(*arrays, *kernel.outs) if arrays else None
    if dtype is None or not {s for s in (a, b) if type(s) is str} <= {"f", "i"}:
        return None
    ufunc = BINARY[kernel.op.name]
    if not kernel.outs[0].shape:
        if type(a) is str:
            return lambda k, y: (as_array(ufunc(k.astype(dtype), y)),)
        if type(b) is str:
            return lambda x, k: (as_array(ufunc(x, k.astype(dtype))),)
        return lambda x, y: (as_array(ufunc(x, y)),)
    if type(a) is str:
        return lambda k, y: (ufunc(k.astype(dtype), y),)
    if type(b) is str:
        return lambda x, k: (ufunc(x, k.astype(dtype)),)
    return lambda x, y: (ufunc(x, y),)


@of("remainder")
def _remainder(kernel: Any) -> HostFunction | None:
    a, b = kernel.specs
    if type(a) is not Aval or b != "i" or not a.shape or a.dtype.np != np.int64:
        return None
    return lambda x, k: (np.remainder(x, k) if k else x,)


@of("tanh")
def _tanh(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    return (lambda a: (np.tanh(a),)) if floating(x) is not None and x.ndim else None


@of("tanh", backward=True)
def _tanh_back(kernel: Any) -> HostFunction | None:
    dtype = floating(*kernel.specs)
    if dtype is None or len(kernel.specs) != 2 or not kernel.specs[0].ndim:
        return None
    one = np.ones((), dtype)

    def run(out: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
        scale = np.multiply(out, out)
        np.subtract(one, scale, scale)
        np.multiply(g, scale, scale)
        return (scale,)

    return run


def reducer(shape: tuple[int, ...], spec: Aval) -> Callable[[Any], np.ndarray]:
    """What sums a gradient of this shape over the dims that its operand was broadcast in, as `declare.fit` does."""
    target, dtype = spec.shape, spec.dtype.np
    if shape == target:
        return as_array
    lead, add = len(shape) - len(target), np.add.reduce
    rest = shape[lead:]
    dims = [d for d, n in enumerate(target) if n == 1 and rest[d] != 1]
    inner: Any = None if len(dims) == len(rest) else dims[0] if len(dims) == 1 else tuple(dims)
    if not math.prod(shape[:lead]) > 1:  # nothing to sum there
        return (
            (lambda g: as_array(add(g.reshape(rest), inner)).reshape(target)) if dims else lambda g: g.reshape(target)
        )
    outer: Any = None if not rest else 0 if lead == 1 else tuple(range(lead))
    if rest and sums_by_product(math.prod(shape[:lead]), math.prod(rest), dtype):
        ones = np.ones(math.prod(shape[:lead]), dtype)

        def summed(g: Any) -> Any:
            return np.dot(ones, g.reshape(len(ones), -1)).reshape(rest)
    else:

        def summed(g: Any) -> Any:
            return add(g, outer)

    if not dims:
        return lambda g: as_array(summed(g)).reshape(target)
    return lambda g: as_array(add(summed(g), inner)).reshape(target)


def _part(name: str, k: int, places: dict[int, int], fit: Callable) -> Callable[[Sequence[Any]], Any] | None:
    """The gradient of operand k, from what is saved, at `places`, and, last, the result's gradient."""
    negative, multiply, divide = np.negative, np.multiply, np.divide
    if name == "add" or (name == "sub" and k == 0):
        return lambda a: fit(a[-1])
    if name == "sub":
        return lambda a: fit(negative(a[-1]))
    if 1 - k not in places:
        return None
    other = places[1 - k]
    if name == "mul":
        return lambda a: fit(multiply(a[-1], a[other]))
    if k == 0:
        return lambda a: fit(divide(a[-1], a[other]))
    if 1 not in places:
        return None
    me = places[1]
    return lambda a: fit(multiply(negative(a[-1]), divide(divide(a[other], a[me]), a[me])))


@of(*BINARY, backward=True)
def _arithmetic_back(kernel: Any) -> HostFunction | None:
    op = kernel.op
    name, specs, (saved, outputs) = op.forward.op.name, op.forward.specs, op.plan
    arrays = [s for s in (*specs, *kernel.specs) if type(s) is Aval]
    dtype = floating(*arrays)
    numbers = {s for s in (*specs, *kernel.specs) if type(s) is str}
    if dtype is None or outputs or op.forward.static or len(kernel.specs) != len(saved) + 1:
        return None
    if not numbers <= {"f", "i"}:
        return None
    shape = kernel.specs[-1].shape
    places = {k: n for n, k in enumerate(saved)}
    negative, multiply = np.negative, np.multiply
    if shape and all(s.shape == shape for s in arrays):  # the common cases, a call less each
        if name == "add":
            return (lambda g: (g, g)) if all(op.need) else lambda g: (g,)
        if name == "sub" and all(op.need):
            return lambda g: (g, negative(g))
        if name == "mul" and saved == (0, 1) and all(op.need):
            return lambda x, y, g: (multiply(g, y), multiply(g, x))
        if len(saved) == 1 and (name == "mul" or (name == "div" and saved == (1,))):
            ufunc = BINARY[name]
            if type(kernel.specs[0]) is str:
                return lambda k, g: (ufunc(g, k.astype(dtype)),)
            return lambda y, g: (ufunc(g, y),)
    found = [_part(name, k, places, reducer(shape, specs[k])) for k, needed in enumerate(op.need) if needed]
    made = [f for f in found if f is not None]
    if len(made) < len(found):
        return None
    number = [n for n, s in enumerate(kernel.specs) if type(s) is str]
    if len(made) == 1 and not number:
        (only,) = made
        return lambda *a: (only(a),)
    if not number:
        first, second = made
        return lambda *a: (first(a), second(a))

    def run(*given: Any) -> Sequence[np.ndarray]:
        a = list(given)
        for n in number:
            a[n] = a[n].astype(dtype)
        return [f(a) for f in made]

    return run


# -- rows --------------------------------------------------------------------------------------------------------------


@of("logsumexp")
def _logsumexp(kernel: Any) -> HostFunction | None:
    (x,) = kernel.specs
    dim, keepdim = kernel.static
    dtype = floating(x)
    if dtype is None or not x.ndim or not isinstance(dim, int):
        return None
    dim, shape = dim % x.ndim, kernel.outs[0].shape
    axis = None if x.ndim == 1 else dim
    largest, add, zero = np.maximum.reduce, np.add.reduce, np.zeros((), dtype)
    along = tuple(1 if d == dim else n for d, n in enumerate(x.shape))

    def run(a: np.ndarray) -> Sequence[np.ndarray]:
        top = largest(a, axis)
        if axis is None:
            top = top if math.isfinite(top) else zero
            found = np.log(add(np.exp(a - top), None)) + top
        else:
            top = np.where(np.isfinite(top), top, zero)
            found = np.log(add(np.exp(a - top.reshape(along)), axis)) + top
        return (as_array(found).reshape(shape),)

    return run


@of("logsumexp", backward=True)
def _logsumexp_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    (x,) = forward.specs
    dim = forward.static[0]
    if floating(x, *kernel.specs) is None or len(kernel.specs) != 3 or not x.ndim or not isinstance(dim, int):
        return None
    along = tuple(1 if d == dim % x.ndim else n for d, n in enumerate(x.shape))
    return lambda a, out, g: (np.multiply(g.reshape(along), np.exp(np.subtract(a, out.reshape(along)))),)


# -- one index ---------------------------------------------------------------------------------------------------------


@of("gather")
def _gather(kernel: Any) -> HostFunction | None:
    x, index = kernel.specs
    if x.ndim != 1 or index.ndim != 1 or x.dtype.np not in FLOATS or index.dtype.np != np.int64 or not index.numel:
        return None
    (size,) = x.shape
    nan = x.dtype.np.type(np.nan)
    if index.numel > 1:
        return None

    def run(a: np.ndarray, k: np.ndarray) -> Sequence[np.ndarray]:
        # An index out of range is NaN, as in a compiled program.
        n = int(k[0])
        return (a[n : n + 1] if 0 <= n < size else np.full(1, nan),)

    return run


@of("gather", backward=True)
def _gather_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    x, index = forward.specs
    if len(kernel.specs) != 2 or floating(x, kernel.specs[1]) is None or kernel.specs[0] != index:
        return None
    if x.ndim != 1 or index.ndim != 1 or index.numel != 1 or index.dtype.np != np.int64:
        return None
    (size,) = x.shape
    dtype = x.dtype.np

    def run(k: np.ndarray, g: np.ndarray) -> Sequence[np.ndarray]:
        out = np.zeros(size, dtype)
        n = int(k[0])
        if 0 <= n < size:
            out[n] += g[0]
        return (out,)

    return run


def _one_element(forward: Any) -> tuple[int, ...] | None:
    """The sizes of the dims that `_index` takes one element of each, if it takes nothing but that."""
    x, indices = forward.specs[0], forward.specs[1:]
    layout = forward.static[0]
    if not all(layout) or len(layout) != x.ndim or len(indices) != x.ndim or not x.numel:
        return None
    return x.shape if all(type(i) is Aval and not i.ndim and i.dtype.np == np.int64 for i in indices) else None


@of("_index")
def _index(kernel: Any) -> HostFunction | None:
    x = kernel.specs[0]
    shape = None if x.dtype.np not in FLOATS else _one_element(kernel)
    if shape is None:
        return None
    nan = x.dtype.np.type(np.nan)

    def run(a: np.ndarray, *indices: np.ndarray) -> Sequence[np.ndarray]:
        at = tuple([int(i) for i in indices])
        good = all([-n <= k < n for k, n in zip(at, shape, strict=True)])  # noqa: C419 - HOT
        return (as_array(a[at] if good else nan),)

    return run


@of("_index", backward=True)
def _index_back(kernel: Any) -> HostFunction | None:
    forward = kernel.op.forward
    shape = None if floating(forward.specs[0], kernel.specs[-1]) is None else _one_element(forward)
    if shape is None or len(kernel.specs) != len(forward.specs):
        return None
    dtype = forward.specs[0].dtype.np

    def run(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        out = np.zeros(shape, dtype)
        at = tuple([int(i) for i in arrays[:-1]])
        if all([-n <= k < n for k, n in zip(at, shape, strict=True)]):  # noqa: C419 - HOT
            out[at] += arrays[-1]
        return (out,)

    return run
