"""`Parameter` and `Buffer`: tensors that a Module takes notice of when they are assigned to it, and their
not-yet-shaped forms for lazy modules."""

import copy
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NoReturn

from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import NEW, Tensor, alias

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


def _make_subclass(cls: type, data: Tensor, requires_grad: bool = False) -> Any:
    """A `cls` instance over the data of `data`, without its history; writes to either are seen by both.

    RuntimeError: requires_grad for a dtype that cannot have gradients."""
    if requires_grad:
        dtype = data._aval.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    source = alias(data)
    t: Any = NEW(cls)
    t._s = source._s
    t._view = source._view
    t._aval = source._aval
    t._gf = None
    t._rg = bool(requires_grad)
    if source.__dict__:
        t.__dict__.update(source.__dict__)
    return t


class _ParameterMeta(type):
    """`isinstance(t, Parameter)` also holds for instances of Tensor subclasses that were marked by `Parameter(t)`."""

    def __instancecheck__(self, instance: object) -> bool:
        if self is Parameter and isinstance(instance, Tensor) and instance._is_param:
            return True
        return type.__instancecheck__(self, instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a parameter of the Module that it is assigned to.

    data: the tensor whose data it shares (an empty float tensor if left out).
    requires_grad: True unless given, also under `no_grad`.

    RuntimeError: requires_grad for an integer or bool tensor.

    >>> weight = Parameter(torch.zeros(2))
    >>> weight.requires_grad
    True
    """

    __slots__ = ()
    _is_param = True

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> "Parameter":
        if data is None:
            data = torch.empty(0)
        kind = type(data)
        if kind is Tensor or kind is Parameter:
            return _make_subclass(cls, data, requires_grad)
        # A subclass stays what it is and is only marked.
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not kind:
            t = _make_subclass(kind, t, requires_grad)
        t._is_param = True
        return t

    def __deepcopy__(self, memo: dict) -> "Parameter":
        found = memo.get(id(self))
        if found is not None:
            return found
        result = type(self)(self.data.clone(), self._rg)
        memo[id(self)] = result
        return result

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple:
        state = _user_state(self)
        # Hooks are not written: an empty table stands in their place, as in PyTorch's files.
        if state:
            return _rebuild_parameter_with_state, (self.data, self._rg, OrderedDict(), state)
        return _rebuild_parameter, (self.data, self._rg, OrderedDict())


# Engine bookkeeping that lives in a tensor's __dict__; everything else there was put by the user.
_OWN_FIELDS = frozenset(
    "_grad _base_tensor _vb _vv _vversion _hooks _accumulator _accumulate_hooks _post_accumulate_hooks _retains "
    "_silent _is_inference _name _is_param".split()
)


def _user_state(t: Tensor) -> dict:
    """The attributes that the user has set on a tensor."""
    return {k: v for k, v in t.__dict__.items() if k not in _OWN_FIELDS}


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """Make a parameter again from what a pickle holds."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Parameter:
    """The same, with the attributes that its user had set."""
    param = Parameter(data, requires_grad)
    attributes = state[0] if isinstance(state, tuple) else state
    param.__dict__.update(attributes or {})
    return param


# The path that PyTorch's pickles use for them; `torchlike._utils` hands them out.
_rebuild_parameter.__module__ = _rebuild_parameter_with_state.__module__ = "torchlike._utils"

UNINITIALIZED = (
    "Attempted to use an uninitialized parameter in a torch function. This error happens when you are using a "
    "`LazyModule` or explicitly manipulating `torch.nn.parameter.{name}` objects. When using LazyModules Call "
    "`forward` with a dummy batch to initialize the parameters before calling torch functions"
)


if TYPE_CHECKING:
    _Mixed = Tensor  # what it is mixed into
else:
    _Mixed = object


class UninitializedTensorMixin(_Mixed):
    """What parameters and buffers of unknown shape can do: be moved, cast, and `materialize`d."""

    __slots__ = ()
    cls_to_become: type

    if not TYPE_CHECKING:

        @property
        def _s(self) -> NoReturn:
            # Every operation reads its operands' storage, so this one place refuses them all.
            raise ValueError(UNINITIALIZED.format(name=type(self).__name__))

    @property
    def data(self) -> Tensor:
        """An empty tensor of the right dtype and device."""
        return self.__dict__["_empty"]

    @data.setter
    def data(self, new: Tensor) -> None:
        empty = new.__dict__["_empty"] if is_lazy(new) else new
        self.__dict__["_empty"] = empty
        self._aval = empty._aval

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter (or buffer) of that shape, in place; its contents are not initialized."""
        empty = self.__dict__.pop("_empty")
        data = torch.empty(shape, device=empty.device if device is None else device, dtype=dtype or empty.dtype)
        self.__class__ = self.cls_to_become
        self._s, self._view, self._aval = data._s, None, data._aval

    @property
    def shape(self) -> NoReturn:
        """Not known yet: RuntimeError."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load "
            "an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> NoReturn:
        """Not possible yet: RuntimeError."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def _uses(self, *unused: Any, **also_unused: Any) -> NoReturn:
        raise ValueError(UNINITIALIZED.format(name=type(self).__name__))

    numel = nelement = dim = stride = __len__ = _uses

    def _converted(self, data: Tensor) -> Any:
        if data.dtype is self.data.dtype and data.device == self.data.device:
            return self
        t = type(self)(self._rg, data.device, data.dtype)
        return t

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Change dtype or device."""
        return self._converted(self.data.to(*args, **kwargs))

    def half(self) -> Any:
        """Change the dtype to float16."""
        return self._converted(self.data.half())

    def float(self) -> Any:
        """Change the dtype to float32."""
        return self._converted(self.data.float())

    def double(self) -> Any:
        """Change the dtype to float64."""
        return self._converted(self.data.double())

    def bfloat16(self) -> Any:
        """Change the dtype to bfloat16."""
        return self._converted(self.data.to(torch.bfloat16))

    def cpu(self) -> Any:
        """Change the device to the CPU."""
        return self._converted(self.data.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """Change the device to a GPU."""
        return self._converted(self.data.cuda(device))

    def copy_(self, source: Any, non_blocking: bool = False) -> Any:
        """Take another uninitialized tensor's place; one with data needs `materialize` first."""
        if not is_lazy(source):
            self._uses()
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self), (self._rg,)


def _uninitialized(cls: type, requires_grad: bool, device: Any, dtype: Any) -> Any:
    t: Any = NEW(cls)
    empty = torch.empty(0, device=device, dtype=dtype)
    t.__dict__["_empty"] = empty
    t._view = None
    t._aval = empty._aval
    t._gf = None
    t._rg = bool(requires_grad)
    return t


def is_lazy(param: Any) -> bool:
    """Whether `param` is a parameter or buffer whose shape is not known yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]  # its own __repr__
    """A parameter of unknown shape, of a lazy module that has not seen its first input."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> "UninitializedParameter":
        return _uninitialized(cls, requires_grad, device, dtype)

    def __deepcopy__(self, memo: dict) -> "UninitializedParameter":
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self._rg, self.data.device, self.data.dtype)
        return found


class _BufferMeta(type):
    """`isinstance(t, Buffer)` asks for the mark that `Buffer(data)` leaves on a tensor."""

    def __instancecheck__(self, instance: object) -> bool:
        if self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return type.__instancecheck__(self, instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the Module that it is assigned to: state that is no parameter.

    data: the tensor whose data it shares; the result is of data's own type, marked as a buffer.
    persistent: whether the module's state_dict includes it."""

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = torch.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of unknown shape, of a lazy module that has not seen its first input."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> "UninitializedBuffer":
        t = _uninitialized(cls, requires_grad, device, dtype)
        t.persistent = persistent
        t._is_buffer = True
        return t

    def __deepcopy__(self, memo: dict) -> "UninitializedBuffer":
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = type(self)(self._rg, self.data.device, self.data.dtype, copy.copy(self.persistent))
        return found
