"""torch.backends: switches that scripts set. Those without a meaning under XLA are accepted and documented so."""

import sys as _sys
import types as _types
from typing import Any


class _Switches(_types.ModuleType):
    """A module of attributes; setting one that is not listed is an error, as a misspelling would be."""


def _module(name: str, doc: str, **values: Any) -> _types.ModuleType:
    module = _Switches(f"{__name__}.{name}", doc)
    for k, v in values.items():
        setattr(module, k, v)
    _sys.modules[module.__name__] = module
    return module


# XLA's algorithms are deterministic on the CPU and chosen when a program is compiled: deterministic and benchmark are
# accepted and change nothing.
cudnn = _module(
    "cudnn", "cuDNN switches; no effect under XLA.", deterministic=False, benchmark=False, enabled=True, allow_tf32=True,
    benchmark_limit=10, is_available=lambda: False, version=lambda: None,
)  # fmt: skip
cuda = _module(
    "cuda", "CUDA switches.", matmul=_types.SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True),
    is_built=lambda: False,
)  # fmt: skip
mps = _module("mps", "Apple GPUs: none.", is_available=lambda: False, is_built=lambda: False)
mkl = _module("mkl", "MKL: none.", is_available=lambda: False)
mkldnn = _module("mkldnn", "oneDNN: none.", is_available=lambda: False, enabled=False)
openmp = _module("openmp", "OpenMP: none.", is_available=lambda: False)

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
