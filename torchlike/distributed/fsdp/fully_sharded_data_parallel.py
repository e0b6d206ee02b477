"""torch.distributed.fsdp.fully_sharded_data_parallel: see torch.distributed.fsdp."""

from torchlike.distributed.fsdp import *  # noqa: F403 - the same names
