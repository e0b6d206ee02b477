"""What the element-wise families share: dtype checks with PyTorch's messages, and selection without promotion."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.dtype import BOOL, COMPLEX, INT
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.core.promotion import Promote, promote

__all__ = ["choose", "common_dtype", "kind_of", "no_gradient", "rejects", "zeros"]


def common_dtype(*operands: Any) -> DType:
    """The promoted dtype of avals and number types."""
    return promote(Promote.DEFAULT, [(o.dtype, o.ndim) if isinstance(o, Aval) else o for o in operands])[1]


def kind_of(d: DType) -> str:
    """'b' bool, 'i' integer, 'h' half, 'f' float, 'c' complex."""
    if d.category == BOOL:
        return "b"
    if d.category == INT:
        return "i"
    if d.category == COMPLEX:
        return "c"
    return "h" if d.itemsize == 2 else "f"


def rejects(
    kernel: str,
    kinds: str,
    of: tuple[str, ...] = (),
    text: str | None = None,
    error: type[Exception] = NotImplementedError,
) -> Callable:
    """A `check` that refuses operands whose common dtype is one of `kinds` (letters of `kind_of`).

    `of` names the operands that count (default: all). The message is PyTorch's `"kernel" not implemented for
    'Float'`, or `text`."""

    def check(**arguments: Any) -> None:
        named = {n: arguments[n] for n in of} if of else arguments
        operands = [a for a in named.values() if isinstance(a, (Aval, type))]
        found = common_dtype(*operands)
        if kind_of(found) in kinds:
            raise error(text or f"\"{kernel}\" not implemented for '{found.scalar_name}'")

    return check


def choose(condition: Any, on_true: Any, on_false: Any) -> Any:
    """`condition ? on_true : on_false`, broadcast; Python numbers take the dtype of the other branch."""
    a_array, b_array = hasattr(on_true, "dtype"), hasattr(on_false, "dtype")
    dtype = on_true.dtype if a_array else on_false.dtype
    shapes = [condition.shape] + ([on_true.shape] if a_array else []) + ([on_false.shape] if b_array else [])
    shape = shapes[0] if all(s == shapes[0] for s in shapes) else jnp.broadcast_shapes(*shapes)
    return lax.select(_full(condition, None, shape), _full(on_true, dtype, shape), _full(on_false, dtype, shape))


def _full(value: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    if not hasattr(value, "dtype"):
        return lax.full(shape, value, dtype)
    return value if value.shape == shape else jnp.broadcast_to(value, shape)


def zeros(like: Any) -> Any:
    """Zeros with the shape and dtype of `like`."""
    return lax.full(like.shape, 0, like.dtype)


def no_gradient(g: Any) -> Any:
    """The rule of functions whose derivative is zero almost everywhere."""
    return zeros(g)
