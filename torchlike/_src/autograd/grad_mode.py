"""Whether operations are put on the tape: one flag per thread."""

import threading
from threading import get_ident
from typing import Any

from torchlike._src.engine.record import MAIN_THREAD, set_slow


class MainMode:
    """`MODE.enabled` of the importing thread, for generated code: a thread's own attribute takes five times as long."""

    __slots__ = ("enabled",)
    enabled: bool


MAIN_MODE = MainMode()
MAIN_MODE.enabled = True


class _Mode(threading.local):
    """Grad mode of a thread. `enabled`: operations are recorded (never in inference mode). `shown`: what
    `is_grad_enabled()` says in inference mode, where grad mode can be switched but has no effect."""

    enabled = True
    inference = False
    shown = False

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "enabled" and get_ident() == MAIN_THREAD:
            MAIN_MODE.enabled = value  # and no interrupt before the next line is done: it has no call of Python code
        _set(self, name, value)


_set = threading.local.__setattr__
MODE = _Mode()


class Anomaly:
    """Anomaly detection, process-wide. Set it with `set_anomaly`."""

    enabled = False
    check_nan = True


def set_anomaly(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection."""
    Anomaly.enabled, Anomaly.check_nan = enabled, check_nan
    set_slow("anomaly", enabled)


def grad_enabled() -> bool:
    """What `is_grad_enabled()` says."""
    return MODE.shown if MODE.inference else MODE.enabled


def set_grad(flag: bool) -> None:
    """Switch grad mode in this thread."""
    if MODE.inference:
        MODE.shown = flag
    else:
        MODE.enabled = flag


def set_inference(on: bool) -> None:
    """Switch inference mode in this thread."""
    MODE.inference = on
    set_slow("inference", on)
