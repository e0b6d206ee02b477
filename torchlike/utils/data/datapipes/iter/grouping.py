"""Pipes that group elements, take groups apart, or give each worker its part."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torchlike.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe
from torchlike.utils.data.datapipes.iter.single import length


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Groups of batch_size neighbours, as `wrapper_class`; AssertionError unless that is positive."""

    def __init__(
        self, datapipe: IterDataPipe, batch_size: int, drop_last: bool = False,
        wrapper_class: type[DataChunk] = DataChunk,
    ) -> None:  # fmt: skip
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[DataChunk]:
        batch: list[Any] = []
        for x in self.datapipe:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        n = length(self.datapipe, self)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The elements of the elements, `unbatch_level` levels deep; -1: as long as they are lists."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, level: int) -> Iterator:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0:
            yield element
        elif isinstance(element, (list, DataChunk)):
            for item in element:
                yield from self._dive(item, level if level == -1 else level - 1)
        elif level == -1:
            yield element
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of elements with the same group_key_fn, of group_size each, or all of a group.

    At most buffer_size elements wait. When it is full, the largest group is given early, if it has
    guaranteed_group_size elements; drop_remaining drops it otherwise (RuntimeError without). keep_key: (key, list)."""

    def __init__(
        self, datapipe: IterDataPipe, group_key_fn: Callable, *, keep_key: bool = False, buffer_size: int = 10000,
        group_size: int | None = None, guaranteed_group_size: int | None = None, drop_remaining: bool = False,
    ) -> None:  # fmt: skip
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is None and group_size is not None:
            guaranteed_group_size = group_size
        elif guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining

    def _shown(self, key: Any, group: list[Any]) -> Any:
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator:
        groups: dict[Any, list[Any]] = defaultdict(list)
        waiting = 0
        for x in self.datapipe:
            key = self.group_key_fn(x)
            groups[key].append(x)
            waiting += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                waiting -= len(groups[key])
                yield self._shown(key, groups.pop(key))
            if waiting == self.max_buffer_size:
                largest, group = max(groups.items(), key=lambda entry: len(entry[1]))
                if self.guaranteed_group_size is not None and len(group) < self.guaranteed_group_size:
                    if not self.drop_remaining:
                        raise RuntimeError("Failed to group items", str(group))
                    group = []
                waiting -= len(groups.pop(largest))
                if group:
                    yield self._shown(largest, group)
        for key, group in groups.items():
            yield self._shown(key, group)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th element, from the i-th on, once apply_sharding(n, i) was called; a DataLoader's worker calls it."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter=None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.num_of_instances = 1
        self.instance_id = 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Keep the share of one of several. ValueError: there is no such one."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        n = length(self.source_datapipe, self)
        return n // self.num_of_instances + (self.instance_id < n % self.num_of_instances)
