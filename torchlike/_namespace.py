"""What `torchlike` (and, through the alias, `torch`) contains: put together here, defined elsewhere."""

import sys as _sys
from collections.abc import Callable as _Callable
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from torchlike._src.alias import TORCH_VERSION as __version__
from torchlike._src.engine import direct_mode
from torchlike._src.engine.report import text as report
from torchlike._src.engine.stats import counts as stats
from torchlike._src.tensor import assemble as _assemble
from torchlike._src.tensor import publicmods as _publicmods
from torchlike._src.tensor.devices import synchronize
from torchlike._src.tensor.namespace import names as _names

globals().update(_names("torch"))
# The public packages below begin with `import torchlike as torch` and read names while they load.
_sys.modules[__name__.split(".")[0]].__dict__.update(_names("torch"))
globals().update(_publicmods.install(__name__.split(".")[0]))

from torchlike import (  # noqa: E402
    amp,
    autograd,
    backends,
    cuda,
    masked,
    nn,
    optim,
    random,
    return_types,
    serialization,
    signal,
    types,
    utils,
    version,
)
from torchlike.serialization import load, save  # noqa: E402


def vmap(
    func: _Callable, in_dims: _Any = 0, out_dims: _Any = 0, randomness: str = "error", *, chunk_size: _Any = None
) -> _Callable:
    """`func` over a dim of its inputs at once: a function of inputs that have one more dim.

    in_dims: that dim of each positional argument (an int, or a structure like the arguments'; None for an argument
    that all samples share). out_dims: where the results get it. randomness: 'error', 'same' or 'different' draws for
    the samples. chunk_size: at most so many samples at once. Errors as in PyTorch."""
    from torchlike.func._vmap import vmap as found  # when it is needed: `import torch` stays quick

    return found(func, in_dims, out_dims, randomness, chunk_size=chunk_size)


vmap.__module__ = "torch.func"

if _TYPE_CHECKING:  # the classes that hints name; the functions are generated
    from torchlike._src.core.device import device as device
    from torchlike._src.core.dtype import dtype as dtype
    from torchlike._src.core.size import Size as Size
    from torchlike._src.tensor.random import Generator as Generator
    from torchlike._src.tensor.tensor import Tensor as Tensor
else:  # type checkers read the imports; of an `__all__` that is computed, nothing
    __all__ = [n for n in globals() if not n.startswith("_")] + ["__version__"]
_: _Any = (
    direct_mode, report, stats, synchronize, _assemble, amp, autograd, backends, cuda, nn, optim, random, return_types,
    types, utils, version, masked, serialization, signal, load, save,
)  # fmt: skip
