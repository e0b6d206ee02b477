"""torch.distributed.checkpoint.hf_storage: see torch.distributed.checkpoint."""

from torchlike.distributed.checkpoint import *  # noqa: F403 - the same names
