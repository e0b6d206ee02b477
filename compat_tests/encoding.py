"""Results as JSON, and their comparison.

None, booleans, integers, finite floats, strings and lists are themselves. Everything else is an object with one
key that says what it is: {"tuple": [...]}, {"dict": [[key, value], ...]}, {"dtype": "torch.float32"}, ... A
tensor is {"tensor": dtype, "shape": [...], "requires_grad": ..., "class": ..., "data": ...} where the data is a
flat list of exact numbers, or for many elements the compressed bytes.
"""

import base64
import collections
import enum
import math
import zlib
from typing import Any

import numpy as np

_MANY = 48
_LIMIT = 1_000_000

# torch.testing.assert_close's defaults.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


def encode(value: Any, torch: Any) -> Any:
    """`value` as JSON; TypeError for what a case should have turned into something comparable."""
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {kind: array.dtype.name, "shape": list(array.shape), "data": _encode_array(array)}
    if type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) is complex:
        return {"complex": [encode(value.real, torch), encode(value.imag, torch)]}
    if isinstance(value, torch.Size):
        return {"size": [int(n) for n in value]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if type(value) is list:
        return [encode(item, torch) for item in value]
    if isinstance(value, tuple):
        items = [encode(item, torch) for item in value]
        if type(value) is tuple:
            return {"tuple": items}
        names = getattr(value, "_fields", None) or [
            name for name in dir(type(value)) if type(getattr(type(value), name)).__name__ == "member_descriptor"
        ]
        return {"named tuple": type(value).__name__, "fields": sorted(names), "items": items}
    if type(value) in (dict, collections.OrderedDict):
        return {type(value).__name__: [[encode(k, torch), encode(v, torch)] for k, v in value.items()]}
    if isinstance(value, (set, frozenset)):
        return {type(value).__name__: sorted((encode(item, torch) for item in value), key=repr)}
    if isinstance(value, (bytes, bytearray)):
        return {type(value).__name__: base64.b64encode(bytes(value)).decode()}
    if isinstance(value, (slice, range, enum.Enum, torch.layout, torch.memory_format)):
        return {"repr": str(value)}
    raise TypeError(
        f"a case returned a {type(value).__name__}, which cannot be compared: return tensors, numbers, strings and "
        "containers of them (for others their str(), or the parts that matter)"
    )


def _encode_tensor(value: Any) -> dict[str, Any]:
    dtype = str(value.dtype).removeprefix("torch.")
    plain = value.detach()
    if dtype in _NARROW:
        plain = plain.float()  # exact, and NumPy has no such dtypes
    if dtype.startswith("complex"):
        plain = plain.resolve_conj()
    return {
        "tensor": dtype,
        "shape": [int(n) for n in value.shape],
        "requires_grad": bool(value.requires_grad),
        "class": type(value).__name__,
        "data": _encode_array(np.asarray(plain.numpy())),
    }


def _encode_array(array: np.ndarray) -> Any:
    if array.dtype.kind not in "biufc":
        raise TypeError(f"arrays of {array.dtype} cannot be compared")
    if array.nbytes > _LIMIT:
        raise TypeError(f"an array of {array.nbytes} bytes is too large for a reference file: return a part of it")
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    if array.size > _MANY:
        return {"zlib": base64.b64encode(zlib.compress(little.tobytes(), 9)).decode(), "numpy": array.dtype.name}
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    # Every float16 and float32 is a float64, whose repr() is exact.
    return [x if not isinstance(x, float) or math.isfinite(x) else repr(x) for x in flat.tolist()]


def _decode_array(data: Any, dtype: str, size: int) -> np.ndarray:
    if isinstance(data, dict):
        return np.frombuffer(zlib.decompress(base64.b64decode(data["zlib"])), np.dtype(data["numpy"]))
    kind = np.dtype("float32" if dtype in _NARROW else dtype)
    if kind.kind == "c":
        return np.array([float(x) for x in data]).view(np.complex128).astype(kind)
    if kind.kind == "f":
        return np.array([float(x) for x in data], dtype=kind)
    return np.array(data, dtype=kind)


def differences(expected: Any, actual: Any, rtol: float | None, atol: float | None, path: str = "result") -> list[str]:
    """What distinguishes two encoded results, one line each; empty if they agree."""
    numbers = (int, float)
    if type(expected) is float and type(actual) is float:
        return _number_differences(np.array([expected]), np.array([actual]), _tolerance("float32", rtol, atol), path)
    if type(expected) is not type(actual) or isinstance(expected, numbers):
        return [] if type(expected) is type(actual) and expected == actual else [_two(path, expected, actual)]
    if isinstance(expected, list):
        if len(expected) != len(actual):
            return [_two(f"len({path})", len(expected), len(actual)), _two(path, expected, actual)]
        found: list[str] = []
        for i, (e, a) in enumerate(zip(expected, actual)):
            found += differences(e, a, rtol, atol, f"{path}[{i}]")
        return found
    if isinstance(expected, dict):
        if list(expected) != list(actual):
            return [_two(path, expected, actual)]
        kind = next(iter(expected), "")
        if kind in ("tensor", "array", "scalar"):
            return _tensor_differences(kind, expected, actual, rtol, atol, path)
        if kind in ("dict", "OrderedDict"):
            keys = [[pair[0] for pair in side[kind]] for side in (expected, actual)]
            if keys[0] != keys[1]:
                return [_two(f"keys of {path}", *keys)]
            found = []
            for (key, e), (_, a) in zip(expected[kind], actual[kind]):
                found += differences(e, a, rtol, atol, f"{path}[{key!r}]")
            return found
        found = []
        for key in expected:
            found += differences(expected[key], actual[key], rtol, atol, path)
        return found
    return [] if expected == actual else [_two(path, expected, actual)]


def _tensor_differences(
    kind: str, expected: dict[str, Any], actual: dict[str, Any], rtol: float | None, atol: float | None, path: str
) -> list[str]:
    attributes = {kind: "dtype", "shape": "shape", "requires_grad": "requires_grad", "class": "class"}
    found = [
        _two(f"{path}.{name}", expected[key], actual[key])
        for key, name in attributes.items()
        if key in expected and expected[key] != actual[key]
    ]
    if found and (expected[kind] != actual[kind] or expected["shape"] != actual["shape"]):
        return found
    dtype, size = expected[kind], math.prod(expected["shape"])
    arrays = [_decode_array(side["data"], dtype, size) for side in (expected, actual)]
    if arrays[0].dtype.kind not in "fc":
        wrong = np.flatnonzero(arrays[0] != arrays[1])
        if len(wrong):
            found.append(_worst(path, arrays[0], arrays[1], wrong, wrong[0]))
        return found
    return found + _number_differences(arrays[0], arrays[1], _tolerance(dtype, rtol, atol), path)


def _tolerance(dtype: str, rtol: float | None, atol: float | None) -> tuple[float, float]:
    if rtol is None and atol is None:
        return _TOLERANCES.get(dtype, (0.0, 0.0))
    return rtol or 0.0, atol or 0.0


def _number_differences(
    expected: np.ndarray, actual: np.ndarray, tolerance: tuple[float, float], path: str
) -> list[str]:
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    e, a = expected.astype(wide), actual.astype(wide)
    with np.errstate(all="ignore"):
        error = np.abs(e - a)
        allowed = tolerance[1] + tolerance[0] * np.abs(e)
        close = (error <= allowed) & np.isfinite(e) & np.isfinite(a)
    close |= e == a
    same_nan = np.isnan(e.real) == np.isnan(a.real)
    same_nan &= np.isnan(e.imag) == np.isnan(a.imag)
    close |= (np.isnan(e) & np.isnan(a)) & same_nan
    wrong = np.flatnonzero(~close)
    if not len(wrong):
        return []
    with np.errstate(all="ignore"):
        worst = wrong[np.argmax(np.nan_to_num((error - allowed)[wrong], nan=np.inf, posinf=np.inf))]
    return [_worst(path, expected, actual, wrong, worst) + f" (rtol {tolerance[0]:g}, atol {tolerance[1]:g})"]


def _worst(path: str, expected: np.ndarray, actual: np.ndarray, wrong: np.ndarray, at: Any) -> str:
    return (
        f"{path}: {len(wrong)} of {expected.size} elements differ; flat element {at}: "
        f"expected {expected[at]!r}, got {actual[at]!r}"
    )


def _two(path: str, expected: Any, actual: Any) -> str:
    texts = [value if isinstance(value, str) else repr(value) for value in (expected, actual)]
    if any("\n" in text or len(text) > 60 for text in texts):
        return (
            f"{path}:\n  expected: "
            + texts[0].replace("\n", "\n    ")
            + "\n  got:      "
            + texts[1].replace("\n", "\n    ")
        )
    return f"{path}: expected {texts[0]!r}, got {texts[1]!r}"
