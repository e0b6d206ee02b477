"""torch.distributed.device_mesh: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["DeviceMesh", "init_device_mesh"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
