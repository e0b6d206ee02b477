"""Optimizer steps by NumPy, for the host tier: what it would generate, without tracing by JAX first, which takes longer
than a hundred steps of a small model. Results are the same to the last bit; the tests compare the two.

A step is the text of one straight-line function, so that a run is a sequence of NumPy calls."""

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.core.native import NATIVE
from torchlike._src.engine.elements import assemble
from torchlike._src.ops.elements import ADD, DIV, MAX, MUL, NEG, SQRT, SUB
from torchlike._src.ops.host_rules import HostFunction, floating, note_work

__all__ = ["step_function"]

Rule = Callable[[dict], tuple[str, str, str, str, str]]
"""flags -> (names of the numbers; text that makes what a set of scalars has in common, and the new scalars; names of
the new scalars; text of one update; names of the new parameter and tensors).

The texts know the numbers, float64, by their names, the scalars as s0, s1, ..., and the arrays as p, g and t0, t1, ...;
`dtype` is the arrays' dtype, `one` a float64 1."""

SMALL = 2048
"""Elements of a parameter that is updated together with others."""


def adam(flags: dict) -> tuple[str, str, str, str, str]:
    shared = """
count = add(s0, s0.dtype.type(1))
step = count.astype(float64)
weight = subtract(one, beta1)
near = abs(weight) < 0.5
factor = asarray(weight if near else subtract(weight, one), dtype)
beta = beta2.astype(dtype)
rest = asarray(subtract(one, beta2), dtype)
step_size = asarray(negative(divide(lr, subtract(one, power(beta1, step)))), dtype)
root = asarray(sqrt(subtract(one, power(beta2, step))), dtype)
epsilon = eps.astype(dtype)
penalty = weight_decay.astype(dtype)
shrink = asarray(subtract(one, multiply(lr, weight_decay)), dtype)
"""
    update = "g = negative(g)\n" if flags["maximize"] else ""
    if flags["decay"]:
        update += "p = multiply(p, shrink)\n" if flags["decoupled"] else "g = add(g, multiply(penalty, p))\n"
    update += """
u = subtract(g, t0)
multiply(u, factor, u)
m = add(t0 if near else g, u)
multiply(g, rest, u)
multiply(u, g, u)
v = multiply(t1, beta)
add(v, u, v)
"""
    largest = "v"
    if flags["tensors"] == 3:
        update += "largest = maximum(t2, v)\n"
        largest = "largest"
    update += f"""
sqrt({largest}, u)
divide(u, root, u)
add(u, epsilon, u)
q = multiply(m, step_size)
divide(q, u, q)
add(p, q, q)
"""
    return "lr beta1 beta2 eps weight_decay", shared, "count", update, "q m v largest"[: -8 if largest == "v" else None]


def sgd(flags: dict) -> tuple[str, str, str, str, str]:
    shared = "step_size = asarray(negative(lr), dtype)\n"
    shared += "".join(f"{name} = {name}.astype(dtype)\n" for name in ("weight_decay", "momentum", "keep", "take"))
    update = "g = negative(g)\n" if flags["maximize"] else ""
    update += "g = add(g, multiply(weight_decay, p))\n" if flags["decay"] else ""
    step = "g"
    if flags["tensors"]:
        update += "b = multiply(t0, keep)\nadd(b, multiply(take, g), b)\n"
        update += "g = add(g, multiply(momentum, b))\n" if flags["nesterov"] else ""
        step = "g" if flags["nesterov"] else "b"
    update += f"q = multiply({step}, step_size)\nadd(p, q, q)\n"
    return "lr weight_decay momentum keep take", shared, "", update, "q b" if flags["tensors"] else "q"


FUNCTIONS: tuple[Any, ...] = (
    np.add, np.asarray, np.concatenate, np.divide, np.maximum, np.multiply, np.negative, np.power, np.sqrt, np.subtract,
)  # fmt: skip


RULES: dict[str, Rule] = {"adam": adam, "sgd": sgd}


def step_function(op: Any, kernel: Any) -> HostFunction | None:
    """The NumPy function of a `StepOp`'s kernel; None for those that are left to JAX."""
    count, per_set, per_param, which, scaling, flags = kernel.static[1:]
    a, _, c, d, e = op._positions(kernel.static)
    specs = kernel.specs
    dtype = floating(*specs[c:])
    if dtype is None or scaling != (False, False):
        return None
    if any(type(s) is Aval and (s.numel != 1 or s.dtype.np.kind != "f") for s in specs[:c]):
        return None
    columns = [range(c, d), range(d, e), *[range(e + j * count, e + (j + 1) * count) for j in range(per_param)]]
    rows = list(zip(*columns, strict=True))
    if any(specs[k].shape != specs[row[0]].shape for row in rows for k in row):
        return None
    sizes = [specs[row[0]].numel for row in rows]
    sets = list(which) if which else [0] * count
    groups: dict = {}  # one computation each
    for k in range(count):
        groups.setdefault((sets[k], -1 if sizes[k] <= SMALL else k), []).append(k)
    names, shared, new_scalars, update, results = RULES[op.name](dict(flags) | {"tensors": per_param})
    results_of: list[list[str]] = [[] for _ in range(count)]
    text: list[str] = []
    scalars: list[str] = []
    scope: dict[str, Any] = {f.__name__: f for f in FUNCTIONS}
    scope |= {"dtype": dtype, "float64": np.dtype(np.float64), "one": np.ones(())}
    for number in sorted(set(sets)):
        for k, name in enumerate(names.split()):
            text.append(f"{name} = a{k}" if specs[k] == "f" else f"{name} = a{k}.reshape(()).astype(float64)")
        text += [f"s{k} = a{a + number * per_set + k}" for k in range(per_set)]
        text += shared.split("\n")
        for name in new_scalars.split():
            scalars.append(f"{name}_{number}")
            text.append(f"{scalars[-1]} = asarray({name})")
        if NATIVE is None:
            for (group, _), members in groups.items():
                if group == number:
                    text += _group(members, rows, specs, update, results.split(), results_of)
        else:
            members = [k for k in range(count) if sets[k] == number]
            text += _one_by_one(members, rows, specs, update, results.split(), results_of, scope)
    passes = update.count("(")
    note_work(kernel, sum([line.count("(") for line in text]), (1 if NATIVE else 3) * passes * sum(sizes))
    out = [*scalars, *[found[j] for j in range(1 + per_param) for found in results_of]]
    arguments = ", ".join(f"a{k}" for k in range(len(specs)))
    source = "\n    ".join([f"def host({arguments}):", *[t for t in text if t], f"return [{', '.join(out)}]"])
    exec(compile(source, "<optimizer step>", "exec"), scope)
    return scope["host"]


def _group(
    members: list[int], rows: list, specs: tuple, update: str, results: list[str], results_of: list[list[str]]
) -> list[str]:
    """The text that updates some parameters as one array; the names of their results go into `results_of`."""
    text = []
    first = members[0]
    for j, name in enumerate(["p", "g", *[f"t{k}" for k in range(len(rows[0]) - 2)]]):
        parts = [f"a{rows[k][j]}" if specs[rows[k][j]].ndim == 1 else f"a{rows[k][j]}.reshape(-1)" for k in members]
        if len(members) == 1:
            text.append(f"{name} = {parts[0] if not specs[rows[first][j]].shape else f'a{rows[first][j]}'}")
        else:
            text.append(f"{name} = concatenate(({', '.join(parts)}))")
    text += update.split("\n")
    for name in results:
        at = 0
        for k in members:
            spec = specs[rows[k][0]]
            here = f"{name}{k}"
            part = name if len(members) == 1 else f"{name}[{at}:{at + spec.numel}]"
            view = spec.ndim != 1 and (len(members) > 1 or not spec.shape)
            text.append(f"{here} = {part}.reshape({spec.shape})" if view else f"{here} = {part}")
            results_of[k].append(here)
            at += spec.numel
    return text


def _one_by_one(
    members: list[int], rows: list, specs: tuple, update: str, results: list[str], results_of: list[list[str]],
    scope: dict,
) -> list[str]:  # fmt: skip
    """The same by one function of the C extension for each parameter. The functions go into `scope`."""
    text = []
    chosen = " if near else "
    ways = (True, False) if chosen in update else (True,)
    for k in members:
        a = specs[rows[k][0]]
        names = [f"update_{way}_{rows[k][0]}" for way in ways]
        for way, name in zip(ways, names, strict=True):
            key = ("function", way, a)
            if key not in scope:
                instructions, numbers, where = _instructions(update, len(rows[k]), way)
                wanted = [where[r] for r in results]
                scope[key] = assemble((len(rows[k]), len(numbers)), instructions, wanted, a), numbers
            scope[name], numbers = scope[key]
        outs = [f"{name}{k}" for name in results]
        given = ", ".join([*[f"a{j}" for j in rows[k]], *numbers])
        text.append(f"{', '.join(outs)}{',' if len(outs) == 1 else ''} = ({chosen.join(names)})({given})")
        for name in outs:
            results_of[k].append(name)
    return text


CODES = {"add": ADD, "subtract": SUB, "multiply": MUL, "divide": DIV, "negative": NEG, "sqrt": SQRT, "maximum": MAX}


def _instructions(update: str, arrays: int, near: bool) -> tuple[list[tuple], list[str], dict[str, int]]:
    """The text of an update as the C extension's instructions, the names of the numbers that it takes, and where each
    variable is in the end. arrays: p, g, t0, t1, ..., which come first."""
    tree = ast.parse(update).body
    where = {name: k for k, name in enumerate(["p", "g", *[f"t{k}" for k in range(arrays - 2)]])}
    known = {"p", "g", "near", *[f"t{k}" for k in range(arrays - 2)], *CODES}
    numbers: list[str] = []
    for line in tree:  # numbers: names that are read and never assigned
        for name in ast.walk(line):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                known.add(name.id)
    for line in tree:
        for name in ast.walk(line):
            if isinstance(name, ast.Name) and name.id not in known | {"u"}:
                known.add(name.id)
                where[name.id] = arrays + len(numbers)
                numbers.append(name.id)
    instructions: list[tuple] = []

    def emit(call: Any) -> int:
        count = 1 if call.func.id in ("negative", "sqrt") else 2
        first, *more = [operand(x) for x in call.args[:count]]
        instructions.append((CODES[call.func.id], first, more[0] if more else first))
        if len(call.args) > count:
            where[call.args[count].id] = arrays + len(numbers) + len(instructions) - 1
        return arrays + len(numbers) + len(instructions) - 1

    def operand(x: Any) -> int:
        if isinstance(x, ast.IfExp):
            return operand(x.body if near else x.orelse)
        return emit(x) if isinstance(x, ast.Call) else where[x.id]

    for line in tree:
        made = emit(line.value)  # type: ignore[attr-defined]
        if isinstance(line, ast.Assign):
            where[line.targets[0].id] = made  # type: ignore[attr-defined]
    return instructions, numbers, where
