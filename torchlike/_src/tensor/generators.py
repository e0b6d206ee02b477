"""torch.Generator, the default generator and its seed and state."""

from typing import Any

import numpy as np

from torchlike._src.core.device import device as Device
from torchlike._src.random.generator import HostGenerator
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.devices import gpus
from torchlike._src.tensor.tensor import Tensor, TensorBase


def invalid(name: str, what: str) -> TypeError:
    return TypeError(f"{name}() received an invalid combination of arguments - got {what}")


class Generator:
    """A source of random numbers with PyTorch's CPU stream, whatever its device."""

    __module__ = "torch._C"
    __slots__ = ("_device", "_host")
    _host: HostGenerator

    def __init__(self, device: Any = "cpu") -> None:
        device = Device(device)
        if device.type == "cpu":
            device = CPU
        elif device.type == "cuda":
            if not gpus():
                raise RuntimeError("Cannot get CUDA generator: this machine has no GPU that JAX can use.")
        else:
            raise RuntimeError(f"{device.type.upper()} device type not an accelerator.")
        self._device = device
        self._host = HostGenerator()

    @property
    def device(self) -> Device:
        """The device for whose tensors the generator is meant."""
        return self._device

    def manual_seed(self, seed: int) -> "Generator":
        """Restart from a seed; returns the generator."""
        if type(seed) is not int:
            if isinstance(seed, np.integer):
                raise TypeError("an integer is required")
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._host.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Restart from an unpredictable seed, which is returned."""
        return self._host.seed()

    def initial_seed(self) -> int:
        """The last seed."""
        return self._host.initial_seed()

    def get_state(self) -> Tensor:
        """The state as PyTorch stores it, uint8 (5056,)."""
        return from_array(self._host.get_state(), device=CPU)

    def set_state(self, new_state: Tensor) -> "Generator":
        """Continue from a state."""
        self._host.set_state(new_state._host() if isinstance(new_state, TensorBase) else new_state)
        return self

    def clone_state(self) -> "Generator":
        """Another generator in the same state."""
        out = Generator(self._device)
        out._host.set_state(self._host.get_state())
        return out

    def get_offset(self) -> int:
        """CPU streams have no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """CPU streams have no offset."""
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> "Generator":
        """For CUDA graphs only."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: "Generator") -> "Generator":
        """For CUDA graphs only."""
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple:
        # PyTorch's layout; the class is named by a function, because outside of torch.save its own name is no module's.
        return _generator, (self._device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: tuple) -> None:
        seed, offset, data = state
        self.manual_seed(seed)
        if offset is not None:
            self.set_offset(offset)
        self.set_state(data)


def _generator(device: Any) -> Generator:
    return Generator(device)


CPU = Device("cpu")
OVERLOADED = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "bernoulli_", "random_"}
default_generator = Generator()
default_generator.seed()
HOST: HostGenerator = default_generator._host


def source(generator: Any, function: str | None = None) -> HostGenerator:
    """The host generator to draw from; `function` names the caller in the TypeError for something else."""
    if generator is None:
        return HOST
    if not isinstance(generator, Generator):
        if function in OVERLOADED:
            raise invalid(function, f"generator={type(generator).__name__}")
        what = f"{function}(): argument 'generator'" if function else "generator"
        raise TypeError(f"{what} must be torch.Generator, not {type(generator).__name__}")
    return generator._host


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator (and every device's); returns it."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator unpredictably and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, uint8 (5056,)."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)
