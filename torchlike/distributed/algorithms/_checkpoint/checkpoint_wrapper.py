"""torch.distributed.algorithms._checkpoint.checkpoint_wrapper: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing", "checkpoint_wrapper"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
