"""What `torchlike` (and, through the alias, `torch`) contains: put together here, defined elsewhere."""

import sys as _sys
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

if _TYPE_CHECKING:  # the classes that hints name; the functions are generated
    from torchlike._src.core.device import device
    from torchlike._src.core.dtype import dtype
    from torchlike._src.core.size import Size
    from torchlike._src.tensor.random import Generator
    from torchlike._src.tensor.tensor import Tensor
else:  # type checkers read the imports; of an `__all__` that is computed, nothing
    __all__ = [n for n in globals() if not n.startswith("_")] + ["__version__"]
_: _Any = (
    direct_mode, report, stats, synchronize, _assemble, amp, autograd, backends, cuda, nn, optim, random, return_types,
    types, utils, version, masked, serialization, signal, load, save,
)  # fmt: skip
