"""`assert_close`: tensors, numbers and containers of them compared, with a message that says where they differ."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import torchlike as torch

# rtol, atol by dtype; integers and bools must be equal.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


class _Mismatch(Exception):
    """What differs; `at` grows on the way out of containers."""

    def __init__(self, error: type[Exception], text: str) -> None:
        super().__init__(text)
        self.error = error
        self.text = text
        self.at: list[Any] = []

    def raised(self, msg: Any) -> Exception:
        text = self.text
        if self.at:
            text += "\n\nThe failure occurred for item " + "".join(f"[{k!r}]" for k in reversed(self.at))
        if self.error is AssertionError and msg is not None:
            text = msg(text) if callable(msg) else msg
        return self.error(text)


def _tolerances(dtypes: Sequence[Any], rtol: float | None, atol: float | None) -> tuple[float, float]:
    if (rtol is None) ^ (atol is None):
        raise _Mismatch(
            ValueError,
            "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
            f"{'rtol' if rtol is None else 'atol'}.",
        )
    if rtol is not None and atol is not None:
        return rtol, atol
    found = [_TOLERANCES.get(str(d).removeprefix("torch."), (0.0, 0.0)) for d in dtypes]
    return max(f[0] for f in found), max(f[1] for f in found)


class _Options:
    """The arguments of assert_close."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _compare(actual: Any, expected: Any, options: _Options) -> None:
    for low, compare in _CONTAINERS:
        if isinstance(actual, low) and isinstance(expected, low) and not isinstance(actual, str):
            compare(actual, expected, options)
            return
    if actual is None or expected is None:
        if actual is not expected:
            raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")
    elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        if bool(actual) != bool(expected):
            raise _Mismatch(AssertionError, f"Booleans mismatch: {bool(actual)} is not {bool(expected)}")
    elif isinstance(actual, _NUMBERS) and isinstance(expected, _NUMBERS):
        _compare_numbers(actual, expected, options)
    elif _are_tensors(actual, expected, options):
        _compare_tensors(_tensor(actual), _tensor(expected), options)
    else:
        raise _Mismatch(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
        )


_NUMBERS = (int, float, complex, np.number)


def _are_tensors(actual: Any, expected: Any, options: _Options) -> bool:
    kinds = (torch.Tensor, np.ndarray)
    if not (isinstance(actual, kinds) and isinstance(expected, kinds)):
        return False
    related = issubclass(type(actual), type(expected)) or issubclass(type(expected), type(actual))
    return related and (options.allow_subclasses or type(actual) is type(expected))


def _tensor(value: Any) -> Any:
    return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def _compare_sequences(actual: Sequence, expected: Sequence, options: _Options) -> None:
    if len(actual) != len(expected):
        raise _Mismatch(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
    for k in range(len(actual)):
        _compare_item(actual, expected, k, options)


def _compare_mappings(actual: Mapping, expected: Mapping, options: _Options) -> None:
    missing, extra = set(expected) - set(actual), set(actual) - set(expected)
    if missing or extra:
        raise _Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(extra)}",
        )
    keys = list(actual)
    try:
        keys.sort()
    except TypeError:
        keys = list(actual)
    for key in keys:
        _compare_item(actual, expected, key, options)


_CONTAINERS: tuple[tuple[Any, Callable], ...] = ((Sequence, _compare_sequences), (Mapping, _compare_mappings))


def _compare_item(actual: Any, expected: Any, key: Any, options: _Options) -> None:
    try:
        _compare(actual[key], expected[key], options)
    except _Mismatch as found:
        found.at.append(key)
        raise


def _number_dtype(value: Any) -> Any:
    if isinstance(value, np.number):
        value = value.item()
    return {int: torch.int64, float: torch.float64, complex: torch.complex128}[
        next(t for t in (int, float, complex) if isinstance(value, t))
    ]


def _compare_numbers(actual: Any, expected: Any, options: _Options) -> None:
    rtol, atol = _tolerances([_number_dtype(actual), _number_dtype(expected)], options.rtol, options.atol)
    actual, expected = (v.item() if isinstance(v, np.number) else v for v in (actual, expected))
    if options.check_dtype and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    if actual == expected or options.equal_nan and actual != actual and expected != expected:
        return
    difference = abs(actual - expected)
    if np.isfinite(difference) and difference <= atol + rtol * abs(expected):
        return
    raise _Mismatch(AssertionError, _scalar_text(actual, expected, rtol, atol))


def _scalar_text(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    equality = rtol == 0 and atol == 0
    absolute = abs(actual - expected)
    relative = absolute / abs(expected) if expected != 0 else float("inf")
    lines = [f"Scalars are not {'equal' if equality else 'close'}!\n", f"Expected {expected} but got {actual}."]
    for name, value, most in (("Absolute", absolute, atol), ("Relative", relative, rtol)):
        lines.append(f"{name} difference: {value}" + ("" if equality else f" (up to {most} allowed)"))
    return "\n".join(lines)


def _attributes_equal(actual: Any, expected: Any, options: _Options) -> None:
    checks: list[tuple[str, Any, Any, bool]] = [
        ("shape", actual.shape, expected.shape, True),
        ("layout", actual.layout, expected.layout, options.check_layout),
        ("device", actual.device, expected.device, options.check_device),
        ("dtype", actual.dtype, expected.dtype, options.check_dtype),
    ]
    if options.check_stride:
        checks.insert(2, ("stride()", actual.stride(), expected.stride(), True))
    for name, a, b, wanted in checks:
        if wanted and a != b:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {a} != {b}.")


def _compare_tensors(actual: Any, expected: Any, options: _Options) -> None:
    _attributes_equal(actual, expected, options)
    rtol, atol = _tolerances([actual.dtype, expected.dtype], options.rtol, options.atol)
    if "meta" in (actual.device.type, expected.device.type):
        return
    if actual.dtype != expected.dtype:
        common = torch.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(common), expected.to(common)
    whole = not (actual.dtype.is_floating_point or actual.dtype.is_complex)
    a, b = _host(actual), _host(expected)
    close = a == b
    if not whole or rtol or atol:
        with np.errstate(invalid="ignore", over="ignore"):
            close |= np.isfinite(b) & (np.abs(_wide(a) - _wide(b)) <= atol + rtol * np.abs(_wide(b)))
        if options.equal_nan:
            close |= np.isnan(a) & np.isnan(b)
    if not close.all():
        raise _Mismatch(AssertionError, _tensor_text(a, b, close, rtol, atol))


def _host(t: Any) -> Any:
    t = t.detach().resolve_conj()
    return (t.float() if t.dtype in (torch.bfloat16, torch.float16) else t).cpu().numpy()


def _wide(a: Any) -> Any:
    """Exact for the differences of every dtype."""
    return a.astype(np.int64) if a.dtype.kind in "bu" else a


def _tensor_text(a: Any, b: Any, close: Any, rtol: float, atol: float) -> str:
    if a.ndim == 0:
        kind = bool if a.dtype.kind == "b" else (lambda v: v)
        x, y = kind(a.item()), kind(b.item())
        return _scalar_text(int(x) if x is True or x is False else x, y, rtol, atol)
    equality = rtol == 0 and atol == 0
    bad = int(close.size - close.sum())
    a, b = _wide(a), _wide(b)
    with np.errstate(all="ignore"):
        absolute = np.abs(a - b)
        relative = absolute / np.abs(b)
        if absolute.dtype.kind in "iu":
            relative = relative.astype(np.float32)
    lines = [
        f"Tensor-likes are not {'equal' if equality else 'close'}!\n",
        f"Mismatched elements: {bad} / {close.size} ({bad / close.size:.1%})",
    ]
    for name, values, most in (("absolute", absolute, atol), ("relative", relative, rtol)):
        masked = np.where(close, np.zeros((), values.dtype), values)
        where = int(masked.argmax())
        index = tuple(int(k) for k in np.unravel_index(where, masked.shape))
        value = masked.flat[where].item()
        lines.append(
            f"Greatest {name} difference: {value} at index {index}" + ("" if equality else f" (up to {most} allowed)")
        )
    return "\n".join(lines)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Takes tensors, arrays, numbers, None, and sequences and mappings of them. Tolerances default by dtype. `msg`
    replaces the message, or makes it from the default one."""
    options = _Options(
        allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device,
        check_dtype=check_dtype, check_layout=check_layout, check_stride=check_stride,
    )  # fmt: skip
    try:
        _compare(actual, expected, options)
    except _Mismatch as found:
        error = found.raised(msg)
    else:
        return
    raise error


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Deprecated: `assert_close` that converts its arguments, with looser tolerances."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, torch.Tensor):
        actual = torch.tensor(actual)
    if not isinstance(expected, torch.Tensor):
        expected = torch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        loose = {"float16": (1e-3, 1e-3), "bfloat16": (1e-2, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
        found = [loose.get(str(d).removeprefix("torch."), (0.0, 0.0)) for d in (actual.dtype, expected.dtype)]
        rtol, atol = max(f[0] for f in found), max(f[1] for f in found)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False,
        check_stride=False, msg=msg or None,
    )  # fmt: skip
