"""torch.jit.annotations: types that only TorchScript tells from lists."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035 - other libraries take them from here

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3"]


class _BroadcastingList:
    def __getitem__(self, types: Any) -> None:
        """None: for annotations."""


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
