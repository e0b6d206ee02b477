"""torch.distributed.tensor.parallel: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]

globals().update(_absent(__name__, __all__, "several processes"))
