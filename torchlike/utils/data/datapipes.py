"""PyTorch's deprecated data pipes: their names, which raise NotImplementedError when used; `DataChunk` works."""

from typing import Any

__all__ = [
    "DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
    "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
]  # fmt: skip


class DataChunk(list):
    """A list of a pipe's elements."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The elements as text."""
        return indent + "[" + ", ".join(str(i) for i in iter(self)) + "]"

    def raw_iterator(self) -> Any:
        """The elements."""
        yield from self.items


def _refuse(name: str) -> NotImplementedError:
    return NotImplementedError(f"torchlike: torch.utils.data.{name} (data pipes); use Dataset or IterableDataset")


class IterDataPipe:
    """Not implemented."""

    def __init__(self) -> None:
        raise _refuse(type(self).__name__)


class DFIterDataPipe(IterDataPipe):
    """Not implemented."""


class MapDataPipe:
    """Not implemented."""

    def __init__(self) -> None:
        raise _refuse(type(self).__name__)


def argument_validation(f):
    """Not implemented."""
    raise _refuse("argument_validation")


class functional_datapipe:
    """Not implemented."""

    def __init__(self, name: str, enable_df_api_tracing=False) -> None:
        raise _refuse("functional_datapipe")


class guaranteed_datapipes_determinism:
    """Not implemented."""

    def __init__(self) -> None:
        raise _refuse("guaranteed_datapipes_determinism")


class non_deterministic:
    """Not implemented."""

    def __init__(self, arg: Any) -> None:
        raise _refuse("non_deterministic")


def runtime_validation(f):
    """Not implemented."""
    raise _refuse("runtime_validation")


class runtime_validation_disabled:
    """Not implemented."""

    def __init__(self) -> None:
        raise _refuse("runtime_validation_disabled")
