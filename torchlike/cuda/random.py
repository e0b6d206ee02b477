"""torch.cuda.random: random numbers are drawn on the host for every device, by the default generator."""

from collections.abc import Iterable
from typing import Any

from torchlike._src.tensor import devices as _devices
from torchlike._src.tensor.random import default_generator as _generator
from torchlike.cuda._device import gpu

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all",
    "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Seed the generator. Nothing without a GPU."""
    if _devices.gpus():
        _generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """See manual_seed."""
    manual_seed(seed)


def seed() -> None:
    """Seed the generator with a number from the system. Nothing without a GPU."""
    if _devices.gpus():
        _generator.seed()


def seed_all() -> None:
    """See seed."""
    seed()


def initial_seed() -> int:
    """The generator's seed."""
    gpu()
    return _generator.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The generator's state."""
    gpu(device)
    return _generator.get_state()


def get_rng_state_all() -> list:
    """The generator's state, once for each GPU."""
    return [_generator.get_state() for _ in _devices.gpus()]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Put a state back. Nothing without a GPU."""
    if _devices.gpus():
        _generator.set_state(new_state)


def set_rng_state_all(new_states: Iterable) -> None:
    """Put states back; there is one generator, which takes the first."""
    for state in list(new_states)[:1]:
        set_rng_state(state)
