"""Samplers: in which order a loader visits the indices of a map-style dataset."""

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import torchlike as torch
from torchlike._src.random.discrete import randint, randperm
from torchlike._src.random.generator import HostGenerator
from torchlike._src.random.sampler_seeds import base_seed
from torchlike._src.tensor.generators import host_source
from torchlike.utils.data._utils.draws import seeded_permutation

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)

# Draws with replacement come in chunks of this size: the generator's stream depends on it.
_CHUNK = 32


class Sampler(Generic[_T_co]):
    """Base class of samplers: a subclass defines ``__iter__`` (indices, or lists of them) and should have ``__len__``.

    There is no default ``__len__``: ``len()`` of a sampler without one is the TypeError that callers expect.
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, ..., len(data_source) - 1."""

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: something with a length.
        replacement: draw each index independently.
        num_samples: how many to draw (len(data_source) if None); more than there are means several permutations.
        generator: draws the indices. If None, each iteration makes its own from a seed of the default generator.

    Raises:
        TypeError: `replacement` is not a bool.
        ValueError: `num_samples` is not a positive integer.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices one iteration yields (follows a data source whose length changes)."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        if self.generator is None:
            seed = base_seed(host_source(None))
            if not self.replacement and self.num_samples <= n:
                yield from seeded_permutation(seed, n)[: self.num_samples]
                return
            stream = HostGenerator(seed)
        else:
            stream = host_source(self.generator)
        if self.replacement:
            whole, rest = divmod(self.num_samples, _CHUNK)
            for count in (*[_CHUNK] * whole, rest):
                yield from randint(stream, 0, n, (count,)).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from randperm(stream, n).tolist()
            # Drawn even when nothing is left to yield: a generator of the user's must end where PyTorch's ends.
            yield from randperm(stream, n).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order, without replacement."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(host_source(self.generator), len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, each drawn with a probability in proportion to its weight.

    Args:
        weights: 1-dim; they need not sum to one.
        replacement: whether an index can come more than once.

    Raises:
        ValueError: `num_samples` is not a positive integer, `replacement` not a bool, `weights` not 1-dim.
    """

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not _is_count(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        tensor = torch.as_tensor(weights, dtype=torch.double)
        if tensor.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(tensor.shape)}")
        self.weights = tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = torch.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices from another sampler, or from any iterable.

    Args:
        drop_last: leave out a last batch that is not full.

    Raises:
        ValueError: `batch_size` is not a positive integer, or `drop_last` not a bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _is_count(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        size = self.batch_size
        while batch := list(itertools.islice(indices, size)):
            if len(batch) < size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _is_count(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and n > 0
