"""The cold path: a plan run operation by operation, on NumPy where the host tier can, else by small XLA kernels."""

import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.core.tracing import trace
from torchlike._src.engine import backend, checks, stats

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
    values: dict[int, Any] = {}
    packs = {"f": floats, "i": ints, "b": ints, "c": complexes}
    failed = None
    with np.errstate(all="ignore"):
        for kernel, refs, first, drop in schedule:
            arrays = []
            for kind, k in refs:
                if kind == "v":
                    arrays.append(values[k])
                elif kind == "l":
                    a = leaves[k]
                    arrays.append(a if type(a) is np.ndarray else np.asarray(a))
                else:
                    arrays.append(np.array(packs[kind][k], NUMBER_DTYPES[kind]))
            if type(kernel) is checks.Condition:
                codes = run_kernel(kernel.codes, arrays)[0]
                if failed is None and (codes != checks.FINE).any():
                    failed = checks.failure(plan, [kernel], codes)
            else:
                for k, o in enumerate(run_kernel(kernel, arrays), first):
                    values[k] = o
            for k in drop:
                values.pop(k, None)
    return [values[k] for k in live], failed


def _schedule(plan: Any, live: tuple[int, ...]) -> list:
    entries = plan.needed(live)
    # A check runs just before its operation.
    steps = [(c.first, 0, c, c.refs, 0) for c in checks.conditions(plan, entries)]
    steps += [(e.first, 1, e.kernel, e.refs, len(e.kernel.outs)) for e in entries]
    steps.sort(key=lambda step: step[:2])
    last: dict[int, int] = {}
    for i, (first, _, _, refs, count) in enumerate(steps):
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
    return [(kernel, refs, first, tuple(d)) for (first, _, kernel, refs, _), d in zip(steps, drops, strict=True)]


def run_kernel(kernel: Any, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """One operation on NumPy arrays."""
    host = kernel.cache.get("host")
    if host is None:
        host = kernel.cache["host"] = _host_function(kernel)
    return host(*arrays)


def struct(spec: Any) -> jax.ShapeDtypeStruct:
    if type(spec) is Aval:
        return jax.ShapeDtypeStruct(spec.shape, spec.dtype.np)
    return jax.ShapeDtypeStruct((), NUMBER_DTYPES[spec])


def cost(plan: Any, live: tuple[int, ...]) -> float:
    """About how many seconds the host tier takes for these results: a count of operations, elements and multiplications
    (never a measurement, so that the same script takes the same decisions each time)."""
    total = 0.0
    for kernel in {id(e.kernel): e.kernel for e in plan.needed(live)}.values():
        if "host" not in kernel.cache:
            kernel.cache["host"] = _host_function(kernel)
    for e in plan.needed(live):
        total += e.kernel.cache.get("seconds", 1e-4)
    return total


HOST_CALL = 1.5e-6
HOST_ELEMENT = 1.5e-9
HOST_MULTIPLICATION = 0.1e-9


def estimate(jaxpr: Any) -> float:
    """Seconds on the host tier of one kernel, from its jaxpr."""
    seconds = 3e-6
    for eqn in jaxpr.eqns:
        inner = [p for p in eqn.params.values() if hasattr(p, "jaxpr")]
        repeat = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        for p in inner:
            seconds += repeat * estimate(p.jaxpr)
        size = sum(math.prod(v.aval.shape) for v in (*eqn.outvars, *eqn.invars) if hasattr(v.aval, "shape"))
        seconds += HOST_CALL + HOST_ELEMENT * size
        if eqn.primitive.name == "dot_general":
            (contract, _), _ = eqn.params["dimension_numbers"]
            lhs = eqn.invars[0].aval.shape
            seconds += HOST_MULTIPLICATION * math.prod(eqn.outvars[0].aval.shape) * math.prod(lhs[d] for d in contract)
        elif eqn.primitive.name == "conv_general_dilated":
            rhs = math.prod(eqn.invars[1].aval.shape)
            out = eqn.outvars[0].aval.shape
            features = eqn.invars[1].aval.shape[eqn.params["dimension_numbers"].rhs_spec[0]]
            work = math.prod(out) * rhs / max(features, 1)
            seconds += 3 * HOST_MULTIPLICATION * work + HOST_ELEMENT * work / 8
    return seconds


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
    kernel.cache["seconds"] = estimate(jaxpr.jaxpr)
    try:
        found = compile_host(jaxpr)
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
    sizes = [s.numel for s in (*kernel.specs, *kernel.outs) if type(s) is Aval]
    return 2 * HOST_CALL + 2 * HOST_ELEMENT * sum(sizes) + HOST_MULTIPLICATION * kernel.cache.get("multiplications", 0)


def _xla_function(kernel: Any) -> Any:
    """The operation alone, compiled: for what the host tier lacks."""
    with jax.enable_x64(True), backend.matmul_precision():
        lowered = jax.jit(lambda *a: kernel(*a), keep_unused=True).lower(*[struct(s) for s in kernel.specs])
        executable = backend.compile_lowered(lowered)

    def call(*arrays: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(o) for o in backend.call(executable, arrays)]

    return call
