"""The platform that a program is being built for.

A few formulations are right on one platform and wrong on another (half-precision convolutions, say). The engine
says which with `building_for` around tracing; the platform is part of the program's key through the operands'
devices. Without it, CPU is assumed.
"""

import contextlib
import threading
from collections.abc import Iterator

_local = threading.local()


def on_cpu() -> bool:
    """Whether the program being traced will run on a CPU."""
    return getattr(_local, "platform", "cpu") == "cpu"


@contextlib.contextmanager
def building_for(platform: str) -> Iterator[None]:
    """Formulations chosen inside are for this JAX platform ("cpu", "gpu", "tpu")."""
    before = getattr(_local, "platform", "cpu")
    _local.platform = platform
    try:
        yield
    finally:
        _local.platform = before
