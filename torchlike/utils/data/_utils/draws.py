"""Permutations from generators that live for one draw."""

from torchlike._src.random.discrete import randperm
from torchlike._src.random.generator import HostGenerator

# Making a generator costs a hundred times what seeding one does.
_SCRATCH = HostGenerator()


def seeded_permutation(seed: int, n: int) -> list[int]:
    """What ``torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()`` returns."""
    with _SCRATCH.lock:
        _SCRATCH.manual_seed(seed)
        return randperm(_SCRATCH, n).tolist()
