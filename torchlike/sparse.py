"""torch.sparse: torchlike has no sparse tensors, and each function here says so when it is called.

`check_sparse_tensor_invariants` is there to be turned on and off: without sparse tensors it has nothing to check."""

from typing import Any

__all__ = [
    "SparseSemiStructuredTensor", "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "log_softmax", "mm",
    "sampled_addmm", "softmax", "solve", "spdiags", "spsolve", "sum", "to_sparse_semi_structured",
]  # fmt: skip


def _missing(name: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torchlike: torch.sparse.{name} (no sparse tensors)")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Not there: raises NotImplementedError, as there are no sparse tensors ({name})."
    return function


addmm, as_sparse_gradcheck, log_softmax, mm = map(_missing, ("addmm", "as_sparse_gradcheck", "log_softmax", "mm"))
sampled_addmm, softmax, solve, spdiags = map(_missing, ("sampled_addmm", "softmax", "solve", "spdiags"))
spsolve, sum = map(_missing, ("spsolve", "sum"))
to_sparse_semi_structured = _missing("to_sparse_semi_structured")


class SparseSemiStructuredTensor:
    """Not there: there are no sparse tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torchlike: torch.sparse.SparseSemiStructuredTensor (no sparse tensors)")


class check_sparse_tensor_invariants:
    """Whether sparse tensors are checked when they are made: a setting without effect here."""

    _enabled = False

    @staticmethod
    def is_enabled() -> bool:
        """The setting."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Set it."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Unset it."""
        check_sparse_tensor_invariants._enabled = False

    def __init__(self, enable: bool = True) -> None:
        self._state = enable

    def __enter__(self) -> None:
        self._before = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self._state

    def __exit__(self, *unused: object) -> None:
        check_sparse_tensor_invariants._enabled = self._before

    def __call__(self, function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._state):
                return function(*args, **kwargs)

        return wrapped
