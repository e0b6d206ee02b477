"""Which kernels are a few roundings per element, and which: the host tier computes those in a row by one C function.

A kernel qualifies if its arrays all have one shape and one dtype, float32 or float64, and its other operands are
numbers."""

from typing import Any

import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.ops.declare import OPS, Pullback
from torchlike._src.ops.kernels import ADD as ADD_KERNEL

ADD, SUB, MUL, DIV, NEG, RELU, RELU_BACK, COPY, SQRT, MAX = range(10)
"""Instructions, as `native/elements.c` numbers them."""
BINARY = {"add": ADD, "sub": SUB, "mul": MUL, "div": DIV}
UNARY = {"neg": NEG, "relu": RELU}
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
Code = tuple[Aval, tuple[tuple[int, int, int], ...], tuple[int, ...]]
"""(what all arrays look like, instructions, results). An instruction is (its number, operand, operand); operands and
results are counted from 0 for the kernel's operands, and go on with one for each instruction."""


def code_of(kernel: Any) -> Code | None:
    """The instructions of a kernel; None if it does not qualify."""
    found = kernel.cache.get("elements", 0)
    if found == 0:
        found = kernel.cache["elements"] = _code(kernel)
    return found


def _code(kernel: Any) -> Code | None:
    op = kernel.op
    back = type(op) is Pullback
    forward = op.forward if back else kernel
    name = forward.op.name
    if name not in BINARY and name not in UNARY or forward.static or kernel.static:
        return None
    if OPS.get(name) is not forward.op and forward.op is not ADD_KERNEL:
        return None
    arrays = {s for s in (*forward.specs, *kernel.specs, *kernel.outs) if type(s) is Aval}
    first = next(iter(arrays))
    numbers = {s for s in (*forward.specs, *kernel.specs) if type(s) is not Aval}
    if len(arrays) != 1 or not numbers <= {"f", "i"} or first.dtype.np not in FLOATS or not first.numel:
        return None
    count = len(kernel.specs)
    if not back:
        return first, ((BINARY.get(name, UNARY.get(name, 0)), 0, count - 1),), (count,)
    return _backward(op, name, first, count)


def _backward(op: Pullback, name: str, first: Aval, count: int) -> Code | None:
    inputs, outputs = op.plan
    g = count - 1
    where = {k: place for place, k in enumerate(inputs)}
    if count != len(inputs) + len(outputs) + 1:
        return None
    made: list[tuple[int, int, int]] = []
    results: list[int] = []

    def emit(code: int, a: int, b: int) -> int:
        made.append((code, a, b))
        return count + len(made) - 1

    for k, wanted in enumerate(op.need):
        if not wanted:
            continue
        if name == "add" or (name == "sub" and k == 0):
            results.append(g)
        elif name in ("sub", "neg"):
            results.append(emit(NEG, g, g))
        elif name == "relu" and outputs == (0,) and not inputs:
            results.append(emit(RELU_BACK, 0, g))
        elif name == "mul" and 1 - k in where:
            results.append(emit(MUL, g, where[1 - k]))
        elif name == "div" and k == 0 and 1 in where:
            results.append(emit(DIV, g, where[1]))
        elif name == "div" and k == 1 and 0 in where and 1 in where:
            quotient = emit(DIV, emit(DIV, where[0], where[1]), where[1])
            results.append(emit(MUL, emit(NEG, g, g), quotient))
        else:
            return None
    return first, tuple(made), tuple(results)
