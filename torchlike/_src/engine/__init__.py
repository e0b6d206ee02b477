"""The engine: values, the recorder, programs, flushing. It knows JAX and nothing of PyTorch."""

from torchlike._src.engine.direct import META_ARRAY, direct_mode
from torchlike._src.engine.flush import flush, flush_all, host_array, value_array
from torchlike._src.engine.record import current, emit, record
from torchlike._src.engine.values import Value

__all__ = [
    "META_ARRAY",
    "Value",
    "current",
    "direct_mode",
    "emit",
    "flush",
    "flush_all",
    "host_array",
    "record",
    "value_array",
]
