"""Which GPU is meant."""

from typing import Any

from torchlike._src.core.device import device as _Device
from torchlike._src.tensor import devices as _devices

NO_CUDA = "Torch not compiled with CUDA enabled"


def gpu(device: Any = None) -> Any:
    """JAX's device; PyTorch's AssertionError without one."""
    found = _devices.gpus()
    if not found:
        raise AssertionError(NO_CUDA)
    k = index(device)
    if not 0 <= k < len(found):
        raise (
            AssertionError("Invalid device id")
            if isinstance(device, int)
            else RuntimeError("CUDA error: invalid device ordinal")
        )
    return found[k]


def index(device: Any = None) -> int:
    """The number of a device given as None, a number, a string or a torch.device."""
    if device is None:
        return 0
    return device if isinstance(device, int) else (_Device(device).index or 0)
