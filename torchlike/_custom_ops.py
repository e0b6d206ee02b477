"""torch._custom_ops: older names of torch.library."""

from collections.abc import Callable
from typing import Any

from torchlike._src.core.absent import absent as _absent

globals().update(_absent(__name__, ["custom_op", "impl", "impl_backward", "impl_save_for_backward"], "torch.library"))


def impl_abstract(qualname: str, *, func: Any = None) -> Callable:
    """A decorator that returns the function: operators are run, not traced, so that shapes need no description."""
    return func if func is not None else lambda fn: fn
