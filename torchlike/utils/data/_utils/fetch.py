"""Fetchers: from the indices of a batch to the batch."""

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike.utils.data._utils import collate, host
from torchlike.utils.data.dataset import Subset, TensorDataset


class _MapDatasetFetcher:
    """Asks a map-style dataset for each sample, or for all of a batch if it has ``__getitems__``."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self._at_once = getattr(dataset, "__getitems__", None) or None

    def fetch(self, index: Any) -> Any:
        """The batch (or, without automatic batching, the sample) at `index`."""
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self._at_once is not None:
            return self.collate_fn(self._at_once(index))
        dataset = self.dataset
        return self.collate_fn([dataset[i] for i in index])


class _TensorDatasetFetcher(_MapDatasetFetcher):
    """For a TensorDataset, or a Subset of one, and the default collation: one gather per tensor. HOT."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._subsets, self._tensors = _unwrap(self.dataset)

    def fetch(self, index: Any) -> Any:
        places = self._places(index)
        if places is None or not all(map(host.is_plain, self._tensors)):
            return super().fetch(index)
        try:
            return [host.rows(t, places) for t in self._tensors]
        except IndexError:
            return super().fetch(index)  # raises PyTorch's error

    def _places(self, index: Any) -> np.ndarray | None:
        """Where in the tensors a batch lies; None if the indices are not plain integers."""
        try:
            for subset in self._subsets:
                index = [subset[i] for i in index]
        except IndexError:
            return None
        if not index or not _INTEGERS.issuperset(map(type, index)):
            return None
        return np.array(index, np.intp)


_INTEGERS = frozenset((int, np.int64, np.int32))


def _unwrap(dataset: Any) -> tuple[list[Any], tuple[Any, ...]]:
    """The indices of each Subset, outermost first, and the tensors inside."""
    subsets = []
    while type(dataset) is Subset:
        indices: Any = dataset.indices
        # Indexed with plain integers, a tensor of indices would give tensors.
        subsets.append(indices.tolist() if host.is_plain(indices) and indices.dim() == 1 else indices)
        dataset = dataset.dataset
    return subsets, dataset.tensors


def _gathers(dataset: Any, auto_collation: bool, collate_fn: Any) -> bool:
    """Whether _TensorDatasetFetcher gives what the dataset's and the collation's own code would."""
    if not auto_collation or collate_fn is not collate.default_collate or not collate.is_untouched():
        return False
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return type(dataset) is TensorDataset and len(dataset.tensors) > 0


class _IterableDatasetFetcher:
    """Takes samples from an iterable-style dataset. StopIteration when they end."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        """The next batch of len(index) samples, or the next sample without automatic batching."""
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)


class _DatasetKind:
    """The two styles of datasets."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        """What fetches batches of a dataset of this kind."""
        arguments = dataset, auto_collation, collate_fn, drop_last
        if kind == _DatasetKind.Iterable:
            return _IterableDatasetFetcher(*arguments)
        if _gathers(dataset, auto_collation, collate_fn):
            return _TensorDatasetFetcher(*arguments)
        return _MapDatasetFetcher(*arguments)
