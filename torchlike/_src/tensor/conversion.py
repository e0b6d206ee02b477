"""Conversions: other dtypes and devices, copies, NumPy and Python values, text, pickles."""

import copy
import enum
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import OpNode, grad_plan
from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.engine import META_ARRAY, Value, host_array
from torchlike._src.engine.record import SLOW, kernel_of
from torchlike._src.ops.declare import RawOp
from torchlike._src.ops.kernels import COPY_INTO, FILL
from torchlike._src.tensor import dual, printing
from torchlike._src.tensor.call import apply, cast_to, check_writable, count_write, record_taped, write
from torchlike._src.tensor.creation import check_number, fill_number, from_value, resolve_device, warn_of_scalar
from torchlike._src.tensor.tensor import NEW, SharedStorage, Tensor, TensorBase, alias, share, strided, wrap
from torchlike._src.tensor.views import is_channels_last

# -- copies ------------------------------------------------------------------------------------------------------------


def _identity(a: Any) -> Any:
    return a


CLONE = RawOp(_identity, "clone", linear=True, grad_name="CloneBackward0")
CLONE.infer = lambda static, specs: (specs[0],)  # type: ignore[method-assign]


def hang(out: Tensor, op: Any, source: Tensor) -> Tensor:
    """Put `out`, whose value is `source`'s, on the tape after it, as the result of the identity `op`."""
    if source._rg and MODE.enabled:
        kernel = kernel_of(op, (), (source._aval,))
        out._rg = True
        out._gf = OpNode(grad_plan(kernel, (True,)), (source._edge(),), ())
        record_taped()
    if MODE.inference:
        out._is_inference = True
    return out


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy with its own memory; gradients flow through it."""
    return hang(wrap(input._read()), CLONE, input)


def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order, else a copy where they do."""
    if self.is_contiguous() or (memory_format is not None and is_channels_last(self)):
        return self
    return clone(self)


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite this tensor with `src`, broadcast and cast to its shape and dtype."""
    if not isinstance(src, Tensor):
        if isinstance(src, (int, float, complex, bool, np.generic)):
            return fill_(self, src)
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    check_writable(self, src._rg)
    if self is src and not (MODE.enabled and self._rg):
        count_write(self)
        return self
    a, b = self._aval, src._aval
    if b.shape != a.shape:
        _check_expandable(b.shape, a.shape)
    if b.device.type == "meta" or a.device.type == "meta":
        if b.device.type == "meta" and a.device.type != "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return self
    if b.device != a.device:
        src = move(src, a.device)
    tracked = MODE.enabled and (self._rg or src._rg)
    new = apply(COPY_INTO, (("aval", a),), (src,)) if src._aval is not a else (src if tracked else clone(src))
    if tracked:
        # The old contents stay on the graph, with a gradient of zero.
        new = apply(OVERWRITE, (), (self, new))
        if new._gf is not None:
            new._gf.relabel("torch::autograd::CopyBackwards")
    return write(self, new, fit=False)


def _overwrite(old: Any, new: Any) -> Any:
    return new


OVERWRITE = RawOp(_overwrite, "overwrite", linear=True, grad_name="torch::autograd::CopyBackwards")
OVERWRITE.infer = lambda static, specs: (specs[0],)  # type: ignore[method-assign]


def _check_expandable(source: tuple, target: tuple) -> None:
    lead = len(target) - len(source)
    for k, n in enumerate(source):
        m = target[k + lead] if k + lead >= 0 else None
        if lead < 0 or (n != m and n != 1):
            if lead < 0:
                raise RuntimeError(
                    f"The size of tensor a ({target[-1] if target else 1}) must match the size of tensor b "
                    f"({source[-1] if source else 1}) at non-singleton dimension {len(source) - 1}"
                    if target and source[-1] not in (1, target[-1])
                    else f"output with shape {list(target)} doesn't match the broadcast shape {list(source)}"
                )
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                f"{k + lead}"
            )


def fill_(self: Tensor, value: Any, zero: bool = False) -> Tensor:
    """Overwrite every element with a number (or a 0-dim tensor)."""
    if isinstance(value, TensorBase):
        if value._aval.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value._aval.ndim} dimensions."
            )
        check_writable(self, value._rg)
        new = apply(COPY_INTO, (("aval", self._aval),), (value,))
        if MODE.enabled and (self._rg or new._rg):
            new = apply(OVERWRITE, (), (self, new))
            new._gf.relabel("FillBackward3")
        return write(self, new)
    check_writable(self, False, overlap=True)
    value = getattr(value, "item", lambda: value)()
    a = self._aval
    check_number(value, a.dtype)
    if a.device.type == "meta":
        return self
    target = dt.require_numpy(a.dtype)
    if isinstance(value, complex) and not a.dtype.is_complex:
        value = bool(value) if a.dtype is dt.bool_ else value.real
    if a.numel <= 4096:
        with np.errstate(all="ignore"):
            new = from_value(a, np.full(a.shape, fill_number(value, target), target))
    else:
        new = apply(FILL, (("aval", a),), (value,))
    if self._rg and MODE.enabled:
        # History ends here: the old contents no longer matter, but the tensor stays on the graph.
        new = apply(OVERWRITE, (), (self, new))
        if new._gf is not None:
            new._gf.relabel("ZeroBackward0" if zero else "FillBackward2")
    return write(self, new)


def zero_(self: Tensor) -> Tensor:
    """Overwrite every element with zero."""
    return fill_(self, 0, zero=True)


# -- dtype and device --------------------------------------------------------------------------------------------------


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """to(dtype), to(device), to(device, dtype), to(other): the tensor itself if nothing changes, else a copy."""
    dtype = kwargs.pop("dtype", None)
    device = kwargs.pop("device", None)
    kwargs.pop("non_blocking", None)
    force = kwargs.pop("copy", False)
    kwargs.pop("memory_format", None)
    other = kwargs.pop("other", None)
    if kwargs:
        raise TypeError(f"to() received an invalid combination of arguments - unknown argument {next(iter(kwargs))!r}")
    rest = list(args)
    if rest:
        first = rest.pop(0)
        if isinstance(first, DType):
            dtype = first
        elif isinstance(first, TensorBase):
            other = first
        elif first is None or isinstance(first, (str, int, Device)):
            device = first if first is not None else device
            if rest and (isinstance(rest[0], DType) or rest[0] is None):
                dtype = rest.pop(0)
        else:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(first).__name__})")
    if len(rest) > 1:
        force = rest[1]
    if other is not None:
        dtype, device = other._aval.dtype, other._aval.device
    out = self
    if device is not None:
        target = resolve_device(device)
        if target != self._aval.device:
            out = move(out, target)
    if dtype is not None:
        out = cast_to(out, dtype)
    if force and out is self:
        return clone(self)
    return out


def move(t: Tensor, device: Device) -> Tensor:
    """The tensor's data on another device, with gradients flowing back."""
    if t._aval.device == device:
        return t
    if device.type == "meta":
        out = wrap(Value(_on(t._aval, device), META_ARRAY))
    elif t._aval.device.type == "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    else:
        out = from_value(_on(t._aval, device), t._host())
    if t._rg and MODE.enabled:
        from torchlike._src.autograd.tape import MoveNode

        out._rg = True
        out._gf = MoveNode(t._aval, out._aval, (t._edge(),))
        record_taped()
    return out


def _on(a: Any, device: Device) -> Any:
    from torchlike._src.core.aval import aval

    return aval(a.shape, a.dtype, device)


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor in host memory."""
    return move(self, Device("cpu"))


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """The tensor on the GPU."""
    return move(
        self,
        resolve_device("cuda" if device is None else Device("cuda", device) if isinstance(device, int) else device),
    )


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Without arguments the legacy type's name ('torch.FloatTensor'), else the tensor in another dtype."""
    if dtype is None:
        name = self._aval.dtype.type_name
        return (
            name
            if self._aval.device.type in ("cpu", "meta")
            else name.replace("torch.", f"torch.{self._aval.device.type}.")
        )
    if isinstance(dtype, DType):
        return cast_to(self, dtype)
    name = (
        dtype if isinstance(dtype, str) else getattr(dtype, "type_name", None) or f"{dtype.__module__}.{dtype.__name__}"
    )
    for d in dt.ALL:
        if name in (d.type_name, d.type_name.replace("torch.", "torch.cuda.")):
            return cast_to(self, d)
    raise ValueError(f"invalid type: '{dtype}'")


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor in other's dtype (and on its device)."""
    return to(self, other._aval.device, other._aval.dtype)


def dtype_method(name: str, dtype: DType) -> Any:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return cast_to(self, dtype)

    method.__name__ = name
    method.__doc__ = f"self.to(torch.{dtype.name})."
    return method


# -- Python values -----------------------------------------------------------------------------------------------------


def item(self: Tensor) -> Any:
    """The only element as a Python number."""
    a = self._aval
    if a.numel != 1:
        raise RuntimeError(f"a Tensor with {a.numel} elements cannot be converted to Scalar")
    if a.device.type == "meta":
        raise RuntimeError(META_ITEM)
    return self._host().item()


def tolist(self: Tensor) -> Any:
    """Nested lists of Python numbers."""
    return self._host().tolist()


META_ITEM = "Tensor.item() cannot be called on meta tensors"


def _only(self: Tensor) -> Any:
    if self._aval.numel != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if self._aval.device.type == "meta":
        raise RuntimeError(META_ITEM)
    return self._host().item()


def to_bool(self: Tensor) -> bool:
    n = self._aval.numel
    if n != 1:
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    if self._aval.device.type == "meta":
        raise RuntimeError(META_ITEM)
    return bool(self._host().reshape(()))


def to_int(self: Tensor) -> int:
    value = _only(self)
    if isinstance(value, complex):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(value)


def to_float(self: Tensor) -> float:
    if self._rg:
        warn_of_scalar(self)
    value = _only(self)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError("value cannot be converted to type double without overflow")
        value = value.real
    return float(value)


def to_complex(self: Tensor) -> complex:
    if self._rg:
        warn_of_scalar(self)
    return complex(_only(self))


def to_index(self: Tensor) -> int:
    a = self._aval
    if a.numel != 1 or a.dtype.is_floating_point or a.dtype.is_complex:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self._host().item())


def contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (TensorBase, int, float, complex, bool)):
        return bool((self == element).any().item())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def iterate(self: Tensor) -> Any:
    if not self._aval.shape:
        raise TypeError("iteration over a 0-d tensor")
    from torchlike._src.tensor.splits import unbind

    return iter(unbind(self, 0))


# -- NumPy -------------------------------------------------------------------------------------------------------------


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The data as a NumPy array over the same memory. RuntimeError if the tensor requires grad (unless `force`)."""
    if force:
        return numpy(self.detach().cpu())
    if self._rg:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._aval.device.type == "meta":
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if self._aval.device.type != "cpu":
        raise TypeError(
            f"can't convert {self._aval.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
            "host memory first."
        )
    if self._aval.dtype is dt.bfloat16 or self._aval.dtype.name.startswith("float8"):
        raise TypeError(f"Got unsupported ScalarType {self._aval.dtype.scalar_name}")
    storage = self._s
    if type(storage) is not SharedStorage:
        array = np.array(host_array(storage.value), copy=True, order="C")
        share_storage(storage, array)
    array = storage.shared
    view = self._view
    return array.view() if view is None else strided(array, view)


def share_storage(storage: Any, array: np.ndarray) -> None:
    """`array` becomes the storage's memory, visible to NumPy code as long as someone holds it."""
    t = NEW(Tensor)
    t._s = storage
    share(t, array)


def array_protocol(self: Tensor, dtype: Any = None, copy: Any = None) -> np.ndarray:
    if self._rg:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    array = numpy(self) if self._aval.dtype is not dt.bfloat16 else self._host()
    return array if dtype is None else array.astype(dtype, copy=False)


def array_wrap(self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    from torchlike._src.tensor.creation import from_array

    return from_array(np.array(array, copy=True))


def dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
) -> Any:
    """A DLPack capsule over the tensor's memory."""
    if self._rg:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return numpy(self).__dlpack__()


class DLDeviceType(enum.IntEnum):
    """DLPack's numbers of devices."""

    kDLCPU = 1
    kDLCUDA = 2


def dlpack_device(self: Tensor) -> tuple[int, int]:
    return DLDeviceType(1), 0


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of any object with __dlpack__ (NumPy, JAX, …)."""
    if isinstance(ext_tensor, TensorBase):
        return ext_tensor.detach()
    from torchlike._src.tensor.creation import from_array, from_numpy

    if not hasattr(ext_tensor, "__dlpack__"):
        raise TypeError(
            "from_dlpack expects an object with __dlpack__ and __dlpack_device__; DLPack capsules are not supported"
        )
    array = np.from_dlpack(ext_tensor)
    if array.flags.writeable:
        return from_numpy(array)
    return from_array(np.array(array, copy=True))


# -- text --------------------------------------------------------------------------------------------------------------


def representation(self: Tensor, *, tensor_contents: Any = None) -> str:
    """PyTorch's text."""
    a = self._aval
    node = self.grad_fn
    name = None
    if node is not None:
        name = node.name().removeprefix("torch::autograd::") if hasattr(node, "name") else type(node).__name__
    class_name = "tensor" if type(self) is Tensor or self._is_param else type(self).__name__
    array = None if a.device.type == "meta" else self._host()
    return printing.tensor_repr(
        array, a.dtype, a.shape, device=a.device, requires_grad=self._rg, grad_fn=name, class_name=class_name,
        tangent=dual.shown(self) if SLOW else None,
    )  # fmt: skip


def format_(self: Tensor, spec: str) -> str:
    if self._aval.ndim == 0 and self._aval.device.type != "meta" and type(self) is Tensor:
        return printing.format_scalar(self._host(), spec)
    return object.__format__(self, spec)


# -- copies and pickles of the object ----------------------------------------------------------------------------------


def deepcopy(self: Tensor, memo: dict) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if self._gf is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
            "see https://github.com/pytorch/pytorch/pull/103001"
        )
    with grad_off():
        storage_key = ("torchlike storage", id(self._s))
        new = NEW(type(self))
        base = memo.get(storage_key)
        if base is None:
            base = memo[storage_key] = wrap(self._s.value)
        new._s = base._s
        new._view, new._aval, new._rg, new._gf = self._view, self._aval, self._rg, None
        memo[id(self)] = new
        for name, v in self.__dict__.items():
            if name in ("_vb", "_vv", "_base_tensor", "_accumulator", "_hooks", "_vversion"):
                continue
            new.__dict__[name] = (
                copy.deepcopy(v, memo) if name not in ("_accumulate_hooks", "_post_accumulate_hooks") else None
            )
        if self._view is not None:
            new._vversion = new._s.version
    return new


class grad_off:
    def __enter__(self) -> None:
        self.before = MODE.enabled
        MODE.enabled = False

    def __exit__(self, *unused: object) -> None:
        MODE.enabled = self.before


def shallow_copy(self: Tensor) -> Tensor:
    """copy.copy: another tensor over the same memory."""
    new = alias(self)
    new.__class__ = type(self)
    if self._is_param:
        new._is_param = True
    new._rg = self._rg
    new.__dict__.update({k: v for k, v in self.__dict__.items() if not k.startswith("_")})
    return new


def rebuild(
    array: np.ndarray,
    dtype_name: str,
    requires_grad: bool,
    cls: type | None,
    state: dict | None,
    geometry: tuple | None = None,
) -> Tensor:
    """What an unpickled tensor is made by."""
    from torchlike._src.tensor.creation import as_subclass, from_array
    from torchlike._src.tensor.views import as_strided

    t = from_array(array, dt.by_name(dtype_name))
    if geometry is not None:
        t = as_strided(t, *geometry).detach()
    t._rg = requires_grad
    if cls is not None:
        t = as_subclass(t, cls)
    if state:
        t.__dict__.update(state)
    return t


def rebuild_meta(
    shape: tuple, strides: tuple, dtype_name: str, requires_grad: bool, cls: type | None, state: dict | None
) -> Tensor:
    """What an unpickled tensor of the meta device is made by."""
    from torchlike._src.tensor.creation import as_subclass
    from torchlike._src.tensor.factories import empty_strided

    t = empty_strided(shape, strides, dtype=dt.by_name(dtype_name), device="meta").detach()
    t._rg = requires_grad
    if cls is not None:
        t = as_subclass(t, cls)
    t.__dict__.update(state or {})
    return t


def reduce(self: Tensor, protocol: Any) -> tuple:
    state = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
    cls = None if type(self) is Tensor else type(self)
    a, view = self._aval, self._view
    if a.device.type == "meta":
        return rebuild_meta, (a.shape, tuple(self.stride()), a.dtype.name, self._rg, cls, state or None)
    if view is not None and self._s.value.aval.dtype is a.dtype and 0 not in a.shape:
        array = np.ascontiguousarray(host_array(self._s.value)).reshape(-1)
        return rebuild, (array, a.dtype.name, self._rg, cls, state or None, (a.shape, view.strides, view.offset))
    array = np.ascontiguousarray(self._host()).reshape(a.shape)
    return rebuild, (array, a.dtype.name, self._rg, cls, state or None)
