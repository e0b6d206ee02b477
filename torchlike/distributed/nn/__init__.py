"""torch.distributed.nn: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "RemoteModule", "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce",
    "reduce_scatter", "scatter",
]  # fmt: skip

globals().update(_absent(__name__, __all__, "several processes"))
