"""torch.random: the default generator."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import torchlike as torch
from torchlike._src.tensor.generators import (
    Generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from torchlike._src.tensor.generators import (
    default_generator as default_generator,
)

__all__ = [
    "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state", "thread_safe_generator",
]  # fmt: skip

_warned = False


@contextlib.contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """Within it, draws do not move the generator outside.

    devices: numbers of the GPUs whose generators are to be kept too (all of them if None).
    enabled: False makes it do nothing. device_type: the kind of those devices, "cuda" if None; "meta" has no
    generator, and nothing is kept.

    >>> import torchlike as torch
    >>> _ = torch.manual_seed(0)
    >>> with torch.random.fork_rng():
    ...     inside = torch.rand(3)
    >>> torch.equal(inside, torch.rand(3))
    True
    """
    global _warned
    if device_type == "meta" or not enabled:
        yield
        return
    module: Any = getattr(torch, torch.device(device_type or "cuda").type, None)
    if devices is None:
        count = module.device_count() if hasattr(module, "device_count") else 0
        if count > 1 and not _warned:
            warnings.warn(
                f"{count} devices are available and {_caller} is used without saying which; all are kept. Name them "
                f"with '{_devices_kw}' (devices=[] for none) to suppress this warning.",
                stacklevel=2,
            )
            _warned = True
        devices = list(range(count))
    else:
        devices = list(devices)
    state = get_rng_state()
    states = [module.get_rng_state(device) for device in devices]  # type: ignore[union-attr]
    try:
        yield
    finally:
        set_rng_state(state)
        for device, kept in zip(devices, states, strict=True):
            module.set_rng_state(kept, device)  # type: ignore[union-attr]


def thread_safe_generator() -> Generator | None:
    """None: the default generator may be used from several threads."""
    return None
