"""Names that PyTorch has and that stand for something this library has not (sparse, quantised and other layouts: they
say so when they are called), removed functions, legacy storages, and rare Tensor methods."""

import enum
import warnings
from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core import layout as layouts
from torchlike._src.tensor import functions
from torchlike._src.tensor.call import check_writable, write
from torchlike._src.tensor.composite import names, public
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.misc import TypedStorage
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import Tensor

# -- what is not there -------------------------------------------------------------------------------------------------


def refusing(name: str, reason: str) -> Any:
    """A function that raises NotImplementedError."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torchlike: {name} ({reason})")

    function.__name__ = function.__qualname__ = name.rsplit(".", 1)[-1]
    function.__doc__ = f"Not supported: {reason}."
    return function


SPARSE = "no sparse tensors"
QUANTISED = "no quantised tensors"
MISSING = {
    SPARSE: (
        "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor",
        "sparse_compressed_tensor", "hspmm", "sspaddmm", "saddmm", "hsmm", "crow_indices_copy", "col_indices_copy",
        "ccol_indices_copy", "row_indices_copy", "indices_copy", "values_copy", "resize_as_sparse_",
    ),
    QUANTISED: (
        "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "quantized_batch_norm",
        "quantized_max_pool1d", "quantized_max_pool2d", "quantized_max_pool3d", "quantized_gru", "quantized_gru_cell",
        "quantized_lstm", "quantized_lstm_cell", "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell", "int_repr",
        "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis",
        "empty_quantized", "choose_qparams_optimized", "fused_moving_avg_obs_fake_quant",
    ),
}  # fmt: skip
MISSING_METHODS = {
    SPARSE: (
        "smm", "sspaddmm", "sparse_resize_", "sparse_resize_and_clear_", "row_indices", "ccol_indices",
        "resize_as_sparse_",
    ),
    QUANTISED: (
        "int_repr", "q_scale", "q_zero_point", "q_per_channel_scales", "q_per_channel_zero_points",
        "q_per_channel_axis", "qscheme",
    ),
    "no nested tensors": ("to_padded_tensor",),
    "no oneDNN layout": ("to_mkldnn",),
    "no complex32": ("chalf",),
    "no such device": ("ipu", "xpu", "mtia"),
    "no streams: XLA orders the work": ("record_stream",),
}  # fmt: skip
for _reason, _names in MISSING.items():
    for _name in _names:
        names("torch").setdefault(_name, refusing("torch." + _name, _reason))
for _reason, _names in MISSING_METHODS.items():
    for _name in _names:
        if _name not in Tensor.__dict__:
            setattr(Tensor, _name, refusing("Tensor." + _name, _reason))


@public("torch")
def smm(input, mat):
    """The product of a sparse and a dense matrix: there are no sparse ones."""
    raise NotImplementedError(f"torchlike: torch.smm ({SPARSE})")


def spmm(input, mat2, *, out=None):
    """torch.mm."""
    return torch.mm(input, mat2, out=out)


public("torch")(spmm)
public("torch", name="dsmm")(spmm)


@public("torch")
def dequantize(input):
    """A float32 tensor of the input: nothing here is quantised."""
    return input.to(dt.float32) if isinstance(input, Tensor) else tuple(t.to(dt.float32) for t in input)


Tensor.dequantize = dequantize


public("torch")(layouts.qscheme)
for _name in (
    "per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric",
    "per_channel_affine_float_qparams",
):  # fmt: skip
    names("torch")[_name] = getattr(layouts, _name)

# -- removed from PyTorch ----------------------------------------------------------------------------------------------

_REMOVED = "This function was deprecated since version 1.9 and is now removed."
REMOVED = {
    "lstsq": " `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.",
    "solve": " `torch.solve` is deprecated in favor of `torch.linalg.solve`.",
    "symeig": " Use `torch.linalg.eigvalsh` or `torch.linalg.eigh`, which take the lower triangle by default.",
    "eig": " Use `torch.linalg.eigvals` or `torch.linalg.eig`, whose results are complex.",
    "matrix_rank": "\nPlease use the `torch.linalg.matrix_rank` function instead.",
}


def _removed(name: str, text: str) -> None:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(_REMOVED + text)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Removed from PyTorch: raises RuntimeError."
    names("torch")[name] = function
    if name != "matrix_rank":
        setattr(Tensor, name, function)


for _name, _text in REMOVED.items():
    _removed(_name, _text)

# -- legacy storages ---------------------------------------------------------------------------------------------------


class _StorageMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and (cls.dtype is None or instance.dtype is cls.dtype)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torchlike: torch.{cls.__name__}(...): a storage comes with a tensor")


def _storage_class(name: str, dtype: Any) -> type:
    found = _StorageMeta(
        name, (), {"dtype": dtype, "__module__": "torch", "__doc__": "The class of a legacy typed storage."}
    )
    public("torch")(found)
    return found


STORAGES = {
    d: _storage_class(f"{d.scalar_name}Storage", d)
    for d in (
        dt.float64, dt.float32, dt.float16, dt.bfloat16, dt.int64, dt.int32, dt.int16, dt.int8, dt.uint8, dt.bool_,
        dt.complex64, dt.complex128,
    )
}  # fmt: skip
names("torch")["Storage"] = STORAGES[dt.float32]
for _name in ("QInt8Storage", "QInt32Storage", "QUInt8Storage", "QUInt4x2Storage", "QUInt2x4Storage"):
    _storage_class(_name, object)
Tensor.storage_type = lambda self: STORAGES[self._aval.dtype]

# -- errors, small things ----------------------------------------------------------------------------------------------


class OutOfMemoryError(RuntimeError):
    """What PyTorch raises when a device's memory is used up."""


class AcceleratorError(RuntimeError):
    """What PyTorch raises for a device's own errors."""


class FatalError(Exception):
    """What PyTorch raises for errors that it cannot go on after."""


for _class in (OutOfMemoryError, AcceleratorError, FatalError):
    _class.__module__ = "torch"
    public("torch")(_class)


@public("torch")
class Tag(enum.Enum):
    """Properties of operators, for tools that look at PyTorch's own dispatcher. Names only."""

    core = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    generated = 4
    inplace_view = 5
    nondeterministic_bitwise = 6
    nondeterministic_seeded = 7
    pointwise = 8
    pt2_compliant_tag = 9
    view_copy = 10


for _name in ("Stream", "Event"):
    names("torch").setdefault(_name, type(_name, (), {
        "__module__": "torch", "__init__": refusing(f"torch.{_name}", "XLA orders the work; torch.cuda has stand-ins"),
        "__doc__": "A stream or event of an accelerator: not supported.",
    }))  # fmt: skip

names("torch")["legacy_contiguous_format"] = layouts.contiguous_format


@public("torch")
def compiled_with_cxx11_abi():
    """True, as for PyTorch's own builds."""
    return True


@public("torch")
def is_distributed(input):
    """False."""
    return False


@public("torch")
def is_vulkan_available():
    """False."""
    return False


@public("torch")
def thread_safe_generator():
    """None: the default generator may be used from several threads."""
    return


@public("torch")
def get_device_module(device=None):
    """The module of a device type: torch.cuda or torch.cpu."""
    import sys

    kind = device.type if hasattr(device, "type") else (str(device).split(":")[0] if device is not None else "cpu")
    module = sys.modules.get(f"torchlike.{kind}")
    if module is None:
        raise RuntimeError(
            f"Invalid value of device_type ('{kind}'). This may happen if a PyTorch module for that device is not "
            "available."
        )
    return module


# -- convolution by its general name -----------------------------------------------------------------------------------


@public("torch")
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """F.conv1d, conv2d, conv3d or their transposes, by the number of dims."""
    n = input._aval.ndim - 2
    if transposed:
        function = getattr(torch, f"conv_transpose{n}d")
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return getattr(torch, f"conv{n}d")(input, weight, bias, stride, padding, dilation, groups)


# -- norms by their internal names -------------------------------------------------------------------------------------


@public("torch")
def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """The Frobenius norm over `dim`."""
    return names("torch.linalg")["vector_norm"](input, 2, dim, keepdim, out=out)


@public("torch")
def nuclear_norm(input, dim=(-2, -1), keepdim=False, *, out=None):
    """The sum of singular values."""
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    return names("torch.linalg")["matrix_norm"](input, "nuc", dim, keepdim, out=out)


# -- Tensor ------------------------------------------------------------------------------------------------------------


def resize(self, *sizes):
    """resize_ of an alias (deprecated)."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return self.reshape(*sizes) if self._rg else functions.resize_(self.clone(), *sizes)


def resize_as(self, tensor):
    """resize to the size of another tensor (deprecated)."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return self.reshape(tensor.shape) if self._rg else functions.resize_(self.clone(), *tensor.shape)


def volatile(self):
    """False: removed from PyTorch."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def reinforce(self, reward):
    """Removed from PyTorch."""
    raise RuntimeError("Trying to call `.reinforce()`, which was removed: see torch.distributions for a replacement.")


def map2_(self, x, y, callable):
    """Apply a Python function to each triple of elements, in place. Slow."""
    a, b, c = np.broadcast_arrays(self._host(), x._host(), y._host())
    found = [
        callable(*v) for v in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), c.reshape(-1).tolist(), strict=True)
    ]
    check_writable(self, False)
    return write(self, from_array(np.array(found).reshape(a.shape).astype(a.dtype), self._aval.dtype))


def module_load(self, other, assign=False):
    """How load_state_dict stores `other` in a parameter: a copy, or with `assign` the tensor itself."""
    if assign:
        return other.detach()
    return self.copy_(other).detach()


def setstate(self, state):
    """Pickles are read by torch.load and __reduce_ex__; a bare state is not enough to make a tensor of."""
    raise NotImplementedError("torchlike: Tensor.__setstate__")


def rdiv(self, other):
    """other / self."""
    return PUBLIC["reciprocal"](self) * other


Tensor.resize, Tensor.resize_as, Tensor.volatile = resize, resize_as, property(volatile)
Tensor.reinforce, Tensor.map2_, Tensor.module_load = reinforce, map2_, module_load
Tensor.const_data_ptr = functions.data_ptr
Tensor.grad_dtype = property(lambda self: self._aval.dtype)
Tensor.is_distributed = lambda self: False
Tensor.__rdiv__ = rdiv
Tensor.__idiv__ = Tensor.__itruediv__
Tensor.__setstate__ = setstate
