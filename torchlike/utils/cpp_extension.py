"""torch.utils.cpp_extension: extensions in C++ and CUDA are made for PyTorch's library; using the names raises."""

import os
import sys

from torchlike._src.core.absent import absent as _absent

_NAMES = [
    "BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "check_compiler_is_gcc",
    "check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version", "get_cxx_compiler",
    "get_default_build_root", "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
    "remove_extension_h_precompiler_headers", "verify_ninja_availability",
]  # fmt: skip
__all__ = list(_NAMES)

CUDA_HOME = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
ROCM_HOME = None
IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_LINUX = sys.platform.startswith("linux")

globals().update(_absent(__name__, _NAMES, "extensions are compiled against PyTorch's own library"))


def is_ninja_available() -> bool:
    """False: nothing is built."""
    return False
