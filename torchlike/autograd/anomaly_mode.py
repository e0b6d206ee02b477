"""torch.autograd.anomaly_mode: find the operation whose gradient is NaN."""

import warnings
from typing import Any

from torchlike._src.autograd.grad_mode import Anomaly, set_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Within it, backward names the forward call behind a failing gradient, and raises where one is NaN. Slow."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (Anomaly.enabled, Anomaly.check_nan)
        set_anomaly(True, self.check_nan)

    def __exit__(self, *unused: Any) -> None:
        set_anomaly(*self.before)


class set_detect_anomaly:
    """Switch anomaly detection on or off; as a context manager, for its duration."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (Anomaly.enabled, Anomaly.check_nan)
        set_anomaly(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: Any) -> None:
        set_anomaly(*self.before)
