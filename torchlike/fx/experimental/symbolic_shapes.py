"""torch.fx.experimental.symbolic_shapes: all shapes are known numbers."""

from typing import Any


def guard_size_oblivious(expr: Any) -> bool:
    """bool(expr)"""
    return bool(expr)


def guard_or_false(expr: Any) -> bool:
    """bool(expr)"""
    return bool(expr)


def guard_or_true(expr: Any) -> bool:
    """bool(expr)"""
    return bool(expr)


def is_symbolic(value: Any) -> bool:
    """False."""
    return False
