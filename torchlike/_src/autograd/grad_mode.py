"""Whether operations are put on the tape: one flag per thread."""

import threading

from torchlike._src.engine.record import set_slow


class _Mode(threading.local):
    """Grad mode of a thread: `enabled`, `inference`, and `anomaly`/`check_nan` (process-wide in PyTorch, too)."""

    enabled = True
    inference = False


MODE = _Mode()


class Anomaly:
    """Anomaly detection, process-wide. Set it with `set_anomaly`."""

    enabled = False
    check_nan = True


def set_anomaly(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly detection."""
    Anomaly.enabled, Anomaly.check_nan = enabled, check_nan
    set_slow("anomaly", enabled)


def set_inference(on: bool) -> None:
    """Switch inference mode in this thread."""
    MODE.inference = on
    set_slow("inference", on)
