"""Tracing a function to a jaxpr, several times faster than `jax.make_jaxpr` where this JAX allows.

`make_jaxpr` goes through all of jit's argument handling, a millisecond or more for a function of one operation. The
tracer underneath takes a tenth of that. It isn't public: any surprise falls back to `make_jaxpr` for good."""

from collections.abc import Callable, Sequence
from typing import Any

import jax

_fast = True


def trace(function: Callable[..., Sequence[Any]], structs: Sequence[jax.ShapeDtypeStruct]) -> Any:
    """The ClosedJaxpr of `function`, which takes arrays like `structs` and returns a flat sequence of arrays.

    64-bit types are on while it runs."""
    global _fast
    with jax.enable_x64(True):
        if _fast:
            try:
                return _trace_directly(function, structs)
            except (ImportError, AttributeError, TypeError) as surprise:
                # Was it the private interface, or the function itself? The public one tells.
                closed = jax.make_jaxpr(lambda *a: tuple(function(*a)))(*structs)
                if not isinstance(surprise, TypeError):
                    _fast = False
                return closed
        return jax.make_jaxpr(lambda *a: tuple(function(*a)))(*structs)


def _trace_directly(function: Callable[..., Sequence[Any]], structs: Sequence[jax.ShapeDtypeStruct]) -> Any:
    from jax._src import core, linear_util
    from jax._src.api_util import debug_info
    from jax._src.interpreters import partial_eval

    avals = [core.ShapedArray(s.shape, s.dtype) for s in structs]

    def flat(*arrays: Any) -> list[Any]:
        return list(function(*arrays))

    wrapped = linear_util.wrap_init(flat, debug_info=debug_info("torchlike", flat, avals, {}))
    jaxpr, _, consts = partial_eval.trace_to_jaxpr_dynamic(wrapped, avals)
    return core.ClosedJaxpr(jaxpr, consts)


def result_types(
    function: Callable[..., Sequence[Any]], structs: Sequence[jax.ShapeDtypeStruct]
) -> list[tuple[tuple[int, ...], Any]]:
    """(shape, NumPy dtype) of each result."""
    return [(tuple(a.shape), a.dtype) for a in trace(function, structs).out_avals]
