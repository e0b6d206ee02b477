"""torch.utils.dlpack: tensors of other libraries without a copy through DLPack."""

import enum
from typing import Any

import torchlike as torch

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Where memory lies, in DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """torch.from_dlpack."""
    if device is None and copy is None:
        return torch.from_dlpack(ext_tensor)
    made = torch.from_dlpack(ext_tensor)
    made = made.to(device) if device is not None else made
    return made.clone() if copy else made


def to_dlpack(tensor: Any) -> Any:
    """A capsule for another library's from_dlpack, which can be used once."""
    return tensor.__dlpack__()
