"""DataParallel: PyTorch's splitting of a batch over the GPUs of one process."""

from collections.abc import Sequence
from typing import Any

from torchlike import cuda
from torchlike.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


def _devices(device_ids: Sequence[Any] | None) -> list[int]:
    """The indices of the GPUs to use: all if none are named. NotImplementedError: more than one."""
    count = cuda.device_count() if cuda.is_available() else 0
    if count == 0:
        return []
    ids = list(range(count)) if device_ids is None else [getattr(d, "index", d) or 0 for d in device_ids]
    if len(ids) > 1:
        raise NotImplementedError(
            f"torchlike: DataParallel on {len(ids)} GPUs; name one (device_ids=[0]) or call the module itself"
        )
    return ids


class DataParallel(Module):
    """Calls `module`, whose names get the prefix "module."; on the CPU or on one GPU there is nothing to split.

    NotImplementedError: more than one GPU."""

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.device_ids = _devices(device_ids)
        self.module = module
        if self.device_ids:
            self.dim = dim
            self.output_device = self.device_ids[0] if output_device is None else output_device
            self.module.to(f"cuda:{self.device_ids[0]}")

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """module(*inputs, **kwargs)"""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict | None = None,
) -> Any:
    """module(*inputs, **module_kwargs). NotImplementedError: more than one GPU."""
    _devices(device_ids)
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))
