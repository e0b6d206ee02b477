"""Whether operations are put on the tape: one flag per thread."""

import threading

from torchlike._src.engine.record import set_slow


class _Mode(threading.local):
    """Grad mode of a thread. `enabled`: operations are recorded (never in inference mode). `shown`: what
    `is_grad_enabled()` says in inference mode, where grad mode can be switched but has no effect."""

    enabled = True
    inference = False
    shown = False


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
