"""Constants, switches, legacy tensor types, storages, and Tensor attributes that only answer questions."""

import math
import os
from typing import Any

import numpy as np

from torchlike._src.core import device as core_device
from torchlike._src.core import dtype as dt
from torchlike._src.core import layout as layouts
from torchlike._src.core.aval import aval
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import default_dtype, require_numpy
from torchlike._src.engine import Value, backend
from torchlike._src.storage import Storage
from torchlike._src.tensor import printing, views
from torchlike._src.tensor.addresses import address
from torchlike._src.tensor.arguments import whole_tuple
from torchlike._src.tensor.conversion import move
from torchlike._src.tensor.creation import array_from, check_layout, filled, from_array
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import NEW, SharedStorage, Tensor, TensorBase

# -- switches ----------------------------------------------------------------------------------------------------------

_threads: dict[str, int] = {}
_deterministic: dict[str, Any] = {"mode": 0, "warn_only": False, "warn_always": False}


def get_num_threads() -> int:
    """How many threads programs may use: the machine's cores, unless XLA_FLAGS says otherwise."""
    import os

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _threads.get("intra", cores)


def set_num_threads(n: int) -> None:
    """XLA fixes its thread pool when it starts: the number is remembered for get_num_threads, with no other effect."""
    if n <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _threads["intra"] = int(n)


def get_num_interop_threads() -> int:
    """See get_num_threads."""
    return _threads.get("inter") or get_num_threads()


def set_num_interop_threads(n: int) -> None:
    """Remembered, with no other effect; see set_num_threads."""
    _threads["inter"] = int(n)


def set_float32_matmul_precision(precision: str) -> None:
    """How matrix products of float32 may round on accelerators: "highest" (full float32), "high" or "medium"."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"Invalid float32 matmul precision: {precision}; use 'highest', 'high' or 'medium'")
    backend.set_matmul_precision(precision)
    _deterministic["matmul"] = precision


def get_float32_matmul_precision() -> str:
    """The current setting; "highest" by default."""
    return _deterministic.get("matmul", "highest")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """XLA's CPU programs are deterministic; on GPUs ask XLA with --xla_gpu_deterministic_ops. The setting is kept."""
    _deterministic["mode"] = (1 if warn_only else 2) if mode else 0
    _deterministic["warn_only"] = warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms set."""
    return _deterministic["mode"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What use_deterministic_algorithms set."""
    return _deterministic["mode"] == 1


def set_deterministic_debug_mode(debug_mode: Any) -> None:
    """0 or "default", 1 or "warn", 2 or "error"."""
    names = {"default": 0, "warn": 1, "error": 2}
    mode = names.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected `default`, `warn`, `error`, but got {debug_mode}"
            if isinstance(debug_mode, str)
            else f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2."""
    return _deterministic["mode"]


def set_warn_always(b: bool) -> None:
    """Whether warnings that PyTorch gives once are given each time."""
    _deterministic["warn_always"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What set_warn_always set."""
    return _deterministic["warn_always"]


def set_flush_denormal(mode: bool) -> bool:
    """Not supported: False, as PyTorch answers where it cannot."""
    return False


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, by its legacy tensor type."""
    name = t if isinstance(t, str) else t.type_name
    for d in dt.ALL:
        if d.type_name == name:
            dt.set_default_dtype(d)
            return
    raise TypeError("invalid type object: only floating-point types are supported as the default type")


def typename(obj: Any) -> str:
    """The type's full name; for tensors the legacy one."""
    if isinstance(obj, TensorBase):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = kind.__module__
    return kind.__qualname__ if module in ("builtins", None) else f"{module}.{kind.__qualname__}"


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: Any = None,
    backend: Any = "inductor",
    mode: Any = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """The model itself: every step is compiled anyway."""
    if model is None:
        return lambda m: m
    return model


# -- legacy tensor types -----------------------------------------------------------------------------------------------


class _LegacyMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance._aval.dtype is cls.dtype
            and instance._aval.device.type == "cpu"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        dtype = cls.dtype
        if not args:
            return filled((0,), 0, dtype, None, False)
        if len(args) == 1 and isinstance(args[0], TensorBase):
            if args[0]._aval.dtype is not dtype:
                raise TypeError(f"expected {dtype.type_name} (got {args[0].type()})")
            return args[0].detach()
        if len(args) == 1 and not isinstance(args[0], (int, np.integer)) and type(args[0]).__name__ != "Size":
            return from_array(array_from(args[0], dtype), dtype)
        return filled(views.sizes(args), 0, dtype, None, False)


def _legacy(d: Any) -> type:
    name = d.type_name.removeprefix("torch.")
    return _LegacyMeta(name, (), {"dtype": d, "type_name": d.type_name, "is_cuda": False, "__module__": "torch"})


LEGACY = (dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64, dt.bool_)

# -- storages ----------------------------------------------------------------------------------------------------------


class UntypedStorage:
    """The bytes behind a tensor, as far as they can be asked for: identity, size, contents."""

    _mapping: np.ndarray | None = None

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> "UntypedStorage":
        """The first `nbytes` bytes of a file, read when they are needed; writes do not reach the file.

        NotImplementedError: shared=True, or no size."""
        if shared:
            raise NotImplementedError("torchlike: UntypedStorage.from_file(shared=True): writing to the file")
        if nbytes <= 0:
            raise NotImplementedError("torchlike: UntypedStorage.from_file without nbytes")
        name = os.fspath(filename)
        try:
            size = os.path.getsize(name)
        except OSError as e:
            raise RuntimeError(f"unable to open file <{name}> in read-only mode: {e.strerror} ({e.errno})") from None
        if size < nbytes:
            raise RuntimeError(f"file <{name}> size <{size}> is smaller than the required mapping size <{nbytes}>")
        return cls._mapped(np.asarray(np.memmap(filename, np.uint8, "c", 0, (nbytes,))))

    @classmethod
    def _mapped(cls, content: np.ndarray) -> "UntypedStorage":
        found = cls(Storage(Value(aval(content.shape, dt.uint8, Device("cpu")), content)))
        found._mapping = content
        return found

    def _array(self) -> np.ndarray:
        from torchlike._src.engine import host_array

        s = self._storage
        return s.shared if type(s) is SharedStorage else host_array(s.value)

    def nbytes(self) -> int:
        """Bytes."""
        a = self._storage.value.aval
        return a.numel * a.dtype.itemsize

    size = nbytes

    def untyped(self) -> "UntypedStorage":
        """The storage itself."""
        return self

    def element_size(self) -> int:
        """Bytes per element: 1."""
        return 1

    def __len__(self) -> int:
        return self.nbytes()

    def data_ptr(self) -> int:
        """The address of its bytes; see Tensor.data_ptr."""
        return address(self._storage)

    @property
    def device(self) -> Any:
        return self._storage.value.aval.device

    def tolist(self) -> list[int]:
        """The bytes as integers."""
        return np.ascontiguousarray(self._array()).reshape(-1).view(np.uint8).tolist()

    def __getitem__(self, k: Any) -> Any:
        """A byte; or a part of what `from_file` gave, as a storage of its own."""
        if not isinstance(k, slice):
            return self.tolist()[k]
        if self._mapping is None:
            raise NotImplementedError("torchlike: a slice of a tensor's storage; slice the tensor")
        if k.step not in (None, 1):
            raise RuntimeError(f"Trying to slice with a step of {k.step}, but only a step of 1 is supported")
        return self._mapped(self._mapping[k])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and other._storage is self._storage

    def __hash__(self) -> int:
        return id(self._storage)

    def to(self, *, device: Any, non_blocking: bool = False) -> "UntypedStorage":
        """The bytes on a device: the storage itself if it is there."""
        device = Device(device)
        if device == self.device:
            return self
        t: Any = NEW(Tensor)
        cell = self._storage
        t._s, t._view, t._aval, t._gf, t._rg = cell, None, cell.value.aval, None, False
        return UntypedStorage(move(t, device)._s)

    def cpu(self) -> "UntypedStorage":
        """The bytes in host memory."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> "UntypedStorage":
        """The bytes on a GPU."""
        return self.to(device=Device("cuda" if device is None else device))

    def is_shared(self) -> bool:
        """Whether it is in shared memory."""
        return False

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"


class TypedStorage(UntypedStorage):
    """A storage with an element type."""

    def __init__(self, storage: Any, dtype: Any) -> None:
        super().__init__(storage)
        self.dtype = dtype

    def size(self) -> int:
        """Elements."""
        return self.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def tolist(self) -> list:
        return np.ascontiguousarray(self._array()).reshape(-1).tolist()

    def untyped(self) -> UntypedStorage:
        """The same without a type."""
        return UntypedStorage(self._storage)

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize


UntypedStorage.__module__ = TypedStorage.__module__ = "torch.storage"


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The tensor's storage."""
    return UntypedStorage(self._s)


def storage(self: Tensor) -> TypedStorage:
    """The tensor's storage, with its element type."""
    return TypedStorage(self._s, self._aval.dtype)


# -- Tensor attributes -------------------------------------------------------------------------------------------------


def get_device(self: Tensor) -> int:
    """The device's index, -1 on the CPU."""
    return -1 if self._aval.device.type in ("cpu", "meta") else (self._aval.device.index or 0)


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: there is no pinned memory without a GPU, and JAX does not need it."""
    return self


def share_memory_(self: Tensor) -> Tensor:
    """Shared memory between processes is not supported."""
    raise NotImplementedError("torchlike: Tensor.share_memory_ (memory shared between processes)")


def nbytes(self: Tensor) -> int:
    """numel() * element_size()."""
    return self._aval.numel * self._aval.dtype.itemsize


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Overwrite the main diagonal."""
    if self._aval.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    shape = self._aval.shape
    if self._aval.ndim > 2 and len(set(shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    array = np.zeros(shape, bool)
    np.fill_diagonal(array, True, wrap)
    return self.masked_fill_(from_array(array), fill_value)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum to a shape that this one could have been broadcast from."""
    target = whole_tuple("sum_to_size", size)
    if not target:
        return PUBLIC["sum"](self)
    shape = self._aval.shape
    lead = len(shape) - len(target)
    if lead < 0 or any(t not in (1, n) for t, n in zip(target, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    dims = tuple(range(lead)) + tuple(lead + k for k, t in enumerate(target) if t == 1 and shape[lead + k] != 1)
    return views.reshape(PUBLIC["sum"](self, dims), target) if dims else self


def dense(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A dense tensor is dense already."""
    return self


def not_sparse(name: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torchlike has no sparse tensors: Tensor.{name}")

    method.__name__ = name
    return method


def reversed_(self: Tensor) -> Tensor:
    """Flipped along every dimension but none for 0-d (Python's reversed())."""
    return self if not self._aval.ndim else PUBLIC["flip"](self, (0,))


def resolve(input: Tensor) -> Tensor:
    """The tensor itself: conjugation and negation are computed, never pending."""
    return input


def rmatmul(self: Tensor, other: Tensor) -> Tensor:
    """other @ self."""
    if not isinstance(other, TensorBase):
        return NotImplemented
    return PUBLIC["matmul"](other, self)


def _window(name: str, formula: Any) -> Any:
    def function(
        window_length: int, periodic: bool = True, *args: Any, dtype: Any = None, layout: Any = None,
        device: Any = None, requires_grad: bool = False, pin_memory: bool = False, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        check_layout(layout)
        dtype = dtype or default_dtype()
        if not dtype.is_floating_point:
            raise RuntimeError(f"{name}: only floating point dtypes are supported")
        if window_length < 0:
            raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")
        n = window_length + 1 if periodic and window_length > 1 else window_length
        if window_length == 1:
            array = np.ones(1)
        else:
            array = formula(n, *args, **kwargs)[:window_length] if window_length else np.zeros(0)
        return from_array(array.astype(require_numpy(dtype)), dtype, device, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The {name.removesuffix('_window')} window."
    return function


def _cosines(alpha: float, beta: float) -> Any:
    def formula(n: int, a: float = alpha, b: float = beta) -> np.ndarray:
        return a - b * np.cos(2 * math.pi * np.arange(n) / (n - 1))

    return formula


hann_window = _window("hann_window", _cosines(0.5, 0.5))
hamming_window = _window("hamming_window", _cosines(0.54, 0.46))
bartlett_window = _window("bartlett_window", lambda n: 1 - np.abs(2 * np.arange(n) / (n - 1) - 1))
blackman_window = _window(
    "blackman_window",
    lambda n: (
        0.42 - 0.5 * np.cos(2 * math.pi * np.arange(n) / (n - 1)) + 0.08 * np.cos(4 * math.pi * np.arange(n) / (n - 1))
    ),
)
kaiser_window = _window("kaiser_window", lambda n, beta=12.0: np.kaiser(n, beta))

TYPE_QUESTIONS = (
    "is_sparse",
    "is_sparse_csr",
    "is_quantized",
    "is_mkldnn",
    "is_xla",
    "is_xpu",
    "is_mps",
    "is_ipu",
    "is_hpu",
    "is_vulkan",
    "is_nested",
    "is_mtia",
    "is_maia",
)
SPARSE_METHODS = (
    "to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "coalesce",
    "is_coalesced", "indices", "values", "crow_indices", "col_indices", "sparse_dim", "dense_dim", "sparse_mask",
)  # fmt: skip


def install(torch: dict[str, Any]) -> None:
    """Publish this page's names."""
    here = globals()
    torch.update(pi=math.pi, e=math.e, inf=math.inf, nan=math.nan, newaxis=None)
    for name in (
        "strided",
        "sparse_coo",
        "sparse_csr",
        "sparse_csc",
        "sparse_bsr",
        "sparse_bsc",
        "jagged",
        "contiguous_format",
        "channels_last",
        "channels_last_3d",
        "preserve_format",
    ):
        if hasattr(layouts, name):
            torch[name] = getattr(layouts, name)
    for name in (
        "get_num_threads", "set_num_threads", "get_num_interop_threads", "set_num_interop_threads",
        "set_float32_matmul_precision", "get_float32_matmul_precision", "use_deterministic_algorithms",
        "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
        "set_deterministic_debug_mode", "get_deterministic_debug_mode", "set_warn_always", "is_warn_always_enabled",
        "set_flush_denormal", "set_default_tensor_type", "typename", "compile", "UntypedStorage", "TypedStorage",
        "hann_window", "hamming_window", "bartlett_window", "blackman_window", "kaiser_window", "get_device",
    ):  # fmt: skip
        torch[name] = here[name]
    torch["set_printoptions"] = printing.set_printoptions
    torch["set_default_device"] = core_device.set_default_device
    torch["get_default_device"] = core_device.get_default_device
    torch["is_storage"] = lambda obj: isinstance(obj, UntypedStorage)
    for name in ("resolve_conj", "resolve_neg"):
        torch[name] = resolve
        setattr(Tensor, name, resolve)
    for d in LEGACY:
        torch[d.type_name.removeprefix("torch.")] = _legacy(d)
    for name in (
        "get_device",
        "pin_memory",
        "share_memory_",
        "fill_diagonal_",
        "sum_to_size",
        "untyped_storage",
        "storage",
    ):
        setattr(Tensor, name, here[name])
    Tensor._typed_storage = storage
    Tensor.__module__ = "torch"
    Tensor.nbytes = property(nbytes)
    Tensor.itemsize = property(lambda self: self._aval.dtype.itemsize)
    Tensor.is_cpu = property(lambda self: self._aval.device.type == "cpu")
    Tensor.is_cuda = property(lambda self: self._aval.device.type == "cuda")
    Tensor.is_meta = property(lambda self: self._aval.device.type == "meta")
    for name in TYPE_QUESTIONS:
        setattr(Tensor, name, property(lambda self: False))
    Tensor.layout = property(lambda self: layouts.strided)
    Tensor.name = property(lambda self: self._name)
    Tensor.names = property(lambda self: (None,) * self._aval.ndim)
    Tensor._base = property(lambda self: self._base_tensor)
    Tensor._is_view = lambda self: self._base_tensor is not None
    Tensor.is_shared = lambda self: False
    Tensor.is_pinned = lambda self, device=None: False
    Tensor.is_neg = lambda self: False
    Tensor.has_names = lambda self: False
    Tensor.to_dense = dense
    for name in SPARSE_METHODS:
        setattr(Tensor, name, not_sparse(name))
    Tensor.__reversed__ = reversed_
    Tensor.__rmatmul__ = rmatmul
    empty_strided = torch["empty_strided"]
    Tensor.new_empty_strided = lambda self, size, stride, dtype=None, device=None, requires_grad=False: empty_strided(
        size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )
    Tensor.new = lambda self, *args: (
        torch["empty"](0, dtype=self.dtype)
        if not args
        else (
            torch["tensor"](args[0], dtype=self.dtype)
            if not isinstance(args[0], int)
            else torch["empty"](*args, dtype=self.dtype)
        )
    )
    Tensor.dim_order = lambda self: tuple(sorted(range(self._aval.ndim), key=lambda k: (-self.stride()[k], k)))
    for name in ("detach", "detach_", "zero_", "fill_", "resize_as_"):
        torch[name] = lambda input, *a, _n=name, **k: getattr(input, _n)(*a, **k)
