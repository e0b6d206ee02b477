"""The host tier: a jaxpr run by NumPy, without XLA. It serves traces seen for the first time and forked workers."""

# Each of these modules registers its rules.
from torchlike._src.engine.host import (
    contraction,
    control,
    elementwise,
    indexing,
    linear_algebra,
    prng,
    reduction,
    shape,
    window,
)
from torchlike._src.engine.host.emit import RULES, HostUnsupported
from torchlike._src.engine.host.program import compile_host

__all__ = ["RULES", "HostUnsupported", "compile_host"]
