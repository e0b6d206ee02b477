"""Bridges to JAX: tensors and JAX arrays as each other."""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchlike._src.core.aval import aval
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import from_numpy as dtype_of
from torchlike._src.engine import META_ARRAY, Value, value_array
from torchlike._src.random.jax_stream import SCOPE
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap

__all__ = ["from_jax", "random_key", "to_jax"]


def from_jax(array: Any) -> Tensor:
    """A JAX array as a tensor of the same shape, dtype and device, without a copy.

    array: concrete, on one device, or a tracer. Operations on a tensor of a tracer run when they are called, so the
    user's own `jax.jit`, `jax.grad` and `jax.vmap` see them. Writing to the tensor leaves the array as it is.

    TypeError: not a JAX array, or one of PRNG keys. NotImplementedError: an array on several devices.

    >>> import jax.numpy as jnp
    >>> from torchlike.interop import from_jax, to_jax
    >>> from_jax(jnp.arange(3.0)) * 2
    tensor([0., 2., 4.])"""
    if not isinstance(array, jax.Array):
        raise TypeError(f"from_jax(): expected a JAX array or tracer, got {type(array).__name__}")
    if jnp.issubdtype(array.dtype, jax.dtypes.extended):
        raise TypeError(f"from_jax(): an array of dtype {array.dtype} has no counterpart among tensors")
    place = Device("cpu")
    if not isinstance(array, jax.core.Tracer):
        devices = list(array.devices())
        if len(devices) > 1:
            raise NotImplementedError("torchlike: from_jax of an array on several devices")
        kind = {"gpu": "cuda", "cuda": "cuda", "rocm": "cuda"}.get(devices[0].platform)
        if kind is not None:
            place = Device(kind, devices[0].id)
        elif jax.default_backend() != "cpu":
            array = np.array(array)  # CPU tensors live in NumPy's memory where an accelerator is the default
    value = Value(aval(tuple(array.shape), dtype_of(array.dtype), place), array)
    _share(value)
    return wrap(value)


def to_jax(tensor: Tensor) -> Any:
    """A tensor as a JAX array of the same shape, without a copy where its data is a JAX array already.

    64-bit dtypes become 32-bit ones unless the user has set `jax_enable_x64`, as `jnp.asarray` does it. A tensor of a
    tracer gives a tracer. Later writes to the tensor do not change the array.

    TypeError: not a tensor, or one on the meta device. RuntimeError: a tensor that requires grad; detach it first."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"to_jax(): expected a Tensor, got {type(tensor).__name__}")
    if tensor._rg:
        raise RuntimeError("Can't call to_jax() on Tensor that requires grad. Use to_jax(tensor.detach()) instead.")
    value = tensor._read()
    array = value_array(value)
    if array is META_ARRAY:
        raise TypeError("can't convert meta device type tensor to a JAX array: it has no data")
    if isinstance(array, jax.Array):
        _share(value)
        wanted = jax.dtypes.canonicalize_dtype(array.dtype)
        if array.dtype == wanted:
            return array
        return array.astype(wanted)
    return jnp.array(array)


@contextlib.contextmanager
def random_key(key: Any) -> Iterator[None]:
    """Within it, torchlike's random functions draw from a JAX key instead of PyTorch's stream: in your own `jax.jit`,
    the way to numbers that are new in each call. Each function called has the key with its number folded in, so the
    same key gives the same numbers, in a compiled function or not. Data loaders and samplers stay on PyTorch's
    stream. In a loop of JAX's (`lax.scan`), each round needs a key of its own.

    key: one key, of any kind or as raw uint32 data; may be traced. TypeError: something else.

    >>> import jax, torchlike as torch
    >>> from torchlike.interop import random_key, to_jax
    >>> @jax.jit
    ... def noise(key):
    ...     with random_key(key):
    ...         return to_jax(torch.randn(3))
    >>> bool((noise(jax.random.key(1)) == noise(jax.random.key(2))).all())
    False"""
    if not isinstance(key, jax.Array):
        raise TypeError(f"random_key(): expected a JAX key, got {type(key).__name__}")
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        try:
            key = jax.random.wrap_key_data(key)
        except (TypeError, ValueError) as error:
            raise TypeError(f"random_key(): expected a JAX key, got {key.dtype} {key.shape}") from error
    if key.shape:
        raise TypeError(f"random_key(): expected one key, got an array of shape {key.shape}")
    before = SCOPE.key, SCOPE.calls
    SCOPE.key, SCOPE.calls = key, 0
    try:
        yield
    finally:
        SCOPE.key, SCOPE.calls = before


def _share(value: Value) -> None:
    """The array is somebody else's, too, perhaps under another name for the same buffer: a second reference of ours
    makes programs take a copy rather than consume it."""
    value.error = value.array
