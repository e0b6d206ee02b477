"""torchlike: PyTorch's Python API on JAX, with no PyTorch installed. Every training step becomes one XLA program.

python -m torchlike train.py        run an unchanged PyTorch script
import torchlike as torch           or use it by name
"""

import gc as _gc
import sys as _sys

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
            # Nor later: what importing made stays, and each full collection would spend a tenth of a second on it.
            if hasattr(_gc, "freeze"):
                _gc.freeze()
            _gc.enable()

    # Imported when first named: `import torch` stays quick.
    _LAZY = (
        "_C", "__config__", "_dynamo", "_inductor", "_tensor", "_tensor_str", "accelerator", "ao", "compiler", "cpu",
        "distributed", "distributions", "export", "func", "functional", "futures", "fx", "hub", "jit", "library", "mps",
        "mtia", "multiprocessing", "onnx", "ops", "overrides", "profiler", "quantization", "quasirandom",
        "serialization", "sparse", "storage", "testing", "torch_version", "xpu",
    )  # fmt: skip

    _ELSEWHERE = {
        "DispatchKey": "_C", "DispatchKeySet": "_C", "Future": "futures", "PyTorchFileReader": "_C",
        "PyTorchFileWriter": "_C", "ScriptFunction": "jit", "ScriptModule": "jit",
    }  # fmt: skip

    def __getattr__(name: str):  # its result is Any; written out, mypy cannot resolve it in the cycle of imports
        if name in _LAZY:
            import importlib

            try:
                return importlib.import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as e:
                if e.name != f"{__name__}.{name}":
                    raise
        if name in _ELSEWHERE:
            return getattr(__getattr__(_ELSEWHERE[name]), name)
        if name == "torch":  # as PyTorch's own package has
            return _sys.modules[__name__]
        reason = "" if name.startswith("_") else " (torchlike does not have it, or not yet)"
        raise AttributeError(f"module 'torch' has no attribute '{name}'{reason}")


__all__ = ["install", "uninstall"] + [n for n in globals() if not n.startswith("_") and n != "launching"]
