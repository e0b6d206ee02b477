"""torchlike's own settings.

jax_random (bool, default False; environment TORCHLIKE_JAX_RANDOM=1): random functions and dropouts draw from JAX's
threefry generator inside the compiled program, instead of PyTorch's stream on the host (data loaders stay on that).
Seeds, saved states and `generator=` keep working and runs repeat; the numbers are not PyTorch's. Worth it for very
large tensors, above all on an accelerator.

>>> import torchlike as torch
>>> from torchlike import config
>>> config.jax_random
False
"""

import sys
import types
from typing import Any

from torchlike._src.random.jax_stream import Choice

__all__ = ["jax_random"]

jax_random: bool


class _Config(types.ModuleType):
    """This module, so that an assignment to a setting takes effect and a misspelt one is an error."""

    @property
    def jax_random(self) -> bool:
        """Whether random numbers come from JAX's generator."""
        return Choice.enabled

    @jax_random.setter
    def jax_random(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"torchlike.config.jax_random must be True or False, not {value!r}")
        Choice.enabled = value

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not hasattr(type(self), name):
            raise AttributeError(f"torchlike.config has no setting {name!r}")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Config
