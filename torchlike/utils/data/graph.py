"""torch.utils.data.graph: which pipes a pipe is made of."""

from typing import Any

from torchlike.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]


def _sources(value: Any, found: list[Any]) -> list[Any]:
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        found.append(value)
    elif isinstance(value, dict):
        for v in value.values():
            _sources(v, found)
    elif isinstance(value, (list, tuple, set)):
        for v in value:
            _sources(v, found)
    return found


def traverse_dps(datapipe: Any) -> dict[int, tuple[Any, dict]]:
    """{id: (pipe, the same of the pipes in its attributes)}."""
    return _graph(datapipe, set())


traverse = traverse_dps


def _graph(pipe: Any, above: set[int]) -> dict[int, tuple[Any, dict]]:
    if not isinstance(pipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in above:
        return {}
    below: dict[int, tuple[Any, dict]] = {}
    for source in _sources(vars(pipe), []):
        below.update(_graph(source, above | {id(pipe)}))
    return {id(pipe): (pipe, below)}
