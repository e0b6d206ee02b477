"""torch.amp.autocast: regions in which operators run in a dtype chosen for each."""

import collections.abc
import functools
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from torchlike._src.amp import state
from torchlike._src.amp.state import DEFAULTS, LOCAL
from torchlike._src.core import dtype as dtypes
from torchlike._src.core.dtype import dtype as DType
from torchlike._src.tensor import devices
from torchlike._src.tensor.tensor import TensorBase

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

DEVICE_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


def _device_type(value: Any, function: str) -> str:
    """The type in a device string; TypeError, or RuntimeError for an unknown one."""
    if not isinstance(value, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(value).__name__}")
    kind = value.split(":", 1)[0]
    if kind not in DEVICE_TYPES:
        raise RuntimeError(f"Expected one of {', '.join(DEVICE_TYPES)} device type at start of device string: {kind}")
    return kind


def _supported(value: Any, function: str) -> str:
    kind = _device_type(value, function)
    if kind not in DEFAULTS:
        raise RuntimeError("unsupported scalarType")
    return kind


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows the device type: "cpu", "cuda", …; the device need not be there."""
    return _device_type(device_type, "is_autocast_available") in DEFAULTS


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on for a device type (CUDA's if none is given) in this thread."""
    if device_type is None:
        return LOCAL.enabled.get("cuda", False)
    return LOCAL.enabled.get(_device_type(device_type, "is_autocast_enabled"), False)


def set_autocast_enabled(device_type: Any, enabled: Any = None) -> None:
    """Switch autocast on or off for a device type; with one bool, for CUDA."""
    if isinstance(device_type, bool) and enabled is None:
        device_type, enabled = "cuda", device_type
    kind = _device_type(device_type, "set_autocast_enabled")
    if not isinstance(enabled, bool):
        raise TypeError(
            f"set_autocast_enabled(): argument 'enabled' (position 2) must be bool, not {type(enabled).__name__}"
        )
    state.set_enabled(kind, enabled)


def get_autocast_dtype(device_type: str) -> DType:
    """The lower precision of a device type."""
    return LOCAL.dtype[_supported(device_type, "get_autocast_dtype")]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the lower precision of a device type."""
    kind = _device_type(device_type, "set_autocast_dtype")
    if not isinstance(dtype, DType):
        raise TypeError(
            f"set_autocast_dtype(): argument 'dtype' (position 2) must be torch.dtype, not {type(dtype).__name__}"
        )
    LOCAL.dtype[kind] = dtype


def is_autocast_cache_enabled() -> bool:
    """Whether weights that were cast are kept until the outermost region ends."""
    return LOCAL.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switch the cache of cast weights on or off."""
    LOCAL.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forget the weights that were cast."""
    state.clear_cache()


def autocast_increment_nesting() -> int:
    """Note that a region begins; returns how many there are."""
    LOCAL.nesting += 1
    return LOCAL.nesting


def autocast_decrement_nesting() -> int:
    """Note that a region ends; returns how many are left."""
    LOCAL.nesting -= 1
    return LOCAL.nesting


def _deprecated(name: str, call: str, instead: str, function: Callable) -> Callable:
    def old(*args: Any) -> Any:
        warnings.warn(
            f"torch.{name}({call}) is deprecated. Please use torch.{instead} instead.", DeprecationWarning, stacklevel=2
        )
        return function(*args)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"Deprecated: torch.{instead}."
    return old


def public_functions() -> dict[str, Callable]:
    """What `torch` itself has of autocast."""
    found = {
        f.__name__: f
        for f in (
            is_autocast_enabled, set_autocast_enabled, get_autocast_dtype, set_autocast_dtype,
            is_autocast_cache_enabled,
            set_autocast_cache_enabled, clear_autocast_cache, autocast_increment_nesting, autocast_decrement_nesting,
        )
    }  # fmt: skip
    for kind, old in (("cuda", "gpu"), ("cpu", "cpu"), ("ipu", "ipu"), ("xla", "xla")):
        rules: list[tuple[str, str, str, Callable]] = [
            (
                f"get_autocast_{old}_dtype", "", f"get_autocast_dtype('{kind}')",
                functools.partial(get_autocast_dtype, kind),
            ),
            (
                f"set_autocast_{old}_dtype", "dtype", f"set_autocast_dtype('{kind}', dtype)",
                functools.partial(set_autocast_dtype, kind),
            ),
        ]  # fmt: skip
        if old != "gpu":
            rules += [
                (
                    f"is_autocast_{old}_enabled", "", f"is_autocast_enabled('{kind}')",
                    functools.partial(is_autocast_enabled, kind),
                ),
                (
                    f"set_autocast_{old}_enabled", "enabled", f"set_autocast_enabled('{kind}', enabled)",
                    functools.partial(set_autocast_enabled, kind),
                ),
            ]  # fmt: skip
        found.update({name: _deprecated(name, call, new, f) for name, call, new, f in rules})
    return found


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU."""
    return not devices.gpus()


def autocast_decorator(autocast_instance: "autocast", func: Callable) -> Callable:
    """`func`, run within an autocast region."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """Context manager or decorator: within it, operators run in the dtype that autocast chooses for each, such as
    matrix products in the lower precision and losses in float32.

    device_type: "cpu" or "cuda". dtype: the lower precision; bfloat16 on the CPU and float16 on CUDA by default.
    enabled: False to leave autocast off in a part of a region. cache_enabled: cast each weight once per region.

    Without a GPU, autocast for CUDA warns and stays off. Backward runs in the dtypes that forward ran in, and belongs
    outside the region.

        >>> import torchlike as torch
        >>> with torch.autocast("cpu"):
        ...     torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype
        torch.bfloat16

    ValueError, RuntimeError: no string, or a device type without autocast."""

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        self._cache_enabled = LOCAL.cache_enabled if cache_enabled is None else cache_enabled
        if enabled:
            if device_type == "cuda":
                if amp_definitely_not_available():
                    warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2)
                    enabled = False
            elif self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
                name = device_type.upper()
                warnings.warn(
                    f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                    f"{name} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                    stacklevel=2,
                )
                enabled = False
        self._enabled = enabled

    def __enter__(self) -> "autocast":
        kind = self._kind = _device_type(self.device, "is_autocast_enabled")
        self.prev_cache_enabled = LOCAL.cache_enabled
        self.prev = LOCAL.enabled.get(kind, False)
        self.prev_fastdtype = LOCAL.dtype[kind]
        state.set_enabled(kind, self._enabled)
        LOCAL.dtype[kind] = self.fast_dtype
        LOCAL.nesting += 1
        LOCAL.cache_enabled = self._cache_enabled
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Literal[False]:
        LOCAL.nesting -= 1
        if LOCAL.nesting == 0:
            state.clear_cache()
        state.set_enabled(self._kind, self.prev)
        LOCAL.dtype[self._kind] = self.prev_fastdtype
        LOCAL.cache_enabled = self.prev_cache_enabled
        return False

    def __call__(self, func: Callable) -> Callable:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. "
                "Did you mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def _enter_autocast(*vals: Any) -> autocast:
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: autocast) -> None:
    mode.__exit__(None, None, None)


# -- autograd.Function ----------------------------------------------------------------------------------------------


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """`value` with the floating-point tensors in it, also those in containers, in `dtype`; float64 stays."""
    if isinstance(value, TensorBase):
        return value.to(dtype) if state.eligible(value, device_type) else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, collections.abc.Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, collections.abc.Iterable):
        items = (_cast(v, device_type, dtype) for v in value)
        return type(value)(items) if isinstance(value, (list, tuple)) else items  # type: ignore[call-arg]
    return value


def _check_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Callable | None = None, *, device_type: str, cast_inputs: DType | None = None) -> Callable:
    """Decorator for the `forward` of an autograd.Function.

    cast_inputs: in an autocast region, cast the inputs to it and run without autocast; otherwise forward runs with
    autocast as it is, and `custom_bwd` repeats that in backward."""
    _check_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        inside = is_autocast_enabled(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = inside
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        if not inside:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorator for the `backward` of an autograd.Function whose forward has `custom_fwd`: the same autocast state."""
    _check_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type=device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
