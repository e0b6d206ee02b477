"""torch.types: names for type hints."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from torchlike._src.core.device import device as _device_class
from torchlike._src.core.dtype import dtype as _dtype_class
from torchlike._src.core.size import Size
from torchlike._src.tensor.tensor import Tensor

_bool, _int, _float = bool, int, float
_dtype: TypeAlias = _dtype_class
_device: TypeAlias = _device_class
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
Number: TypeAlias = int | float | bool
Device: TypeAlias = _device_class | str | int | None
FileLike = Any
Storage = Any
__all__ = ["Device", "FileLike", "Number", "Storage"]
