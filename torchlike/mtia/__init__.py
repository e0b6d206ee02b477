"""torch.mtia: answers as on a machine without Meta's accelerator."""

from typing import Any

__all__ = ["current_device", "device_count", "is_available", "is_initialized", "manual_seed", "manual_seed_all"]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0"""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


def current_device() -> int:
    """RuntimeError: there is no MTIA backend."""
    raise RuntimeError("Cannot execute getCurrentDevice() without MTIA backend.")


def synchronize(device: Any = None) -> None:
    """RuntimeError: there is no MTIA backend."""
    raise RuntimeError("Cannot execute getCurrentDevice() without MTIA backend.")
