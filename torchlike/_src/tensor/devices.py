"""Devices: which the machine has, placing data on them, waiting for them."""

from typing import Any

import numpy as np

from torchlike._src.core.device import device as Device
from torchlike._src.core.device import set_accelerator_finder
from torchlike._src.engine import backend, checks, flush_all

_gpus: list | None = None


def gpus() -> list:
    """JAX's GPU devices; empty without one. Asking starts JAX's backends."""
    global _gpus
    if _gpus is None:
        import jax

        try:
            _gpus = jax.devices("gpu")
        except RuntimeError:
            _gpus = []
    return _gpus


def check_device(d: Device) -> Device:
    """The device with an index, if the machine has it; PyTorch's error otherwise."""
    if d.type == "cuda":
        found = gpus()
        if not found:
            raise AssertionError("Torch not compiled with CUDA enabled")
        index = d.index or 0
        if index >= len(found):
            raise RuntimeError("CUDA error: invalid device ordinal")
        return Device("cuda", index)
    raise NotImplementedError(f"torchlike has no device of type '{d.type}': only cpu, cuda and meta")


def place(array: np.ndarray, d: Device) -> Any:
    """The array on a GPU."""
    import jax

    with jax.enable_x64(True):
        return jax.device_put(array, gpus()[d.index or 0])


def synchronize() -> None:
    """Compute everything that is pending and wait for it."""
    flush_all("synchronize()")
    checks.examine()
    backend.quiesce()


def _accelerator() -> str | None:
    return "cuda" if gpus() else None


set_accelerator_finder(_accelerator)
