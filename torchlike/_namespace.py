"""What `torchlike` (and, through the alias, `torch`) contains: put together here, defined elsewhere."""

import sys as _sys
from collections.abc import Callable as _Callable
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from torchlike._src.engine import direct_mode
from torchlike._src.engine.report import text as report
from torchlike._src.engine.stats import counts as stats
from torchlike._src.tensor import assemble as _assemble
from torchlike._src.tensor import publicmods as _publicmods
from torchlike._src.tensor.devices import synchronize
from torchlike._src.tensor.namespace import names as _names
from torchlike.torch_version import __version__

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
from torchlike.amp import GradScaler  # noqa: E402
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


def compile(
    model: _Callable | None = None, *, fullgraph: _Any = False, dynamic: _Any = None,
    backend: str | _Callable = "inductor", mode: str | None = None, options: dict[str, _Any] | None = None,
    name: str | None = None, disable: _Any = False, recompile_limit: _Any = None,
    isolate_recompiles: _Any = False, shapes_spec: _Any = None,
) -> _Any:  # fmt: skip
    """A function itself, a module in a module that calls it and whose names begin with "_orig_mod.", as PyTorch's do:
    every step is compiled anyway. Arguments are checked and have no effect; without `model`, a decorator.

    RuntimeError: an unknown mode or backend, mode and options together. NotImplementedError: a function as backend."""
    from torchlike._dynamo.eval_frame import compiled

    return compiled(model, fullgraph, dynamic, backend, mode, options, disable, shapes_spec)


compile.__module__ = "torch"

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
    types, utils, version, masked, serialization, signal, load, save, GradScaler,
)  # fmt: skip
