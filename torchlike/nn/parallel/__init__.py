"""`torch.nn.parallel`: one module on several devices."""

from torchlike.nn.parallel._devices import gather, parallel_apply, replicate, scatter
from torchlike.nn.parallel.data_parallel import DataParallel, data_parallel
from torchlike.nn.parallel.distributed import DistributedDataParallel

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter",
]  # fmt: skip
