"""torch.return_types: the named tuples that functions with several results return."""

from typing import Any

from torchlike._src.tensor.publish import RETURN_TYPES

__all__ = ["all_return_types"]

all_return_types: list[Any] = []
for _key, _make in RETURN_TYPES.items():
    _type = getattr(_make, "type", None)
    if _type is not None:
        globals()[_type.__name__] = _type
        all_return_types.append(_type)
