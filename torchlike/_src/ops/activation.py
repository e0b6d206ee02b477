"""Activation functions."""

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.errors import canonical_dim
from torchlike._src.ops.declare import Promote, S, T, op
from torchlike._src.ops.elementwise import choose, kind_of, rejects

FUNCTIONAL = ("torch.nn.functional",)
BOTH = ("torch", "torch.nn.functional")
PLAIN = {"promote": Promote.DEFAULT, "elementwise": True}
SQRT_HALF = math.sqrt(0.5)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def floats_only(kernel: str) -> Any:
    return rejects(kernel, "bic", of=("input",))


# -- rectifiers ---------------------------------------------------------------------------------------------------


def check_relu(input: Aval) -> None:
    kind = kind_of(input.dtype)
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    namespaces=BOTH,
    out=False,
    check=check_relu,
    vjp={"input": lambda g, out: choose(out <= 0, 0, g)},
)
def relu(input: T):
    """max(input, 0)."""
    return jnp.maximum(input, 0)


def check_hardtanh(input: Aval, min_val: Any, max_val: Any) -> None:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    kind = kind_of(input.dtype)
    if kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if kind == "i" and not input.dtype.is_signed and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


def _hardtanh(x: Any, low: Any, high: Any) -> Any:
    if x.dtype.kind in "iu":
        low, high = int(low), int(high)
    return jnp.minimum(jnp.maximum(x, low), high)


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=check_hardtanh,
    vjp={"input": lambda g, input, min_val, max_val: choose((input <= min_val) | (input >= max_val), 0, g)},
)
def hardtanh(input: T, min_val=-1.0, max_val=1.0):
    """input between min_val and max_val."""
    return _hardtanh(input, min_val, max_val)


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=lambda input: check_hardtanh(input, 0, 6),
    grad_name="HardtanhBackward0",
    vjp={"input": lambda g, input: choose((input <= 0) | (input >= 6), 0, g)},
)
def relu6(input: T):
    """input between 0 and 6."""
    return _hardtanh(input, 0, 6)


@op(
    **PLAIN,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("leaky_relu_cpu"),
    vjp={"input": lambda g, input, negative_slope: g * choose(input > 0, 1, negative_slope)},
)
def leaky_relu(input: T, negative_slope: S = 0.01):
    """input where positive, else negative_slope * input."""
    # XLA moves the transposes around channels-last convolutions past operations whose operands are used side by side:
    # not past a choice between the input and its multiple.
    return choose(input > 0, jnp.maximum(input, 0), input * negative_slope)


def check_prelu(input: Aval, weight: Aval) -> None:
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    if weight.numel != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim >= 2 else 1
        if channels != weight.numel:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")


def _by_channel(weight: Any, ndim: int) -> Any:
    """(C,) or () -> (C, 1, …): broadcastable against (N, C, …)."""
    if weight.ndim == 0 or weight.size == 1:
        return weight.reshape((1,) * ndim)
    return weight.reshape((-1,) + (1,) * (ndim - 2))


def _prelu_weight(g: Any, input: Any, weight: Any) -> Any:
    part = choose(input > 0, 0, g * input)
    keep = () if weight.size == 1 else (1,)
    return part.sum(tuple(k for k in range(part.ndim) if k not in keep)).reshape(weight.shape)


@op(
    promote=Promote.DEFAULT,
    promote_args=("input", "weight"),
    namespaces=BOTH,
    out=False,
    grad_name="PreluKernelBackward0",
    check=check_prelu,
    shape=lambda input, weight: input,
    vjp={
        "input": lambda g, input, weight: choose(input > 0, g, g * _by_channel(weight, input.ndim)),
        "weight": _prelu_weight,
    },
)
def prelu(input: T, weight: T):
    """(N, C, …), (C,) or (1,) -> (N, C, …): input where positive, else weight * input."""
    return choose(input > 0, input, input * _by_channel(weight, input.ndim))


@op(
    namespaces=(),
    out=False,
    shape=lambda input, noise: input,
    check=floats_only("rrelu_with_noise_cpu"),
    grad_name="RreluWithNoiseBackward0",
    vjp={"input": lambda g, noise: g * noise.astype(g.dtype)},
)
def _rrelu_with_noise(input: T, noise: T):
    """`rrelu` in training: input * noise, where noise is the drawn slope below zero and 1 above (float32 for half
    types, whose gradient takes it rounded)."""
    return (input.astype(noise.dtype) * noise).astype(input.dtype)


@op(
    **PLAIN,
    namespaces=(),
    inplace=True,
    check=floats_only("leaky_relu_cpu"),
    grad_name="RreluWithNoiseBackward0",
    vjp={"input": lambda g, input, lower, upper: choose(input > 0, g, g * ((lower + upper) / 2))},
)
def _rrelu_eval(input: T, lower: S, upper: S):
    """`rrelu` outside training: a leaky rectifier with the mean slope."""
    return choose(input > 0, input, input * ((lower + upper) / 2))


@op(
    promote=Promote.NO_OPMATH,
    elementwise=True,
    inplace=True,
    namespaces=BOTH,
    method=False,
    out=False,
    promote_args=("input",),
    check=rejects("threshold_cpu", "bc", of=("input",)),
    vjp={"input": lambda g, input, threshold: choose(input <= threshold, 0, g)},
)
def threshold(input: T, threshold: S, value: S):
    """input where greater than threshold, else value."""
    return choose(input <= threshold, value, input)


# -- exponential units --------------------------------------------------------------------------------------------


def _elu(x: Any, alpha: Any) -> Any:
    return choose(x > 0, x, lax.expm1(x) * alpha)


@op(
    **PLAIN,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("elu_cpu"),
    vjp={"input": lambda g, input, alpha: choose(input > 0, g, g * alpha * lax.exp(input))},
)
def elu(input: T, alpha: S = 1.0):
    """input where positive, else alpha * (e ** input - 1)."""
    return _elu(input, alpha)


@op(
    **PLAIN,
    inplace=True,
    namespaces=BOTH,
    method=False,
    out=False,
    check=floats_only("elu_cpu"),
    grad_name="EluBackward0",
    vjp={"input": lambda g, input: choose(input > 0, g * SELU_SCALE, g * (SELU_ALPHA * SELU_SCALE) * lax.exp(input))},
)
def selu(input: T):
    """The self-normalising exponential unit."""
    return SELU_SCALE * _elu(input, SELU_ALPHA)


def check_celu(input: Aval, alpha: Any) -> None:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    floats_only("elu_cpu")(input=input)


@op(
    **PLAIN,
    inplace=True,
    namespaces=BOTH,
    method=False,
    out=False,
    check=check_celu,
    vjp={"input": lambda g, input, alpha: choose(input > 0, g, g * lax.exp(input / alpha))},
)
def celu(input: T, alpha=1.0):
    """max(0, input) + min(0, alpha * (e ** (input / alpha) - 1))."""
    return choose(input > 0, input, lax.expm1(input / alpha) * alpha)


# -- smooth rectifiers ----------------------------------------------------------------------------------------------


def check_gelu(input: Aval, approximate: str) -> None:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    floats_only("GeluKernelImpl")(input=input)


def _gelu_gradient(g: Any, input: Any, approximate: str) -> Any:
    # The barriers keep erf out of the matrix products on either side.
    g, x = lax.optimization_barrier((g, input))
    if approximate == "tanh":
        inner = SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)
        t = lax.tanh(inner)
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * x * x))
    else:
        density = lax.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
        slope = 0.5 * (1 + lax.erf(x * SQRT_HALF)) + x * density
    return lax.optimization_barrier(g * slope)


@op(**PLAIN, namespaces=FUNCTIONAL, method=False, out=False, check=check_gelu, vjp={"input": _gelu_gradient})
def gelu(input: T, *, approximate="none"):
    """input * Φ(input); Φ by a tanh formula with approximate="tanh"."""
    if approximate == "tanh":
        inner = SQRT_2_OVER_PI * (input + GELU_CUBIC * input * input * input)
        return 0.5 * input * (1 + lax.tanh(inner))
    return 0.5 * input * (1 + lax.erf(input * SQRT_HALF))


def _logistic(x: Any) -> Any:
    return 1 / (1 + lax.exp(-x)) if x.dtype.kind == "c" else lax.logistic(x)


def _silu_gradient(g: Any, input: Any) -> Any:
    s = _logistic(input)
    return g * jnp.conj(s * (1 + input * (1 - s)))


@op(
    **PLAIN,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=rejects("silu_cpu", "bi", of=("input",)),
    vjp={"input": _silu_gradient},
)
def silu(input: T):
    """input * sigmoid(input)."""
    return input * _logistic(input)


def log1p_exp(x: Any) -> Any:
    """log(1 + e ** x) without overflow."""
    return jnp.maximum(x, 0) + lax.log1p(lax.exp(-lax.abs(x)))


def _mish_gradient(g: Any, input: Any) -> Any:
    t = lax.tanh(log1p_exp(input))
    return g * (t + input * lax.logistic(input) * (1 - t * t))


@op(
    **PLAIN,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("mish_cpu"),
    vjp={"input": _mish_gradient},
)
def mish(input: T):
    """input * tanh(softplus(input))."""
    return input * lax.tanh(log1p_exp(input))


@op(
    **PLAIN,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("softplus_cpu"),
    vjp={
        "input": lambda g, input, beta, threshold: choose(input * beta > threshold, g, g * lax.logistic(input * beta))
    },
)
def softplus(input: T, beta: S = 1, threshold: S = 20):
    """log(1 + e ** (beta * input)) / beta, and input itself above the threshold."""
    x = input * beta
    return choose(x > threshold, input, lax.log1p(lax.exp(jnp.minimum(x, threshold))) / beta)


@op(
    **PLAIN,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("log_sigmoid_cpu"),
    grad_name="LogSigmoidBackward0",
    vjp={"input": lambda g, input: g * lax.logistic(-input)},
)
def logsigmoid(input: T):
    """log(sigmoid(input))."""
    return jnp.minimum(input, 0) - lax.log1p(lax.exp(-lax.abs(input)))


# -- piecewise linear and rational ----------------------------------------------------------------------------------


@op(
    **PLAIN,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("hardsigmoid_cpu"),
    vjp={"input": lambda g, input: choose((input > -3) & (input < 3), g / 6, 0)},
)
def hardsigmoid(input: T):
    """(input + 3) / 6 between 0 and 1."""
    return jnp.minimum(jnp.maximum(input + 3, 0), 6) / 6


def _hardswish_gradient(g: Any, input: Any) -> Any:
    return choose(input <= -3, 0, choose(input < 3, g * (input / 3 + 0.5), g))


@op(
    **PLAIN,
    inplace=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=floats_only("hardswish_cpu"),
    vjp={"input": _hardswish_gradient},
)
def hardswish(input: T):
    """input * hardsigmoid(input)."""
    return input * jnp.minimum(jnp.maximum(input + 3, 0), 6) / 6


@op(
    **PLAIN,
    namespaces=BOTH,
    check=floats_only("hardshrink_cpu"),
    rounds_numbers=True,
    vjp={"input": lambda g, input, lambd: choose((input >= -lambd) & (input <= lambd), 0, g)},
)
def hardshrink(input: T, lambd: S = 0.5):
    """input outside [-lambd, lambd], else 0."""
    return choose((input >= -lambd) & (input <= lambd), 0, input)


def check_softshrink(input: Aval, lambd: Any) -> None:
    floats_only("softshrink_check")(input=input)
    largest = float(jnp.finfo(input.dtype.np).max)
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {input.dtype.scalar_name}, but found {lambd:g}"
        )


@op(
    **PLAIN,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=check_softshrink,
    vjp={"input": lambda g, input, lambd: choose((input >= -lambd) & (input <= lambd), 0, g)},
)
def softshrink(input: T, lambd=0.5):
    """input moved toward zero by lambd, 0 inside [-lambd, lambd]."""
    return choose(input > lambd, input - lambd, choose(input < -lambd, input + lambd, 0 * input))


@op(
    half=lambda input: input / (1 + lax.abs(input)),
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    grad_name="DivBackward0",
    check=rejects("abs_cpu", "b"),
)
def softsign(input: T):
    """input / (1 + |input|)."""
    return input / (1 + lax.abs(input))


@op(
    half=lambda input: input - lax.tanh(input),
    promote=Promote.INT_TO_FLOAT,
    elementwise=True,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    grad_name="SubBackward0",
    check=rejects(
        "sub",
        "b",
        error=RuntimeError,
        text="Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
        "use the `~` or `logical_not()` operator instead.",
    ),
    vjp={"input": lambda g, input: g * jnp.conj(_tanh_squared(input))},
)
def tanhshrink(input: T):
    """input - tanh(input)."""
    return input - lax.tanh(input)


def _tanh_squared(x: Any) -> Any:
    t = lax.tanh(x)
    return t * t


# -- gated ----------------------------------------------------------------------------------------------------------


def check_glu(input: Aval, dim: int) -> None:
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    dim = canonical_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {input.shape[dim]}")
    floats_only("glu_cpu")(input=input)


def _glu_shape(input: Aval, dim: int) -> Aval:
    dim = canonical_dim(dim, input.ndim)
    shape = list(input.shape)
    shape[dim] //= 2
    return aval(tuple(shape), input.dtype, input.device)


def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    dim = dim % x.ndim
    middle = x.shape[dim] // 2
    return lax.slice_in_dim(x, 0, middle, axis=dim), lax.slice_in_dim(x, middle, None, axis=dim)


def _glu_gradient(g: Any, input: Any, dim: int) -> Any:
    value, gate = _halves(input, dim)
    s = lax.logistic(gate)
    return lax.concatenate([g * s, g * value * s * (1 - s)], dim % input.ndim)


@op(
    promote=Promote.DEFAULT,
    namespaces=FUNCTIONAL,
    method=False,
    out=False,
    check=check_glu,
    shape=_glu_shape,
    vjp={"input": _glu_gradient},
)
def glu(input: T, dim=-1):
    """(…, 2n, …) -> (…, n, …): the first half of `dim` times the sigmoid of the second."""
    value, gate = _halves(input, dim)
    return value * lax.logistic(gate)
