"""Exceptions that travel from a worker process to the main one."""

import sys
import traceback
from typing import Any


class KeyErrorMessage(str):
    """A message that is its own repr: KeyError shows the repr of its argument, which would escape line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception's class and traceback as text (the traceback itself cannot be pickled).

    Args:
        exc_info: as from sys.exc_info(), which is asked if None.
        where: completes "Caught ValueError ...".
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise an exception of the same class here, RuntimeError if that cannot be made from a message alone."""
        message: str = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        try:
            raise exception
        finally:
            del exception  # or its traceback, whose frames hold the iterator, would live until a garbage collection
