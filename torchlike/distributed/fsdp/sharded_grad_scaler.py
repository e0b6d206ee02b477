"""torch.distributed.fsdp.sharded_grad_scaler: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["ShardedGradScaler"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
