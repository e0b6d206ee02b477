"""torch.distributed.checkpoint.state_dict: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

_NAMES = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES, "several processes"))
