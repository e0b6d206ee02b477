"""torch.nn.parallel.scatter_gather: moving a batch to devices, and results back."""

from typing import Any

from torchlike.nn.parallel._devices import gather, scatter

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter_kwargs(inputs: tuple, kwargs: dict[str, Any] | None, target_gpus: Any, dim: int = 0) -> tuple:
    """(inputs, kwargs) on the device, each in a tuple of one. NotImplementedError: more than one device."""
    return tuple(scatter(inputs, target_gpus, dim)), tuple(scatter(kwargs or {}, target_gpus, dim))
