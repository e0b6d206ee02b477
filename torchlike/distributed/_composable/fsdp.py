"""torch.distributed._composable.fsdp: see torch.distributed.fsdp."""

from torchlike.distributed.fsdp import CPUOffloadPolicy as CPUOffloadPolicy
from torchlike.distributed.fsdp import FSDPModule as FSDPModule
from torchlike.distributed.fsdp import MixedPrecisionPolicy as MixedPrecisionPolicy
from torchlike.distributed.fsdp import OffloadPolicy as OffloadPolicy
from torchlike.distributed.fsdp import fully_shard as fully_shard
