"""torchlike's own settings.

jax_random (None, True or False, default None; environment TORCHLIKE_JAX_RANDOM=1 or 0): where random functions and
dropouts draw from JAX's threefry generator inside the compiled program, instead of PyTorch's stream on the host. None:
for tensors on a GPU. True: for those on the CPU, too; worth it for very large ones. False: nowhere, so that a script
prints on a GPU the numbers that it prints on the CPU. Seeds, saved states and `generator=` work either way and runs
repeat; JAX's numbers are not PyTorch's. Data loaders stay on PyTorch's stream.

>>> import torchlike as torch
>>> from torchlike import config
>>> config.jax_random is None
True
"""

import sys
import types
from typing import Any

from torchlike._src.random.jax_stream import Choice

__all__ = ["jax_random"]

jax_random: bool | None


class _Config(types.ModuleType):
    """This module, so that an assignment to a setting takes effect and a misspelt one is an error."""

    @property
    def jax_random(self) -> bool | None:
        """Whether random numbers come from JAX's generator; None: on GPUs only."""
        return True if Choice.enabled else None if Choice.on_gpus else False

    @jax_random.setter
    def jax_random(self, value: bool | None) -> None:
        if value is not None and not isinstance(value, bool):
            raise TypeError(f"torchlike.config.jax_random must be None, True or False, not {value!r}")
        Choice.enabled, Choice.on_gpus = value is True, value is not False

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not hasattr(type(self), name):
            raise AttributeError(f"torchlike.config has no setting {name!r}")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Config
