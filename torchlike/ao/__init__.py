"""torch.ao: quantization and pruning, which are not implemented (torch.nn.utils.prune is)."""

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("nn", "pruning", "quantization"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.ao' has no attribute '{name}'")
