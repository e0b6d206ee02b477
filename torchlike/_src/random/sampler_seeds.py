"""The numbers that a DataLoader draws: base seeds and the seeds of its workers."""

from __future__ import annotations

import numpy as np

from .generator import HostGenerator


def base_seed(gen: HostGenerator) -> int:
    """An int64 ``random_()`` draw (two words): a loader's base seed, or the seed of a sampler's own generator."""
    with gen.lock:
        high, low = gen.words32(2).tolist()
    return (high << 32 | low) & 0x7FFFFFFFFFFFFFFF


def worker_seed(base: int, worker_id: int) -> int:
    """What ``random.seed`` and ``torch.manual_seed`` get in worker ``worker_id``."""
    return base + worker_id


def worker_numpy_seed(base: int, worker_id: int) -> list[int]:
    """What ``numpy.random.seed`` gets in worker ``worker_id``: four 32-bit words."""
    entropy = [worker_id, base & 0xFFFFFFFF, base >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()
