"""Autocast for the published functions: the table of operators, and a wrapper around listed functions that are composed
of several. It comes after all other composed functions, whatever the alphabet says."""

import functools
import importlib
import os
import pkgutil
from collections.abc import Callable
from typing import Any

from torchlike._src.amp import state
from torchlike._src.amp.policies import LOWER, POLICIES, RESULT, UNWRAPPED
from torchlike._src.tensor.call import Autocast
from torchlike._src.tensor.namespace import SPACES, names
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import Tensor

PREFIXES = {"torch": "", "torch.nn.functional": "", "torch.special": "", "torch.linalg": "linalg.", "torch.fft": "fft."}


def casting(function: Callable, policies: dict[str, str]) -> Callable:
    """`function` under autocast's policies for it. Without autocast, one more Python call."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not Autocast.enabled or state.LOCAL.excluded or not any(d in policies for d in state.LOCAL.active):
            return function(*args, **kwargs)
        args, kwargs = state.cast_arguments(policies, args, kwargs)
        with state.excluded():
            out = function(*args, **kwargs)
        return state.cast_result(policies, out)

    return call


def in_place(function: Callable) -> Callable:
    """An in-place method of a function that runs in lower precision: as in PyTorch, it does not."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not Autocast.enabled:
            return function(*args, **kwargs)
        with state.excluded():
            return function(*args, **kwargs)

    return call


def install() -> None:
    """Fill the table of operators, and wrap the composed functions wherever they are published."""
    generated = {id(f): name for name, f in PUBLIC.items()}
    state.OPERATORS.update({d: dict(table) for d, table in UNWRAPPED.items()})
    wrapped: dict[int, tuple[Callable, Callable]] = {}

    def published(name: str, function: Any) -> Any:
        """What to publish in place of `function`; None to leave it."""
        policies = state.policies_for(name)
        if not policies or not callable(function):
            return None
        operator = generated.get(id(function))
        if operator is not None and RESULT not in policies.values():
            for device_type, policy in policies.items():
                state.OPERATORS[device_type][operator] = policy
            return None
        if id(function) not in wrapped:
            wrapped[id(function)] = (casting(function, policies), function)
        return wrapped[id(function)][0]

    for space, prefix in PREFIXES.items():
        if space in SPACES:
            table = names(space)
            for name, function in list(table.items()):
                new = published(name if name == "vecdot" else prefix + name, function)
                if new is not None:
                    table[name] = new
    for name, function in list(Tensor.__dict__.items()):
        new = published(name, function)
        if new is not None:
            setattr(Tensor, name, new)
        elif (
            name.endswith("_")
            and not name.startswith("__")
            and any(t.get(name[:-1]) is LOWER for t in POLICIES.values())
        ):
            setattr(Tensor, name, in_place(function))


for _module in pkgutil.iter_modules([os.path.dirname(__file__)]):
    if _module.name.startswith("composite_") and _module.name != __name__.rpartition(".")[2]:
        importlib.import_module(f"{__package__}.{_module.name}")
install()
