"""torch.distributed.tensor._utils: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["compute_local_shape_and_global_offset"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
