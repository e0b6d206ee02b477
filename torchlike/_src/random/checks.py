"""Argument checks of the random functions, with PyTorch's error classes and wording."""

from __future__ import annotations

import functools
import warnings

import ml_dtypes
import numpy as np

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATING = (float32, float64, float16, bfloat16)
#: Significant bits of the floating types: whole numbers up to 2**bits are exact.
PRECISION = {float64: 53, float32: 24, float16: 11, bfloat16: 8}
LARGEST = {d: float(ml_dtypes.finfo(d).max) for d in FLOATING}

# dtype -> (the name in "not implemented" errors, the C++ name in range errors)
_NAMES = {
    float32: ("Float", "float"),
    float64: ("Double", "double"),
    float16: ("Half", "c10::Half"),
    bfloat16: ("BFloat16", "c10::BFloat16"),
    np.dtype(np.bool_): ("Bool", "bool"),
    np.dtype(np.uint8): ("Byte", "unsigned char"),
    np.dtype(np.int8): ("Char", "signed char"),
    np.dtype(np.int16): ("Short", "short int"),
    np.dtype(np.int32): ("Int", "int"),
    np.dtype(np.int64): ("Long", "long int"),
    np.dtype(np.uint16): ("UInt16", "short unsigned int"),
    np.dtype(np.uint32): ("UInt32", "unsigned int"),
    np.dtype(np.uint64): ("UInt64", "long unsigned int"),
    np.dtype(np.complex64): ("ComplexFloat", "c10::complex<float>"),
    np.dtype(np.complex128): ("ComplexDouble", "c10::complex<double>"),
}
_DEFAULT_PRECISION_LOST = (
    "{name} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations {kind} can support discrete "
    "uniform distribution only within this range. This warning will become an error in version 1.7 release, "
    "please fix the code in advance"
)


def scalar_name(dtype: np.dtype) -> str:
    """PyTorch's scalar type name (``Float``, ``Long``, ...)."""
    return _NAMES[dtype][0] if dtype in _NAMES else dtype.name.capitalize()


def cpp_name(dtype: np.dtype) -> str:
    """The C++ type name that range errors show (``unsigned char``, ``c10::Half``, ...)."""
    return _NAMES[dtype][1] if dtype in _NAMES else f"c10::{dtype.name.capitalize()}"


def shown(value: float) -> str:
    """A C++ stream's rendering of a double: six significant digits."""
    return f"{value:g}"


def not_implemented(kernel: str, dtype: np.dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def require(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def barebones_unsigned(dtype: np.dtype) -> bool:
    """Unsigned integers wider than a byte, which most of PyTorch's kernels leave out."""
    return dtype.kind == "u" and dtype.itemsize > 1


def require_floating(dtype: np.dtype, kernel: str) -> None:
    if dtype not in FLOATING:
        raise not_implemented(kernel, dtype)


def uniform_bounds(a: float, b: float, dtype: np.dtype) -> None:
    require_floating(dtype, "check_uniform_bounds")
    limit = LARGEST[dtype]
    if -limit <= a <= b <= limit and b - a <= limit:  # hot: format no message when all is well
        return
    require(-limit <= a <= limit, f"from is out of bounds for {cpp_name(dtype)}")
    require(-limit <= b <= limit, f"to is out of bounds for {cpp_name(dtype)}")
    require(a <= b, f"uniform_ expects to return a [from, to) range, but found from={shown(a)} > to={shown(b)}")
    require(
        b - a <= limit,
        f"uniform_ expects to-from <= std::numeric_limits<{scalar_name(dtype)}>::max(), but found to={shown(b)} "
        f"and from={shown(a)} which result in to-from to exceed the limit",
    )


@functools.cache
def integer_limits(dtype: np.dtype) -> tuple[int, int]:
    """The least and the largest value of an integer or bool dtype."""
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def random_bounds(lo: int, last: int, dtype: np.dtype) -> None:
    """Check the closed range [lo, last] of ``randint`` and ``random_`` against ``dtype``."""
    if dtype in PRECISION:
        limit = LARGEST[dtype]
        require(-limit <= lo <= limit, f"from is out of bounds for {cpp_name(dtype)}")
        require(-limit <= last <= limit, f"to - 1 is out of bounds for {cpp_name(dtype)}")
        bits = PRECISION[dtype]
        for name, value in (("from", lo), ("to - 1", last)):
            if not -(1 << bits) <= value <= 1 << bits:
                text = _DEFAULT_PRECISION_LOST.format(name=name, bits=bits, kind=cpp_name(dtype))
                warnings.warn(text, UserWarning, stacklevel=4)
    elif dtype.kind in "iub":
        least, largest = integer_limits(dtype)
        if least <= lo <= largest and least <= last <= largest:  # hot: format no message when all is well
            return
        require(least <= lo <= largest, f"from is out of bounds for {cpp_name(dtype)}")
        require(least <= last <= largest, f"to - 1 is out of bounds for {cpp_name(dtype)}")
    else:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")


def probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={shown(p)}")


def deviation(std: float) -> None:
    if not std >= 0.0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {shown(std)}")
