"""Changing all of a module's parameters and buffers: dtype, device, memory."""

import warnings
from collections.abc import Callable
from typing import Any

from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules._traversal import Traversal

_COMPLEX_MODULES = (
    "Complex modules are a new feature under active development whose design may change, and some modules might not "
    "work as expected when using complex tensors as parameters or buffers. Please file an issue at "
    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work as "
    "expected."
)


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """(device, dtype, non_blocking, memory_format) from the arguments of `Module.to`."""
    if set(kwargs) - {"device", "dtype", "non_blocking", "copy", "memory_format", "tensor", "other"}:
        raise _bad_to(args, kwargs)
    rest = list(args)
    found: dict[str, Any] = {}
    if rest and isinstance(rest[0], Tensor):
        kwargs = {"tensor": rest.pop(0), **kwargs}
    elif rest and isinstance(rest[0], DType):
        found["dtype"] = rest.pop(0)
    elif rest:
        found["device"] = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], DType)):
            found["dtype"] = rest.pop(0)
    if rest:
        found["non_blocking"] = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        rest.pop(0)  # copy: parameters are replaced anyway
    if rest:
        raise _bad_to(args, kwargs)
    kwargs = dict(kwargs)
    other = kwargs.pop("tensor", kwargs.pop("other", None))
    if other is not None:
        found["device"], found["dtype"] = other.device, other.dtype
    found.update(kwargs)
    device, dtype = found.get("device"), found.get("dtype")
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    if device is not None and not isinstance(device, Device):
        device = Device(device)
    return device, dtype, bool(found.get("non_blocking", False)), found.get("memory_format")


def _bad_to(args: tuple, kwargs: dict) -> TypeError:
    """PyTorch's complaint about the arguments of `Module.to`."""
    given = [type(a).__name__ for a in args]
    if kwargs:
        # Its text has a comma after each keyword argument.
        got = "".join([*(f"{g}, " for g in given), *(f"{k}={type(v).__name__}, " for k, v in kwargs.items())])
    else:
        got = ", ".join(given)
    tail = "bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)\n"
    return TypeError(
        f"to() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        f" * (torch.device device = None, torch.dtype dtype = None, {tail}"
        f" * (torch.dtype dtype, {tail}"
        f" * (Tensor tensor, {tail}"
    )


class Conversion(Traversal):
    """The part of Module that converts parameters and buffers; parameters stay the same objects."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replace the data of each parameter and gradient, and each buffer, by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            grad = param.grad
            with torch.no_grad():
                param.data = fn(param)
                if grad is not None:
                    grad.data = fn(grad)
        for key, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[key] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move or cast parameters and buffers, in place: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`,
        `to(memory_format=…)`. Only floating point and complex ones are cast.

        TypeError: an integer or bool dtype."""
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(_COMPLEX_MODULES, stacklevel=2)

        def convert(t: Tensor) -> Tensor:
            own = t.dtype
            target = dtype if own.is_floating_point or own.is_complex else None
            try:
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, target, non_blocking, memory_format=memory_format)
                return t.to(device, target, non_blocking)
            except NotImplementedError as error:
                if str(error) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                    "module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Give parameters and buffers uninitialized memory on `device`."""
        return self._apply(lambda t: torch.empty_like(t, device=device), recurse=recurse)

    def cpu(self) -> Any:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """Move to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: Any = None) -> Any:
        """Not supported: torchlike has no such device."""
        raise NotImplementedError("torchlike: nn.Module.ipu")

    def xpu(self, device: Any = None) -> Any:
        """Not supported: torchlike has no such device."""
        raise NotImplementedError("torchlike: nn.Module.xpu")

    def mtia(self, device: Any = None) -> Any:
        """Not supported: torchlike has no such device."""
        raise NotImplementedError("torchlike: nn.Module.mtia")

    def type(self, dst_type: Any) -> Any:
        """Cast all parameters and buffers, integer ones too."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Any:
        """Cast floating point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Any:
        """Cast floating point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Any:
        """Cast floating point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Any:
        """Cast floating point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self) -> Any:
        """Put parameters and buffers into memory shared between processes."""
        return self._apply(lambda t: t.share_memory_())

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set `requires_grad` of every parameter."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop every parameter's gradient, or with `set_to_none=False` fill it with zeros."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters "
                "are copied (in a differentiable manner) from the original module. This means they are not leaf nodes "
                "in autograd and so don't accumulate gradients. If you need gradients in your forward method, consider "
                "using autograd.grad instead.",
                stacklevel=2,
            )
        for p in self.parameters():
            grad = p.grad
            if grad is None:
                continue
            if set_to_none:
                p.grad = None
                continue
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()
