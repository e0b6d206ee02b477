"""The cold path: a plan run operation by operation, on NumPy where the host tier can, else by small XLA kernels."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.core.build_target import ONE_THREAD
from torchlike._src.core.native import NATIVE
from torchlike._src.core.tracing import trace
from torchlike._src.engine import backend, blas, checks, stats
from torchlike._src.engine.elements import FEWEST, joined_elements

NUMBER_DTYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "b": np.dtype(bool), "c": np.dtype(np.complex128)}
_forked = False


def after_fork() -> None:
    global _forked
    _forked = True


class Schedule:
    """What one run for certain live results does, as lists side by side: an object for each operation is much work for
    the garbage collector where every step is new.

    Operation n computes `functions[n]` of the values at two places, `lefts[n]` and `rights[n]`; or of one, and -1; or
    of a tuple of places, and None. Its result goes to `firsts[n]` or, if that is negative, to what `others[firsts[n]]`
    says: (first result, number of results), or (condition, its codes if all is fine). `drops[n]`: the place, the tuple
    of places or None that nothing needs after it."""

    __slots__ = (
        "bools", "drops", "firsts", "functions", "largest", "lefts", "others", "products", "rights", "seconds",
        "threads",
    )  # fmt: skip

    def __init__(self) -> None:
        self.functions: list[Callable] = []
        self.lefts: list = []
        self.rights: list = []
        self.firsts: list[int] = []
        self.others: dict[int, tuple] = {}
        self.drops: list = []
        self.bools: set[int] = set()
        """The integers that are bools."""
        self.largest = 0
        """Multiplications of the largest product."""
        self.seconds = self.products = 0.0
        self.threads = False
        """See `cost`."""

    def add(self, function: Callable, places: Sequence[int], first: int, drop: Sequence[int]) -> None:
        self.functions.append(function)
        count = len(places)
        if count == 2:
            left, right = places
            self.lefts.append(left)
            self.rights.append(right)
        elif count == 1:
            self.lefts.append(places[0])
            self.rights.append(-1)
        else:
            self.lefts.append(tuple(places))
            self.rights.append(None)
        self.firsts.append(first)
        self.drops.append(None if not drop else drop[0] if len(drop) == 1 else tuple(drop))

    def other(self, what: tuple) -> int:
        """The number in `firsts` that stands for this."""
        number = -1 - len(self.others)
        self.others[number] = what
        return number

    def reverse(self) -> None:
        for column in (self.functions, self.lefts, self.rights, self.firsts, self.drops):
            column.reverse()


def run(
    plan: Any, live: tuple[int, ...], floats: list, ints: list, complexes: list, leaves: list
) -> tuple[list[np.ndarray], tuple[int, Exception] | None]:
    """(the live results, as NumPy arrays; the first result that there should not be and why, if a check failed)."""
    schedule = schedule_of(plan, live)
    stats.COUNTS["host_runs"] += 1
    # One list for everything that an operation may take: results, leaves, numbers.
    values: list[Any] = [None] * plan.node.values
    values += [a if type(a) is np.ndarray else np.asarray(a) for a in leaves]
    if floats:
        values += [np.array(x, np.float64) for x in floats]
    if ints:
        bools = schedule.bools
        if bools:
            values += [np.array(x, np.bool_ if k in bools else np.int64) for k, x in enumerate(ints)]
        else:
            values += [np.array(x, np.int64) for x in ints]
    if complexes:
        values += [np.array(x, np.complex128) for x in complexes]
    if ONE_THREAD < schedule.largest <= FEW_MULTIPLICATIONS:
        before = blas.one_thread()
        try:
            failed = _compute(plan, schedule, values)
        finally:
            blas.restore(before)
    else:
        failed = _compute(plan, schedule, values)
    return [values[k] for k in live], failed


FEW_MULTIPLICATIONS = 1 << 25
"""In a matrix product of a millisecond: what second threads would save is less than what they may cost, see `blas`."""


def _compute(plan: Any, schedule: Schedule, values: list) -> tuple[int, Exception] | None:
    """Fill `values`; the first result that there should not be and why, if a check failed. HOT."""
    failed = None
    others = schedule.others
    columns = zip(schedule.functions, schedule.lefts, schedule.rights, schedule.firsts, schedule.drops, strict=True)
    with np.errstate(all="ignore"):
        for function, left, right, first, drop in columns:
            if right is None:
                outs = function(*[values[k] for k in left])
            elif right < 0:
                outs = function(values[left])
            else:
                outs = function(values[left], values[right])
            if first >= 0:
                values[first] = outs[0]
            else:
                what, more = others[first]
                if type(what) is int:
                    values[what : what + more] = outs
                elif failed is None and outs[0].tobytes() != more:
                    failed = checks.failure(plan, [what], outs[0])
            if drop is not None:
                if type(drop) is int:
                    values[drop] = None
                else:
                    for k in drop:
                        values[k] = None
    return failed


def schedule_of(plan: Any, live: tuple[int, ...]) -> Schedule:
    """The schedule of these live results, kept with the plan."""
    schedule = plan.host.get(live)
    if schedule is None:
        if len(plan.host) > 4:
            plan.host.clear()
        schedule = plan.host[live] = _one_by_one(plan, live) or _with_joins(plan, live)
    return schedule


class Facts:
    """What planning asks of a kernel, looked up at once."""

    __slots__ = ("chain", "code", "condition", "function", "largest", "products", "seconds", "threads")

    def __init__(self, kernel: Any) -> None:
        op = kernel.op
        self.function = function_of(kernel)
        self.seconds = _seconds(kernel)
        self.products: float = kernel.cache.get("products", 0.0)
        self.threads: bool = kernel.cache.get("threads", False)
        self.largest: int = _largest(kernel)
        self.condition = checks.of_kernel(kernel)
        self.chain: bool = getattr(op, "starts_chain", bool)()
        elements = None if NATIVE is None else getattr(op, "element_code", None)
        self.code = None if elements is None else elements(kernel)


def _seconds(kernel: Any) -> float:
    """About what one call of its function takes."""
    if "seconds" not in kernel.cache:
        kernel.cache["seconds"] = _rough_estimate(kernel)
    return kernel.cache["seconds"]


def _largest(kernel: Any) -> int:
    """Multiplications of its largest product."""
    return kernel.cache.get("largest", kernel.cache.get("multiplications", 0))


def facts_of(kernel: Any) -> Facts:
    facts = kernel.cache.get("facts")
    if facts is None:
        facts = kernel.cache["facts"] = Facts(kernel)
    return facts


def _one_by_one(plan: Any, live: tuple[int, ...]) -> Schedule | None:
    """The schedule of a trace in which nothing is computed together; else None.

    HOT where sequences have another length in every step: one walk back from the end, a microsecond an operation."""
    made = Schedule()
    node = plan.node
    leaves = node.values
    floats = leaves + node.leaves
    ints = floats + node.floats
    complexes = ints + node.ints
    wanted = set(live)
    functions, lefts, rights = made.functions.append, made.lefts.append, made.rights.append
    firsts, drops = made.firsts.append, made.drops.append
    seconds = products = 0.0
    in_row: Any = None  # what the arrays of the elementwise operations after this one look like
    instructions = 0
    while node.parent is not None:
        kernel, first, count, refs = node.kernel, node.index, node.count, node.refs
        node = node.parent
        facts = kernel.cache.get("facts")
        if facts is None:
            facts = facts_of(kernel)
        if first not in wanted if count == 1 else wanted.isdisjoint(range(first, first + count)):
            if facts.condition is not None:
                if any(type(refs[p]) is int and refs[p] >= 0 for p in facts.condition[1]):
                    return None  # perhaps at hand, perhaps not
                _add_condition(made, kernel, facts.condition, first, refs, leaves, leaves + node.leaves)
            continue
        if facts.chain:
            return None
        code = facts.code
        if code is None:
            in_row = None
        else:
            if code[0] is not in_row:
                in_row, instructions = code[0], 0
            instructions += len(code[1])
            if instructions >= FEWEST:
                return None
        seconds += facts.seconds
        products += facts.products
        if facts.largest > made.largest:
            made.largest = facts.largest
        if facts.threads:
            made.threads = True
        leaf, real, number = leaves + node.leaves, floats + node.floats, ints + node.ints
        places: list[int] = []
        drop = [] if count == 1 else [k for k in range(first, first + count) if k not in wanted]
        for r in refs:
            if type(r) is int:
                if r < 0:
                    places.append(leaves - 1 - r)
                else:
                    places.append(r)
                    if r not in wanted:
                        wanted.add(r)
                        drop.append(r)
            elif type(r) is not str:
                places.append(leaf)
                leaf += 1
            elif r == "f":
                places.append(real)
                real += 1
            elif r == "c":
                places.append(complexes + node.complexes + sum(p >= complexes for p in places))
            else:
                if r == "b":
                    made.bools.add(number - ints)
                places.append(number)
                number += 1
        # `Schedule.add`, written out.
        functions(facts.function)
        if len(places) == 2:
            lefts(places[0])
            rights(places[1])
        elif len(places) == 1:
            lefts(places[0])
            rights(-1)
        else:
            lefts(tuple(places))
            rights(None)
        firsts(first if count == 1 else made.other((first, count)))
        drops(None if not drop else drop[0] if len(drop) == 1 else tuple(drop))
        if facts.condition is not None:  # in reverse order: just before its operation
            _add_condition(made, kernel, facts.condition, first, refs, leaves, leaves + node.leaves)
    made.reverse()
    made.seconds, made.products = seconds, products
    return made


def _add_condition(
    made: Schedule, kernel: Any, condition: tuple, first: int, refs: tuple, leaves: int, next_leaf: int
) -> None:
    codes, positions = condition
    places = []
    for k in positions:
        r = refs[k]
        if type(r) is int:
            places.append(r if r >= 0 else leaves - 1 - r)
        else:
            places.append(next_leaf + sum(type(before) is Aval for before in refs[:k]))
    check = checks.Condition(kernel, first, codes, ())
    made.add(function_of(codes), places, made.other((check, checks.fine([check]))), ())


def _with_joins(plan: Any, live: tuple[int, ...]) -> Schedule:
    """The schedule with several operations in one where one function computes them."""
    entries = plan.needed(live)
    # A check runs just before its operation.
    conditions = checks.conditions(plan, entries)
    made = Schedule()
    steps: list = [(c.first, 0, function_of(c.codes), c.refs, 0, c) for c in conditions]
    for last, function, refs, count, kernels in joined(entries, live, [c.refs for c in conditions]):
        steps.append((last.first, 1, function, refs, count, None))
        first = kernels[0]
        made.seconds += _seconds(first)
        made.products += first.cache.get("products", 0.0)
        made.threads = made.threads or first.cache.get("threads", False)
        made.largest = max(made.largest, *[_largest(kernel) for kernel in kernels])
        for kernel in kernels[1:]:  # only their results are new
            made.seconds += 2 * HOST_CALL + HOST_ELEMENT * kernel.outs[0].numel
    steps.sort(key=lambda step: step[:2])
    leaves = plan.node.values
    floats = leaves + len(plan.leaf_specs)
    ints = floats + plan.floats
    base = {"v": 0, "l": leaves, "f": floats, "i": ints, "b": ints, "c": ints + plan.ints}
    made.bools = {k for e in plan.entries for kind, k in e.refs if kind == "b"}
    wanted = set(live)
    for first, _, function, refs, count, check in reversed(steps):
        used = [*range(first, first + count), *[k for kind, k in refs if kind == "v"]]
        drop = [k for k in dict.fromkeys(used) if k not in wanted]
        wanted.update(drop)
        where = first
        if check is not None:
            where = made.other((check, checks.fine([check])))
        elif count != 1:
            where = made.other((first, count))
        made.add(function, [base[kind] + k for kind, k in refs], where, drop)
    made.reverse()
    return made


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
    schedule = schedule_of(plan, live)
    return schedule.seconds, schedule.seconds - schedule.products, schedule.threads


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
    kernel.cache["largest"] = largest
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
    """As `estimate`, from the operands alone, or from what the rule has noted."""
    if "work" in kernel.cache:
        calls, elements = kernel.cache["work"]
        return HOST_KERNEL + calls * HOST_CALL + HOST_ELEMENT * elements
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
