"""torch.distributed._composable.fsdp: see torch.distributed.fsdp."""

from torchlike.distributed.fsdp import *  # noqa: F403 - the same names
