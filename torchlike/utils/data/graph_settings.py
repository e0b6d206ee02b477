"""torch.utils.data.graph_settings: what a DataLoader sets in all pipes below its dataset."""

import inspect
import warnings
from typing import Any

import torchlike as torch
from torchlike.utils.data.datapipes.iter.single import ShufflerIterDataPipe
from torchlike.utils.data.datapipes.map import ShufflerIterDataPipe as MapShuffler
from torchlike.utils.data.graph import traverse_dps

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings", "get_all_graph_pipes"]


def get_all_graph_pipes(graph: dict[int, tuple[Any, dict]]) -> list[Any]:
    """Each pipe of a graph once."""
    seen: dict[int, Any] = {}

    def visit(level: dict[int, tuple[Any, dict]]) -> None:
        for key, (pipe, below) in level.items():
            if key not in seen:
                seen[key] = pipe
                visit(below)

    visit(graph)
    return list(seen.values())


def apply_sharding(datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> Any:
    """Call apply_sharding of the uppermost pipe in each branch that has it. RuntimeError: one below another."""

    def visit(level: dict[int, tuple[Any, dict]], applied: Any) -> None:
        for pipe, below in level.values():
            here = applied
            method = getattr(pipe, "apply_sharding", None) if hasattr(type(pipe), "apply_sharding") else None
            if callable(method):
                if applied is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {applied} while trying to apply to {pipe}"
                    )
                if len(inspect.signature(method).parameters) < 3:
                    method(num_of_instances, instance_id)
                else:
                    method(num_of_instances, instance_id, sharding_group=sharding_group)
                here = pipe
            visit(below, here)

    visit(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """set_shuffle of every pipe that shuffles; with shuffle=True and none, a pipe that shuffles."""
    if shuffle is None:
        return datapipe
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    shufflers = [p for p in pipes if isinstance(p, (ShufflerIterDataPipe, MapShuffler))]
    shufflers += [p for p in pipes if p not in shufflers and hasattr(type(p), "set_shuffle")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """As apply_random_seed."""
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """set_seed, with a draw of `rng`, of every pipe that has it."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if hasattr(type(pipe), "set_seed"):
            pipe.set_seed(int(torch.empty((), dtype=torch.int64).random_(generator=rng).item()))
    return datapipe
