"""torch.futures: results that come later."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

_T = TypeVar("_T")
_S = TypeVar("_S")


class Future(Generic[_T]):
    """A result that somebody sets, once, and others wait for.

    devices: accepted; a result needs no synchronisation with a device here."""

    def __init__(self, *, devices: Any = None) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Any], None]] = []
        self._value: Any = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._set.is_set()

    def wait(self) -> _T:
        """The result, once it is there; raises the error that was set."""
        self._set.wait()
        return self.value()

    def value(self) -> _T:
        """The result, which must be there (RuntimeError)."""
        if not self.done():
            raise RuntimeError("Future not complete; call wait() or done() first")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result: _T) -> None:
        """Set the result. RuntimeError if there is one."""
        self._complete(result, None)

    def set_exception(self, result: Any) -> None:
        """Set an error. AssertionError if it is no exception."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: Exception | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._value, self._error = value, error
            self._set.set()
            waiting, self._callbacks = self._callbacks, []
        for callback in waiting:
            callback(self)

    def add_done_callback(self, callback: Callable[["Future[_T]"], None]) -> None:
        """Have `callback(self)` called once there is a result; at once if there is one."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[["Future[_T]"], _S]) -> "Future[_S]":
        """A Future of `callback(self)`."""
        following: Future[_S] = Future()

        def run(done: "Future[_T]") -> None:
            try:
                result = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def collect_all(futures: list[Future]) -> "Future[list[Future]]":
    """A Future of the list itself, complete when all of its members are."""
    whole: Future[list[Future]] = Future()
    missing = len(futures)
    lock = threading.Lock()

    def one_more(_: Future) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            whole.set_result(futures)

    if not futures:
        whole.set_result(futures)
    for future in futures:
        future.add_done_callback(one_more)
    return whole


def wait_all(futures: list[Future]) -> list[Any]:
    """The results of all; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
