"""Direct mode: operations run on JAX when they are called. `torch.func`, JAX transforms and debugging stand on it."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from torchlike._src.engine import backend, checks, cold, flush, record
from torchlike._src.engine.packs import Piece
from torchlike._src.engine.values import Value


class MetaArray:
    """The array of a value on the meta device: there is none."""


META_ARRAY = MetaArray()


def run(op: Any, static: tuple, operands: Sequence) -> tuple[Any, list[Value]]:
    """Execute one operation now: (kernel, results), concrete, or tracers if an operand is one. On the meta device
    only shapes and dtypes are computed."""
    kernel = record.kernel_of(op, static, record.const_avals(operands))
    arrays = []
    tracing = False
    for x in operands:
        if type(x) is Value:
            a = x.array
            if a is None or type(a) is Piece:
                a = flush.value_array(x)
            if a is META_ARRAY:
                return kernel, [Value(o, META_ARRAY) for o in kernel.outs]
            tracing = tracing or isinstance(a, jax.core.Tracer)
            arrays.append(a)
        else:
            arrays.append(np.asarray(x, cold.NUMBER_DTYPES[record.NUMBERS[type(x)]]))
    if not tracing and (found := checks.of_kernel(kernel)) is not None:
        codes = cold.function_of(found[0])(*[np.asarray(arrays[k]) for k in found[1]])[0]
        if (error := checks.error_of(kernel, codes)) is not None:
            raise error
    if tracing:
        with jax.enable_x64(True), backend.matmul_precision():
            outs = kernel(*arrays)
    elif flush.host_only or backend.platform() == "cpu":
        with np.errstate(all="ignore"):
            outs = cold.function_of(kernel)(*[a if type(a) is np.ndarray else np.asarray(a) for a in arrays])
    else:
        compiled = kernel.cache.get("jit")
        if compiled is None:
            compiled = kernel.cache["jit"] = jax.jit(kernel.__call__)
        with jax.enable_x64(True), backend.matmul_precision():
            outs = compiled(*arrays)
    return kernel, [Value(a, o) for a, o in zip(kernel.outs, outs, strict=True)]


@contextlib.contextmanager
def direct_mode(enabled: bool = True) -> Iterator[None]:
    """Within this context, operations run when they are called (as with TORCHLIKE_EAGER=1)."""
    flush.flush(reason="direct mode")
    before = record.direct
    set_direct(enabled)
    try:
        yield
    finally:
        set_direct(before)


def set_direct(enabled: bool) -> None:
    record.direct = enabled
    record.set_slow("direct", enabled)


def install() -> None:
    record.direct_hook = run
    set_direct(os.environ.get("TORCHLIKE_EAGER", "0") not in ("", "0"))


install()
