"""The cold path: a plan run operation by operation, on NumPy where the host tier can, else by small XLA kernels."""

import math
import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import jax
import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.core.build_target import ONE_THREAD
from torchlike._src.core.tracing import trace
from torchlike._src.engine import backend, checks, stats
from torchlike._src.engine.elements import joined_elements

NUMBER_DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "b": np.dtype(bool), "c": np.dtype(np.complex128)}
_forked = False


def after_fork() -> None:
    global _forked
    _forked = True


def run(
    plan: Any, live: tuple[int, ...], floats: list, ints: list, complexes: list, leaves: list
) -> tuple[list[np.ndarray], tuple[int, Exception] | None]:
    """(the live results, as NumPy arrays; the first result that there should not be and why, if a check failed)."""
    schedule = plan.host.get(live)
    if schedule is None:
        if len(plan.host) > 4:
            plan.host.clear()
        schedule = plan.host[live] = _schedule(plan, live)
    stats.COUNTS["host_runs"] += 1
    steps, bools, results = schedule
    # One list for everything that an operation may take: results, leaves, numbers.
    values: list[Any] = [None] * plan.node.values
    values += [a if type(a) is np.ndarray else np.asarray(a) for a in leaves]
    if floats:
        values += [np.array(x, np.float64) for x in floats]
    if ints:
        values += [np.array(x, np.bool_ if k in bools else np.int64) for k, x in enumerate(ints)]
    if complexes:
        values += [np.array(x, np.complex128) for x in complexes]
    failed = None
    with np.errstate(all="ignore"):
        for function, take, first, count, drop, condition in steps:
            outs = function(*take(values))
            if count == 1:
                values[first] = outs[0]
            elif condition is None:
                values[first : first + count] = outs
            elif failed is None and outs[0].tobytes() != condition[1]:
                failed = checks.failure(plan, [condition[0]], outs[0])
            for k in drop:
                values[k] = None
    return [values[k] for k in results], failed


def _schedule(plan: Any, live: tuple[int, ...]) -> tuple[list, set[int], tuple[int, ...]]:
    """((function, what it takes of the list of values, first result, number of results, what nothing needs after it,
    (condition, its codes if all is fine) or None), ...), the integers that are bools, and the live results' places."""
    entries = plan.needed(live)
    # A check runs just before its operation.
    conditions = checks.conditions(plan, entries)
    steps: list = [(c.first, 0, function_of(c.codes), c.refs, 0, (c, checks.fine([c]))) for c in conditions]
    steps += [
        (last.first, 1, function, refs, count, None)
        for last, function, refs, count, _ in joined(entries, live, [c.refs for c in conditions])
    ]
    steps.sort(key=lambda step: step[:2])
    leaves = plan.node.values
    floats = leaves + len(plan.leaf_specs)
    ints = floats + plan.floats
    base = {"v": 0, "l": leaves, "f": floats, "i": ints, "b": ints, "c": ints + plan.ints}
    last: dict[int, int] = {}
    for i, (first, _, _, refs, count, _) in enumerate(steps):
        for kind, k in refs:
            if kind == "v":
                last[k] = i
        for k in range(first, first + count):
            last[k] = i
    keep = set(live)
    drops: list[list[int]] = [[] for _ in steps]
    for k, i in last.items():
        if k not in keep:
            drops[i].append(k)
    made = [
        (function, taker([base[kind] + k for kind, k in refs]), first, count, tuple(drop), condition)
        for (first, _, function, refs, count, condition), drop in zip(steps, drops, strict=True)
    ]
    bools = {k for e in plan.entries for kind, k in e.refs if kind == "b"}
    return made, bools, live


def joined(entries: Sequence, live: tuple[int, ...], others: Sequence) -> list[tuple]:
    """(the entry whose results it makes, its function, what it takes, how many results, the kernels) for each step:
    entries, or several in a row that one function computes together. `others`: what else takes results, as refs."""
    return joined_elements(_chained(entries, live, others), live, others)


def _chained(entries: Sequence, live: tuple[int, ...], others: Sequence) -> list[tuple]:
    # A sequence of another length is planned anew in every step: what looks for no chain is done with one look.
    starts = {op for op in {e.kernel.op for e in entries} if getattr(op, "starts_chain", bool)()}
    if not starts:
        return [(e, function_of(e.kernel), e.refs, len(e.kernel.outs), [e.kernel]) for e in entries]
    uses: dict[int, int] = dict.fromkeys(live, 1)
    user: dict[int, Any] = {}
    for refs, e in [*((refs, None) for refs in others), *((e.refs, e) for e in entries)]:
        for place, (kind, k) in enumerate(refs):
            if kind == "v":
                uses[k] = uses.get(k, 0) + 1
                user[k] = e if place == 0 else None

    def alone(e: Any) -> bool:
        """Whether only its first result is in use."""
        return len(e.kernel.outs) == 1 or not any(k in uses for k in range(e.first + 1, e.first + len(e.kernel.outs)))

    def chain(e: Any) -> list:
        found = []
        while e is not None and alone(e):
            found.append(e)
            e = user[e.first] if uses.get(e.first) == 1 and e.first in user else None
        return found

    steps, taken = [], set()
    for e in entries:
        if e.first in taken:
            continue
        members = chain(e) if e.kernel.op in starts else []
        found = e.kernel.op.host_chain([m.kernel for m in members]) if members else None
        if found is None:
            steps.append((e, function_of(e.kernel), e.refs, len(e.kernel.outs), [e.kernel]))
            continue
        members = members[: found[0]]
        taken.update([m.first for m in members])
        refs = (*e.refs, *(ref for m in members[1:] for ref in m.refs[1:]))
        steps.append((members[-1], found[1], refs, 1, [m.kernel for m in members]))
    return steps


def taker(places: list[int]) -> Callable[[list], Sequence]:
    """A function, in C, from a list to its items at these places."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0, 0))


def function_of(kernel: Any) -> Callable[..., Sequence[np.ndarray]]:
    """One operation on NumPy arrays of exactly its operands' shapes and dtypes."""
    host = kernel.cache.get("host")
    if host is None:
        host = kernel.cache["host"] = _host_function(kernel)
    return host


def struct(spec: Any) -> jax.ShapeDtypeStruct:
    if type(spec) is Aval:
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype.np)
    return jax.ShapeDtypeStruct((), NUMBER_DTYPES[spec])


def cost(plan: Any, live: tuple[int, ...]) -> tuple[float, float, bool]:
    """(about how many seconds the host tier takes for these results, how many of them for more than matrix products,
    which take XLA as long, whether a product is so large that BLAS uses threads): a count of operations, elements and
    multiplications (never a measurement, so that the same script takes the same decisions each time)."""
    total = products = 0.0
    threads = False
    for _, _, _, _, kernels in joined(plan.needed(live), live, ()):
        first = kernels[0]
        if "seconds" not in first.cache:
            first.cache["seconds"] = _rough_estimate(first)
        total += first.cache["seconds"]
        products += first.cache.get("products", 0.0)
        threads = threads or first.cache.get("threads", False)
        for kernel in kernels[1:]:  # only their results are new
            total += 2 * HOST_CALL + HOST_ELEMENT * kernel.outs[0].numel
    return total, total - products, threads


XLA_CALL = 1e-4
WHILE_ROUNDS = 100
HOST_KERNEL = 1e-6
HOST_CALL = 0.8e-6
HOST_ELEMENT = 0.5e-9
HOST_MULTIPLICATION = 0.06e-9
HOST_FACTOR = 0.1e-9
"""An element of a matrix product's operands: read in order, and often not from memory."""
SLOW = {
    "bessel_i0e": 40, "bessel_i1e": 40, "cumlogsumexp": 30, "digamma": 10, "erf_inv": 10, "igamma": 60, "igammac": 60,
    "lgamma": 10, "polygamma": 200, "sort": 40, "top_k": 10, "zeta": 200,
}  # fmt: skip
"""Primitives whose elements take longer, and how many times."""


def estimate(jaxpr: Any) -> tuple[float, float, float, int]:
    """(calls of NumPy, seconds for their elements, seconds of those for matrix products, the largest product's
    multiplications) of one kernel on the host tier, from its jaxpr."""
    calls = seconds = products = 0.0
    largest = 0
    for eqn in jaxpr.eqns:
        inner = [p for p in eqn.params.values() if hasattr(p, "jaxpr")]
        if inner:
            repeat = {"scan": eqn.params.get("length", 1), "while": WHILE_ROUNDS}.get(eqn.primitive.name, 1)
            for p in inner:
                more = estimate(p.jaxpr)
                calls += repeat * more[0]
                seconds += repeat * more[1]
                products += repeat * more[2]
                largest = max(largest, more[3])
            continue
        calls += 1
        if eqn.primitive.name == "dot_general":
            (contract, _), _ = eqn.params["dimension_numbers"]
            lhs = eqn.invars[0].aval.shape
            out = math.prod(eqn.outvars[0].aval.shape)
            multiplications = out * math.prod(lhs[d] for d in contract)
            largest = max(largest, multiplications)
            product = HOST_MULTIPLICATION * multiplications
            product += HOST_FACTOR * sum(math.prod(v.aval.shape) for v in eqn.invars)
            products += product
            seconds += product + HOST_ELEMENT * out
            continue
        size = sum(math.prod(v.aval.shape) for v in (*eqn.outvars, *eqn.invars) if hasattr(v.aval, "shape"))
        seconds += HOST_ELEMENT * size * SLOW.get(eqn.primitive.name, 1)
        if eqn.primitive.name == "conv_general_dilated":
            rhs = math.prod(eqn.invars[1].aval.shape)
            out = eqn.outvars[0].aval.shape
            features = eqn.invars[1].aval.shape[eqn.params["dimension_numbers"].rhs_spec[0]]
            work = math.prod(out) * rhs / max(features, 1)
            seconds += 3 * HOST_MULTIPLICATION * work + HOST_ELEMENT * work / 8
    return calls, seconds, products, largest


def _loops(jaxpr: Any) -> bool:
    """Whether the jaxpr has a loop, also within others that it calls."""
    inner = [p.jaxpr for e in jaxpr.eqns for p in e.params.values() if hasattr(p, "jaxpr")]
    return any(e.primitive.name in ("scan", "while") for e in jaxpr.eqns) or any(_loops(j) for j in inner)


def _host_function(kernel: Any) -> Any:
    written = getattr(kernel.op, "host_function", None)
    found = None if written is None else written(kernel)
    if found is not None:
        kernel.cache["seconds"] = _rough_estimate(kernel)
        return found
    key = _shapeless(kernel)
    found = _shared.get(key)
    if found is not None:
        kernel.cache["seconds"] = _rough_estimate(kernel)
        return found
    # The host tier's rules are loaded when the first trace needs them, which keeps `import torch` quick.
    from torchlike._src.engine.host import HostUnsupported, compile_host

    jaxpr = trace(kernel, [struct(s) for s in kernel.specs])
    calls, work, kernel.cache["products"], largest = estimate(jaxpr.jaxpr)
    kernel.cache["threads"] = largest > ONE_THREAD
    kernel.cache["seconds"] = HOST_KERNEL + calls * HOST_CALL + work
    try:
        found = compile_host(jaxpr)
        # Fewer where equal ones have been merged; a loop is one.
        lines = found.source.count("\n")  # type: ignore[attr-defined]
        if lines < calls and not _loops(jaxpr.jaxpr):
            kernel.cache["seconds"] = HOST_KERNEL + lines * HOST_CALL + work
        if key is not None and _mentions_no_shape(found):
            if len(_shared) >= MAX_SHARED:
                _shared.clear()
            _shared[key] = found
        return found
    except HostUnsupported as lacking:
        if _forked:
            raise NotImplementedError(
                f"{kernel.op.name} in a forked worker process: it needs {lacking}, which only XLA has; use "
                "multiprocessing_context='spawn', or compute it in the main process"
            ) from lacking
    kernel.cache["seconds"] += XLA_CALL
    return _xla_function(kernel)


MAX_SHARED = 5000
_shared: dict = {}
"""Functions that do for arrays of any shape, by what `_shapeless` says."""
_NUMBER = re.compile(r"(?<![A-Za-z_0-9])[0-9]")


def _shapeless(kernel: Any) -> tuple | None:
    """What an elementwise kernel is but for the one shape that all its operands have; None for others."""
    op = kernel.op
    forward = getattr(op, "forward", None)
    specs = kernel.specs if forward is None else (*kernel.specs, *forward.specs)
    shapes = {s.shape for s in specs if type(s) is Aval}
    if len(shapes) != 1 or not all(next(iter(shapes))) or shapes == {()}:
        return None
    kinds = tuple([s.dtype if type(s) is Aval else s for s in specs])
    if forward is None:
        return (op, kernel.static, kinds) if getattr(op, "elementwise", False) else None
    if not getattr(forward.op, "elementwise", False):
        return None
    return (forward.op, forward.static, op.need, op.given, kinds)


def _mentions_no_shape(function: Any) -> bool:
    """Whether a generated function consists of ufuncs on its operands and on single numbers."""
    source, scope = function.source, function.__globals__
    if _NUMBER.search(source):
        return False
    for name in function.__code__.co_names:
        used = scope.get(name)
        if isinstance(used, np.ndarray):
            if used.ndim:
                return False
        elif callable(used) and not isinstance(used, np.ufunc | type) and used is not np.where:
            if getattr(used, "__closure__", None) or getattr(used, "__self__", None) is not None:
                return False
    return True


def _rough_estimate(kernel: Any) -> float:
    """As `estimate`, from the operands alone."""
    operands = sum([s.numel for s in kernel.specs if type(s) is Aval])
    results = sum([s.numel for s in kernel.outs])
    seconds = HOST_KERNEL + 2 * HOST_CALL + HOST_ELEMENT * results
    multiplications = kernel.cache.get("multiplications", 0)
    if not multiplications:
        return seconds + HOST_ELEMENT * operands
    kernel.cache["products"] = HOST_MULTIPLICATION * multiplications + HOST_FACTOR * operands
    return seconds + kernel.cache["products"]


def _xla_function(kernel: Any) -> Any:
    """The operation alone, compiled: for what the host tier lacks."""
    with jax.enable_x64(True), backend.matmul_precision():
        lowered = jax.jit(lambda *a: kernel(*a), keep_unused=True).lower(*[struct(s) for s in kernel.specs])
        executable = backend.compile_lowered(lowered)

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(o) for o in backend.call(executable, arrays)]

    return call
