"""`torch.nn.functional`: the functions behind the layers.

Those that are one operator are generated from its declaration, the others are written in `_src.tensor.composite_*`."""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from torchlike._src import tensor as _room
from torchlike._src.tensor import assemble as _assemble
from torchlike._src.tensor.namespace import names as _names

for _module in pkgutil.iter_modules(_room.__path__):
    if _module.name.startswith("composite_"):
        importlib.import_module(f"{_room.__name__}.{_module.name}")

globals().update(_names("torch.nn.functional"))
__all__ = sorted(_names("torch.nn.functional"))
_ = _assemble

if TYPE_CHECKING:  # the names are generated

    def __getattr__(name: str) -> Any: ...
