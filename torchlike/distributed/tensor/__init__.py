"""torch.distributed.tensor: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent
from torchlike.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty", "full",
    "ones", "rand", "randn", "zeros",
]  # fmt: skip

_PLACEMENTS = ("Partial", "Placement", "Replicate", "Shard")
globals().update(_absent(__name__, [n for n in __all__ if n not in _PLACEMENTS], "several processes"))
