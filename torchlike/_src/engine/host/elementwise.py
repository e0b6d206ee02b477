"""Elementwise primitives: NumPy's ufuncs, SciPy's special functions, conversions and selection."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, aval_of, is_key, rule

FLOAT32 = np.dtype(np.float32)
BOOL = np.dtype(bool)


def is_float(dtype: np.dtype) -> bool:
    """Whether a dtype is a real floating-point type, ml_dtypes' ones included."""
    return dtype.kind == "f" or (dtype.kind == "V" and not dtype.name.startswith(("int", "uint")))


def is_low(dtype: np.dtype) -> bool:
    """Whether a floating type is narrower than float32, so that sums and products are kept in float32."""
    return is_float(dtype) and dtype.itemsize < 4


# -- plain ufuncs ------------------------------------------------------------------------------------------------

_REAL_AND_COMPLEX: dict[str, Any] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "neg": np.negative,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "eq": np.equal,
    "ne": np.not_equal,
    "max": np.maximum,
    "min": np.minimum,
}
_REAL: dict[str, Any] = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "atan2": np.arctan2,
    "floor": np.floor,
    "ceil": np.ceil,
    "cbrt": np.cbrt,
    "is_finite": np.isfinite,
    "nextafter": np.nextafter,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
}


def _check_numbers(eqn: Any, refs: tuple[Ref, ...], complex_too: bool) -> None:
    for ref in refs:
        if is_key(ref.dtype):
            raise HostUnsupported(eqn.primitive.name, "PRNG keys")
        if ref.dtype.kind == "c" and not complex_too:
            raise HostUnsupported(eqn.primitive.name, "complex numbers")
        if ref.dtype.name in ("int4", "uint4", "int2", "uint2"):
            raise HostUnsupported(eqn.primitive.name, ref.dtype.name)


@rule(*_REAL_AND_COMPLEX, *_REAL, lazy=True)
def _ufunc(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    name = eqn.primitive.name
    shape, dtype = aval_of(eqn.outvars[0])
    _check_numbers(eqn, refs, name in _REAL_AND_COMPLEX)
    if name in ("max", "min"):
        # softmax and logsumexp take the maximum with -inf, which changes nothing.
        neutral = -np.inf if name == "max" else np.inf
        for a, b in (refs, refs[::-1]):
            if b.shape == () and b.scalar_const() == neutral and a.shape == shape:
                return a
    return em.ufunc(_REAL_AND_COMPLEX.get(name) or _REAL[name], refs, shape, dtype)


def _total_order(function: Any) -> Callable[[Any, Any], Any]:
    """A comparison in IEEE 754's total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN."""

    def ordered(x: Any) -> Any:
        if x.dtype.kind in "biu":
            return x
        bits = np.asarray(x).view(f"i{x.dtype.itemsize}")
        return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)

    def compare(x: Any, y: Any) -> Any:
        return function(ordered(x), ordered(y))

    compare.__name__ = f"total_{function.__name__}"
    return compare


_TOTAL = {
    "eq_to": _total_order(np.equal),
    "lt_to": _total_order(np.less),
    "le_to": _total_order(np.less_equal),
}


@rule(*_TOTAL, lazy=True)
def _compare_total(em: Emitter, eqn: Any, a: Ref, b: Ref) -> Ref:
    _check_numbers(eqn, (a, b), complex_too=False)
    return _apply(em, _TOTAL[eqn.primitive.name], (a, b), *aval_of(eqn.outvars[0]))


@rule("mul", lazy=True)
def _mul(em: Emitter, eqn: Any, a: Ref, b: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if a.dtype != dtype or b.dtype != dtype:
        a, b = em.cast(a, dtype), em.cast(b, dtype)
    for x, y in ((a, b), (b, a)):
        if y.scalar_const() == 1 and x.shape == shape:
            return x
    return em.ufunc(np.multiply, (a, b), shape, dtype)


def int_div(a: Any, b: Any) -> Any:
    """Integer division towards zero; by zero it gives -1 (all bits set), as XLA does."""
    quotient = np.floor_divide(a - np.fmod(a, b), b)
    if np.any(b == 0):
        quotient = np.where(b == 0, np.asarray(-1).astype(quotient.dtype), quotient)
    return quotient


def int_rem(a: Any, b: Any) -> Any:
    """Integer remainder with the dividend's sign; by zero it gives the dividend, as XLA does."""
    remainder = np.fmod(a, b)
    if np.any(b == 0):
        remainder = np.where(b == 0, a, remainder)
    return remainder


@rule("div", lazy=True)
def _div(em: Emitter, eqn: Any, a: Ref, b: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if dtype.kind not in "iu":
        if b.scalar_const() == 1 and a.shape == shape:
            return a
        return em.ufunc(np.divide, (a, b), shape, dtype)
    divisor = b.scalar_const()
    if divisor and dtype.kind == "u":
        return em.ufunc(np.floor_divide, (a, b), shape, dtype)
    return _apply(em, int_div, (a, b), shape, dtype)


@rule("rem", lazy=True)
def _rem(em: Emitter, eqn: Any, a: Ref, b: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if dtype.kind not in "iu" or b.scalar_const():
        return em.ufunc(np.fmod, (a, b), shape, dtype)
    return _apply(em, int_rem, (a, b), shape, dtype)


def _apply(em: Emitter, function: Callable[..., Any], refs: tuple[Ref, ...], shape: Any, dtype: np.dtype) -> Ref:
    """Append a call of an elementwise function that broadcasts as ufuncs do."""
    phys = refs[0].phys if len(refs) == 1 else np.broadcast_shapes(*(r.phys for r in refs))
    return em.call(function, refs, shape, dtype, phys=phys)


# -- powers, roots, rounding -------------------------------------------------------------------------------------


@rule("integer_pow", lazy=True)
def _integer_pow(em: Emitter, eqn: Any, x: Ref) -> Ref:
    """By repeated squaring, the order XLA multiplies in."""
    shape, dtype = aval_of(eqn.outvars[0])
    exponent = int(eqn.params["y"])
    if exponent == 0:
        return em.full_const(1, shape, dtype)
    result: Ref | None = None
    power, left = x, abs(exponent)
    while left:
        if left & 1:
            result = power if result is None else em.ufunc(np.multiply, (result, power), shape, dtype)
        left >>= 1
        if left:
            power = em.ufunc(np.multiply, (power, power), shape, dtype)
    assert result is not None
    if exponent < 0:
        if dtype.kind in "iu":
            raise HostUnsupported("integer_pow", "negative power of integers")
        result = em.ufunc(np.divide, (em.full_const(1, (), dtype), result), shape, dtype)
    return result


@rule("square", lazy=True)
def _square(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    return em.ufunc(np.multiply, (x, x), shape, dtype)


@rule("one_minus_square", lazy=True)
def _one_minus_square(em: Emitter, eqn: Any, x: Ref) -> Ref:
    """(1 + x) (1 - x), as newer JAX writes 1 - x * x."""
    shape, dtype = aval_of(eqn.outvars[0])
    one = em.full_const(1, (), dtype)
    plus, minus = (em.ufunc(f, (one, x), shape, dtype) for f in (np.add, np.subtract))
    return em.ufunc(np.multiply, (plus, minus), shape, dtype)


@rule("polynomial", lazy=True)
def _polynomial(em: Emitter, eqn: Any, x: Ref, *coefficients: Ref) -> Ref:
    """By Horner's rule; the coefficients come lowest first."""
    shape, dtype = aval_of(eqn.outvars[0])
    found = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        found = em.ufunc(np.add, (em.ufunc(np.multiply, (found, x), shape, dtype), c), shape, dtype)
    return found


@rule("pow", lazy=True)
def _pow(em: Emitter, eqn: Any, x: Ref, y: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if dtype.kind in "iub":
        raise HostUnsupported("pow", "integers")
    return em.ufunc(np.power, (x, em.cast(y, dtype)), shape, dtype)


@rule("rsqrt", lazy=True)
def _rsqrt(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    root = em.ufunc(np.sqrt, (x,), shape, dtype)
    return em.ufunc(np.divide, (em.full_const(1, (), dtype), root), shape, dtype)


def round_away(x: Any) -> Any:
    """Round to the nearest integer, halves away from zero; exact just below a half, where adding 0.5 is not."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), whole.dtype), x), whole)


@rule("round", lazy=True)
def _round(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if int(eqn.params["rounding_method"]) == 1:
        return em.ufunc(np.rint, (x,), shape, dtype)
    return _apply(em, round_away, (x,), shape, dtype)


def clip(low: Any, x: Any, high: Any) -> Any:
    """XLA's clamp: NaN stays NaN, and the upper bound wins."""
    return np.minimum(np.maximum(x, low), high)


@rule("clamp", lazy=True)
def _clamp(em: Emitter, eqn: Any, low: Ref, x: Ref, high: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    return em.ufunc(np.minimum, (em.ufunc(np.maximum, (x, low), shape, dtype), high), shape, dtype)


# -- special functions -------------------------------------------------------------------------------------------


_SPECIAL = {
    "erf": "erf",
    "erfc": "erfc",
    "erf_inv": "erfinv",
    "lgamma": "gammaln",
    "digamma": "psi",
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "regularized_incomplete_beta": "betainc",
    "zeta": "zeta",
}


@cache
def _scipy_function(name: str, widen: bool = False) -> Any:
    """A function of scipy.special, imported when first wanted, because the import takes 0.1 s.

    ``widen``: for narrow floats, computed in float32 and rounded once.
    """
    function = getattr(importlib.import_module("scipy.special"), name)
    if not widen:
        return function

    def run(*arrays: Any) -> Any:
        return function(*(a.astype(np.float32) for a in arrays)).astype(arrays[0].dtype)

    run.__name__ = f"{name}_low"
    return run


@rule("polygamma", lazy=True)
def _polygamma(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    gamma, zeta, psi = (_scipy_function(name) for name in ("gamma", "zeta", "psi"))

    def polygamma(m: Any, x: Any) -> Any:
        m, wide = m.astype(np.float64), x.astype(np.float64)
        general = np.where(m % 2 == 0, -1.0, 1.0) * gamma(m + 1) * zeta(m + 1, wide)
        return np.where(m == 0, psi(wide), general).astype(x.dtype)

    return _apply(em, polygamma, refs, *aval_of(eqn.outvars[0]))


@rule(*_SPECIAL, lazy=True)
def _special(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    name = eqn.primitive.name
    _check_numbers(eqn, refs, complex_too=False)
    if is_low(dtype):
        return _apply(em, _scipy_function(_SPECIAL[name], widen=True), refs, shape, dtype)
    return em.ufunc(_scipy_function(_SPECIAL[name]), refs, shape, dtype)


def _logistic_low(x: Any) -> Any:
    return (1 / (np.exp(-x.astype(np.float32)) + 1)).astype(x.dtype)


@rule("logistic", lazy=True)
def _logistic(em: Emitter, eqn: Any, x: Ref) -> Ref:
    """Not scipy's expit: importing it takes longer than a thousand steps of a small gated network."""
    shape, dtype = aval_of(eqn.outvars[0])
    if is_low(dtype):
        return _apply(em, _logistic_low, (x,), shape, dtype)
    one = em.full_const(1, (), dtype)
    grown = em.ufunc(np.exp, (em.ufunc(np.negative, (x,), shape, dtype),), shape, dtype)
    return em.ufunc(np.divide, (one, em.ufunc(np.add, (grown, one), shape, dtype)), shape, dtype)


# -- bits --------------------------------------------------------------------------------------------------------


def _unsigned(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")


def shift_right_logical(x: Any, y: Any) -> Any:
    """Shift zeros in from the left, whatever the sign."""
    unsigned = _unsigned(x.dtype)
    return np.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


def popcount(x: Any) -> Any:
    """Number of set bits (NumPy's counts those of the absolute value)."""
    return np.bitwise_count(x.view(_unsigned(x.dtype))).astype(x.dtype)


def count_leading_zeros(x: Any) -> Any:
    """Number of zero bits above the highest set one; for at most 32 bits, where a double holds the value."""
    exponent = np.frexp(x.view(_unsigned(x.dtype)).astype(np.float64))[1]
    return (x.dtype.itemsize * 8 - exponent).astype(x.dtype)


def multiply_high(x: Any, y: Any) -> Any:
    """The high half of the double-width product; for at most 32 bits."""
    wide = np.uint64 if x.dtype.kind == "u" else np.int64
    return np.right_shift(x.astype(wide) * y.astype(wide), x.dtype.itemsize * 8).astype(x.dtype)


@rule("shift_right_logical", "population_count", "clz", "mulhi", lazy=True)
def _bits(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    name = eqn.primitive.name
    if name == "shift_right_logical":
        if dtype.kind == "u":
            return em.ufunc(np.right_shift, refs, shape, dtype)
        return _apply(em, shift_right_logical, refs, shape, dtype)
    if name == "population_count":
        return _apply(em, popcount, refs, shape, dtype)
    if dtype.itemsize > 4:
        raise HostUnsupported(name, dtype.name)
    return _apply(em, count_leading_zeros if name == "clz" else multiply_high, refs, shape, dtype)


# -- complex -----------------------------------------------------------------------------------------------------


def make_complex(re: Any, im: Any) -> np.ndarray:
    """Complex numbers from parts (not ``re + 1j * im``, which loses infinities and signed zeros)."""
    dtype = np.complex128 if re.dtype == np.float64 else np.complex64
    out = np.empty(np.broadcast_shapes(re.shape, im.shape), dtype)
    out.real = re
    out.imag = im
    return out


@rule("real", "imag", "conj", "complex", lazy=True)
def _complex_parts(em: Emitter, eqn: Any, *refs: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    name = eqn.primitive.name
    if name == "complex":
        return _apply(em, make_complex, refs, shape, dtype)
    if name == "conj":
        return em.ufunc(np.conjugate, (em.cast(refs[0], dtype),), shape, dtype)
    return em.put(f"{refs[0].name}.{name}", shape, dtype, refs[0].phys, alias=refs[0])


# -- conversion --------------------------------------------------------------------------------------------------


def _float_to_int(dtype: np.dtype) -> Callable[[Any], Any]:
    """Conversion to integers that saturates and turns NaN into 0, as XLA's does; NumPy's is C's, undefined there."""
    info = np.iinfo(dtype)
    low, high = float(info.min), float(info.max) + (1.0 if info.bits < 64 else 0.0)

    def to_int(x: Any) -> Any:
        if x.dtype.itemsize < 4:
            x = x.astype(np.float32)
        if x.size == 0:
            return x.astype(dtype)
        if np.minimum.reduce(x, None) >= low and np.maximum.reduce(x, None) < high:
            return x.astype(dtype)
        inside = (x >= low) & (x < high)
        converted = np.where(inside, x, 0).astype(dtype)
        return np.where(x >= high, info.max, np.where(x < low, info.min, converted)).astype(dtype)

    to_int.__name__ = f"to_{dtype.name}"
    return to_int


_TO_INT = {np.dtype(c): _float_to_int(np.dtype(c)) for c in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")}


@rule("convert_element_type", lazy=True)
def _convert(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if x.dtype == dtype:
        return x
    _check_numbers(eqn, (x,), complex_too=True)
    if is_key(dtype) or dtype.name in ("int4", "uint4", "int2", "uint2"):
        raise HostUnsupported("convert_element_type", str(dtype))
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = em.put(f"{x.name}.real", shape, x.dtype.type(0).real.dtype, x.phys, alias=x)
        if x.dtype == dtype:
            return x
    if dtype == BOOL:
        return em.ufunc(np.not_equal, (x, em.full_const(0, (), x.dtype)), shape, dtype)
    if is_float(x.dtype) and dtype.kind in "iu":
        return _apply(em, _TO_INT[dtype], (x,), shape, dtype)
    if dtype.kind == "V" and x.dtype != FLOAT32:
        # ml_dtypes rounds from float32; integers and float64 reach it the same way in XLA.
        x = em.cast(x, FLOAT32)
    return em.cast(x, dtype)


@rule("reduce_precision", lazy=True)
def _reduce_precision(em: Emitter, eqn: Any, x: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    wanted = (int(eqn.params["exponent_bits"]), int(eqn.params["mantissa_bits"]))
    kinds = {(5, 10): np.float16, (8, 7): ml_dtypes.bfloat16, (8, 23): np.float32, (11, 52): np.float64}
    info = ml_dtypes.finfo(dtype)
    if wanted == (info.nexp, info.nmant):
        return x
    if wanted not in kinds or np.dtype(kinds[wanted]).itemsize >= dtype.itemsize:
        raise HostUnsupported("reduce_precision", f"{wanted} of {dtype}")
    return em.cast(em.cast(x, np.dtype(kinds[wanted])), dtype)


# -- selection ---------------------------------------------------------------------------------------------------


@rule("select_n", lazy=True)
def _select_n(em: Emitter, eqn: Any, which: Ref, *cases: Ref) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    if any(is_key(c.dtype) for c in cases):
        raise HostUnsupported("select_n", "PRNG keys")
    if len(cases) == 1:
        return cases[0]
    if which.const is not None and which.const.size == 1:
        chosen = cases[int(which.const.reshape(()))]
        return chosen
    if which.dtype == BOOL:
        if which.phys == () and cases[0].phys == cases[1].phys != ():
            text = f"{cases[1].name} if {which.name} else {cases[0].name}"
            out = em.put(text, shape, dtype, cases[0].phys)
            em.lines[-1].pins = True
            return out
        return _apply(em, np.where, (which, cases[1], cases[0]), shape, dtype)
    result = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        test = em.ufunc(np.less_equal, (which, em.full_const(i, (), which.dtype)), which.shape, BOOL)
        result = _apply(em, np.where, (test, cases[i], result), shape, dtype)
    return result
