"""The steps of DataParallel. A process computes on one device, so that each of them takes one device at most."""

from collections.abc import Sequence
from typing import Any

from torchlike import cuda
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules.module import Module

__all__ = ["gather", "parallel_apply", "replicate", "scatter"]


def _one(what: str, devices: Sequence[Any]) -> Any:
    if len(devices) != 1:
        raise NotImplementedError(f"torchlike: torch.nn.parallel.{what} for {len(devices)} devices")
    if not cuda.is_available():
        raise AssertionError("Torch not compiled with CUDA enabled")
    return f"cuda:{devices[0]}" if isinstance(devices[0], int) else devices[0]


def _moved(value: Any, device: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return type(value)((k, _moved(v, device)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(v, device) for v in value))
    return type(value)(_moved(v, device) for v in value) if isinstance(value, (list, tuple)) else value


def scatter(inputs, target_gpus, dim=0):
    """[inputs on the device]. NotImplementedError: more than one device."""
    return [_moved(inputs, _one("scatter", target_gpus))]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Not implemented: replicas that share parameters are for several devices."""
    raise NotImplementedError("torchlike: torch.nn.parallel.replicate")


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """[module(*input) of each], one after the other."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    if devices is not None and len(set(map(str, devices))) > 1:
        raise NotImplementedError(f"torchlike: torch.nn.parallel.parallel_apply on {len(devices)} devices")
    options = kwargs_tup if kwargs_tup is not None else [{}] * len(modules)
    return [
        module(*(given if isinstance(given, (list, tuple)) else (given,)), **more)
        for module, given, more in zip(modules, inputs, options, strict=True)
    ]


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The only element of outputs, on the device. NotImplementedError: more than one."""
    if len(outputs) != 1:
        raise NotImplementedError(f"torchlike: torch.nn.parallel.gather of {len(outputs)} outputs")
    device = "cpu" if target_device == -1 else target_device
    return _moved(outputs[0], f"cuda:{device}" if isinstance(device, int) else device)
