"""Element-wise operators: values, dtypes, gradients, names of graph nodes and errors."""

import numpy as np

from compat_tests import case, raises, tensor

REAL_LINE = "exp exp2 expm1 sigmoid sin cos tanh sinh cosh atan asinh sinc erf erfc deg2rad rad2deg abs neg square i0"
UNIT = "asin acos atanh erfinv"
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma"
FLAT = "floor ceil trunc round sign frac"
ACTIVATIONS = (
    "relu relu6 hardtanh leaky_relu elu selu celu gelu silu mish softplus logsigmoid hardsigmoid hardswish hardshrink "
    "softshrink softsign tanhshrink"
)
PREDICATES = "isnan isinf isfinite isneginf isposinf isreal signbit logical_not"
SPECIAL = "i0e i1 i1e erfcx ndtr ndtri log_ndtr entr"
BESSEL = (
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0 airy_ai modified_bessel_i0 modified_bessel_i1 "
    "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1"
)
POLYNOMIALS = (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p"
)
COMPLEX = "exp log sqrt rsqrt sin cos tan tanh sigmoid reciprocal abs sgn angle square conj_physical"
DTYPES = ["bool", "uint8", "int64", "bfloat16", "float16", "float32", "float64", "complex64"]
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


def spread(torch, low, high, dtype="float32", count=13, requires_grad=False):
    """Evenly spaced numbers, ends included."""
    made = torch.tensor(np.linspace(low, high, count), dtype=torch.float64).to(getattr(torch, dtype))
    return made.requires_grad_() if requires_grad else made


def outcome(torch, function):
    """The result of `function`, or the error it raises."""
    try:
        return function()
    except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        return [type(error).__name__, str(error).split("\n")[0]]


def with_gradients(torch, function, *inputs):
    """Output, name of its graph node and gradients of the inputs."""
    out = function(*inputs)
    wanted = [i for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]
    weights = tensor(torch, tuple(out.shape), str(out.dtype).removeprefix("torch."), 100)
    return {"out": out, "node": out.grad_fn.name(), "grads": torch.autograd.grad(out, wanted, weights)}


# -- one operand --------------------------------------------------------------------------------------------------


@case(**CLOSE)
@case.params("name", REAL_LINE.split())
def case_real_line(torch, name):
    return with_gradients(torch, getattr(torch, name), spread(torch, -3, 3, requires_grad=True))


@case(**CLOSE)
@case.params("name", UNIT.split())
def case_unit_interval(torch, name):
    return with_gradients(torch, getattr(torch, name), spread(torch, -0.95, 0.95, requires_grad=True))


@case(**CLOSE)
@case.params("name", POSITIVE.split())
def case_positive(torch, name):
    return with_gradients(torch, getattr(torch, name), spread(torch, 0.3, 8, requires_grad=True))


@case
@case.params("name", FLAT.split())
def case_flat(torch, name):
    return with_gradients(torch, getattr(torch, name), spread(torch, -2.5, 2.5, count=11, requires_grad=True))


@case(**CLOSE)
@case.params("name", SPECIAL.split())
def case_special(torch, name):
    low, high = {"entr": (0.1, 3), "ndtri": (0.02, 0.98)}.get(name, (-3, 3))
    return with_gradients(torch, getattr(torch.special, name), spread(torch, low, high, requires_grad=True))


@case(**CLOSE)
@case.params("name", BESSEL.split())
def case_bessel(torch, name):
    function = getattr(torch.special, name)
    return function(spread(torch, 0.1, 30, count=20)), function(spread(torch, 0.05, 3))


@case(**CLOSE)
@case.params("name", POLYNOMIALS.split())
def case_polynomial(torch, name):
    function = getattr(torch.special, name)
    x = spread(torch, -0.9, 0.9, count=9)
    return function(x, 3), function(x, torch.arange(-1, 8)), outcome(torch, lambda: function(x.half(), 2))


@case
@case.params("name", PREDICATES.split())
def case_predicate(torch, name):
    function = getattr(torch, name)
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1.0])
    complex_ = torch.tensor([1 + 1j, complex(float("inf"), 0), 2 + 0j])
    return [function(odd), function(torch.tensor([0, 1, -1])), outcome(torch, lambda: function(complex_))]


@case(rtol=2e-2, atol=2e-2)
@case.params("name", (REAL_LINE + " sgn " + POSITIVE + " " + FLAT).split())
def case_dtypes(torch, name):
    function = getattr(torch, name)
    return [outcome(torch, lambda d=d: function(spread(torch, 1, 3, d, count=3))) for d in DTYPES]


@case(**CLOSE)
def case_round_decimals(torch):
    x = spread(torch, -12.345, 12.345)
    integers = torch.arange(3)
    return {
        "one": torch.round(x, decimals=1),
        "minus one": x.round(decimals=-1),
        "integers": outcome(torch, lambda: torch.round(integers, decimals=1)),
        "gradient": with_gradients(torch, lambda x: x.round(decimals=2), spread(torch, -1, 1, requires_grad=True)),
    }


@case(**CLOSE)
def case_repair(torch):
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.5], requires_grad=True)
    return [
        with_gradients(torch, torch.nan_to_num, odd),
        torch.nan_to_num(odd.detach(), nan=1.0, posinf=2.0, neginf=-2.0),
        torch.nan_to_num(odd.detach().bfloat16()),
        torch.nan_to_num(torch.arange(3)),
    ]


@case(**CLOSE)
def case_gamma_functions(torch):
    x = spread(torch, 2.2, 6, requires_grad=True)
    return {
        "polygamma": [with_gradients(torch, lambda x, n=n: torch.polygamma(n, x), x) for n in range(3)],
        "mvlgamma": with_gradients(torch, lambda x: torch.mvlgamma(x, 3), x),
        "igamma": torch.igamma(torch.tensor(2.5), x.detach()),
        "igammac": torch.igammac(torch.tensor(2.5), x.detach()),
        "zeta": torch.special.zeta(x.detach(), 1.5),
    }


# -- activations ----------------------------------------------------------------------------------------------------


@case(**CLOSE)
@case.params("name", ACTIVATIONS.split())
def case_activation(torch, name):
    x = spread(torch, -7, 7, count=29, requires_grad=True)
    return with_gradients(torch, getattr(torch.nn.functional, name), x)


@case(rtol=2e-2, atol=2e-2)
@case.params("name", [n for n in ACTIVATIONS.split() if n != "softsign"])
def case_activation_dtypes(torch, name):
    function = getattr(torch.nn.functional, name)
    return [outcome(torch, lambda d=d: function(spread(torch, 0, 3, d, count=4))) for d in DTYPES]


@case(**CLOSE)
def case_activation_parameters(torch):
    F = torch.nn.functional
    x = spread(torch, -3, 3, count=9, requires_grad=True)
    functions = {
        "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
        "elu": lambda x: F.elu(x, 0.5),
        "celu": lambda x: F.celu(x, 0.5),
        "softplus": lambda x: F.softplus(x, 2, 4),
        "hardtanh": lambda x: F.hardtanh(x, -0.5, 2),
        "hardshrink": lambda x: F.hardshrink(x, 1.0),
        "softshrink": lambda x: F.softshrink(x, 1.0),
        "threshold": lambda x: F.threshold(x, 0.5, -1.0),
        "gelu": lambda x: F.gelu(x, approximate="tanh"),
        "rrelu": lambda x: F.rrelu(x, 0.1, 0.5),
    }
    return {name: with_gradients(torch, f, x) for name, f in functions.items()} | {
        "gelu error": raises(torch, lambda: F.gelu(x, approximate="other")),
        "softshrink error": raises(torch, lambda: F.softshrink(x, -1.0)),
        "celu error": raises(torch, lambda: F.celu(x, 0.0)),
    }


@case(**CLOSE)
def case_prelu(torch):
    F = torch.nn.functional
    x = tensor(torch, (2, 3, 4), seed=1, requires_grad=True)
    each = tensor(torch, (3,), seed=2, requires_grad=True)
    one = tensor(torch, (1,), seed=3, requires_grad=True)
    return [
        with_gradients(torch, F.prelu, x, each),
        with_gradients(torch, F.prelu, x, one),
        raises(torch, lambda: F.prelu(x, torch.ones(2))),
        raises(torch, lambda: F.prelu(x, torch.ones(3, dtype=torch.float64))),
    ]


@case(**CLOSE)
def case_glu(torch):
    F = torch.nn.functional
    x = tensor(torch, (4, 6), seed=1, requires_grad=True)
    return [
        with_gradients(torch, F.glu, x),
        with_gradients(torch, lambda x: F.glu(x, 0), x),
        raises(torch, lambda: F.glu(torch.ones(3))),
        raises(torch, lambda: F.glu(torch.tensor(1.0))),
    ]


# -- two operands -----------------------------------------------------------------------------------------------------

BINARY = (
    "add sub mul div remainder fmod atan2 maximum minimum fmax fmin hypot copysign logaddexp logaddexp2 xlogy ldexp"
)


@case(**CLOSE)
@case.params("name", BINARY.split())
def case_two_operands(torch, name):
    a = tensor(torch, (3, 4), seed=1, requires_grad=True)
    b = tensor(torch, (4,), seed=2).abs().add(0.1).requires_grad_()
    return with_gradients(torch, getattr(torch, name), a, b)


@case(**CLOSE)
@case.params("name", "add sub mul div floor_divide remainder fmod pow".split())
def case_with_numbers(torch, name):
    function = getattr(torch, name)
    tensors = [spread(torch, 1, 5, d, count=5) for d in DTYPES]
    return [outcome(torch, lambda x=x, n=n: function(x, n)) for x in tensors for n in (2, 1.5)]


@case(**CLOSE)
def case_reflected(torch):
    x = spread(torch, 0.5, 3, requires_grad=True)
    i = torch.tensor([1, 2, 3])
    return {
        "sub": with_gradients(torch, lambda x: 1 - x, x),
        "div": (2 / x).detach(),
        "pow": with_gradients(torch, lambda x: 2**x, x),
        "integers": [5 - i, 7 // i, 7 % i, 2**i, 1 << i, 6 & i, 6 | i, 6 ^ i, 7 / i],
    }


@case(**CLOSE)
@case.params("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 4])
def case_power(torch, exponent):
    x = spread(torch, 0.5, 3, requires_grad=True)
    return {
        "float": with_gradients(torch, lambda x: x**exponent, x),
        "half": spread(torch, 1, 2, "float16", 4) ** exponent,
        "integer": outcome(torch, lambda: torch.tensor([1, 2, 3]) ** exponent),
        "complex": torch.tensor([1 + 2j, 0.5 - 1j]) ** exponent,
        "bool": outcome(torch, lambda: torch.tensor([True, False]) ** exponent),
    }


@case(rtol=1e-2, atol=1e-2)  # PyTorch rounds to bfloat16 after every product
@case.params("exponent", [2, 3, -1, -2, 0.5, -0.5, 2.5])
def case_power_bfloat16(torch, exponent):
    return with_gradients(torch, lambda x: x**exponent, spread(torch, 1, 2, "bfloat16", 4, requires_grad=True))


@case(**CLOSE)
def case_power_of_tensors(torch):
    x = torch.tensor([0.0, 0.0, 0.5, 2.0], requires_grad=True)
    y = torch.tensor([0.0, 2.0, 1.5, -1.0], requires_grad=True)
    base = torch.tensor([2, -1, 1, 3, 0, 7])
    return [
        with_gradients(torch, torch.pow, x, y),
        base ** torch.tensor([10, -3, -2, -1, 0, 70]),
        torch.float_power(base, 2),
        torch.float_power(2, torch.tensor([0.5, 1.5])),
    ]


@case
def case_rounded_division(torch):
    a = torch.tensor([7, -7, 7, -7, 0])
    b = torch.tensor([2, 2, -2, -2, 3])
    x = torch.tensor([7.0, -7.0, 1.0, 0.0, 5.0])
    y = torch.tensor([0.1, 0.3, 0.1, 2.0, 0.0])
    return {
        "integers": [a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc")],
        "floats": [x // y, x % y, torch.fmod(x, y), torch.div(x, y, rounding_mode="trunc")],
        "mode": raises(torch, lambda: torch.div(a, b, rounding_mode="up")),
    }


@case(**CLOSE)
def case_alpha(torch):
    a, b = tensor(torch, (3,), seed=1, requires_grad=True), tensor(torch, (3,), seed=2, requires_grad=True)
    i = torch.arange(3)
    return {
        "add": with_gradients(torch, lambda a, b: torch.add(a, b, alpha=0.5), a, b),
        "sub": with_gradients(torch, lambda a, b: torch.sub(a, b, alpha=2), a, b),
        "rsub": with_gradients(torch, torch.rsub, a, b),
        "float alpha": raises(torch, lambda: torch.add(i, i, alpha=0.5)),
        "bool alpha": raises(torch, lambda: torch.add(i, i, alpha=True)),
        "bool": raises(torch, lambda: i.bool() - i.bool()),
        "one bool": raises(torch, lambda: 1 - i.bool()),
        "negation": raises(torch, lambda: -i.bool()),
    }


@case(**CLOSE)
def case_fused(torch):
    a, b, c = (tensor(torch, (3, 4), seed=k).abs().add(0.5).requires_grad_() for k in range(3))
    i = torch.arange(1, 4)
    return {
        "addcmul": with_gradients(torch, lambda a, b, c: torch.addcmul(a, b, c, value=0.5), a, b, c),
        "addcdiv": with_gradients(torch, lambda a, b, c: torch.addcdiv(a, b, c, value=2), a, b, c),
        "lerp": with_gradients(torch, lambda a, b: torch.lerp(a, b, 0.3), a, b),
        "lerp by tensor": with_gradients(torch, torch.lerp, a, b, c),
        "integer addcdiv": raises(torch, lambda: torch.addcdiv(i, i, i)),
        "lerp dtypes": raises(torch, lambda: torch.lerp(a, b.double(), 0.5)),
    }


# -- comparisons, bounds, selection -----------------------------------------------------------------------------------


@case
@case.params("name", "eq ne lt le gt ge".split())
def case_comparison(torch, name):
    function = getattr(torch, name)
    a, b = torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.5, 2.0])
    return [function(a, b), function(a, 2), function(a, 2.5), outcome(torch, lambda: function(a * 1j, a))]


@case(**CLOSE)
def case_clamp(torch):
    x = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], requires_grad=True)
    low = torch.tensor([-1.0, -1.0, 0.5, 2.0, 3.0], requires_grad=True)
    high = torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0], requires_grad=True)
    i = torch.arange(-3, 3)
    return {
        "numbers": with_gradients(torch, lambda x: x.clamp(-1, 1), x),
        "low": with_gradients(torch, lambda x: x.clamp(min=0), x),
        "high": with_gradients(torch, lambda x: torch.clamp_max(x, 0.5), x),
        "tensors": with_gradients(torch, torch.clamp, x, low, high),
        "integers": [i.clamp(0, 2), i.clamp(0.5, 2), i.clamp(max=torch.tensor(0))],
        "nothing": raises(torch, lambda: x.clamp()),
        "bool": raises(torch, lambda: i.bool().clamp(False, True)),
    }


@case
def case_where(torch):
    condition = torch.tensor([True, False, True])
    a, b = tensor(torch, (3,), seed=1, requires_grad=True), tensor(torch, (2, 3), seed=2, requires_grad=True)
    return {
        "tensors": with_gradients(torch, lambda a, b: torch.where(condition, a, b), a, b),
        "number": with_gradients(torch, lambda a: torch.where(condition, a, 1.0), a),
        "dtypes": [torch.where(condition, 1, 2), torch.where(condition, 1.0, 2), torch.where(condition, a.half(), 0)],
        "condition": raises(torch, lambda: torch.where(a, a, b)),
    }


@case
def case_isclose(torch):
    nan, inf = float("nan"), float("inf")
    a, b = torch.tensor([1.0, nan, inf, inf, 1.0]), torch.tensor([1.0 + 1e-6, nan, inf, -inf, 1.1])
    i = torch.tensor([1, 2, 3])
    return [
        torch.isclose(a, b),
        torch.isclose(a, b, rtol=0.2, equal_nan=True),
        torch.isclose(i, i + 1, atol=1),
        raises(torch, lambda: torch.isclose(a, a.double())),
    ]


# -- logic and bits --------------------------------------------------------------------------------------------------


@case
def case_logic(torch):
    a, b = torch.tensor([0.0, 1.0, 0.0, 2.0]), torch.tensor([0, 0, 3, 4])
    return [torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b), ~a.bool(), a.bool() ^ b.bool()]


@case
@case.params("dtype", ["uint8", "int8", "int32", "int64"])
def case_bits(torch, dtype):
    a, b = tensor(torch, (12,), dtype, 1), tensor(torch, (12,), dtype, 2)
    return {
        "bitwise": [a & b, a | b, a ^ b, ~a, a & 3],
        "shifts": [a << 2, a >> 1, a << b, a >> b, torch.bitwise_left_shift(a, b)],
        "divisors": [torch.gcd(a, b), torch.lcm(a, b)],
        "floats": raises(torch, lambda: a.float() & b.float()),
        "float shift": raises(torch, lambda: a.float() << 1),
        "bool gcd": raises(torch, lambda: torch.gcd(a.bool(), b.bool())),
    }


# -- complex ----------------------------------------------------------------------------------------------------


@case(**CLOSE)
@case.params(
    "name", "exp log sqrt rsqrt sin cos tan tanh sigmoid reciprocal abs sgn angle square conj_physical".split()
)
def case_complex(torch, name):
    x = torch.tensor([1 + 2j, -0.5 + 0.25j, 2 - 1j], dtype=torch.complex64, requires_grad=True)
    return with_gradients(torch, getattr(torch, name), x)


@case(**CLOSE)
def case_complex_arithmetic(torch):
    a = tensor(torch, (3,), "complex64", 1, requires_grad=True)
    b = tensor(torch, (3,), "complex64", 2, requires_grad=True)
    r = tensor(torch, (3,), "float32", 3, requires_grad=True)
    return [with_gradients(torch, f, a, b) for f in (torch.add, torch.sub, torch.mul, torch.div, torch.pow)] + [
        with_gradients(torch, torch.mul, a, r),
        with_gradients(torch, torch.complex, r, r.detach() + 1),
        with_gradients(torch, torch.polar, r, r.detach() + 1),
        raises(torch, lambda: torch.complex(r, r.double())),
    ]
