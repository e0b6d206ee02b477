"""Puts the Tensor class and the namespaces together: generated operators, views, creation, conversion, autograd."""

import importlib
import os
import pkgutil
from typing import Any

from torchlike._src import ops as ops_package
from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.layout import layout, memory_format
from torchlike._src.core.size import Size

for _module in pkgutil.iter_modules(ops_package.__path__):
    importlib.import_module(f"{ops_package.__name__}.{_module.name}")

from torchlike._src.tensor import (  # noqa: E402 - they read what the operators have declared
    backward,
    conversion,
    creation,
    factories,
    functions,
    indexing,
    misc,
    modes,
    numpy_names,
    publish,
    random,
    splits,
    views,
)
from torchlike._src.tensor.namespace import SPACES, names  # noqa: E402
from torchlike._src.tensor.tensor import Tensor  # noqa: E402

VIEW_FUNCTIONS = (
    "view_as_real", "view_as_complex", "real", "imag", "as_strided", "diagonal", "narrow", "select", "broadcast_to",
    "unsqueeze", "squeeze", "adjoint", "movedim", "t", "transpose", "flatten", "unflatten", "ravel",
)  # fmt: skip
SPLITS = ("split", "split_with_sizes", "chunk", "tensor_split", "unbind")
VIEW_METHODS = ("view", "view_as", "reshape_as", "expand", "expand_as", "unfold")


def assemble() -> dict[str, Any]:
    """Fill every namespace; returns the names of `torch`."""
    torch = names("torch")
    _dtypes(torch)
    _views(torch)
    _creation(torch)
    _conversion(torch)
    _modes(torch)
    functions.install(torch)
    misc.install(torch)
    random.install(torch, names("torch.nn.functional"))
    publish.add_operator("__pow__", functions.pow)
    publish.add_operator("__rpow__", functions.pow)
    publish.publish({s: names(s) for s in SPACES})
    functions.install_after(torch, names("torch.nn.functional"), names("torch.special"))
    _operators()
    return torch


def _dtypes(torch: dict) -> None:
    for d in dt.ALL:
        torch[d.name] = d
    torch.update(dt.ALIASES)
    torch.update(dtype=dt.dtype, device=Device, Size=Size, layout=layout, memory_format=memory_format, Tensor=Tensor)
    torch["get_default_dtype"] = dt.get_default_dtype
    torch["set_default_dtype"] = dt.set_default_dtype


def _views(torch: dict) -> None:
    for module, public in ((views, VIEW_FUNCTIONS), (splits, SPLITS)):
        for name in public:
            torch[name] = getattr(module, name)
            setattr(Tensor, name, torch[name])
    for name in VIEW_METHODS:
        setattr(Tensor, name, getattr(views, name))
    torch.update(reshape=views.reshape, permute=views.permute, moveaxis=views.movedim, swapaxes=views.transpose)
    torch.update(swapdims=views.transpose)
    Tensor.reshape, Tensor.permute = views.reshape_method, views.permute_method
    Tensor.moveaxis = views.movedim
    Tensor.swapaxes = Tensor.swapdims = views.transpose
    Tensor.T = property(views.get_T)
    Tensor.mT = property(views.get_mT)
    Tensor.H = property(views.get_H)
    Tensor.mH = property(views.adjoint)
    Tensor.real = property(views.real)
    Tensor.imag = property(views.imag)
    Tensor.__getitem__, Tensor.__setitem__ = indexing.getitem, indexing.setitem
    Tensor.index_put_, Tensor.index_put = indexing.index_put_, indexing.index_put
    torch["index_put"], torch["index_put_"] = indexing.index_put, indexing.index_put_


def _creation(torch: dict) -> None:
    for name in ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer"):
        torch[name] = getattr(creation, name)
    for name in (
        "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "empty_strided",
        "arange", "linspace", "logspace", "eye", "scalar_tensor",
    ):  # fmt: skip
        torch[name] = getattr(factories, name)
    torch["range"] = factories.range_
    Tensor.new_zeros = factories.new_filled(0, "new_zeros")
    Tensor.new_ones = factories.new_filled(1, "new_ones")
    Tensor.new_empty = factories.new_filled(0, "new_empty")
    Tensor.new_full, Tensor.new_tensor = factories.new_full, creation.new_tensor
    Tensor.as_subclass = creation.as_subclass


def _conversion(torch: dict) -> None:
    c = conversion
    torch.update(clone=c.clone, from_dlpack=c.from_dlpack)
    for name in (
        "clone", "contiguous", "copy_", "fill_", "zero_", "to", "cpu", "cuda", "type_as", "item", "tolist", "numpy",
    ):  # fmt: skip
        setattr(Tensor, name, getattr(c, name))
    Tensor.type = c.type_
    for name, d in (
        ("float", dt.float32), ("double", dt.float64), ("half", dt.float16), ("bfloat16", dt.bfloat16),
        ("int", dt.int32), ("long", dt.int64), ("short", dt.int16), ("char", dt.int8), ("byte", dt.uint8),
        ("bool", dt.bool_), ("cfloat", dt.complex64), ("cdouble", dt.complex128),
    ):  # fmt: skip
        setattr(Tensor, name, c.dtype_method(name, d))
    Tensor.__bool__, Tensor.__int__, Tensor.__float__ = c.to_bool, c.to_int, c.to_float
    Tensor.__complex__, Tensor.__index__ = c.to_complex, c.to_index
    Tensor.__contains__, Tensor.__iter__ = c.contains, c.iterate
    Tensor.__array__, Tensor.__array_wrap__ = c.array_protocol, c.array_wrap
    Tensor.__array_priority__ = 1000
    Tensor.__dlpack__, Tensor.__dlpack_device__ = c.dlpack, c.dlpack_device
    Tensor.__repr__, Tensor.__format__ = c.representation, c.format_
    Tensor.__deepcopy__, Tensor.__copy__, Tensor.__reduce_ex__ = c.deepcopy, c.shallow_copy, c.reduce
    Tensor.backward = backward.tensor_backward


def _modes(torch: dict) -> None:
    for name in (
        "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled",
        "is_anomaly_enabled", "is_anomaly_check_nan_enabled",
    ):  # fmt: skip
        torch[name] = getattr(modes, name)


def _operators() -> None:
    Tensor.__hash__ = lambda self: id(self)


assemble()

# The composed functions add to the namespaces, and replace generated functions there, before anything copies them.
for _module in pkgutil.iter_modules([os.path.dirname(__file__)]):
    if _module.name.startswith("composite_"):
        importlib.import_module(f"{__package__}.{_module.name}")
# Last: NumPy's argument names for what is written by hand.
numpy_names.install({id(f) for f in publish.PUBLIC.values()})
