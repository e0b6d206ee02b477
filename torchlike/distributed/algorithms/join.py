"""torch.distributed.algorithms.join: see torch.distributed.algorithms."""

from torchlike.distributed.algorithms import *  # noqa: F403 - the same names
