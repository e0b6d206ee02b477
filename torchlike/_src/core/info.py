"""``torch.finfo`` and ``torch.iinfo``: the limits of number types."""

from __future__ import annotations

from typing import Any, NamedTuple

from torchlike._src.core import dtype as dt


class _Float(NamedTuple):
    bits: int
    resolution: float
    max: float
    eps: float
    tiny: float
    min: float | None = None  # None: -max


# PyTorch's numbers, which are C++'s numeric_limits; resolution is 10**-digits10.
_FLOATS = {
    dt.float16: _Float(16, 1e-3, 65504.0, 2.0**-10, 2.0**-14),
    dt.bfloat16: _Float(16, 1e-2, (2 - 2.0**-7) * 2.0**127, 2.0**-7, 2.0**-126),
    dt.float32: _Float(32, 1e-6, (2 - 2.0**-23) * 2.0**127, 2.0**-23, 2.0**-126),
    dt.float64: _Float(64, 1e-15, (2 - 2.0**-52) * 2.0**1023, 2.0**-52, 2.0**-1022),
    dt.float8_e4m3fn: _Float(8, 1.0, 448.0, 2.0**-3, 2.0**-6),
    dt.float8_e4m3fnuz: _Float(8, 1.0, 240.0, 2.0**-3, 2.0**-7),
    dt.float8_e5m2: _Float(8, 1.0, 57344.0, 2.0**-2, 2.0**-14),
    dt.float8_e5m2fnuz: _Float(8, 1.0, 57344.0, 2.0**-3, 2.0**-15),
    dt.float8_e8m0fnu: _Float(8, 1.0, 2.0**127, 1.0, 2.0**-127, 2.0**-127),
}

_NOTHING: Any = object()


def _bind(what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dt.dtype:
    if len(args) > 1 or (args and kwargs):
        raise TypeError(f"{what}() takes one argument, 'type', a torch.dtype")
    given = args[0] if args else kwargs.get("type", _NOTHING)
    if given is _NOTHING:
        raise TypeError(f'{what}() missing 1 required positional arguments: "type"')
    if not isinstance(given, dt.dtype):
        raise TypeError(f"{what}(): argument 'type' (position 1) must be torch.dtype, not {type(given).__name__}")
    return given


class _Limits:
    """Limits of one dtype, equal to others of the same dtype and not hashable, as in PyTorch."""

    __slots__ = ("_of", "bits", "dtype", "max", "min")
    __hash__ = None  # type: ignore[assignment]
    _of: dt.dtype
    bits: int
    dtype: str
    max: Any
    min: Any

    def __eq__(self, other: object) -> bool:
        return self._of is other._of if isinstance(other, type(self)) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._restore, (self._of,)  # type: ignore[attr-defined]


class finfo(_Limits):
    """Limits of a floating-point dtype (for a complex one, those of its parts; by default of the default dtype).

    Attributes: bits, eps, max, min, tiny, smallest_normal, resolution, dtype (its name).

    Raises:
        TypeError: the dtype is neither floating point nor complex.
    """

    __slots__ = ("eps", "resolution", "tiny")
    eps: float
    resolution: float
    tiny: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        of = _bind("finfo", args, kwargs) if args or kwargs else dt.default_dtype()
        if not (of.is_floating_point or of.is_complex):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        of = of.to_real()
        limits = _FLOATS.get(of)
        if limits is None:
            raise NotImplementedError(f"torch.finfo() of {of}")
        self._of = of
        self.bits = limits.bits
        self.dtype = of.name
        self.eps = limits.eps
        self.max = limits.max
        self.min = -limits.max if limits.min is None else limits.min
        self.resolution = limits.resolution
        self.tiny = limits.tiny

    @property
    def smallest_normal(self) -> float:
        """The smallest positive normal number; the same as ``tiny``."""
        return self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.tiny:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    @staticmethod
    def _restore(of: dt.dtype) -> finfo:
        return finfo(of)


class iinfo(_Limits):
    """Limits of an integer dtype. Attributes: bits, max, min, dtype (its name).

    Raises:
        TypeError: the dtype is not an integer one.
    """

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        of = _bind("iinfo", args, kwargs)
        if of is dt.bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if of.category == dt.QUANTIZED:
            raise NotImplementedError(f"torch.iinfo() of the quantised {of}")
        if of.category != dt.INT or of.np is None:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        self._of = of
        self.bits = 8 * of.itemsize
        self.dtype = of.name
        signed = of.is_signed
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -(2 ** (self.bits - 1)) if signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"

    @staticmethod
    def _restore(of: dt.dtype) -> iinfo:
        return iinfo(of)


finfo.__module__ = iinfo.__module__ = "torch"
