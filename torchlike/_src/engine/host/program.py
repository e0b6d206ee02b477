"""From a jaxpr to a Python function of NumPy calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.engine.host.emit import BIG_BYTES, Emitter, HostUnsupported, Line, Ref, aval_of, is_key


def compile_host(closed_jaxpr: Any) -> Callable[..., list[np.ndarray]]:
    """Generate a NumPy function for a closed jaxpr.

    The result takes the jaxpr's inputs as positional NumPy arrays of exactly its shapes and dtypes and returns a list
    of arrays of exactly the outputs' shapes and dtypes. It touches no XLA client, keeps no state and may be called
    from several threads. Outputs may be views of inputs, and need not be contiguous; inputs are never written to.
    It does not silence NumPy's floating-point warnings: wrap calls in ``np.errstate(all="ignore")``, which costs
    about 1 µs, once around as many of them as possible. ``function.source`` is the generated text.

    Raises:
        HostUnsupported: a primitive, or a combination of its parameters, is not covered.
    """
    return build(closed_jaxpr.jaxpr, closed_jaxpr.consts)


def build(jaxpr: Any, consts: Sequence[Any]) -> Callable[..., list[np.ndarray]]:
    """As :func:`compile_host`, for an open jaxpr and its constants."""
    em = Emitter()
    refs = []
    for i, var in enumerate(jaxpr.invars):
        shape, dtype = aval_of(var)
        refs.append(Ref(f"a{i}", shape, dtype, shape))
    outs = [_output(em, ref) for ref in em.inline(jaxpr, consts, refs)]
    body = _clean(em.lines, {name: i for i, name in enumerate(outs)})
    parameters = ", ".join(r.name for r in refs)
    source = "\n".join([f"def host({parameters}):", *body, f"    return [{', '.join(outs)}]"])
    scope = em.namespace
    exec(compile(source, "<host program>", "exec"), scope)
    function = scope["host"]
    function.source = source
    return function


def _output(em: Emitter, ref: Ref) -> str:
    """The name of an array that can be handed out for ``ref``."""
    if is_key(ref.dtype):
        raise HostUnsupported("output", "a PRNG key")
    if ref.const is not None:
        # A copy, because the caller may write to what it gets.
        if ref.phys == ref.shape:
            return em.put(f"{ref.name}.copy()", ref.shape, ref.dtype).name
        ref = em.full(ref)
        return em.put(f"{ref.name}.copy()", ref.shape, ref.dtype).name if ref.const is not None else ref.name
    ref = em.full(ref)
    if ref.shape == ():
        return em.put(f"{em.fn(np.asarray)}({ref.name})", ref.shape, ref.dtype, alias=ref).name
    return ref.name


def _merge(lines: list[Line], outs: dict[str, int]) -> list[Line]:
    """Without the lines that compute what an earlier one has computed (the bias corrections of each parameter of an
    optimizer), but for results: each is an array of its own."""
    first: dict[str, Line] = {}
    same: dict[str, str] = {}
    kept = []
    for line in lines:
        line.rename(same)
        known = first.setdefault(line.text, line)
        if known is line or len(known.targets) != len(line.targets) or not outs.keys().isdisjoint(line.targets):
            kept.append(line)
        else:
            same.update(zip(line.targets, known.targets))
    return kept


def _clean(lines: list[Line], outs: dict[str, int]) -> list[str]:
    """Drop repeated and dead lines, free big arrays after their last use and let ufuncs write into operands that die
    there."""
    lines = _merge(lines, outs)
    needed = set(outs)
    kept: list[Line] = []
    for line in reversed(lines):
        if needed.isdisjoint(line.targets):
            continue
        needed.update(line.uses)
        kept.append(line)
    kept.reverse()

    root: dict[str, str] = {}
    pinned: set[str] = set()
    last: dict[str, int] = {}
    big: dict[str, int] = {}
    for i, line in enumerate(kept):
        for use in line.uses:
            last[use] = i
            last[root.get(use, use)] = i
        for target in line.targets:
            root[target] = root.get(line.alias, line.alias) if line.alias else target
            last[target] = i
            big[target] = line.nbytes
            if line.pins:
                pinned.add(target)
        if line.pins:
            pinned.update(root.get(u, u) for u in line.uses)
    end = len(kept)
    for name in outs:
        last[name] = end
        last[root.get(name, name)] = end

    taken: dict[str, str] = {}
    text: list[str] = []
    for i, line in enumerate(kept):
        expression = line.text
        for name, _, _ in line.reuse:
            owner = root.get(name, name)
            # Only an array made here, seen through no view that lives on, and dying on this line.
            if owner == name and name[0] == "v" and name not in pinned and last[name] == i:
                expression = f"{expression[:-1]}, out={name})"  # positional is deprecated for maximum
                taken[name] = line.targets[0]
                break
        text.append(f"    {line.left} = {expression}")
        dying = [
            u
            for u in dict.fromkeys((*line.uses, *line.targets))
            if u[0] == "v" and big.get(u, 0) >= BIG_BYTES and last[u] == i and u not in outs
        ]
        if dying:
            text.append(f"    del {', '.join(dying)}")
    return text
