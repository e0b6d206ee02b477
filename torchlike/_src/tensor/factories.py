"""Tensors of one number, and of numbers that follow a rule: zeros, full, arange, linspace, eye, …"""

import math
import warnings
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import default_dtype, require_numpy
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.tensor.arguments import bind, given, signed, whole_tuple
from torchlike._src.tensor.call import reshape_storage, resize_out, write
from torchlike._src.tensor.creation import (
    as_dtype,
    check_layout,
    check_number,
    filled,
    finish,
    from_array,
    number_dtype,
    resolve_device,
)
from torchlike._src.tensor.tensor import Tensor, TensorBase

PLAIN_DEVICES = (str, Device, int)


def plain(dtype: Any, device: Any, requires_grad: Any) -> bool:
    """Are these options what they look like? Others go to `arguments.bind`, for PyTorch's error or its reading."""
    return (
        (dtype is None or type(dtype) is DType)
        and (device is None or type(device) in PLAIN_DEVICES)
        and type(requires_grad) is bool
    )


def check_out(out: Tensor, dtype: Any, layout: Any, device: Any, name: str) -> None:
    """PyTorch's errors for options that contradict the tensor to write to."""
    a = out._aval
    if dtype is not None and as_dtype(dtype, name) is not a.dtype:
        names = as_dtype(dtype, name).scalar_name, a.dtype.scalar_name
        raise RuntimeError(f"dtype {names[0]} does not match dtype of out parameter ({names[1]})")
    check_layout(layout)
    if device is not None and resolve_device(device).type != a.device.type:
        types = resolve_device(device).type, a.device.type
        raise RuntimeError(f"device type {types[0]} does not match device type of out parameter ({types[1]})")
    if out._rg:
        raise RuntimeError(
            f"aten::{name}(): functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad."
        )


def prepared(out: Tensor, shape: tuple, warn: bool = False) -> Tensor:
    """`out` in the wanted shape. Most functions that create tensors resize it without PyTorch's warning."""
    if out._aval.shape != shape:
        if warn:
            resize_out(out, out._aval.with_shape(shape))
        else:
            reshape_storage(out, shape)
    return out


# -- one number --------------------------------------------------------------------------------------------------------


def _filler(name: str, number: Any) -> Any:
    def make(
        *size: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if not kwargs and out is None and layout is None and plain(dtype, device, requires_grad):
            shape = whole_tuple(name, size)
        else:
            options = given(
                out=out, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad, pin_memory=pin_memory
            )
            bound = bind(name, size, {**kwargs, **options})
            shape = bound["size"]
            check_layout(layout)
            check_memory_format(bound.get("memory_format"), len(shape))
        if name == "zeros" and any(n < 0 for n in shape):
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")
        if out is not None:
            return out_filled(name, out, shape, number, dtype, device, requires_grad)
        if dtype is not None and type(dtype) is not DType:
            dtype = as_dtype(dtype, name)
        return filled(shape, number, dtype or default_dtype(), device, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__module__ = "torch"
    return make


def check_memory_format(wanted: Any, ndim: int) -> None:
    """PyTorch's error for a memory format that a tensor of `ndim` dims cannot have."""
    text = repr(wanted)
    rank = 5 if "channels_last_3d" in text else 4 if "channels_last" in text else ndim
    if ndim != rank:
        raise RuntimeError(f"required rank {rank} tensor to use {text.removeprefix('torch.')} format")


def out_filled(
    name: str, out: Tensor, shape: tuple, number: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    """`out`, resized and filled."""
    check_out(out, dtype, None, device, name)
    out = write(prepared(out, shape), filled(shape, number, out._aval.dtype, out._aval.device, False))
    return out.requires_grad_() if requires_grad else out


zeros = _filler("zeros", 0)
zeros.__doc__ = "A tensor of zeros: zeros(2, 3) or zeros((2, 3))."
ones = _filler("ones", 1)
ones.__doc__ = "A tensor of ones: ones(2, 3) or ones((2, 3))."
empty = _filler("empty", 0)
empty.__doc__ = "A tensor whose contents do not matter (zeros here)."


@signed("full")
def full(*args: Any, **kwargs: Any) -> Tensor:
    """full(size, fill_value, *, out, dtype, layout, device, requires_grad): a tensor of one number; its dtype is that
    of the number unless given."""
    bound = bind("full", args, kwargs)
    shape, number = bound["size"], _number(bound["fill_value"])
    check_layout(bound.get("layout"))
    dtype, device, out = bound.get("dtype"), bound.get("device"), bound.get("out")
    if out is not None:
        return out_filled("full", out, shape, number, dtype, device, bound.get("requires_grad", False))
    dtype = number_dtype(number) if dtype is None else as_dtype(dtype, "full")
    return filled(shape, element(number, dtype), dtype, device, bound.get("requires_grad", False))


def element(number: Any, dtype: DType) -> Any:
    """A number as one of `dtype`; RuntimeError if it does not fit."""
    if isinstance(number, int) and not isinstance(number, bool) and not -(1 << 63) <= number < 1 << 64:
        raise OverflowError("int too big to convert")
    check_number(number, dtype)
    if isinstance(number, complex) and not dtype.is_complex:
        return bool(number) if dtype is dt.bool_ else number.real
    return number


def _like(name: str, number: Any) -> Any:
    def make(
        *args: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        memory_format: Any = None, pin_memory: bool = False, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if (
            kwargs or len(args) != 1 or not isinstance(args[0], TensorBase) or layout is not None
            or memory_format is not None or not plain(dtype, device, requires_grad)
        ):  # fmt: skip
            options = given(
                dtype=dtype, layout=layout, device=device, requires_grad=requires_grad, memory_format=memory_format,
                pin_memory=pin_memory,
            )  # fmt: skip
            input = bind(name, args, {**kwargs, **options})["input"]
            check_layout(layout)
            check_memory_format(memory_format, input._aval.ndim)
            dtype = None if dtype is None else as_dtype(dtype, name)
        else:
            (input,) = args
        a = input._aval
        return filled(a.shape, number, dtype or a.dtype, a.device if device is None else device, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__module__ = "torch"
    make.__doc__ = f"{name}(input): like `input` in shape, dtype and device."
    return make


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)
empty_like = _like("empty_like", 0)


@signed("full_like")
def full_like(*args: Any, **kwargs: Any) -> Tensor:
    """full_like(input, fill_value): a tensor of one number, like `input` in shape, dtype and device."""
    bound = bind("full_like", args, kwargs)
    a = bound["input"]._aval
    check_layout(bound.get("layout"))
    check_memory_format(bound.get("memory_format"), a.ndim)
    dtype = a.dtype if bound.get("dtype") is None else as_dtype(bound["dtype"], "full_like")
    number = element(_number(bound["fill_value"]), dtype)
    return filled(a.shape, number, dtype, bound.get("device", a.device), bound.get("requires_grad", False))


def new_filled(number: Any, name: str) -> Any:
    """Tensor.new_zeros and its like."""

    def method(
        self: Tensor, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
        layout: Any = None, pin_memory: bool = False, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if not kwargs and layout is None and plain(dtype, device, requires_grad):
            shape = whole_tuple(name, size)
        else:
            options = given(
                dtype=dtype, layout=layout, device=device, requires_grad=requires_grad, pin_memory=pin_memory
            )
            shape = bind(name, size, {**kwargs, **options})["size"]
            check_layout(layout)
            dtype = None if dtype is None else as_dtype(dtype, name)
        a = self._aval
        if name == "new_zeros" and any(n < 0 for n in shape):
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        return filled(shape, number, dtype or a.dtype, a.device if device is None else device, requires_grad)

    method.__name__ = name
    method.__doc__ = f"{name}(size): of this tensor's dtype and device."
    return method


def new_full(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """new_full(size, fill_value): a tensor of one number, of this tensor's dtype and device."""
    bound = bind("new_full", args, kwargs)
    a = self._aval
    check_layout(bound.get("layout"))
    dtype = a.dtype if bound.get("dtype") is None else as_dtype(bound["dtype"], "new_full")
    number = element(_number(bound["fill_value"]), dtype)
    return filled(bound["size"], number, dtype, bound.get("device", a.device), bound.get("requires_grad", False))


@signed("empty_strided")
def empty_strided(*args: Any, **kwargs: Any) -> Tensor:
    """empty_strided(size, stride): a tensor of the given geometry; its contents do not matter (zeros here)."""
    from torchlike._src.tensor.views import as_strided

    bound = bind("empty_strided", args, kwargs)
    check_layout(bound.get("layout"))
    size, stride = bound["size"], bound["stride"]
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    room = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    if room < 0 or any(s < 0 for s in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    dtype = as_dtype(bound["dtype"], "empty_strided") if bound.get("dtype") else default_dtype()
    base = filled((room,), 0, dtype, bound.get("device"), False)
    return finish(as_strided(base, size, stride, 0), bound.get("requires_grad", False))


@signed("scalar_tensor")
def scalar_tensor(*args: Any, **kwargs: Any) -> Tensor:
    """scalar_tensor(s): a 0-dim tensor."""
    bound = bind("scalar_tensor", args, kwargs)
    check_layout(bound.get("layout"))
    dtype = as_dtype(bound["dtype"], "scalar_tensor") if bound.get("dtype") else default_dtype()
    return filled(
        (), element(_number(bound["s"]), dtype), dtype, bound.get("device"), bound.get("requires_grad", False)
    )


# -- ranges ------------------------------------------------------------------------------------------------------------


def _number(x: Any) -> Any:
    if isinstance(x, np.bool_):
        return float(x)  # to PyTorch NumPy's bool is a number, not a bool
    return x.item() if isinstance(x, (TensorBase, np.generic)) else x


def _range_result(array: np.ndarray, dtype: DType, options: dict[str, Any], name: str, warn: bool = False) -> Tensor:
    out = options.get("out")
    check_layout(options.get("layout"))
    if out is None:
        return from_array(array, dtype, options.get("device"), options.get("requires_grad", False))
    check_out(out, options.get("dtype"), None, options.get("device"), name)
    new = from_array(array.astype(out._aval.dtype.np), out._aval.dtype, out._aval.device)
    out = write(prepared(out, array.shape, warn), new)
    return out.requires_grad_() if options.get("requires_grad") else out


@signed("arange")
def arange(*args: Any, **kwargs: Any) -> Tensor:
    """arange(start=0, end, step=1, *, out, dtype, layout, device, requires_grad): numbers from `start` up to but
    without `end`, `step` apart."""
    count = len(args)
    if not kwargs and (count == 1 or count == 2 or count == 3) and all(type(x) is int for x in args):
        bound: dict[str, Any] = {}
        start, end, step = (0, args[0], 1) if count == 1 else (*args, 1)[:3]
    else:
        bound = bind("arange", args, kwargs)
        start, end, step = (_number(bound.get(k, d)) for k, d in (("start", 0), ("end", None), ("step", 1)))
    out, dtype = bound.get("out"), bound.get("dtype")
    if dtype is not None:
        dtype = as_dtype(dtype, "arange")
    elif out is not None:
        dtype = out._aval.dtype
    else:
        dtype = dt.int64 if all(isinstance(x, int) for x in (start, end, step)) else default_dtype()
    if any(isinstance(x, complex) for x in (start, end, step)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    _check_range(start, end, step)
    if dtype is dt.bool_ or dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.scalar_name}'")
    if dtype is dt.int64:
        if any(isinstance(x, float) and not -(2.0**63) <= x < 2.0**63 for x in (start, end, step)):
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
    integral = dtype.category == dt.INT and all(isinstance(x, int) for x in (start, end, step))
    n = -(-(end - start) // step) if integral else math.ceil((end - start) / step)
    if n >= 1 << 63:
        raise RuntimeError("invalid size, possible overflow?")
    target = require_numpy(dtype)
    if integral:
        array = (start + step * np.arange(n, dtype=np.int64)).astype(target)
    elif dtype.category == dt.INT:
        array = (int(start) + int(step) * np.arange(n, dtype=np.int64)).astype(target)
    else:
        array = (start + step * np.arange(n, dtype=np.float64)).astype(target)
    return _range_result(array, dtype, bound, "arange", warn=True)


def _check_range(start: Any, end: Any, step: Any) -> None:
    if any(isinstance(x, int) and not -(1 << 63) <= x < 1 << 64 for x in (start, end, step)):
        raise OverflowError("int too big to convert")
    if any(type(x) is int and x >= 1 << 63 for x in (start, end, step)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


@signed("range")
def range_(*args: Any, **kwargs: Any) -> Tensor:
    """range(start=0, end, step=1). Deprecated: like arange, but with `end`."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        stacklevel=2,
    )
    bound = bind("range", args, kwargs)
    start, end, step = _number(bound["start"]), _number(bound["end"]), _number(bound.get("step", 1))
    _check_range(start, end, step)
    out, dtype = bound.get("out"), bound.get("dtype")
    dtype = as_dtype(dtype, "range") if dtype is not None else out._aval.dtype if out is not None else default_dtype()
    count = int((end - start) / step) + 1
    array = (start + step * np.arange(count, dtype=np.float64)).astype(require_numpy(dtype))
    return _range_result(array, dtype, bound, "range", warn=True)


def _spaced(name: str, args: tuple, kwargs: dict) -> tuple[Any, Any, int, dict[str, Any]]:
    """The ends as numbers, the number of steps, and the options; PyTorch's errors for others."""
    bound = bind(name, args, kwargs)
    start, end, steps = bound["start"], bound["end"], bound["steps"]
    for which, x in (("start", start), ("end", end)):
        if isinstance(x, TensorBase) and x._aval.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {x._aval.ndim} "
                "dimension(s)."
            )
    start, end = _number(start), _number(end)
    dtype = bound.get("dtype")
    if isinstance(start, complex) or isinstance(end, complex):
        inferred = dt.default_complex_dtype()
        if dtype is not None and not as_dtype(dtype, name).is_complex:
            kind = {dt.complex64: "c10::complex<float>", dt.complex128: "c10::complex<double>"}.get(inferred, inferred)
            raise RuntimeError(
                f"torch.{name}(): inferred dtype {kind} can't be safely cast to passed dtype "
                f"{as_dtype(dtype, name).scalar_name}"
            )
    else:
        inferred = default_dtype()
    if dtype is not None:
        dtype = as_dtype(dtype, name)
    elif bound.get("out") is not None:
        dtype = bound["out"]._aval.dtype
    else:
        dtype = inferred
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return start, end, steps, {**bound, "dtype": bound.get("dtype"), "result": dtype}


@signed("linspace")
def linspace(*args: Any, **kwargs: Any) -> Tensor:
    """linspace(start, end, steps, *, out, dtype, layout, device, requires_grad): `steps` numbers evenly spaced from
    `start` to `end`, both included."""
    start, end, steps, options = _spaced("linspace", args, kwargs)
    dtype = options["result"]
    if dtype is dt.bool_:
        raise NotImplementedError("\"linspace_cpu\" not implemented for 'Bool'")
    return _range_result(linspace_array(start, end, steps, require_numpy(dtype)), dtype, options, "linspace")


def linspace_array(start: Any, end: Any, steps: int, target: np.dtype) -> np.ndarray:
    """PyTorch's formula: from both ends towards the middle, in the result's own precision."""
    if steps == 0:
        return np.zeros(0, target)
    if steps == 1:
        return np.full(1, start).astype(target)
    if target.kind in "iu":
        start, end = int(start), int(end)
        step = (np.float64(end) - np.float64(start)) / (steps - 1)
        k = np.arange(steps, dtype=np.float64)
        return np.trunc(np.where(k < steps // 2, start + step * k, end - step * (steps - 1 - k))).astype(target)
    work = target
    first, last = work.type(start), work.type(end)
    delta = work.type((last - first) / work.type(steps - 1))
    k = np.arange(steps).astype(work)
    back = np.arange(steps - 1, -1, -1).astype(work)
    half = np.arange(steps) < steps // 2
    return np.where(half, first + delta * k, last - delta * back).astype(target)


@signed("logspace")
def logspace(*args: Any, **kwargs: Any) -> Tensor:
    """logspace(start, end, steps, base=10.0, *, out, dtype, layout, device, requires_grad): `steps` powers of `base`
    with exponents evenly spaced from `start` to `end`."""
    start, end, steps, options = _spaced("logspace", args, kwargs)
    dtype, base = options["result"], _number(options.get("base", 10.0))
    target = require_numpy(dtype)
    if target.kind in "iu":  # the ends are of the result's type, what is between them is not
        start, end = int(start), int(end)
    elif target.kind != "c" and target.itemsize == 2:
        start, end = float(target.type(start)), float(target.type(end))
    work = target if target.kind in "fc" and target.itemsize > 2 else np.dtype(np.float64)
    exponents = linspace_array(start, end, steps, work)
    array = np.power(np.float64(base), exponents.astype(np.float64)).astype(target)
    return _range_result(array, dtype, options, "logspace")


@signed("eye")
def eye(*args: Any, **kwargs: Any) -> Tensor:
    """eye(n, m=n, *, out, dtype, layout, device, requires_grad): the identity matrix (n, m)."""
    bound = bind("eye", args, kwargs)
    n = bound["n"]
    m = bound.get("m", n)
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    out, dtype = bound.get("out"), bound.get("dtype")
    dtype = as_dtype(dtype, "eye") if dtype is not None else out._aval.dtype if out is not None else default_dtype()
    return _range_result(np.eye(n, m, dtype=require_numpy(dtype)), dtype, bound, "eye")
