"""Whether operations are put on the tape: one flag per thread."""

import threading


class _Mode(threading.local):
    """Grad mode of a thread: `enabled`, `inference`, and `anomaly`/`check_nan` (process-wide in PyTorch, too)."""

    enabled = True
    inference = False


MODE = _Mode()


class Anomaly:
    """Anomaly detection, process-wide."""

    enabled = False
    check_nan = True
