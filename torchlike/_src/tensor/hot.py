"""The hot path as source text: record an operation of one to three operands and put it on the tape, with no call in
between. It does exactly what `apply` does when nothing unusual is going on (`SLOW` is empty).

HOT: these lines run once per operation of every training step, in less than a microsecond; each was measured."""

from collections.abc import Sequence

from torchlike._src.core.native import NATIVE
from torchlike._src.ops.declare import TO, TS, Op, T

TENSOR, EITHER, NUMBER = "tensor", "either", "number"
"""What an operand is known to be. EITHER: `_tensor` says whether it is a tensor or a Python number."""

RECORDED = [
    "_node = _parent.children.get(_key)",
    "if _node is None: _node = grow_or_recover(MAIN, _parent, _key)",
    "_v = NEW(Value)",
    "_v.aval = _aval = _node.aval",
    "_v.array = None",
    "_v.epoch = _epoch",
    "_v.index = _node.index",
    "MAIN.values.append(_v)",
    "MAIN.node = _node",
    "MAIN.busy = False",
    "_t = NEW(Tensor)",
    "_s = NEW(Storage)",
    "_s.value = _v",
    "_s.version = 0",
    "_t._s = _s",
    "_t._view = None",
    "_t._aval = _aval",
]
"""The lines that append the operation `_key` to the open trace and make its result `_t`."""
READY = "not SLOW and get_ident() == MAIN_THREAD"
GIVEN = ((-1, -1, -1),)
"""The static arguments of a layer with a bias: where its operands are."""


def native_lines(declared: Op, n: Sequence[str], static: str) -> list[str]:
    """The same by the extension module: `_native` records the operation, or returns None."""
    return [f"_t = _native({static}, {', '.join(n)})", "if _t is not None: return _t"]


def function_lines(declared: Op) -> list[str] | None:
    """The lines of an operator's public function for its common case; None if it has none."""
    names = [n for n, _ in declared.operands]
    kinds = [a for _, a in declared.operands]
    if declared.outputs is not None:
        return None
    if kinds == [T, T, TO]:
        if declared.statics or not declared.differentiable:
            return None
        if NATIVE is not None:
            return [f"if {names[2]} is not None:", *_indent(native_lines(declared, names, "GIVEN"))]
        return [f"if {names[2]} is not None and {READY}:", *_indent(lines(declared, names, [TENSOR] * 3, "GIVEN"))]
    if not declared.simple or kinds not in ([T], [TS], [T, T], [T, TS], [TS, T], [TS, TS]):
        return None
    statics = "".join(f"{x} if type({x}) is int or {x} is None else static_argument({x}), " for x in declared.statics)
    if NATIVE is not None:
        return native_lines(declared, names, f"({statics})")
    body = [f"_static = ({statics})"] if statics else []
    if kinds[1:] == [TS]:
        body.append(f"_tensor = type({names[1]}) in TENSOR_TYPES")
    body += lines(declared, names, [TENSOR, *[TENSOR if k is T else EITHER for k in kinds[1:]]], _name(statics))
    first = "" if kinds[0] is T else f" and type({names[0]}) in TENSOR_TYPES"
    return [f"if {READY}{first}:", *_indent(body)]


def _name(statics: str) -> str:
    return "_static" if statics else "()"


def operator_lines(declared: Op, reverse: bool) -> list[str] | None:
    """The lines of `self + other`, or with `reverse` of `other + self`, for tensors and Python numbers."""
    kinds = [a for _, a in declared.operands]
    if declared.outputs is not None or not declared.simple or kinds not in ([T, T], [T, TS], [TS, T], [TS, TS]):
        return None
    static = "_static" if declared.statics else "()"
    if reverse:
        if kinds[0] is not TS:
            return None
        if NATIVE is not None:
            return native_lines(declared, ["other", "self"], static)
        return [
            f"if type(other) in NUMBERS and {READY}:",
            *_indent(lines(declared, ["other", "self"], [NUMBER, TENSOR], static)),
        ]
    if NATIVE is not None:
        return native_lines(declared, ["self", "other"], static)
    out = ["_tensor = type(other) in TENSOR_TYPES"]
    if kinds[1] is T:
        return [*out, f"if _tensor and {READY}:", *_indent(lines(declared, ["self", "other"], [TENSOR] * 2, static))]
    out.append(f"if (_tensor or type(other) in NUMBERS) and {READY}:")
    return [*out, *_indent(lines(declared, ["self", "other"], [TENSOR, EITHER], static))]


def unary_lines(declared: Op) -> list[str] | None:
    """The lines of `-self` and the like."""
    if declared.outputs is not None or not declared.simple or len(declared.operands) != 1 or declared.statics:
        return None
    if NATIVE is not None:
        return native_lines(declared, ["self"], "()")
    return [f"if {READY}:", *_indent(lines(declared, ["self"], [TENSOR], "()"))]


def _indent(lines: Sequence[str], by: int = 1) -> list[str]:
    return ["    " * by + line for line in lines]


def lines(declared: Op, n: Sequence[str], kinds: Sequence[str], static: str) -> list[str]:
    """Record `declared` on the variables `n` and return the result. Falls off the end where the general path must look.
    static: the expression of the static arguments."""
    out = []
    for k, (x, kind) in enumerate(zip(n, kinds, strict=True)):
        if kind != NUMBER:
            given = "if _tensor: " if kind == EITHER else ""
            out.append(f"{given}_v{k} = {x}._s.value if {x}._view is None else {x}._read()")
    out += ["if MAIN.busy: MAIN.recover()", "MAIN.busy = True", "_epoch = MAIN.epoch", "_parent = MAIN.node"]
    depth = 0
    for k, (x, kind) in enumerate(zip(n, kinds, strict=True)):
        known = f"_r{k} = _v{k}.index if _v{k}.epoch is _epoch else new_leaf(MAIN, _v{k}, _parent)"
        number = [
            f"if type({x}) is float:",
            f"    MAIN.floats.append({x}); _r{k} = 'f'",
            f"elif type({x}) is complex:",
            f"    MAIN.complexes.append({x}); _r{k} = 'c'",
            "else:",
            f"    MAIN.ints.append({x} if SMALLEST <= {x} <= LARGEST else wrapped({x}))",
            f"    _r{k} = 'i' if type({x}) is int else 'b'",
        ]
        if kind == TENSOR:
            out += _indent([known, f"if _r{k} is not None:"], depth)
            depth += 1
        elif kind == EITHER:
            out += _indent(["if _tensor:", "    " + known, "el" + number[0], *number[1:]], depth)
            out += _indent([f"if _r{k} is not None:"], depth)
            depth += 1
        else:
            out += _indent(number, depth)
    body = [f"_key = (_op, {static}, {', '.join(f'_r{k}' for k in range(len(n)))})", *RECORDED]
    if declared.differentiable:
        body += taped(n, kinds)
    body += ["_t._rg = False", "_t._gf = None", "if _node.bound: check_length(MAIN)", "return _t"]
    return out + _indent(body, depth)


def taped(n: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Put the operation on the tape if an operand needs a gradient, and return its result."""
    some = []
    edges = []
    for k, (x, kind) in enumerate(zip(n, kinds, strict=True)):
        edge = f"(({x}._gf or {x}) if {x}._view is None else {x}._edge()) if {x}._rg else None"
        if kind == TENSOR:
            some.append(f"{x}._rg")
            edges.append(f"_e{k} = {edge}")
        elif kind == EITHER:
            some.append(f"(_tensor and {x}._rg)")
            edges.append(f"_e{k} = ({edge}) if _tensor else None")
        else:
            edges.append(f"_e{k} = None")
    all_ = range(len(n))
    if len(n) == 2:
        need = "3 if _e1 is not None and _e0 is not None else 1 if _e0 is not None else 2"
    elif len(n) == 1:
        need = "1"
    else:
        need = " | ".join(f"({1 << k} if _e{k} is not None else 0)" for k in all_)
    choice = ", ".join(f"_e{k} is not None" for k in all_)
    return [
        f"if ({' or '.join(some)}) and GRAD.enabled:",
        *_indent(edges),
        f"    _need = {need}",
        "    _plan = _node.grad_plans.get(_need, 0)",
        "    if _plan == 0:",
        f"        _plan = _node.grad_plans[_need] = grad_plan(_node.kernel, ({choice},))",
        "    if _plan is not None:",
        "        MAIN.taped = True",
        "        _t._rg = True",
        "        _t._gf = _g = NEW(OpNode)",
        "        _g.seq = next_sequence()",
        "        _g.extra = None",
        "        _g.plan = _plan",
        f"        _g.edges = ({', '.join(f'_e{k}' for k in all_)},)",
        *_indent(saved(n, kinds), 2),
        "        if _node.bound: check_length(MAIN)",
        "        return _t",
    ]


def saved(n: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """What the node `_g` keeps. The usual cases are written out: one operand, the first two, the result."""
    tensors = [x if k == TENSOR else f"({x} if _tensor else None)" if k == EITHER else "None" for x, k in zip(n, kinds)]
    values = [
        f"_v{k}" if kind == TENSOR else f"(_v{k} if _tensor else {x})" if kind == EITHER else x
        for k, (x, kind) in enumerate(zip(n, kinds, strict=True))
    ]
    general = f"_g.saved = save(_plan, ({', '.join(tensors)},), ({', '.join(values)},), _s)"
    out = ["if not _plan.saves: _g.saved = ()"]
    if len(n) == 1:
        return [
            *out,
            "elif _plan.only == 0:",
            f"    _s0 = {n[0]}._s",
            f"    _g.saved = ((_v0, _s0, _s0.version),) if not {n[0]}._is_inference else {general[11:]}",
            "elif _plan.inputs: " + general,
            "else: _g.saved = ((_v, _s, 0),)",
        ]
    out.append("else:")
    out.append("    _only = _plan.only")
    tensor = "_tensor and " if EITHER in kinds else ""
    word = "if"
    if NUMBER not in kinds:
        out += [
            f"    if _only == 2 and {tensor}not {n[0]}._is_inference and not {n[1]}._is_inference:",
            f"        _s0 = {n[0]}._s; _s1 = {n[1]}._s",
            "        _g.saved = ((_v0, _s0, _s0.version), (_v1, _s1, _s1.version))",
        ]
        word = "elif"
    for k in range(2):
        if kinds[k] != NUMBER:
            given = tensor if kinds[k] == EITHER else ""
            out += [
                f"    {word} _only == {k} and {given}not {n[k]}._is_inference:",
                f"        _s{k} = {n[k]}._s",
                f"        _g.saved = ((_v{k}, _s{k}, _s{k}.version),)",
            ]
        else:
            out.append(f"    {word} _only == {k}: _g.saved = (({n[k]}, None, 0),)")
        word = "elif"
        if kinds[k] == EITHER:
            out.append(f"    elif _only == {k} and not _tensor: _g.saved = (({n[k]}, None, 0),)")
    return [*out, "    else: " + general]
