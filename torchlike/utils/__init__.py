"""torch.utils: data loading, and small tools."""

from typing import Any

from torchlike.utils import data as data


def set_module(obj: Any, mod: str) -> None:
    """Make `obj` introduce itself as part of the module named `mod`. TypeError if `mod` is no string."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


from torchlike.utils import checkpoint as checkpoint
