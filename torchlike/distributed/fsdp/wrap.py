"""torch.distributed.fsdp.wrap: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["ModuleWrapPolicy", "enable_wrap", "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
