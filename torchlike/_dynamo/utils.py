"""torch._dynamo.utils: what other libraries ask of it."""

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """False: PyTorch's compiler is not here."""
    return False
