"""torch.Generator, the default generator and its seed and state."""

from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.random.generator import HostGenerator
from torchlike._src.random.jax_stream import Choice, KeyGenerator
from torchlike._src.tensor.arguments import bind, type_name
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.devices import check_device, gpus
from torchlike._src.tensor.tensor import Tensor, TensorBase


def invalid(name: str, what: str) -> TypeError:
    return TypeError(f"{name}() received an invalid combination of arguments - got {what}")


class Generator:
    """A source of random numbers: PyTorch's CPU stream, or keys for JAX's on a GPU."""

    __module__ = "torch._C"
    __slots__ = ("_device", "_host")
    _host: HostGenerator | KeyGenerator

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Generator(device="cpu")."""
        device = Device("cpu")
        if args or kwargs:
            device = Device(bind("Generator", args, kwargs).get("device", device))
        if device.type == "cpu":
            device = CPU
        elif device.type == "cuda":
            if not gpus():
                raise RuntimeError("Cannot get CUDA generator: this machine has no GPU that JAX can use.")
            device = check_device(device)
        elif device.type == "mps":
            raise RuntimeError("Cannot execute getNewGenerator() without MPS backend.")
        else:
            raise RuntimeError(f"{device.type.upper()} device type not an accelerator.")
        self._device = device
        self._host = HostGenerator() if device is CPU else KeyGenerator()

    @property
    def device(self) -> Device:
        """The device for whose tensors the generator is meant."""
        return self._device

    def manual_seed(self, *args: Any, **kwargs: Any) -> "Generator":
        """manual_seed(seed): restart from a seed; returns the generator."""
        seed = _only("manual_seed", args, kwargs)
        if type(seed) is not int:
            if isinstance(seed, np.integer):
                raise TypeError("an integer is required")
            raise RuntimeError(f"manual_seed expected a long, but got {type_name(seed)}")
        self._host.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Restart from an unpredictable seed, which is returned."""
        return self._host.seed()

    def initial_seed(self) -> int:
        """The last seed."""
        return self._host.initial_seed()

    def get_state(self) -> Tensor:
        """The state as PyTorch stores it, uint8 (5056,); a GPU's generator has (16,)."""
        return from_array(self._host.get_state(), device=CPU)

    def set_state(self, *args: Any, **kwargs: Any) -> "Generator":
        """set_state(new_state): continue from a state."""
        state = _only("set_state", args, kwargs)
        if not isinstance(state, TensorBase):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(state)}")
        if state._aval.dtype is not dt.uint8 or state._aval.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not state.is_contiguous():
            raise RuntimeError("RNG state must be contiguous")
        self._host.set_state(state._host())
        return self

    def clone_state(self) -> "Generator":
        """Another generator in the same state."""
        out = Generator(self._device)
        out._host.set_state(self._host.get_state())
        return out

    def get_offset(self) -> int:
        """How far a GPU's stream is. CPU streams have no offset."""
        if isinstance(self._host, HostGenerator):
            raise RuntimeError("CPU Generator does not use offset")
        return self._host.get_offset()

    def set_offset(self, offset: int) -> None:
        """Continue elsewhere in a GPU's stream. CPU streams have no offset."""
        if isinstance(self._host, HostGenerator):
            raise RuntimeError("CPU Generator does not use offset")
        self._host.set_offset(offset)

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
        offset = None if isinstance(self._host, HostGenerator) else self.get_offset()
        return _generator, (self._device,), (self.initial_seed(), offset, self.get_state())

    def __setstate__(self, state: tuple) -> None:
        seed, offset, data = state
        self.manual_seed(seed)
        if offset is not None:
            self.set_offset(offset)
        self.set_state(data)


def _only(method: str, args: tuple, kwargs: dict) -> Any:
    """The one positional argument."""
    if kwargs:
        raise TypeError(f"Generator.{method}() takes no keyword arguments")
    if len(args) != 1:
        raise TypeError(f"Generator.{method}() takes exactly one argument ({len(args)} given)")
    return args[0]


def _generator(device: Any) -> Generator:
    return Generator(device)


CPU = Device("cpu")
OVERLOADED = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "bernoulli_", "random_"}
default_generator = Generator()
default_generator.seed()
HOST: HostGenerator = default_generator._host  # type: ignore[assignment]


class Accelerators:
    """The default generators of GPUs, each made when it is first asked for."""

    made: dict[int, Generator] = {}
    wanted: int | None = None
    """The seed for those to come; None: an unpredictable one."""

    @classmethod
    def of(cls, index: int) -> Generator:
        """A GPU's."""
        generator = cls.made.get(index)
        if generator is None:
            generator = cls.made[index] = Generator(Device("cuda", index))
            if cls.wanted is None:
                generator.seed()
            else:
                generator.manual_seed(cls.wanted)
        return generator

    @classmethod
    def manual_seed(cls, seed: int) -> None:
        """Seed all of them."""
        cls.wanted = seed
        for generator in cls.made.values():
            generator.manual_seed(seed)


def source(generator: Any, function: str | None = None, device: Device = CPU) -> HostGenerator | KeyGenerator:
    """What to draw from for tensors on a device: a GPU's keys, unless `config.jax_random` is False, or a host stream.

    RuntimeError if the generator is meant for another kind of device; `function` names the caller in the TypeError for
    something else."""
    if generator is None:
        if device.type != "cuda" or not Choice.on_gpus:
            return HOST
        return Accelerators.of(device.index or 0)._host
    if not isinstance(generator, Generator):
        if function in OVERLOADED:
            raise invalid(function, f"generator={type(generator).__name__}")
        what = f"{function}(): argument 'generator'" if function else "generator"
        raise TypeError(f"{what} must be torch.Generator, not {type(generator).__name__}")
    if generator._device.type != device.type and device.type != "meta":
        raise RuntimeError(f"Expected a '{device.type}' device type for generator but found '{generator._device.type}'")
    found = generator._host
    if isinstance(found, KeyGenerator) and not Choice.on_gpus:
        return found.host()
    return found


def host_source(generator: Any) -> HostGenerator:
    """What to draw from on the host: shuffling, seeds of workers."""
    found = source(generator)
    assert isinstance(found, HostGenerator)
    return found


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator and every device's; returns it."""
    default_generator.manual_seed(int(seed))
    Accelerators.manual_seed(int(seed))
    return default_generator


def seed() -> int:
    """Seed the default generators unpredictably and return the seed."""
    seed = default_generator.seed()
    Accelerators.manual_seed(seed)
    return seed


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, uint8 (5056,)."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)
