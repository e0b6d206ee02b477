"""torch.utils: data loading, and small tools."""

from typing import Any

from torchlike._src.tensor.swap import swap_tensors as swap_tensors
from torchlike.utils import data as data


def set_module(obj: Any, mod: str) -> None:
    """Make `obj` introduce itself as part of the module named `mod`. TypeError if `mod` is no string."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


from torchlike._src.core.absent import absent as _absent
from torchlike.utils import checkpoint as checkpoint

globals().update(_absent(__name__, [
    "ThroughputBenchmark", "generate_methods_for_privateuse1_backend", "get_cpp_backtrace",
    "rename_privateuse1_backend",
]))  # fmt: skip

_LAZY = ("benchmark", "collect_env", "cpp_extension", "dlpack", "flop_counter", "hooks", "model_zoo", "_pytree")


def __getattr__(name: str) -> Any:
    if name in _LAZY:  # imported when first named: `import torch` stays quick
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.utils' has no attribute '{name}'")
