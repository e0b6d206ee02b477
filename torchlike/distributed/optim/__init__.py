"""torch.distributed.optim: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer", "as_functional_optim",
]  # fmt: skip

globals().update(_absent(__name__, __all__, "several processes"))
