"""What the engine asks of JAX's backend: platform, compiler options, placing arrays."""

import contextlib
import os
import sys
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchlike._src.core.build_target import Target
from torchlike._src.engine import record

_platform: str | None = None
_matmul = "highest"

CPU_OPTIONS: dict[str, Any] = {
    # Measured on XLA's CPU backend: YNNPACK's matrix products are quicker than Eigen's, but its convolutions have
    # gradients several times slower. Barriers must live until fusion to keep transposes out of matrix products.
    "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
    "xla_disable_hlo_passes": "cse_barrier_expander,tree_reduction_rewriter",
}


FREED_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Let glibc keep blocks of up to FREED_BYTES for the next step. XLA takes a program's temporary buffers from malloc
    in every launch; fetched from the system and zeroed each time, they cost a convolutional network a tenth of its
    step. At most FREED_BYTES at the end of the heap stay unused. New threads share the main heap, because glibc's heaps
    of threads end at 64 MB: XLA launches large programs from a thread of its own. TORCHLIKE_MALLOC=system leaves malloc
    as it is."""
    if not sys.platform.startswith("linux") or os.environ.get("TORCHLIKE_MALLOC") == "system":
        return
    if any(name.startswith(("MALLOC_ARENA_", "MALLOC_MMAP_", "MALLOC_TRIM_")) for name in os.environ):
        return  # the user has chosen
    with contextlib.suppress(OSError, AttributeError):  # another C library
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        mmap_threshold, trim_threshold, arena_max = -3, -1, -8
        mallopt(arena_max, 1)
        mallopt(mmap_threshold, FREED_BYTES)
        mallopt(trim_threshold, FREED_BYTES)


keep_freed_memory()  # now: threads that were started before have heaps of their own and lend them to later ones


def platform() -> str:
    """'cpu', 'gpu' or 'tpu': the default backend's."""
    global _platform
    if _platform is None:
        _platform = jax.default_backend()
        _platform = {"cuda": "gpu", "rocm": "gpu"}.get(_platform, _platform)
        Target.platform = _platform
    return _platform


def register_array_types() -> None:
    record.PLAIN.add(np.ndarray)
    with contextlib.suppress(ImportError, AttributeError):
        from jaxlib import _jax

        record.PLAIN.add(_jax.ArrayImpl)
    if len(record.PLAIN) < 2:
        record.PLAIN.add(type(jnp.zeros(())))
    record.configure_native((np.ndarray, next(t for t in record.PLAIN if t is not np.ndarray)))


register_array_types()


def matmul_precision() -> Any:
    return jax.default_matmul_precision(_matmul)


def set_matmul_precision(name: str) -> None:
    """'highest', 'high' or 'medium', as in torch.set_float32_matmul_precision."""
    global _matmul
    _matmul = {"highest": "highest", "high": "tensorfloat32", "medium": "bfloat16"}[name]


def settings() -> tuple:
    return (_matmul, tuple(sorted(CPU_OPTIONS.items())) if platform() == "cpu" else ())


_options_work = True


def compile_lowered(lowered: Any) -> Any:
    """Compile with this platform's options; options that this jaxlib does not know are left out."""
    global _options_work
    if platform() == "cpu" and _options_work:
        try:
            return lowered.compile(CPU_OPTIONS)
        except Exception as e:
            if not any(name in str(e) for name in CPU_OPTIONS) and "option" not in str(e).lower():
                raise
            _options_work = False
    return lowered.compile()


PLACED: dict[int, Any] = {}
"""Weak references to arrays that were placed, not computed, by their ids: reading one waits for no program."""


def placed(array: np.ndarray) -> Any:
    """The array in the backend's memory."""
    with jax.enable_x64(True):
        out = jax.device_put(array)
    key = id(out)
    PLACED[key] = weakref.ref(out, lambda _: PLACED.pop(key, None))
    return out


def at_hand(array: Any) -> bool:
    """Whether reading the array waits for no program, as far as can be said without asking the backend."""
    return type(array) is np.ndarray or id(array) in PLACED


def to_host(array: Any) -> np.ndarray:
    """The array in host memory; NumPy arrays as they are. Do not write to the result."""
    return array if type(array) is np.ndarray else np.asarray(array)


def _thread_setting() -> tuple[Any, Any]:
    """(get, set) of this thread's enable_x64, both in C; Nones if this JAX has them no more."""
    get, put = getattr(jax.enable_x64, "get_local", None), getattr(jax.enable_x64, "set_local", None)
    if get is None or put is None or getattr(jax.enable_x64, "_update_thread_local_hook", put) is not None:
        return None, None
    return get, put


_get_local, _set_local = _thread_setting()


def call(executable: Any, args: Any) -> Any:
    """Launch a compiled program. 64-bit types are on only in here: JAX's global state is the user's."""
    if _set_local is None:
        with jax.enable_x64(True):
            return executable(*args)
    # What `jax.enable_x64` does, without its Python frames, in which a Ctrl-C would leave the setting on.
    before = _get_local()
    try:
        _set_local(True)
        return executable(*args)
    finally:
        _set_local(before)


def quiesce() -> None:
    """Wait for everything that was launched. A forked child can then read the arrays that it inherits."""
    if _platform is None:
        return  # nothing has been launched, and asking would start the backend
    for array in jax.live_arrays(_platform):
        if not array.is_deleted():
            array.block_until_ready()


_copies: dict = {}


def fresh_copy(array: Any) -> Any:
    """A JAX array of its own buffer, to be consumed."""
    key = (array.shape, array.dtype)
    copier = _copies.get(key)
    if copier is None:
        if len(_copies) > 1000:
            _copies.clear()
        with jax.enable_x64(True):
            struct = jax.ShapeDtypeStruct(array.shape, array.dtype)
            copier = _copies[key] = jax.jit(jnp.copy).lower(struct).compile()
    return call(copier, (array,))
