"""How error messages name what they were given."""

from typing import Any

from torchlike._src.tensor.tensor import Tensor


def type_name(obj: Any) -> str:
    """`torch.typename`: 'torch.FloatTensor' for a tensor, 'list', 'package.module.Class', …"""
    if isinstance(obj, Tensor):
        return obj.type()
    if hasattr(obj, "__qualname__"):
        module, name = getattr(obj, "__module__", None) or "", obj.__qualname__
    else:
        module, name = getattr(obj, "__module__", None) or "", ""
        if not name:
            module, name = type(obj).__module__ or "", type(obj).__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"
