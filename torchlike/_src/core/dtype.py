"""``torch.dtype``: one singleton per element type, with the NumPy type that carries it.

Dtypes are dict keys on every hot path, so they keep Python's identity hash and equality, and what
hot code reads (``np``, ``is_floating_point``, ``is_complex``) is a plain slot.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_SUPPORTED_BY_FROM_NUMPY = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
    "uint64, uint32, uint16, uint8, and bool"
)

# Which broad family a dtype belongs to. BOOL < INT < FLOAT < COMPLEX is the order that promotion uses;
# the last two families never promote.
BOOL, INT, FLOAT, COMPLEX, QUANTIZED, BITS = range(6)

_by_name: dict[str, dtype] = {}


class dtype:
    """The type of a tensor's elements. Not constructible: use ``torch.float32`` and the like.

    Attributes:
        name: ``'float32'``; ``repr`` adds ``torch.``.
        np: the ``numpy.dtype`` of the elements, or None where NumPy has none (``complex32``, quantised
            and sub-byte types): no tensor of such a dtype can be made.
        category: one of BOOL, INT, FLOAT, COMPLEX, QUANTIZED, BITS.
        scalar_name: PyTorch's C++ enum name (``'Float'``), which error messages use.
        cpp_name: the C++ element type (``'float'``), which matmul's error messages use.
        type_name: the legacy tensor type, ``'torch.FloatTensor'``.
        abbr: PyTorch's short name, ``'f32'``.
        itemsize: bytes per element.
    """

    __slots__ = (
        "abbr",
        "category",
        "cpp_name",
        "is_complex",
        "is_floating_point",
        "itemsize",
        "name",
        "np",
        "scalar_name",
        "type_name",
    )

    abbr: str
    category: int
    cpp_name: str
    is_complex: bool
    is_floating_point: bool
    itemsize: int
    name: str
    np: Any
    scalar_name: str
    type_name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> dtype:
        raise TypeError("cannot create 'torch.dtype' instances")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        raise TypeError("type 'torch.dtype' is not an acceptable base type")

    @property
    def is_signed(self) -> bool:
        """Whether the dtype has negative values; RuntimeError for quantised and bits types."""
        if self.category == QUANTIZED:
            raise RuntimeError("isSignedType not supported for quantized types")
        if self.category == BITS:
            raise RuntimeError("Bits types are undefined")
        return self.name != "float8_e8m0fnu" and self.category != BOOL and not self.name.startswith("uint")

    def to_real(self) -> dtype:
        """The dtype of a complex dtype's parts; any other dtype itself."""
        return _TO_REAL.get(self, self)

    def to_complex(self) -> dtype:
        """The complex dtype whose parts hold this dtype; RuntimeError for integers, bool and float8."""
        found = _TO_COMPLEX.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return found

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return by_name, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: Any) -> dtype:
        return self


dtype.__module__ = "torch"  # `type(t.dtype)` prints as PyTorch's


def by_name(name: str) -> dtype:
    """The dtype called ``name`` (``'float32'``); KeyError if there is none. Unpickling calls it."""
    return _by_name[name]


def _make(
    name: str,
    np_type: Any,
    category: int,
    scalar_name: str,
    abbr: str,
    itemsize: int | None = None,
    cpp_name: str | None = None,
) -> dtype:
    self = object.__new__(dtype)
    self.name = name
    self.np = None if np_type is None else np.dtype(np_type)
    self.category = category
    self.scalar_name = scalar_name
    self.abbr = abbr
    self.type_name = f"torch.{scalar_name}Tensor"
    self.cpp_name = cpp_name or f"c10::{scalar_name}"
    if itemsize is None:
        assert self.np is not None
        itemsize = self.np.itemsize
    self.itemsize = itemsize
    self.is_floating_point = category == FLOAT
    self.is_complex = category == COMPLEX
    _by_name[name] = self
    return self


bool_ = _make("bool", np.bool_, BOOL, "Bool", "b8", cpp_name="bool")
uint8 = _make("uint8", np.uint8, INT, "Byte", "u8", cpp_name="unsigned char")
int8 = _make("int8", np.int8, INT, "Char", "i8", cpp_name="signed char")
int16 = _make("int16", np.int16, INT, "Short", "i16", cpp_name="short int")
int32 = _make("int32", np.int32, INT, "Int", "i32", cpp_name="int")
int64 = _make("int64", np.int64, INT, "Long", "i64", cpp_name="long int")
uint16 = _make("uint16", np.uint16, INT, "UInt16", "u16", cpp_name="short unsigned int")
uint32 = _make("uint32", np.uint32, INT, "UInt32", "u32", cpp_name="unsigned int")
uint64 = _make("uint64", np.uint64, INT, "UInt64", "u64", cpp_name="long unsigned int")
float16 = _make("float16", np.float16, FLOAT, "Half", "f16")
bfloat16 = _make("bfloat16", ml_dtypes.bfloat16, FLOAT, "BFloat16", "bf16")
float32 = _make("float32", np.float32, FLOAT, "Float", "f32", cpp_name="float")
float64 = _make("float64", np.float64, FLOAT, "Double", "f64", cpp_name="double")
complex32 = _make("complex32", None, COMPLEX, "ComplexHalf", "c32", 4, "c10::complex<c10::Half>")
complex64 = _make("complex64", np.complex64, COMPLEX, "ComplexFloat", "c64", cpp_name="c10::complex<float>")
complex128 = _make("complex128", np.complex128, COMPLEX, "ComplexDouble", "c128", cpp_name="c10::complex<double>")
float8_e4m3fn = _make("float8_e4m3fn", ml_dtypes.float8_e4m3fn, FLOAT, "Float8_e4m3fn", "f8e4m3fn")
float8_e5m2 = _make("float8_e5m2", ml_dtypes.float8_e5m2, FLOAT, "Float8_e5m2", "f8e5m2")
float8_e4m3fnuz = _make("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, FLOAT, "Float8_e4m3fnuz", "f8e4m3fnuz")
float8_e5m2fnuz = _make("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, FLOAT, "Float8_e5m2fnuz", "f8e5m2fnuz")
float8_e8m0fnu = _make("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, FLOAT, "Float8_e8m0fnu", "f8e8m0fnu")

# Names only: scripts test `dtype in (torch.qint8, ...)`, but no tensor can have these dtypes here.
float4_e2m1fn_x2 = _make("float4_e2m1fn_x2", None, FLOAT, "Float4_e2m1fn_x2", "f4e2m1fnx2", 1)
for _name, _scalar, _size in (
    ("qint8", "QInt8", 1),
    ("quint8", "QUInt8", 1),
    ("qint32", "QInt32", 4),
    ("quint4x2", "QUInt4x2", 1),
    ("quint2x4", "QUInt2x4", 1),
):
    _make(_name, None, QUANTIZED, _scalar, _name, _size)
for _name, _abbr, _size in (
    ("bits1x8", "b1x8", 1),
    ("bits2x4", "b2x4", 1),
    ("bits4x2", "b4x2", 1),
    ("bits8", "b8x1", 1),
    ("bits16", "b16x1", 2),
):
    _make(_name, None, BITS, _name.capitalize(), _abbr, _size)
for _bits in range(1, 8):
    _make(f"uint{_bits}", None, INT, f"UInt{_bits}", f"uint{_bits}", 1)
    _make(f"int{_bits}", None, INT, f"Int{_bits}", f"int{_bits}", 1)

ALL: list[dtype] = list(_by_name.values())
"""Every dtype, in no meaningful order."""

ALIASES: dict[str, dtype] = {
    "half": float16,
    "float": float32,
    "double": float64,
    "short": int16,
    "int": int32,
    "long": int64,
    "chalf": complex32,
    "cfloat": complex64,
    "cdouble": complex128,
    "bit": _by_name["uint1"],
}
"""PyTorch's second names: ``torch.half`` and the like."""

_TO_REAL = {complex32: float16, complex64: float32, complex128: float64}
_TO_COMPLEX = {
    float16: complex32,
    bfloat16: complex64,
    float32: complex64,
    float64: complex128,
    complex32: complex32,
    complex64: complex64,
    complex128: complex128,
}

_from_numpy: dict[np.dtype, dtype] = {d.np: d for d in ALL if d.np is not None}


def from_numpy(np_dtype: np.dtype) -> dtype:
    """The dtype for a NumPy element type, ml_dtypes' extra types included.

    Raises:
        ValueError: the type's byte order is not the machine's.
        TypeError: there is no such dtype (strings, objects, dates, long double).
    """
    found = _from_numpy.get(np_dtype)
    if found is not None:
        return found
    np_dtype = np.dtype(np_dtype)
    if not np_dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    found = _from_numpy.get(np_dtype)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{np_dtype.type.__name__}. "
            f"The only supported types are: {_SUPPORTED_BY_FROM_NUMPY}."
        )
    return found


def require_numpy(self: dtype) -> np.dtype:
    """``self.np``, or NotImplementedError for the dtypes that no tensor can have here."""
    found: np.dtype | None = self.np
    if found is None:
        raise NotImplementedError(f"tensors of dtype torch.{self.name} are not supported")
    return found


_default: dtype = float32


def default_dtype() -> dtype:
    """The default floating-point dtype (hot: one global read)."""
    return _default


def default_complex_dtype() -> dtype:
    """The complex dtype that goes with the default floating-point dtype."""
    return _TO_COMPLEX[_default]


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of tensors made from Python floats, and of integers divided.

    Args:
        d: float16, bfloat16, float32 or float64.

    Raises:
        TypeError: ``d`` is not a dtype, or not one of those.
    """
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d not in _TO_COMPLEX:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    _default = d


def get_default_dtype() -> dtype:
    """The dtype of tensors made from Python floats."""
    return _default
