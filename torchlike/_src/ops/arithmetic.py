"""Arithmetic with broadcasting and promotion: sums, products, quotients, remainders, fused multiply-adds."""

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.dtype import BOOL
from torchlike._src.ops.declare import TS, Promote, S, T, op
from torchlike._src.ops.elementwise import choose, common_dtype, kind_of, no_gradient, rejects, zeros

NO_BOOL_MINUS = "Subtraction, the `-` operator, with {what} is not supported. {instead}"
NO_INTEGER_ADDCDIV = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
    "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
    "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) "
    "for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * tensor1 / "
    "tensor2), for all dtypes."
)


# -- sums -----------------------------------------------------------------------------------------------------


def check_alpha(input: Any, other: Any, alpha: type) -> None:
    """PyTorch's rules for the type of `alpha`."""
    kind = kind_of(common_dtype(input, other))
    if alpha is bool and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if alpha in (float, complex) and kind in "bi":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if alpha is complex and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def check_sub(input: Any, other: Any, **_: Any) -> None:
    bools = [o is bool or (not isinstance(o, type) and o.dtype.category == BOOL) for o in (input, other)]
    if all(bools):
        instead = "Use the `^` or `logical_xor()` operator instead."
        raise RuntimeError(NO_BOOL_MINUS.format(what="two bool tensors", instead=instead))
    if any(bools):
        instead = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        raise RuntimeError(NO_BOOL_MINUS.format(what="a bool tensor", instead=instead))


def check_sub_alpha(input: Any, other: Any, alpha: type) -> None:
    check_sub(input, other)
    check_alpha(input, other, alpha)


def _same(g: Any) -> Any:
    return g


def _negative(g: Any) -> Any:
    return -g


def _times_alpha(g: Any, alpha: Any) -> Any:
    return g * jnp.conj(alpha)


def _times_minus_alpha(g: Any, alpha: Any) -> Any:
    return -g * jnp.conj(alpha)


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__add__", "__radd__"),
    vjp={"input": _same, "other": _same},
)
def add(input: TS, other: TS):
    """input + other."""
    return input + other


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__sub__", "__rsub__"),
    check=check_sub,
    aliases=("subtract",),
    vjp={"input": _same, "other": _negative},
    grad_name=lambda input, **_: "RsubBackward1" if isinstance(input, type) else "SubBackward0",
)
def sub(input: TS, other: TS):
    """input - other."""
    return input - other


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    namespaces=(),
    check=check_alpha,
    grad_name="AddBackward0",
    vjp={"input": _same, "other": _times_alpha},
)
def _add_alpha(input: T, other: TS, *, alpha: S):
    """input + alpha * other."""
    return input + alpha * other


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    namespaces=(),
    check=check_sub_alpha,
    grad_name="SubBackward0",
    vjp={"input": _same, "other": _times_minus_alpha},
)
def _sub_alpha(input: T, other: TS, *, alpha: S):
    """input - alpha * other."""
    return input - alpha * other


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    method=False,
    out=False,
    check=check_sub_alpha,
    grad_name=lambda other, **_: "RsubBackward1" if isinstance(other, type) else "RsubBackward0",
    vjp={"input": _times_minus_alpha, "other": _same},
)
def rsub(input: T, other: TS, *, alpha: S = 1):
    """other - alpha * input."""
    return other - alpha * input


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__neg__",),
    aliases=("negative",),
    check=rejects(
        "neg",
        "b",
        error=RuntimeError,
        text="Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead.",
    ),
    vjp={"input": _negative},
)
def neg(input: T):
    """-input."""
    return -input


# -- products and quotients -------------------------------------------------------------------------------------


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__mul__", "__rmul__"),
    aliases=("multiply",),
    vjp={"input": lambda g, other: g * jnp.conj(other), "other": lambda g, input: g * jnp.conj(input)},
)
def mul(input: TS, other: TS):
    """input * other."""
    return input * other


def _half_div(input: Any, other: Any) -> Any:
    """A number divided by a tensor is the number times the rounded reciprocal."""
    if input.dtype != other.dtype and input.dtype == jnp.float32:
        return (1 / other) * input
    return input.astype(jnp.float32) / other.astype(jnp.float32)


@op(
    half=_half_div,
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    dunders=("__truediv__", "__rtruediv__"),
    vjp={
        "input": lambda g, other: g / jnp.conj(other),
        "other": lambda g, input, other: -g * jnp.conj((input / other) / other),
    },
)
def div(input: TS, other: TS):
    """input / other, in floating point."""
    return input / other


def truncated_quotient(a: Any, b: Any) -> Any:
    """a / b rounded toward zero."""
    if a.dtype.kind in "iu":
        return lax.div(*jnp.broadcast_arrays(a, b))
    return truncate(a / b)


def truncate(x: Any) -> Any:
    """Rounded toward zero, keeping the sign of zero."""
    return choose(x < 0, lax.ceil(x), lax.floor(x))


def floored_quotient(a: Any, b: Any) -> Any:
    """a / b rounded down; in floating point exact as Python's `//` is: from the remainder, not the rounded quotient."""
    a, b = jnp.broadcast_arrays(a, b)
    if a.dtype.kind == "u":
        return lax.div(a, b)
    rest = lax.rem(a, b)
    opposite = (rest != 0) & ((rest < 0) != (b < 0))
    if a.dtype.kind == "i":
        return lax.div(a, b) - opposite.astype(a.dtype)
    quotient = (a - rest) / b
    quotient = choose(opposite, quotient - 1, quotient)
    down = lax.floor(quotient)
    down = choose(quotient - down > 0.5, down + 1, down)
    ratio = a / b
    signed_zero = choose(ratio < 0, -zeros(ratio), zeros(ratio))
    return choose(b == 0, ratio, choose(quotient == 0, signed_zero, down))


def _half_floor(input: Any, other: Any) -> Any:
    """`floored_quotient` rounded at each step; a number divides as it is."""
    if input.dtype == other.dtype:
        return floored_quotient(input, other)
    return floored_quotient(input.astype(jnp.float32), other.astype(jnp.float32))


def _half_trunc(input: Any, other: Any) -> Any:
    """The rounded quotient rounded toward zero; a number divides as it is."""
    return truncate(input / other)


def floored_remainder(a: Any, b: Any) -> Any:
    """a modulo b with the sign of b."""
    a, b = jnp.broadcast_arrays(a, b)
    rest = lax.rem(a, b)
    if a.dtype.kind == "u":
        return rest
    return choose((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@op(
    half=_half_trunc,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    namespaces=(),
    check=rejects("div_trunc_cpu", "bc"),
    grad_name="DivBackward2",
    vjp={"input": no_gradient, "other": no_gradient},
)
def _div_trunc(input: T, other: TS):
    """input / other, rounded toward zero."""
    return truncated_quotient(input, other)


@op(
    half=_half_floor,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    namespaces=(),
    check=rejects("div_floor_cpu", "bc"),
    grad_name="DivBackward2",
    vjp={"input": no_gradient, "other": no_gradient},
)
def _div_floor(input: T, other: TS):
    """input / other, rounded down."""
    return floored_quotient(input, other)


@op(
    half=_half_floor,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__floordiv__", "__rfloordiv__"),
    check=rejects("div_floor_cpu", "bc"),
    grad_name="torch::autograd::NotImplemented",
    vjp={},
)
def floor_divide(input: TS, other: TS):
    """input / other, rounded down. It has no derivative, as in PyTorch."""
    return floored_quotient(input, other)


def _remainder_name(input: Any, other: Any) -> str:
    if isinstance(input, type):
        return "torch::autograd::NotImplemented"
    return "RemainderBackward0" if isinstance(other, type) else "RemainderBackward1"


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    dunders=("__mod__", "__rmod__"),
    check=rejects("remainder_cpu", "bc"),
    grad_name=_remainder_name,
    vjp={"input": _same, "other": lambda g, input, other: -g * floored_quotient(input, other)},
)
def remainder(input: TS, other: TS):
    """Python's `%`: the result has the sign of other."""
    return floored_remainder(input, other)


@op(
    rounds_numbers=True,
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=rejects("fmod_cpu", "bc"),
    grad_name=lambda other, **_: "FmodBackward0" if isinstance(other, type) else "FmodBackward1",
    vjp={"input": _same, "other": lambda g, input, other: -g * truncated_quotient(input, other)},
)
def fmod(input: T, other: TS):
    """C's fmod: the result has the sign of input."""
    return lax.rem(*jnp.broadcast_arrays(input, other))


@op(
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    inplace=True,
    vjp={"input": lambda g, out: -g * jnp.conj(out * out)},
)
def reciprocal(input: T):
    """1 / input."""
    return 1 / input


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    out=False,
    dunders=("__pos__",),
    vjp={"input": _same},
    check=rejects("positive", "b", error=RuntimeError, text="The `+` operator, on a bool tensor is not supported."),
)
def positive(input: T):
    """input itself."""
    return input


# -- fused forms ------------------------------------------------------------------------------------------------


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=rejects("addcmul_cpu_out", "b", of=("input", "tensor1", "tensor2")),
    vjp={
        "input": _same,
        "tensor1": lambda g, tensor2, value: g * jnp.conj(tensor2 * value),
        "tensor2": lambda g, tensor1, value: g * jnp.conj(tensor1 * value),
    },
)
def addcmul(input: T, tensor1: T, tensor2: T, *, value: S = 1):
    """input + value * tensor1 * tensor2."""
    return input + value * tensor1 * tensor2


def check_addcdiv(tensor1: Any, tensor2: Any, **_: Any) -> None:
    if all(kind_of(t.dtype) in "bi" for t in (tensor1, tensor2)):
        raise RuntimeError(NO_INTEGER_ADDCDIV)


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=check_addcdiv,
    vjp={
        "input": _same,
        "tensor1": lambda g, tensor2, value: g * jnp.conj(value / tensor2),
        "tensor2": lambda g, tensor1, tensor2, value: -g * jnp.conj((value * tensor1) / (tensor2 * tensor2)),
    },
)
def addcdiv(input: T, tensor1: T, tensor2: T, *, value: S = 1):
    """input + value * tensor1 / tensor2."""
    return input + value * tensor1 / tensor2


def check_lerp(input: Any, end: Any, weight: Any) -> None:
    for name, given in (("end", end), ("weight", weight)):
        if not isinstance(given, type) and given.dtype is not input.dtype:
            raise RuntimeError(
                f"expected dtype {input.dtype.cpp_name} for `{name}` but got dtype {given.dtype.cpp_name}"
            )
    if kind_of(input.dtype) in "bi":
        kernel = "lerp_kernel_scalar" if isinstance(weight, type) else "lerp_kernel_tensor"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")


@op(
    promote=Promote.DEFAULT,
    elementwise=True,
    inplace=True,
    check=check_lerp,
    promote_args=("input", "end"),
    grad_name=lambda weight, **_: "LerpBackward0" if isinstance(weight, type) else "LerpBackward1",
    vjp={
        "input": lambda g, weight: g * (1 - jnp.conj(weight.astype(g.dtype))),
        "end": lambda g, weight: g * jnp.conj(weight.astype(g.dtype)),
        "weight": lambda g, input, end: g * jnp.conj(end - input),
    },
)
def lerp(input: T, end: T, weight: TS):
    """input + weight * (end - input), counted from the nearer end."""
    weight = weight.astype(input.dtype)
    distance = end - input
    near = (lax.abs(weight) if weight.dtype.kind == "c" else weight) < 0.5
    return choose(near, input + weight * distance, end - distance * (1 - weight))
