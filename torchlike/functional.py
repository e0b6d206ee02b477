"""torch.functional: functions of torch that PyTorch writes in Python."""

import torchlike as torch

_NAMES = [
    "atleast_1d", "atleast_2d", "atleast_3d", "align_tensors", "block_diag", "broadcast_shapes", "broadcast_tensors",
    "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "split", "stft",
    "tensordot", "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip

globals().update({name: getattr(torch, name) for name in _NAMES if hasattr(torch, name)})
__all__ = [name for name in _NAMES if name in globals()]
