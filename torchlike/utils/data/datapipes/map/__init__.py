"""Map-style data pipes."""

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torchlike as torch
from torchlike.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


def default_fn(data: Any) -> Any:
    """data"""
    return data


class SequenceWrapperMapDataPipe(MapDataPipe):
    """A sequence, or a mapping, as a pipe; a deep copy of it unless `deepcopy` is False or it cannot be copied."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        if deepcopy:
            try:
                sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place modification would affect "
                    "source data",
                    stacklevel=2,
                )
        self.sequence = sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each element."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable = default_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.fn = fn

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Groups of batch_size neighbours; AssertionError unless that is positive."""

    def __init__(
        self, datapipe: MapDataPipe, batch_size: int, drop_last: bool = False,
        wrapper_class: type[DataChunk] = DataChunk,
    ) -> None:  # fmt: skip
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> DataChunk:
        start = index * self.batch_size
        indices = range(start, min(start + self.batch_size, len(self.datapipe)))  # type: ignore[arg-type]
        if len(indices) == self.batch_size or (len(indices) > 0 and not self.drop_last):
            return self.wrapper_class([self.datapipe[i] for i in indices])
        raise IndexError(f"Index {index} is out of bound.")

    def __len__(self) -> int:
        n = len(self.datapipe)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _checked(pipes: tuple, error: str) -> tuple:
    if len(pipes) == 0:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(p, MapDataPipe) for p in pipes):
        raise TypeError(error)
    return pipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Pipes one after another. ValueError without any, TypeError if one is no MapDataPipe."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = _checked(datapipes, "Expected all inputs to be `MapDataPipe`")

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of elements, as many as the shortest has. ValueError without pipes, TypeError if one is no MapDataPipe."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = _checked(datapipes, "Expected all inputs to be `MapDataPipe`")

    def __getitem__(self, index: Any) -> tuple:
        result = []
        for pipe in self.datapipes:
            try:
                result.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(result)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


class ShufflerIterDataPipe(IterDataPipe):
    """The elements of a MapDataPipe in random order, by `indices` if its keys are not 0, 1, ..."""

    def __init__(self, datapipe: MapDataPipe, *, indices: list | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices  # type: ignore[arg-type]
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled_indices = self.indices

    def set_shuffle(self, shuffle: bool = True) -> "ShufflerIterDataPipe":
        """Whether to shuffle."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> "ShufflerIterDataPipe":
        """The seed of the next pass."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Draw an order."""
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))[::-1]
        else:
            self._shuffled_indices = self.indices

    def __iter__(self) -> Iterator:
        for index in self._shuffled_indices:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


# Itself no MapDataPipe, so that the decorator would make it a method of the other pipes.
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

Batcher, Concater, Mapper = BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe
SequenceWrapper, Shuffler, Zipper = SequenceWrapperMapDataPipe, ShufflerIterDataPipe, ZipperMapDataPipe
