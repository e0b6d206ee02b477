"""The recorder's common case in C (`native/recorder.c`), if it was built when torchlike was installed.

`NATIVE` is the extension module, or None: no compiler was there, another version of it is installed, or
TORCHLIKE_NATIVE=0. Everything works without it, each operation takes a few times longer to record."""

import os
import sysconfig
from typing import Any

ABI = 2
"""Raised with every change of what the C code expects of the Python classes, or Python code of it."""


def load() -> tuple[Any, str]:
    """(the extension module or None, in words which it is)."""
    if os.environ.get("TORCHLIKE_NATIVE", "1") in ("", "0"):
        return None, "Python, by TORCHLIKE_NATIVE"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None, "Python, because this interpreter has no global lock"
    try:
        import _torchlike_native as native
    except ImportError:
        return None, "Python: the C extension was not built (no compiler when torchlike was installed?)"
    if native.ABI != ABI:
        return None, "Python: the C extension is another version's (install torchlike again)"
    return native, "C"


NATIVE, RECORDER = load()
