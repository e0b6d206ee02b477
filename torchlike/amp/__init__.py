"""torch.amp: mixed precision."""

from typing import Any

__all__ = ["GradScaler", "autocast"]


class autocast:
    """Mixed precision is not there yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.amp.autocast is not implemented yet")


class GradScaler:
    """Mixed precision is not there yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.amp.GradScaler is not implemented yet")
