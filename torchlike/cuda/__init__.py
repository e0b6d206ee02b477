"""torch.cuda: JAX's GPU, if there is one. Without one every question has PyTorch's answer for a machine without
CUDA."""

import types as _types
from typing import Any, Literal

from torchlike._src.core import dtype as _dtypes
from torchlike._src.core.device import device as _Device
from torchlike._src.tensor import devices as _devices
from torchlike._src.tensor.generators import Accelerators as _Accelerators
from torchlike._src.tensor.namespace import names as _names
from torchlike.cuda import memory, nvtx, random, streams
from torchlike.cuda._device import NO_CUDA as _NO_CUDA
from torchlike.cuda._device import gpu as _gpu
from torchlike.cuda._device import index as _index
from torchlike.cuda.memory import *
from torchlike.cuda.random import *
from torchlike.cuda.streams import *

OutOfMemoryError = _names("torch")["OutOfMemoryError"]
AcceleratorError = _names("torch")["AcceleratorError"]
default_generators: tuple
has_half = True
has_magma = False


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # asking for GPUs starts JAX's backends
        return tuple(_Accelerators.of(k) for k in range(len(_devices.gpus())))
    raise AttributeError(f"module 'torchlike.cuda' has no attribute {name!r}")


class CudaError(RuntimeError):
    """What PyTorch raises for CUDA's own errors."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """What PyTorch raises for errors of calls that waited for CUDA to start."""


# -- which devices -----------------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether JAX has a GPU."""
    return bool(_devices.gpus())


def is_initialized() -> bool:
    """Whether there is a GPU: JAX starts it by itself."""
    return bool(_devices.gpus())


def init() -> None:
    """Start JAX's GPU backend; AssertionError without a GPU."""
    _gpu()


def device_count() -> int:
    """How many GPUs JAX has."""
    return len(_devices.gpus())


def current_device() -> int:
    """The index of the current GPU."""
    _gpu()
    return 0


def set_device(device: Any) -> None:
    """Only device 0 can be current."""
    k = _index(device)
    if k < 0:
        return
    _gpu(k)
    if k != 0:
        raise NotImplementedError("torchlike: cuda.set_device to a device other than 0; pass device= explicitly")


class device:
    """`with torch.cuda.device(0)`: only device 0 can be current; a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx < 0:
            return
        if not _devices.gpus():
            raise RuntimeError("PyTorch was compiled without CUDA support")
        set_device(self.idx)

    def __exit__(self, *unused: object) -> Literal[False]:
        return False


class device_of(device):
    """A context with the device of a tensor; a tensor on the CPU changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def get_device_name(device: Any = None) -> str:
    """The GPU's name."""
    return _gpu(device).device_kind


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The GPU's compute capability, (major, minor)."""
    text = str(getattr(_gpu(device), "compute_capability", "0.0"))
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def get_device_properties(device: Any = None) -> Any:
    """name, major, minor, total_memory and multi_processor_count of the GPU, as far as JAX tells."""
    found = _gpu(device)
    major, minor = get_device_capability(device)
    return _types.SimpleNamespace(
        name=found.device_kind, major=major, minor=minor, total_memory=memory.mem_get_info(device)[1],
        multi_processor_count=getattr(found, "core_count", None),
    )  # fmt: skip


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether two GPUs may read each other's memory: JAX copies by itself, so True for two of its GPUs."""
    _gpu(device)
    _gpu(peer_device)
    return True


def synchronize(device: Any = None) -> None:
    """Compute what is pending and wait for the GPU."""
    _gpu(device)
    _devices.synchronize()


def ipc_collect() -> None:
    """Nothing: memory is not shared between processes."""
    _gpu()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a GPU that computes in bfloat16: with emulation each does, else from capability 8 on."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether there is a GPU with tensor cores for TF32 (capability 8 on)."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The capabilities that programs can be compiled for: that of the GPU, since XLA compiles for it."""
    return ["sm_{}{}".format(*get_device_capability())] if is_available() else []


def get_gencode_flags() -> str:
    """The compiler flags for get_arch_list."""
    return " ".join(f"-gencode compute={a.replace('sm', 'compute')},code={a}" for a in get_arch_list())


# -- what XLA does by itself, or does not have -------------------------------------------------------------------------


def get_sync_debug_mode() -> int:
    """0."""
    _gpu()
    return 0


def set_sync_debug_mode(debug_mode: Any) -> None:
    """Only the default (0) is supported: what waits is in torchlike's own report."""
    _gpu()
    if debug_mode not in (0, "default"):
        raise NotImplementedError("torchlike: cuda.set_sync_debug_mode (see torchlike.report)")


def is_current_stream_capturing() -> bool:
    """False: XLA compiles steps instead of capturing them."""
    return False


def _unsupported(name: str, reason: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        _gpu()
        raise NotImplementedError(f"torchlike: cuda.{name} ({reason})")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Not supported: {reason}."
    return function


class CUDAGraph:
    """Not supported: each step is compiled as a whole already."""

    def __init__(self, keep_graph: bool = False) -> None:
        _gpu()
        raise NotImplementedError("torchlike: cuda.CUDAGraph (each step is compiled as a whole already)")


for _name in ("graph", "graph_pool_handle", "make_graphed_callables", "GreenContext"):
    globals()[_name] = _unsupported(_name, "each step is compiled as a whole already")
for _name in ("cudart", "check_error", "cudaStatus", "current_blas_handle", "current_solver_handle"):
    globals()[_name] = _unsupported(_name, "JAX owns the CUDA runtime")
for _name in ("utilization", "temperature", "power_draw", "clock_rate", "memory_usage", "device_memory_used"):
    globals()[_name] = _unsupported(_name, "JAX does not tell; use nvidia-smi")


# -- legacy types ------------------------------------------------------------------------------------------------------


class _LegacyMeta(type):
    dtype: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _names("torch")["Tensor"]) and instance.is_cuda and instance.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not _devices.gpus():
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. {_NO_CUDA}.")
        return _names("torch")[cls.__name__](*args, **kwargs).to(_Device("cuda", 0))


def _legacy() -> None:
    for d in (
        _dtypes.float32, _dtypes.float64, _dtypes.float16, _dtypes.bfloat16, _dtypes.uint8, _dtypes.int8, _dtypes.int16,
        _dtypes.int32, _dtypes.int64, _dtypes.bool_,
    ):  # fmt: skip
        name = d.type_name.removeprefix("torch.")
        globals()[name] = _LegacyMeta(name, (), {"dtype": d, "__module__": "torch.cuda"})
    for name in (
        "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half", "Int", "Long",
        "Short",
    ):  # fmt: skip
        globals()[name + "Storage"] = _unsupported(name + "Storage", "a storage comes with a tensor")


_legacy()

from torchlike.cuda import amp as amp

__all__ = sorted(n for n in globals() if not n.startswith("_") and n not in ("Any",))
_ = random, streams, nvtx
