"""The global state of a module `torch`, saved and put back around every case."""

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Getter and setter, by dotted names; a setting that the module lacks is left out.
_SETTINGS = [
    ("get_default_dtype", "set_default_dtype"),
    ("is_grad_enabled", "set_grad_enabled"),
    ("get_float32_matmul_precision", "set_float32_matmul_precision"),
    ("is_warn_always_enabled", "set_warn_always"),
    ("get_deterministic_debug_mode", "set_deterministic_debug_mode"),
    ("get_default_device", "set_default_device"),
    ("is_anomaly_enabled", "autograd.set_detect_anomaly"),
    ("get_num_threads", "set_num_threads"),
    ("get_rng_state", "set_rng_state"),
]


def _lookup(torch: Any, dotted: str) -> Callable[..., Any] | None:
    found = torch
    for part in dotted.split("."):
        try:
            found = getattr(found, part)
        except (AttributeError, NotImplementedError):
            return None
    return found  # type: ignore[no-any-return]


def snapshot(torch: Any) -> dict[str, Any]:
    """Every setting that `torch` has, by its getter's name, and Python's and NumPy's generators."""
    state: dict[str, Any] = {"random": random.getstate(), "numpy": np.random.get_state()}
    for getter, setter in _SETTINGS:
        get = _lookup(torch, getter)
        if get is not None and _lookup(torch, setter) is not None:
            state[getter] = get()
    options = _lookup(torch, "_tensor_str.PRINT_OPTS")
    if options is not None:
        state["print options"] = {name: getattr(options, name) for name in _PRINT_OPTIONS}
    return state


_PRINT_OPTIONS = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")


def equal(a: Any, b: Any) -> bool:
    """Whether two values in a snapshot are the same."""
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if hasattr(a, "numpy") and hasattr(a, "dtype"):
        return np.array_equal(a.numpy(), b.numpy())
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


def restore(torch: Any, state: dict[str, Any]) -> None:
    """Put a snapshot back."""
    random.setstate(state["random"])
    np.random.set_state(state["numpy"])
    for getter, setter in _SETTINGS:
        if getter not in state:
            continue
        get, put = _lookup(torch, getter), _lookup(torch, setter)
        assert get is not None and put is not None
        # Unchanged settings stay untouched: setting some of them (the default device) has effects of its own.
        if not equal(get(), state[getter]):
            if getter == "get_default_device":
                put(None)
                if not equal(get(), state[getter]):
                    put(state[getter])
            else:
                put(state[getter])
    if hasattr(torch, "set_printoptions"):
        torch.set_printoptions(profile="default")
        options = state.get("print options")
        if options:
            torch.set_printoptions(**options)


@contextlib.contextmanager
def preserved(torch: Any) -> Iterator[None]:
    """Whatever happens inside, the global state is as before afterwards."""
    state = snapshot(torch)
    try:
        yield
    finally:
        restore(torch, state)
