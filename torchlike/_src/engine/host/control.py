"""Calls, which are inlined, and control flow, whose bodies are programs of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.engine.host.emit import Emitter, HostUnsupported, Ref, aval_of, is_key, rule
from torchlike._src.engine.host.program import build


def _open(jaxpr: Any) -> tuple[Any, Sequence[Any]]:
    """A jaxpr, closed or not, as an open one and its constants."""
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") and hasattr(jaxpr, "jaxpr") else (jaxpr, ())


@rule(
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "call",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "custom_vmap_call",
    "remat",
    "remat2",
    "checkpoint",
    "composite",
    lazy=True,
)
def _call(em: Emitter, eqn: Any, *refs: Ref) -> list[Ref]:
    for key in ("jaxpr", "call_jaxpr", "fun_jaxpr", "call"):
        inner = eqn.params.get(key)
        if inner is not None and (hasattr(inner, "eqns") or hasattr(inner, "jaxpr")):
            return em.inline(*_open(inner), refs)
    raise HostUnsupported(eqn.primitive.name, "no jaxpr to inline")


def _child(em: Emitter, jaxpr: Any) -> Callable[..., list[np.ndarray]]:
    """The program of a body, generated once per parent."""
    known = em.children.get(id(jaxpr))
    if known is None:
        known = em.children[id(jaxpr)] = build(*_open(jaxpr))
    return known


def _outs(eqn: Any) -> list[Any]:
    outs = [aval_of(v) for v in eqn.outvars]
    if any(is_key(dtype) for _, dtype in outs):
        raise HostUnsupported(eqn.primitive.name, "PRNG keys")
    return outs


def _put_call(em: Emitter, function: Any, refs: Sequence[Ref], eqn: Any) -> list[Ref]:
    # Results may be operands that a body hands through.
    return em.put_many(f"{em.fn(function)}({', '.join(r.name for r in refs)})", _outs(eqn), pins=True)


@rule("cond")
def _cond(em: Emitter, eqn: Any, which: Ref, *refs: Ref) -> list[Ref]:
    jaxprs = eqn.params["branches"]
    last = len(jaxprs) - 1
    if which.const is not None:
        return em.inline(*_open(jaxprs[min(max(int(which.const), 0), last)]), refs)
    branches = [_child(em, b) for b in jaxprs]

    def cond(which: Any, *operands: Any) -> list[np.ndarray]:
        return branches[min(max(int(which), 0), last)](*operands)

    return _put_call(em, cond, (which, *refs), eqn)


@rule("platform_index", lazy=True)
def _platform_index(em: Emitter, eqn: Any) -> Ref:
    shape, dtype = aval_of(eqn.outvars[0])
    for i, platforms in enumerate(eqn.params["platforms"]):
        if platforms is None or "cpu" in platforms:
            return em.full_const(i, shape, dtype)
    raise HostUnsupported("platform_index", "no branch for the CPU")


@rule("while")
def _while(em: Emitter, eqn: Any, *refs: Ref) -> list[Ref]:
    test, body = _child(em, eqn.params["cond_jaxpr"]), _child(em, eqn.params["body_jaxpr"])
    n_test, n_body = int(eqn.params["cond_nconsts"]), int(eqn.params["body_nconsts"])
    if aval_of(_open(eqn.params["cond_jaxpr"])[0].outvars[0])[0] != ():
        raise HostUnsupported("while", "a batched condition")

    def loop(*operands: Any) -> list[Any]:
        test_consts, body_consts = operands[:n_test], operands[n_test : n_test + n_body]
        carry = list(operands[n_test + n_body :])
        while test(*test_consts, *carry)[0]:
            carry = body(*body_consts, *carry)
        return carry

    return _put_call(em, loop, refs, eqn)


@rule("scan")
def _scan(em: Emitter, eqn: Any, *refs: Ref) -> list[Ref]:
    params = eqn.params
    body = _child(em, params["jaxpr"])
    length, reverse = int(params["length"]), bool(params["reverse"])
    if "num_consts" in params:
        n_consts, n_carry = int(params["num_consts"]), int(params["num_carry"])
    else:  # newer JAX keeps the operands' structure
        parts = params["ft_in"].update(range(len(refs))).unpack()
        n_consts, n_carry = (len(list(part)) for part in parts[:2])
    stacked = _outs(eqn)[n_carry:]
    steps = range(length - 1, -1, -1) if reverse else range(length)

    def scan(*operands: Any) -> list[Any]:
        consts = operands[:n_consts]
        carry = list(operands[n_consts : n_consts + n_carry])
        inputs = operands[n_consts + n_carry :]
        ys = [np.empty(shape, dtype) for shape, dtype in stacked]
        for i in steps:
            outs = body(*consts, *carry, *[x[i] for x in inputs])
            carry = outs[:n_carry]
            for y, out in zip(ys, outs[n_carry:]):
                y[i] = out
        return [*carry, *ys]

    return _put_call(em, scan, refs, eqn)


@rule("custom_linear_solve")
def _custom_linear_solve(em: Emitter, eqn: Any, *refs: Ref) -> list[Ref]:
    lengths, jaxprs = eqn.params["const_lengths"], eqn.params["jaxprs"]
    before = lengths.matvec + lengths.vecmat
    consts = refs[before : before + lengths.solve]
    right = refs[before + lengths.solve + lengths.transpose_solve :]
    return em.inline(*_open(jaxprs.solve), [*consts, *right])
