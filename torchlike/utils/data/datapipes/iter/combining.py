"""Pipes made of several others, and several made of one."""

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal

from torchlike.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from torchlike.utils.data.datapipes.iter.single import length


def _checked(pipes: tuple, error: str) -> tuple:
    if len(pipes) == 0:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(p, IterDataPipe) for p in pipes):
        raise TypeError(error)
    return pipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Pipes one after another. ValueError without any, TypeError if one is no IterDataPipe."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = _checked(datapipes, "Expected all inputs to be `IterDataPipe`")

    def __iter__(self) -> Iterator:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length(pipe, self) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of elements, until the shortest ends. TypeError if one is no IterDataPipe."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        if not all(isinstance(p, IterDataPipe) for p in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(length(pipe, self) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One element of each in turn, until the shortest ends."""

    def __init__(self, *datapipes) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator:
        iterators = [iter(pipe) for pipe in self.datapipes]
        while iterators:
            row = []
            for iterator in iterators:
                try:
                    row.append(next(iterator))
                except StopIteration:
                    return
            yield from row

    def __len__(self) -> int:
        return min(length(pipe, self) for pipe in self.datapipes) * len(self.datapipes)


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that `main` feeds."""

    _named_in_errors = False

    def __init__(self, main: Any, instance_id: int) -> None:
        self.main_datapipe = main
        self.instance_id = instance_id

    def _begin(self) -> int:
        return self.main_datapipe.child_begins(self.instance_id)

    def _current(self) -> int:
        return self.main_datapipe._valid_iterator_id

    def __iter__(self) -> Iterator:
        return self.main_datapipe.items(self.instance_id)

    def __len__(self) -> int:
        return len(self.main_datapipe)


class _Splitter(IterDataPipe):
    """What feeds several pipes from one pass over `main_datapipe`. A child that begins again begins a new pass."""

    main_datapipe: IterDataPipe
    num_instances: int

    def _start(self) -> None:
        self._began = [False] * self.num_instances
        self._pass: Iterator | None = None
        self._buffers: list[deque] = [deque() for _ in range(self.num_instances)]
        self._ended = False

    def child_begins(self, instance_id: int) -> int:
        """A child's iterator begins: the number of its pass."""
        if self._began[instance_id] or self._pass is None:
            if self._pass is not None and not self._ended:
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and "
                    "each child DataPipe will read from the start again.",
                    UserWarning,
                    stacklevel=2,
                )
            self._start()
            self._valid_iterator_id += 1
            self._pass = iter(self.main_datapipe)
        self._began[instance_id] = True
        return self._valid_iterator_id

    def items(self, instance_id: int) -> Iterator:
        """A child's elements."""
        raise NotImplementedError

    def __iter__(self) -> Iterator:
        raise NotImplementedError("its children are iterated over")

    def _done(self, instance_id: int) -> None:
        self._ended = not any(self._buffers)


class _Forker(_Splitter):
    def __init__(self, datapipe: IterDataPipe, num_instances: int, buffer_size: int, copy: str | None) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        copies = {None: lambda x: x, "shallow": copying.copy, "deep": copying.deepcopy}
        if copy not in copies:
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        self.copy = copy
        self._start()

    def __len__(self) -> int:
        return len(self.main_datapipe)  # type: ignore[arg-type]

    def items(self, instance_id: int) -> Iterator:
        copied: Any = {None: lambda x: x, "shallow": copying.copy, "deep": copying.deepcopy}[self.copy]
        buffer = self._buffers[instance_id]
        while True:
            if not buffer:
                try:
                    item = next(self._pass)  # type: ignore[arg-type]
                except StopIteration:
                    self._done(instance_id)
                    return
                for other in self._buffers:
                    other.append(item)
                if self.buffer_size >= 0 and max(map(len, self._buffers)) > self.buffer_size:
                    raise BufferError(
                        f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient."
                    )
            yield copied(buffer.popleft())


class _Demultiplexer(_Splitter):
    def __init__(
        self, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool, buffer_size: int
    ) -> None:  # fmt: skip
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none
        self._start()

    def items(self, instance_id: int) -> Iterator:
        buffer = self._buffers[instance_id]
        while True:
            while not buffer:
                try:
                    item = next(self._pass)  # type: ignore[arg-type]
                except StopIteration:
                    self._done(instance_id)
                    return
                k = self.classifier_fn(item)
                if k is None and self.drop_none:
                    continue
                if k is None or k >= self.num_instances or k < 0:
                    raise ValueError(
                        f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                        f"{k} is returned."
                    )
                if k == instance_id:
                    buffer.append(item)
                    break
                self._buffers[k].append(item)
                if self.buffer_size >= 0 and sum(map(len, self._buffers)) > self.buffer_size:
                    raise BufferError(
                        f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient."
                    )
            yield buffer.popleft()


def _checked_split(num_instances: int, buffer_size: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size == 0:
        raise ValueError("Expected `buffer_size` larger than 0 or -1 for an unlimited buffer size")
    if buffer_size < 0:
        warnings.warn("Unlimited buffer size is set, please be aware of OOM risks", UserWarning, stacklevel=3)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """num_instances pipes with the same elements. BufferError when one is buffer_size elements ahead (-1: no bound).

    copy: give each a "shallow" or "deep" copy."""

    def __new__(
        cls, datapipe: IterDataPipe, num_instances: int, buffer_size: int = 1000,
        copy: Literal["shallow", "deep"] | None = None,
    ):  # fmt: skip
        _checked_split(num_instances, buffer_size)
        if num_instances == 1:
            return [datapipe]
        main = _Forker(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(main, i) for i in range(num_instances)]


class _Unsized(_ChildDataPipe):
    def __len__(self) -> int:
        raise TypeError


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """num_instances pipes; classifier_fn says which of them gets an element (None: none, with drop_none).

    ValueError for another answer, BufferError when buffer_size elements wait (-1: no bound)."""

    def __new__(
        cls, datapipe: IterDataPipe, num_instances: int, classifier_fn: Callable, drop_none: bool = False,
        buffer_size: int = 1000,
    ):  # fmt: skip
        _checked_split(num_instances, buffer_size)
        main = _Demultiplexer(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_Unsized(main, i) for i in range(num_instances)]
