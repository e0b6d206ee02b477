"""torchlike: PyTorch's Python API on JAX, with no PyTorch installed. Every training step becomes one XLA program.

python -m torchlike train.py        run an unchanged PyTorch script
import torchlike as torch           or use it by name
"""

import gc as _gc

from torchlike._src.alias import install, launching, uninstall

if not launching():  # `python -m torchlike` imports JAX only if the script imports torch
    # A collection in the middle of importing looks through all that JAX has made, for nothing: a third of the time.
    _collecting = _gc.isenabled()
    _gc.disable()
    try:
        from torchlike._namespace import *
        from torchlike._namespace import __version__
    finally:
        if _collecting:
            _gc.enable()

    _LAZY = ("distributions", "func", "hub", "jit", "onnx", "profiler", "serialization", "testing")

    def __getattr__(name: str):  # its result is Any; written out, mypy cannot resolve it in the cycle of imports
        if name in _LAZY:  # imported when first named: `import torch` stays quick
            import importlib

            try:
                return importlib.import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as e:
                if e.name != f"{__name__}.{name}":
                    raise
        reason = "" if name.startswith("_") else " (torchlike does not have it, or not yet)"
        raise AttributeError(f"module 'torch' has no attribute '{name}'{reason}")


__all__ = ["install", "uninstall"] + [n for n in globals() if not n.startswith("_") and n != "launching"]
