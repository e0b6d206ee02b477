"""`torch._utils`: the functions that PyTorch's pickles name."""

from typing import Any

import torchlike as torch  # noqa: F401 - PyTorch's pickles name torch._utils.torch.preserve_format
from torchlike._src.checkpoint.rebuild import (
    _rebuild_device_tensor_from_cpu_tensor,
    _rebuild_device_tensor_from_numpy,
    _rebuild_meta_tensor_no_storage,
    _rebuild_nested_tensor,
    _rebuild_qtensor,
    _rebuild_sparse_tensor,
    _rebuild_tensor,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _rebuild_wrapper_subclass,
)
from torchlike.nn.parameter import _rebuild_parameter, _rebuild_parameter_with_state

__all__ = [
    "_rebuild_device_tensor_from_cpu_tensor", "_rebuild_device_tensor_from_numpy", "_rebuild_meta_tensor_no_storage",
    "_rebuild_nested_tensor", "_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_qtensor",
    "_rebuild_sparse_tensor", "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3",
    "_rebuild_wrapper_subclass",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "ExceptionWrapper":  # loaders import this page before their own
        from torchlike.utils.data._utils.exceptions import ExceptionWrapper

        return ExceptionWrapper
    raise AttributeError(f"module 'torch._utils' has no attribute '{name}'")
