"""Pipes of files."""

import fnmatch
import os
from collections.abc import Iterable, Iterator
from typing import Any

from torchlike.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from torchlike.utils.data.datapipes.iter.single import IterableWrapperIterDataPipe


def _matches(path: str, masks: str | list[str]) -> bool:
    masks = [masks] if isinstance(masks, str) else masks
    name = os.path.basename(path)
    return not masks or masks == [""] or any(fnmatch.fnmatch(name, mask) for mask in masks)


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of the files in folders, sorted, that match one of `masks`."""

    def __init__(
        self, root: Any = ".", masks: str | list[str] = "", *, recursive: bool = False, abspath: bool = False,
        non_deterministic: bool = False, length: int = -1,
    ) -> None:  # fmt: skip
        super().__init__()
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            for folder, folders, names in os.walk(os.path.abspath(root) if self.abspath else root):
                folders.sort()
                for name in sorted(names):
                    path = os.path.join(folder, name)
                    if _matches(path, self.masks):
                        yield path
                if not self.recursive:
                    break

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe):
    """(path, open file) for each path. ValueError: an unknown mode."""

    def __init__(
        self, datapipe: Iterable[str], mode: str = "r", encoding: str | None = None, length: int = -1
    ) -> None:  # fmt: skip
        super().__init__()
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode if mode not in ("b", "t") else "r" + mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path in self.datapipe:
            if not isinstance(path, str):
                raise TypeError(f"Expected string type for pathname, but got {type(path)}")
            yield path, open(path, self.mode, encoding=self.encoding)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, contents) for each (path, file), in pieces of `chunk` if it is given."""

    def __init__(self, datapipe: IterDataPipe, chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for path, stream in self.datapipe:
            with stream:
                while contents := stream.read(self.chunk):
                    yield path, contents


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """NotImplementedError; decode with `map`."""

    def __init__(self, datapipe: Any, *handlers: Any, key_fn: Any = None) -> None:
        raise NotImplementedError("torchlike: torch.utils.data.datapipes.iter.RoutedDecoder; decode with map")
