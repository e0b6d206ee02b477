"""`torch.nn`: modules, parameters, functional layers."""

from torchlike.nn.parameter import (  # isort: skip
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)
from torchlike.nn import attention, functional, grad, init, modules, parallel, utils
from torchlike.nn.modules import *
from torchlike.nn.parallel import DataParallel


def factory_kwargs(kwargs: dict | None) -> dict:
    """device, dtype and memory_format from `kwargs`, those in a nested dict "factory_kwargs" included.

    TypeError: other names, or one given twice."""
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - (simple | {"factory_kwargs"})
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in simple & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
