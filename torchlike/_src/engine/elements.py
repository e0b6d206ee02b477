"""Elementwise operations in a row, on the host tier: one function of the C extension in place of NumPy calls."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.core.native import NATIVE

FEWEST, LONGEST = 3, 512
"""Instructions in one function: fewer are quicker one by one."""
MOST_TEMPS, MOST_OPERANDS = 64, 4096
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
    where: dict[int, Any] = {}  # result of these steps -> its instruction, or a reference to an input
    instructions: list[tuple] = []
    for step, (_, made, results) in zip(steps, codes, strict=True):
        operands: list[Any] = []
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
            operands.append(len(instructions) - 1)
        for j, r in enumerate(results):
            where[step[0].first + j] = operands[r]
    wanted = [k for k in where if k in outside]
    if not wanted:
        return None
    begin = len(inputs) + len(numbers)

    def number(x: Any) -> int:
        if type(x) is int:
            return begin + x
        return inputs[x] if x in inputs else len(inputs) + numbers[x]

    numbered = [(code, number(a), number(b)) for code, a, b in instructions]
    results, a = [number(where[k]) for k in wanted], codes[0][0]
    function = assemble((len(inputs), len(numbers)), numbered, results, a, tuple([k - first for k in wanted]), total)
    if function is None:
        return None
    cost = Elementwise(len(numbered), begin + len(wanted), a.numel)
    return (_Range(first, last.kernel), function, (*inputs, *numbers), total, [cost])


def assemble(
    given: tuple[int, int], instructions: Sequence[tuple], results: Sequence[int], a: Aval,
    places: tuple[int, ...] | None = None, total: int = 0,
) -> Any:  # fmt: skip
    """The extension's function for these instructions on arrays like `a`; None if it would need too many temporaries.

    given: how many arrays, and how many single numbers after them, it takes. Operands count from 0 for those, and go on
    with one for each instruction; `results` are such numbers. The function returns a list of `total` items with the
    results in these places, by default the results."""
    begin = sum(given)
    instructions = list(instructions)
    written: dict[int, int] = {}  # operand -> the result that it is
    for number, r in enumerate(results):
        if r >= begin and r not in written:
            written[r] = number
        else:  # an operand itself, or the same again
            instructions.append((COPY, r, r))
            written[begin + len(instructions) - 1] = number
    used = {x: i for i, (_, *both) in enumerate(instructions) for x in both}
    temps: dict[int, int] = {}
    free: list[int] = []
    count = 0

    def operand(x: int) -> int:
        if x < begin:
            return x
        return begin + (written[x] if x in written else len(results) + temps[x])

    words: list[int] = []
    for i, (code, *both) in enumerate(instructions):
        me = begin + i
        if me not in written:
            if me not in used:
                continue
            if not free:
                free.append(count)
                count += 1
            temps[me] = free.pop()
        words += [code, operand(me), *map(operand, both)]
        free += [temps[x] for x in set(both) if x in temps and used[x] == i]
    if count > MOST_TEMPS or begin + len(results) + count > MOST_OPERANDS:
        return None
    dtype = a.dtype.np
    return NATIVE.Elements(
        np.array(words, np.uint16).tobytes(), *given, count, tuple(range(len(results))) if places is None else places,
        total or len(results), a.numel, dtype.itemsize, np.empty, a.shape, (len(results), *a.shape), dtype,
    )  # fmt: skip


class _Range:
    """In the place of an entry: where the results begin."""

    __slots__ = ("first", "kernel")

    def __init__(self, first: int, kernel: Any) -> None:
        self.first = first
        self.kernel = kernel


class Elementwise:
    """In the place of a kernel: what `cold.cost` asks."""

    __slots__ = ("cache", "op")

    def __init__(self, count: int, arrays: int, numel: int) -> None:
        self.op = None
        self.cache = {"seconds": seconds(count, arrays, numel)}


def seconds(count: int, arrays: int, numel: int) -> float:
    """About what one call takes: of so many instructions on so many arrays of this size."""
    work = count * (INSTRUCTION_SECONDS * -(-numel // BLOCK) + ELEMENT_SECONDS * numel)
    return CALL_SECONDS + ARRAY_SECONDS * arrays + work
