"""torch.distributed.algorithms.join: see torch.distributed.algorithms."""

from torchlike.distributed.algorithms import Join as Join
from torchlike.distributed.algorithms import Joinable as Joinable
from torchlike.distributed.algorithms import JoinHook as JoinHook
