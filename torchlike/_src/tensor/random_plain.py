"""A short way for rand(*size) and randn(*size) without keywords: of a small draw, overhead is most of the cost."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import CPU, Aval, aval
from torchlike._src.core.device import default_device
from torchlike._src.core.dtype import default_dtype
from torchlike._src.core.size import Size
from torchlike._src.engine import Value
from torchlike._src.random import fills, jax_stream
from torchlike._src.random.generator import HostGenerator
from torchlike._src.storage import Storage
from torchlike._src.tensor.generators import HOST
from torchlike._src.tensor.random import Transform
from torchlike._src.tensor.tensor import NEW, Tensor

SMALL: dict[str, Callable[[HostGenerator, int], np.ndarray]] = {
    "rand": HostGenerator.units24,
    "randn": fills.standard_normals32,
}
"""Functions with a short way, and what draws a few float32 numbers for them: small(generator, n)."""
SEQUENCES = {tuple, list, Size}
MAX_SIZES = 4096


def shortened(function: Callable, small: Callable[[HostGenerator, int], np.ndarray], transforms: Any) -> Callable:
    """`function(*size, **keywords)`, which takes the short way if float32 on the CPU is wanted, the sizes are plain
    ints and nothing unusual is going on (no level in `transforms`, no other stream). HOT: each line is counted."""
    seen: dict[tuple, Aval] = {}  # sizes of plain ints only are looked up: 3.0 and True would be found, too
    lock = HOST.lock
    scope, context, outside = jax_stream.SCOPE, jax_stream.CONTEXT, jax_stream.OUTSIDE
    choice, transform, mode = jax_stream.Choice, Transform, MODE

    @functools.wraps(function)
    def call(*size: Any, **keywords: Any) -> Any:
        if keywords or transforms.levels or not size:
            return function(*size, **keywords)
        sizes = size
        if type(size[0]) in SEQUENCES:
            if len(size) != 1:
                return function(*size)
            sizes = tuple(size[0])
        for k in sizes:
            if type(k) is not int:
                return function(*size)
        a = seen.get(sizes)
        if a is None:
            a = aval(sizes, dt.float32, CPU)
            if a.numel > fills.PIECE or any(k < 0 for k in sizes):
                return function(*size)
            if len(seen) >= MAX_SIZES:
                seen.clear()
            seen[sizes] = a
        if (
            choice.enabled
            or scope.key is not None
            or context is None
            or type(context.trace) is not outside
            or transform.under_transform is not None
            or default_dtype() is not dt.float32
            or default_device() is not CPU
            or mode.inference
        ):
            return function(*size)
        with lock:
            array = small(HOST, a.numel)
        value = Value(a, array if a.ndim == 1 else array.reshape(sizes))
        t = NEW(Tensor)
        t._s = s = NEW(Storage)
        s.value = value
        s.version = 0
        t._view = None
        t._aval = a
        t._rg = False
        t._gf = None
        return t

    return call
