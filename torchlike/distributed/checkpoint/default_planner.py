"""torch.distributed.checkpoint.default_planner: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["DefaultLoadPlanner", "DefaultSavePlanner"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
