"""torch.distributed._functional_collectives: for several processes; the names raise NotImplementedError when used."""

from torchlike._src.core.absent import absent as _absent

_NAMES = [
    "AsyncCollectiveTensor", "all_gather_tensor", "all_reduce", "all_to_all_single", "all_to_all_single_autograd",
    "broadcast", "reduce_scatter_tensor", "wait_tensor",
]  # fmt: skip
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
