"""Pipes that change, choose or order the elements of one other pipe."""

import copy
import random
import warnings
from collections.abc import Callable, Iterator, Sized
from typing import Any

import torchlike as torch
from torchlike.utils.data._utils.collate import default_collate
from torchlike.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from torchlike.utils.data.sampler import SequentialSampler


def length(pipe: Any, owner: Any) -> int:
    """len(pipe). TypeError, in the owner's name, if it has none."""
    if isinstance(pipe, Sized):
        return len(pipe)
    raise TypeError(f"{type(owner).__name__} instance doesn't have valid length")


class IterableWrapperIterDataPipe(IterDataPipe):
    """An iterable as a pipe; each pass is over a deep copy, unless `deepcopy` is False or it cannot be copied."""

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return len(self.iterable)


def _picked(data: Any, column: Any) -> list[Any]:
    return [data[c] for c in column] if isinstance(column, (list, tuple)) else [data[column]]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn of each element, or of the columns input_col of it (an index, key or list of them).

    The result replaces the element, or with input_col alone its first column, or goes to output_col (-1: at the end
    of a tuple or list). ValueError: output_col without input_col."""

    def __init__(self, datapipe: IterDataPipe, fn: Callable, input_col=None, output_col=None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col

    def _apply(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        result = self.fn(*_picked(data, self.input_col))
        was_tuple = isinstance(data, tuple)
        data = list(data) if was_tuple else copy.copy(data)
        if self.output_col is None:
            several = isinstance(self.input_col, (list, tuple))
            data[self.input_col[0] if several else self.input_col] = result
            for column in sorted(self.input_col[1:], reverse=True) if several else ():
                del data[column]
        elif self.output_col == -1:
            data.append(result)
        else:
            data[self.output_col] = result
        return tuple(data) if was_tuple else data

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            yield self._apply(data)

    def __len__(self) -> int:
        return length(self.datapipe, self)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Each element, a list, as a batch: default_collate, or another function."""

    def __init__(
        self, datapipe: IterDataPipe, conversion: Any = default_collate, collate_fn: Callable | None = None
    ) -> None:  # fmt: skip
        if collate_fn is None and not callable(conversion):
            raise NotImplementedError("torchlike: Collator(conversion=<dict>) (data frames)")
        super().__init__(datapipe, fn=conversion if collate_fn is None else collate_fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The elements for which filter_fn, of the element or of its columns input_col, is True.

    ValueError: it returns something else than a bool."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col=None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def _keeps(self, data: Any) -> bool:
        arguments = [data] if self.input_col is None else _picked(data, self.input_col)
        answer = self.filter_fn(*arguments)
        if not isinstance(answer, bool):
            raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(answer))
        return answer

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            if self._keeps(data):
                yield data


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler of the pipe yields."""

    def __init__(
        self, datapipe: IterDataPipe, sampler: Any = SequentialSampler, sampler_args: tuple | None = None,
        sampler_kwargs: dict | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler = sampler(*self.sampler_args, data_source=datapipe, **self.sampler_kwargs)

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length(self.sampler, self)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The elements in random order: each is drawn from a buffer of buffer_size of them.

    unbatch_level: unbatch so many levels first. Python's generator draws, from a seed of torch's."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        self._buffer: list[Any] = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> "ShufflerIterDataPipe":
        """Whether to shuffle."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> "ShufflerIterDataPipe":
        """The seed of the next pass."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Empty the buffer and seed the generator."""
        self._buffer = []
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        for x in self.datapipe:
            if len(self._buffer) == self.buffer_size:
                k = self._rng.randint(0, len(self._buffer) - 1)
                drawn, self._buffer[k] = self._buffer[k], x
                yield drawn
            else:
                self._buffer.append(x)
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return length(self.datapipe, self)
