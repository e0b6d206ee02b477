"""Functions that choose between operators, or put several together. Everything else is generated from declarations."""

from typing import Any

from torchlike._src.core import dtype as dt
from torchlike._src.ops.declare import OPS
from torchlike._src.tensor.call import apply, write_out
from torchlike._src.tensor.publish import PUBLIC, as_tensor_operand, foreign_operand, number_argument, static_argument
from torchlike._src.tensor.tensor import Tensor, TensorBase

STATIC_EXPONENTS = {2, 3, 0.5, -0.5, -1, -2, 1, 0, 2.0, 3.0, -1.0, -2.0, 1.0, 0.0, 4, 4.0, 1.5}


def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """input + alpha * other, broadcast and promoted."""
    if alpha is 1 or alpha == 1:  # noqa: F632 - the usual case, without a comparison
        return PUBLIC["add"](input, other, out=out)
    return PUBLIC["_add_alpha"](input, other, alpha=alpha)


_ = dt, OPS, apply, write_out, as_tensor_operand, foreign_operand, number_argument, static_argument, TensorBase, STATIC_EXPONENTS
