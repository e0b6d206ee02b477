"""torch.cuda.random: each GPU has a generator of its own, a seed and an offset, whose numbers are JAX's."""

from collections.abc import Iterable
from typing import Any

from torchlike._src.tensor import devices as _devices
from torchlike._src.tensor.generators import Accelerators as _Accelerators
from torchlike._src.tensor.generators import Generator as _Generator
from torchlike.cuda._device import gpu
from torchlike.cuda._device import index as _index

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def _of(device: Any = None) -> _Generator:
    gpu(device)
    return _Accelerators.of(_index(device))


def manual_seed(seed: int) -> None:
    """Seed the current GPU's generator. Nothing without a GPU."""
    seed = int(seed)
    if _devices.gpus():
        _of().manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed every GPU's generator. Nothing without a GPU."""
    seed = int(seed)
    if _devices.gpus():
        _Accelerators.manual_seed(seed)


def seed() -> None:
    """Seed the current GPU's generator with a number from the system. Nothing without a GPU."""
    if _devices.gpus():
        _of().seed()


def seed_all() -> None:
    """Seed every GPU's generator with one number from the system. Nothing without a GPU."""
    if _devices.gpus():
        _Accelerators.manual_seed(_of().seed())


def initial_seed() -> int:
    """The seed of the current GPU's generator."""
    return _of().initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, uint8 (16,): the seed and the offset."""
    return _of(device).get_state()


def get_rng_state_all() -> list:
    """The state of each GPU's generator."""
    return [_of(k).get_state() for k in range(len(_devices.gpus()))]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put a state back. Nothing without a GPU."""
    if _devices.gpus():
        _of(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable) -> None:
    """Put a state back on each GPU. Nothing without one."""
    for k, state in enumerate(new_states):
        set_rng_state(state, k)
