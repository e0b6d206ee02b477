"""Running an optimizer on other parameters and state than its own."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.optim.optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

NAME = "swap_in_optimizer_params_and_state"


def _check_state(state: Any) -> dict:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state "
            f"dicts, got {type(state).__name__}."
        )
    if any(isinstance(k, TensorBase) for k in state):
        raise RuntimeError(f"{NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(k, int) and not isinstance(v, dict) for k, v in state.items()):
        raise RuntimeError(f"{NAME} requires per-parameter optimizer state entries to be dictionaries.")
    return state


def _check_group(k: int, group: dict, new: Any) -> list[int]:
    if not isinstance(new, dict):
        raise RuntimeError(f"{NAME} requires each optimizer param group to be a dictionary.")
    numbers = new.get("params")
    if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(
            f"{NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter "
            "ids."
        )
    if len(group["params"]) != len(numbers):
        raise RuntimeError(
            f"swapin_optim_state param group {k} has a different number of params than the live optimizer param group."
        )
    extra, missing = [x for x in new if x not in group], [x for x in group if x not in new]
    if extra or missing:
        raise RuntimeError(
            f"{NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer group "
            f"keys for group {k}. Keys only in swap-in: {extra}. Keys only in live: {missing}."
        )
    return numbers


def _check_groups(optimizer: Optimizer, groups: Any) -> list:
    if not isinstance(groups, list):
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, got "
            f"{type(groups).__name__}."
        )
    if len(optimizer.param_groups) != len(groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    return groups


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Within this context the optimizer has the given parameters (in the order of its own), state and options (in the
    form of a `state_dict`); afterwards its own again. In-place changes of the given tensors stay.

    RuntimeError: an optimizer without state, or arguments that do not fit it."""
    if not optimizer.state:
        raise RuntimeError(f"{NAME} requires initialized optimizer state.")
    if not isinstance(swapin_optim_state, dict):
        raise RuntimeError(f"{NAME} requires a DCP-style optimizer state_dict.")
    given = _check_state(swapin_optim_state.get("state"))
    new_groups = _check_groups(optimizer, swapin_optim_state.get("param_groups"))
    params = list(swapin_parameters.values())
    plan = []
    seen: set[int] = set()
    for k, (group, new) in enumerate(zip(optimizer.param_groups, new_groups, strict=True)):
        numbers = _check_group(k, group, new)
        seen.update(numbers)
        if len(numbers) > len(params):
            raise RuntimeError(
                f"{NAME} requires the explicit parameter state to match optimizer.param_groups ordering."
            )
        plan.append((group, new, params[: len(numbers)]))
        params = params[len(numbers) :]
    if extra := [k for k in given if k not in seen]:
        raise RuntimeError(
            f"{NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {extra!r}."
        )
    own_state, own_groups = optimizer.state, [dict(g) for g in optimizer.param_groups]
    try:
        state: defaultdict[Any, Any] = defaultdict(dict)
        for group, new, some in plan:
            group.update({k: v for k, v in new.items() if k != "params"})
            group["params"] = some
            for p, number in zip(some, new["params"], strict=True):
                state[p] = dict(given.get(number, {}))
        optimizer.state = state
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state


swap_in_optimizer_params_and_state.__module__ = "torchlike.optim"
