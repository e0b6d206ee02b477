"""Datasets: what maps an index to a sample (map style), or yields samples (iterable style)."""

import bisect
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Generic, Iterable, TypeVar  # noqa: UP035 - subclasses mix typing's Iterable with Generic

from torchlike._src.random.discrete import randperm
from torchlike._src.tensor.generators import default_generator, host_source

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Base class of map-style datasets: a subclass defines ``__getitem__`` and, for most samplers, ``__len__``.

    It may also define ``__getitems__(indices)``, which returns the samples of a whole batch at once.
    There is no default ``__len__``: callers tell by its absence that the length is unknown.
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: "Dataset[_T_co]") -> "ConcatDataset[_T_co]":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """Base class of iterable-style datasets: a subclass defines ``__iter__``.

    With several workers each gets a copy; use `get_worker_info()` to give each its own part of the data.
    """

    def __add__(self, other: Dataset[_T_co]) -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Sample i is ``(tensors[0][i], tensors[1][i], ...)``.

    Args:
        *tensors: all of the same size in dimension 0 (AssertionError otherwise).
    """

    tensors: tuple[Any, ...]

    def __init__(self, *tensors: Any) -> None:
        if tensors:
            n = tensors[0].size(0)
            if any(t.size(0) != n for t in tensors):
                raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple([t[index] for t in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Several datasets side by side: a sample is a tuple of theirs, or a dict if they are given by name.

    Raises:
        ValueError: no datasets, datasets both by position and by name, or of different lengths.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [len(d) for d in self._members()]  # type: ignore[arg-type]
        self._length = lengths[0]
        if any(n != self._length for n in lengths):
            raise ValueError("Size mismatch between datasets")

    def _members(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, parts: Iterable[Any]) -> Any:
        return dict(zip(self.datasets, parts)) if isinstance(self.datasets, dict) else tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([d[index] for d in self._members()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        """The samples of a batch; members that have ``__getitems__`` are asked for theirs at once."""
        columns = []
        for member in self._members():
            if callable(getattr(member, "__getitems__", None)):
                column = member.__getitems__(indices)
                if len(column) != len(indices):
                    raise ValueError(
                        f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}"
                    )
            else:
                column = [member[i] for i in indices]
            columns.append(column)
        return [self._sample(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one after another.

    Raises:
        AssertionError: no datasets, or one of them is an IterableDataset.
    """

    datasets: list[Dataset[_T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each dataset ends."""
        return list(itertools.accumulate(len(d) for d in sequence))

    def __init__(self, datasets: Iterable[Dataset[_T_co]]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]

    @property
    def cummulative_sizes(self) -> list[int]:
        """A deprecated spelling of `cumulative_sizes`."""
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after another; AssertionError, while iterating, for any other kind."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._checked():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._checked())


class Subset(Dataset[_T_co]):
    """The samples of `dataset` at `indices`.

    Raises:
        NotImplementedError: a subclass defines ``__getitem__`` without ``__getitems__``, which loaders would ignore.
    """

    dataset: Dataset[_T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[_T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly with your "
                "custom logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[_T_co]:
        """The samples of a batch, asked for at once where the dataset can do that."""
        chosen = [self.indices[i] for i in indices]
        at_once = getattr(self.dataset, "__getitems__", None)
        return at_once(chosen) if callable(at_once) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[_T], lengths: Sequence[int | float], generator: Any = default_generator
) -> list[Subset[_T]]:
    """Split a dataset at random into parts of these lengths, or of these fractions if they sum to 1.

    With fractions each part gets floor(n * fraction) samples, and what is left goes round, one to each.

    Args:
        generator: draws the permutation; the default generator if None.

    Raises:
        ValueError: a fraction outside [0, 1], or lengths that do not sum to the dataset's.
    """
    total: Any = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _lengths_of(dataset, lengths)
        total = sum(lengths)
    if total != len(dataset):  # type: ignore[arg-type]
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(host_source(generator), total).tolist()
    return [Subset(dataset, order[end - n : end]) for end, n in zip(itertools.accumulate(lengths), lengths)]


def _lengths_of(dataset: Any, fractions: Sequence[float]) -> list[int]:
    n = len(dataset)
    lengths = []
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(n * fraction))
    for i in range(n - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths
