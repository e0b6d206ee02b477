"""The Tensor: a storage, perhaps a view of it, and a place on the tape. Its operators are published in `publish`."""

import sys
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from torchlike._src.autograd import tape
from torchlike._src.autograd.dual import below_all, dual_of
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import Node, OutEdge
from torchlike._src.core.aval import Aval
from torchlike._src.core.size import Size
from torchlike._src.engine import META_ARRAY, Value, flush, host_array, record
from torchlike._src.engine.record import PLAIN, SLOW
from torchlike._src.storage.storage import Storage, View, contiguous_strides, read_view
from torchlike._src.tensor.boundary import parameter_written
from torchlike._src.tensor.rebase import regenerate

NEW = object.__new__


class TensorBase:
    """The hot fields, as slots.

    _s      storage            _view  View, or None for a base tensor
    _aval   shape, dtype, …    _rg    requires_grad
    _gf     the edge to the node that made it (Node or OutEdge), or None for a leaf"""

    __slots__ = ("__dict__", "__weakref__", "_aval", "_gf", "_rg", "_s", "_view")

    if TYPE_CHECKING:  # most methods are published from declarations
        _s: Storage
        _view: Any
        _aval: Aval
        _rg: bool
        _gf: Any

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __hash__(self) -> int: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __matmul__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __index__(self) -> int: ...
        def __iter__(self) -> Any: ...


class Tensor(TensorBase):
    """A multi-dimensional array with gradients; see PyTorch's documentation of torch.Tensor.

    Data is computed when it is read. Made by `torch.tensor` and the other creation functions."""

    __slots__ = ()

    # Rare fields: class-level defaults until an instance sets its own.
    _grad: Any = None
    _base_tensor: Any = None
    _vb: Any = None
    _vv: Any = None
    _vversion: int = 0
    _hooks: Any = None
    _accumulator: Any = None
    _accumulate_hooks: Any = None
    _post_accumulate_hooks: Any = None
    _retains: bool = False
    _silent: Any = None  # of `.data` and its views: [their own count of writes]
    _is_inference: bool = False
    _name: Any = None
    _is_param: bool = False

    def __new__(cls, *args: Any, **kwargs: Any) -> "Tensor":
        from torchlike._src.tensor.creation import legacy_tensor

        return legacy_tensor(cls, *args, **kwargs)

    # -- reading --------------------------------------------------------------------------------------------

    def _read(self) -> Value:
        """The current value, for an operation to use."""
        view = self._view
        storage = self._s
        if view is None:
            return storage.value
        if type(storage) is SharedStorage:
            return storage.read_shared_view(view)
        base = storage.value
        if self._vb is not base:
            if (
                type(base.array) is np.ndarray
                and not self._rg
                and base.aval.numel >= 4 * view.aval.numel
                and base.aval.numel >= HOST_VIEW
                and (self._base_tensor is None or not self._base_tensor._rg)
            ):
                # A small part of a large array in host memory (a sample of a data set): NumPy's view costs nothing,
                # while recording it would pass the whole array to the program.
                self._vv = Value(view.aval, strided(base.array, view))
            else:
                self._vv = read_view(base, view.steps)
            self._vb = base
        return self._vv

    def _host(self) -> np.ndarray:
        """The data in host memory, not to be written to."""
        view = self._view
        if view is not None and type(self._s) is not SharedStorage:
            base = self._s.value
            if base.array is not None and type(base.array) in HOST_READABLE:
                return strided(host_array(base), view)
        value = self._read()
        if value.array is META_ARRAY:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        return host_array(value)

    def _edge(self) -> Any:
        """Where this tensor's gradient goes: Node, OutEdge, the leaf itself, or None."""
        if not self._rg:
            return None
        gf = self._gf
        if self._view is not None and self._vversion != self._s.version:
            base = self._base_tensor
            if base is not None and base._rg:
                return regenerate(self)
        return self if gf is None else gf

    # -- what it is -----------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return tuple.__new__(Size, self._aval.shape)

    def size(self, dim: int | None = None) -> Any:
        """shape, or shape[dim]."""
        if dim is None:
            return tuple.__new__(Size, self._aval.shape)
        shape = self._aval.shape
        if not -len(shape) <= dim < len(shape):
            from torchlike._src.core.errors import canonical_dim

            if not shape:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
            canonical_dim(dim, len(shape))
        return shape[dim]

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._aval.dtype

    @property
    def device(self) -> Any:
        """Where the data is."""
        return self._aval.device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._aval.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._aval.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._aval.numel

    nelement = numel

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded for gradients."""
        return self._rg

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        if not isinstance(flag, bool):
            raise RuntimeError("requires_grad must be a bool")
        dtype = self._aval.dtype
        if flag and not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Start or stop recording operations on this tensor, in place; only leaves can stop."""
        if self._gf is not None and not requires_grad and self._rg:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                "a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        dtype = self._aval.dtype
        if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and self._is_inference and not MODE.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._rg = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        return self._gf is None if self._view is None else self.grad_fn is None

    @property
    def grad_fn(self) -> Node | None:
        """The graph node that made it, or None for a leaf."""
        if self._gf is None and (self._view is None or not self._rg):
            return None
        edge = self._edge()
        if edge is self:
            return None
        return tape.named(edge.node if type(edge) is OutEdge else edge)

    @property
    def output_nr(self) -> int:
        edge = self._edge()
        return edge.nr if type(edge) is OutEdge else 0

    @property
    def grad(self) -> "Tensor | None":
        """The accumulated gradient of a leaf (or of a tensor that called retain_grad), or None."""
        if self._gf is not None and not self._retains and self._grad is None:
            import warnings

            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead. See "
                "github.com/pytorch/pytorch/pull/30531 for more information.",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, new: "Tensor | None") -> None:
        if new is not None:
            if not isinstance(new, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(new).__name__}"
                )
            if new is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if new._aval.dtype is not self._aval.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{new._aval.dtype.cpp_name}' to a tensor with "
                    f"grad_dtype '{self._aval.dtype.scalar_name}'. The gradient must match the tensor's grad_dtype "
                    "(defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific "
                    "dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor "
                    "and its gradient may break downstream systems that assume they match."
                )
            if new._aval.device.type != self._aval.device.type:
                raise RuntimeError(
                    f"attempting to assign a gradient with device type '{new._aval.device.type}' to a tensor with "
                    f"device type '{self._aval.device.type}'. Please ensure that the gradient and the tensor are on "
                    "the same device"
                )
            if new._aval.shape != self._aval.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(new._aval.shape)}' to a tensor of size "
                    f"'{list(self._aval.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
        self._grad = new

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> "Tensor":
        """The same data without history; writes to it are not counted as in-place changes."""
        t = alias(self) if not SLOW else plain_alias(self)
        t._silent = [0]
        return t

    @data.setter
    def data(self, new: "Tensor") -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        if self._rg and not (new._aval.dtype.is_floating_point or new._aval.dtype.is_complex):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if new._view is None:
            self._s = new._s
            self._view = None
        else:
            self._s, self._view = new._s, new._view
            self._base_tensor = new._base_tensor
        self._aval = new._aval
        self._vb = self._vv = None
        if self._rg:
            parameter_written()

    def detach(self) -> "Tensor":
        """The same data without history; shares memory and the version counter."""
        t = alias(self) if not SLOW else plain_alias(self)
        if self._silent:
            t._silent = self._silent
        return t

    def detach_(self) -> "Tensor":
        """Drop this tensor's history, in place."""
        if self._base_tensor is not None and self._view is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        self._gf = None
        self._rg = False
        return self

    @property
    def _version(self) -> int:
        """How often the data was changed in place."""
        if self._is_inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._s.version if self._silent is None else self._silent[0]

    def stride(self, dim: int | None = None) -> Any:
        """How many elements apart neighbours along each dimension lie."""
        strides = self._view.strides if self._view is not None else contiguous_strides(self._aval.shape)
        if dim is None:
            return strides
        from torchlike._src.core.errors import canonical_dim

        return strides[canonical_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        """Where in its storage the tensor begins, in elements."""
        return self._view.offset if self._view is not None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        if memory_format is not None and "channels_last" in repr(memory_format):
            from torchlike._src.tensor.views import is_channels_last

            return is_channels_last(self)
        if self._view is None:
            return True
        return is_row_major(self._aval.shape, self._view.strides)

    # -- hooks ----------------------------------------------------------------------------------------------

    def register_hook(self, hook: Any) -> Any:
        """Call hook(grad) whenever this tensor's gradient is computed; what it returns replaces the gradient."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._gf is None:
            if self._hooks is None:
                self._hooks = {}
            return tape.RemovableHandle(self._hooks, hook)
        edge = self._edge()
        node, nr = (edge.node, edge.nr) if type(edge) is OutEdge else (edge, 0)
        return tape.RemovableHandle(node.tensor_hooks(nr), hook, keep=node)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Call hook(tensor) after this leaf's .grad was accumulated."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._gf is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_accumulate_hooks is None:
            self._post_accumulate_hooks = {}
        return tape.RemovableHandle(self._post_accumulate_hooks, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf tensor in .grad; does nothing on a leaf."""
        if not self._rg:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self._gf is None or self._retains:
            return
        self._retains = True
        edge = self._edge()
        node, nr = (edge.node, edge.nr) if type(edge) is OutEdge else (edge, 0)
        node._extra("retain")[nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether a non-leaf tensor keeps its gradient."""
        return self._retains

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if not self._aval.shape:
            raise TypeError("len() of a 0-d tensor")
        return self._aval.shape[0]


def wrap(value: Value) -> Tensor:
    """A new leaf tensor of its own storage."""
    t = NEW(Tensor)
    s = NEW(Storage)
    s.value = value
    s.version = 0
    t._s = s
    t._view = None
    t._aval = value.aval
    t._rg = False
    t._gf = None
    return t


def alias(source: Tensor) -> Tensor:
    """Another tensor object over the same data, without history."""
    t = NEW(Tensor)
    t._s = source._s
    t._view = source._view
    t._aval = source._aval
    t._rg = False
    t._gf = None
    if source._view is not None:
        t._vb, t._vv = source._vb, source._vv
    if source._is_inference or MODE.inference:
        t._is_inference = True
    return t


def plain_alias(source: Tensor) -> Tensor:
    """`alias`, without a forward tangent: then in a memory of its own."""
    value = source._read()
    return alias(source) if dual_of(value) is None else wrap(below_all(value))


def is_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1:
            if s != expected:
                return 0 in shape
            expected *= n
    return True


class SharedStorage(Storage):
    """A storage whose memory NumPy code can see and write to (`from_numpy`, `.numpy()`).

    As long as someone else holds the array, each read takes a snapshot and each write goes to the array at once."""

    __slots__ = ()

    @property
    def value(self) -> Value:  # type: ignore[override]
        kept = _VALUE.__get__(self)
        array = self.shared
        if sys.getrefcount(array) <= _SHARED_ALONE and (array.base is None or _owned(array)):
            _VALUE.__set__(self, Value(kept.aval, array))
            self.__class__ = Storage  # type: ignore[assignment]
            return _VALUE.__get__(self)
        return Value(kept.aval, array.copy())

    @value.setter
    def value(self, new: Value) -> None:
        array = self.shared
        result = host_array(new)
        if not array.flags.writeable:
            raise ValueError("the NumPy array behind this tensor is read-only")
        np.copyto(array, result)

    def read_shared_view(self, view: View) -> Value:
        """What a view sees now; only its own elements are copied."""
        return Value(view.aval, strided(self.shared, view).copy())


def _owned(array: np.ndarray) -> bool:
    """Whether nothing but this array refers to the array that it is a view of."""
    return type(array.base) is np.ndarray and array.base.base is None and sys.getrefcount(array.base) <= _BASE_ALONE


_BASE_ALONE = sys.getrefcount(np.zeros(2)[:1].base)


def strided(array: np.ndarray, view: View) -> np.ndarray:
    """What a view sees of its base array, as a NumPy view of the same memory."""
    dtype = view.aval.dtype.np
    item = dtype.itemsize
    if 0 in view.aval.shape:
        return np.empty(view.aval.shape, dtype)
    if array.flags.c_contiguous:
        return np.ndarray(view.aval.shape, dtype, array, view.offset * item, tuple([s * item for s in view.strides]))
    if not array.size or dtype != array.dtype:
        array = np.ascontiguousarray(array)
        return np.ndarray(view.aval.shape, dtype, array, view.offset * item, tuple([s * item for s in view.strides]))
    # A base whose own memory is not row-major (a transposed NumPy array): find the elements by number.
    numbers = np.arange(array.size).reshape(array.shape)
    where = np.ndarray(view.aval.shape, numbers.dtype, numbers, view.offset * 8, tuple([s * 8 for s in view.strides]))
    return array.reshape(-1)[where]


HOST_READABLE = PLAIN
"""Array types whose contents can be read without running a program."""
HOST_VIEW = 1024
"""Bases smaller than this are passed to programs whole."""


_VALUE: Any = Storage.__dict__["value"]  # the slot itself, under SharedStorage's property


def _alone() -> int:
    s = NEW(Storage)
    s.shared = np.zeros(1)
    array = s.shared
    return sys.getrefcount(array)


_SHARED_ALONE = _alone()


def share(t: Tensor, array: np.ndarray) -> None:
    """From now on `array` is the memory of t's storage."""
    s = t._s
    s.shared = array
    s.__class__ = SharedStorage


TENSOR_TYPES: set = {Tensor}
"""The exact types that need no further look; subclasses join when they are defined."""


def _register_subclass(cls: type, **kwargs: Any) -> None:
    TENSOR_TYPES.add(cls)


Tensor.__init_subclass__ = classmethod(_register_subclass)  # type: ignore[assignment]
Tensor.__module__ = TensorBase.__module__ = "torchlike"  # the public home; the alias relabels it `torch`
tape.Hooks.wrap = staticmethod(wrap)

__all__ = ["SharedStorage", "Tensor", "alias", "contiguous_strides", "flush", "record", "regenerate", "share", "wrap"]
