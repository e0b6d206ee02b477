"""torch.onnx.symbolic_helper: part of an exporter that is not here."""

from collections.abc import Callable
from typing import Any


def parse_args(*arg_descriptors: Any) -> Callable:
    """A decorator that returns the function: nobody calls it."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: Any, **options: Any) -> Callable:
    """A decorator that returns the function: nobody calls it."""
    return lambda fn: fn
