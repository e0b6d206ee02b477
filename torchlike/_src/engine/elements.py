"""Elementwise operations in a row, on the host tier: one function of the C extension in place of NumPy calls."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.core.native import NATIVE

FEWEST, LONGEST = 3, 512
"""Instructions in one function: fewer are quicker one by one."""
MOST_TEMPS = 64
CALL_SECONDS, ARRAY_SECONDS, INSTRUCTION_SECONDS, ELEMENT_SECONDS = 1.5e-6, 0.15e-6, 0.01e-6, 0.15e-9
"""What a function costs: itself, each array that goes in or comes out, each instruction, and each of its elements."""
COPY = 7
BLOCK = 128


def joined_elements(steps: list[tuple], live: Sequence[int], others: Sequence) -> list[tuple]:
    """`cold.joined`'s steps, with elementwise ones in a row made one. `live`, `others`: what is in use besides."""
    if NATIVE is None or len(steps) < FEWEST:
        return steps
    codes = [_code(step) for step in steps]
    if sum(c is not None for c in codes) < FEWEST:
        return steps
    used_last: dict[int, int] = dict.fromkeys(live, len(steps))
    used_last |= {k: len(steps) for refs in others for kind, k in refs if kind == "v"}
    for i, step in enumerate(steps):
        for kind, k in step[2]:
            if kind == "v":
                used_last[k] = max(used_last.get(k, 0), i)
    out: list[tuple] = []
    i = 0
    while i < len(steps):
        j, instructions = i, 0
        code = codes[i]
        while code is not None and j < len(steps) and instructions < LONGEST:
            more = codes[j]
            if more is None or more[0] is not code[0]:
                break
            instructions += len(more[1])
            j += 1
        made = None
        if instructions >= FEWEST:
            made = _function(steps[i:j], codes[i:j], {k for k, last in used_last.items() if last >= j})
        if made is None:
            out.append(steps[i])
            i += 1
        else:
            out.append(made)
            i = j
    return out


def _code(step: tuple) -> Any:
    kernels = step[4]
    if len(kernels) != 1:
        return None
    code = getattr(kernels[0].op, "element_code", None)
    return None if code is None else code(kernels[0])


def _function(steps: list[tuple], codes: list, outside: set[int]) -> tuple | None:
    """One step for several; None if nothing needs it, or it would need too many temporaries."""
    first = steps[0][0].first
    last = steps[-1][0]
    total = last.first + len(last.kernel.outs) - first
    inputs: dict[tuple, int] = {}  # what comes from elsewhere -> its number among the inputs, or the numbers
    numbers: dict[tuple, int] = {}
    where: dict[int, tuple] = {}  # result of these steps -> ("t", instruction) or a reference to an input
    instructions: list[tuple] = []
    for step, (_, made, results) in zip(steps, codes, strict=True):
        operands: list[tuple] = []
        for ref in step[2]:
            kind, k = ref
            if kind == "v" and k in where:
                operands.append(where[k])
                continue
            known = inputs if kind in "vl" else numbers
            known.setdefault(ref, len(known))
            operands.append(ref)
        for code, a, b in made:
            instructions.append((code, operands[a], operands[b]))
            operands.append(("t", len(instructions) - 1))
        for j, r in enumerate(results):
            where[step[0].first + j] = operands[r]
    wanted = [k for k in where if k in outside]
    if not wanted:
        return None
    places: dict[tuple, int] = {}  # instruction -> the result that it writes
    for number, k in enumerate(wanted):
        if where[k][0] == "t" and where[k] not in places:
            places[where[k]] = number
        else:  # an operand itself, or the same again
            instructions.append((COPY, where[k], where[k]))
            places["t", len(instructions) - 1] = number
    begin = len(inputs) + len(numbers)
    used = {ref: i for i, (_, a, b) in enumerate(instructions) for ref in (a, b)}
    temps: dict[tuple, int] = {}
    free: list[int] = []
    count = 0

    def operand(ref: tuple) -> int:
        if ref in places:
            return begin + places[ref]
        if ref[0] == "t":
            return begin + len(wanted) + temps[ref]
        return inputs[ref] if ref in inputs else len(inputs) + numbers[ref]

    words: list[int] = []
    for i, (code, a, b) in enumerate(instructions):
        me = ("t", i)
        if me not in places and me not in used:
            continue
        if me not in places:
            if free:
                temps[me] = free.pop()
            else:
                temps[me] = count
                count += 1
        words += [code, operand(me), operand(a), operand(b)]
        free += [temps[ref] for ref in {a, b} if ref in temps and used[ref] == i]
    if count > MOST_TEMPS or begin + len(wanted) + count > 4096:
        return None
    kernel = last.kernel
    a = codes[0][0]
    code_bytes, at = np.array(words, np.uint16).tobytes(), tuple([k - first for k in wanted])
    function = NATIVE.Elements(
        code_bytes, len(inputs), len(numbers), count, at, total, a.numel, a.dtype.np.itemsize, np.empty, a.shape,
        (len(wanted), *a.shape), a.dtype.np,
    )  # fmt: skip
    return (_Range(first, kernel), function, (*inputs, *numbers), total, [Elementwise(words, begin, wanted, a.numel)])


class _Range:
    """In the place of an entry: where the results begin."""

    __slots__ = ("first", "kernel")

    def __init__(self, first: int, kernel: Any) -> None:
        self.first = first
        self.kernel = kernel


class Elementwise:
    """In the place of a kernel: what `cold.cost` asks."""

    __slots__ = ("cache", "op")

    def __init__(self, words: list, arrays: int, wanted: list, numel: int) -> None:
        self.op = None
        count = len(words) // 4
        seconds = CALL_SECONDS + ARRAY_SECONDS * (arrays + len(wanted))
        seconds += count * (INSTRUCTION_SECONDS * -(-numel // BLOCK) + ELEMENT_SECONDS * numel)
        self.cache = {"seconds": seconds}
