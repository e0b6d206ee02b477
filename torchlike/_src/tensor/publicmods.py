"""The small public modules that only hold published names: torch.special, torch.linalg, torch.fft, …"""

import sys
import types

from torchlike._src.tensor.namespace import SPACES, names

PLAIN = {"torch.special": "special", "torch.linalg": "linalg", "torch.fft": "fft"}


def install(package: str) -> dict[str, types.ModuleType]:
    """Make one module per plain namespace, under the package's name; returns name -> module."""
    out = {}
    for space, name in PLAIN.items():
        if space not in SPACES:
            continue
        module = types.ModuleType(f"{package}.{name}", f"{space}: see PyTorch's documentation.")
        module.__dict__.update(names(space))
        module.__all__ = sorted(names(space))  # type: ignore[attr-defined]
        sys.modules[module.__name__] = module
        out[name] = module
    return out
