"""Programs: a recorded trace turned into one compiled XLA executable, and its memory and disk caches."""

import hashlib
import os
import pathlib
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.engine import backend, checks, heap, packs, report, stats
from torchlike._src.engine.packs import Group
from torchlike._src.engine.values import TreeNode, Value


class Entry:
    """One operation of a plan: its kernel and where its operands come from."""

    __slots__ = ("first", "kernel", "refs")

    def __init__(self, kernel: Any, refs: tuple, first: int) -> None:
        self.kernel = kernel
        self.refs = refs  # ("v", k) result k, ("l", k) leaf k, ("f"|"i"|"b"|"c", k) number k of its pack
        self.first = first


class Plan:
    """The path to a tree node in executable form."""

    __slots__ = (
        "_entries", "_leaf_specs", "_numel", "complexes", "floats", "host", "host_seconds", "ints", "node", "repacked",
    )  # fmt: skip

    def __init__(self, node: TreeNode) -> None:
        self.node = node
        self.host: dict = {}
        self.host_seconds: tuple[float, float, bool] | None = None
        self.repacked = 0  # programs given up because their small arrays did not come in the expected packs
        self.floats, self.ints, self.complexes = node.floats, node.ints, node.complexes
        # Made when a program is: most traces whose every step is new never become one.
        self._entries: list[Entry] | None = None
        self._leaf_specs: list[Aval] = []
        self._numel: int | None = None

    @property
    def entries(self) -> list[Entry]:
        if self._entries is None:
            self._entries = self._make_entries()
        return self._entries

    @property
    def leaf_specs(self) -> list[Aval]:
        if self._entries is None:
            self._entries = self._make_entries()
        return self._leaf_specs

    @property
    def numel(self) -> int:
        """Elements of all leaves and results together."""
        if self._numel is None:
            self._numel = self.node.size + sum(
                [r.numel for step in self.node.path() for r in step.refs if type(r) is Aval]
            )
        return self._numel

    def _make_entries(self) -> list[Entry]:
        floats = ints = complexes = 0
        leaf_specs: list[Aval] = []
        entries = []
        for step in self.node.path():
            refs: list[tuple[str, int]] = []
            for r in step.refs:
                if type(r) is int:
                    refs.append(("v", r) if r >= 0 else ("l", -1 - r))
                elif type(r) is Aval:
                    refs.append(("l", len(leaf_specs)))
                    leaf_specs.append(r)
                elif r == "f":
                    refs.append(("f", floats))
                    floats += 1
                elif r == "c":
                    refs.append(("c", complexes))
                    complexes += 1
                else:
                    refs.append((r, ints))
                    ints += 1
            entries.append(Entry(step.kernel, tuple(refs), step.index))
        self._leaf_specs = leaf_specs
        return entries

    def needed(self, live: Sequence[int]) -> list[Entry]:
        """The entries that the live results depend on, in order."""
        want = set(live)
        out = []
        for entry in reversed(self.entries):
            outs = range(entry.first, entry.first + len(entry.kernel.outs))
            if any(k in want for k in outs):
                out.append(entry)
                want.update(k for kind, k in entry.refs if kind == "v")
        out.reverse()
        return out


def plan_of(node: TreeNode) -> Plan:
    if node.plan is None:
        node.plan = Plan(node)
    return node.plan


def build(plan: Plan, live: tuple[int, ...], groups: Sequence[Group], alone: Sequence[int]) -> Any:
    """The Python function of a program: (*packs of numbers, *packs of leaves, *other leaves) -> list of the live
    results that go into no pack (`alone`: their order), new packs, and checks, if any.

    A pack of numbers that would be empty is left out: even an empty argument costs a transfer."""
    entries = plan.needed(live)
    conditions = checks.conditions(plan, entries)
    singles = outside(len(plan.leaf_specs), groups)
    first_use = {(e.kernel, e.refs): e for e in entries}
    partners: dict[int, list] = {}  # id(forward entry) -> its pullback entries that want jax.vjp's residuals
    paired: dict[int, Entry] = {}
    for e in entries:
        op = e.kernel.op
        forward = getattr(op, "forward", None)
        if forward is not None and not op.by_rule:
            partner = first_use.get((forward, e.refs[: len(forward.specs)]))
            # A partner that is itself read off another one has nothing of its own to linearise.
            if partner is not None and partner.first < e.first and id(partner) not in paired:
                partners.setdefault(id(partner), []).append(e)
                paired[id(e)] = partner

    def run(*args: Any) -> list:
        given = iter(args)
        floats: Any = next(given) if plan.floats else None
        ints: Any = next(given) if plan.ints else None
        complexes: Any = next(given) if plan.complexes else None
        leaves = {k: array for g in groups if g.leaves for k, array in g.split(next(given)).items()}
        leaves |= zip(singles, given, strict=True)
        values: dict[int, Any] = {}
        pulls: dict[tuple, Any] = {}

        def get(ref: tuple) -> Any:
            kind, k = ref
            if kind == "v":
                return values[k]
            if kind == "l":
                return leaves[k]
            if kind == "f":
                return floats[k]
            if kind == "i":
                return ints[k]
            if kind == "b":
                return ints[k] != 0
            return complexes[k]

        for e in entries:
            arrays = [get(r) for r in e.refs]
            kernel = e.kernel
            if id(e) in paired:
                partner = paired[id(e)]
                op = kernel.op
                count = len(op.forward.specs)
                given = iter(arrays[count:])
                grads = [
                    next(given) if here else jnp.zeros(a.shape, a.dtype.np)
                    for here, a in zip(op.given, op.forward.outs, strict=True)
                ]
                outs = op.finish(pulls[id(partner), op.need](grads))
            elif id(e) in partners:
                outs = None
                for need in {p.kernel.op.need: None for p in partners[id(e)]}:
                    pullback = next(p.kernel.op for p in partners[id(e)] if p.kernel.op.need == need)
                    outs, pulls[id(e), need] = pullback.linearise(arrays)
            else:
                outs = kernel(*arrays)
            for k, o in enumerate(outs):
                values[e.first + k] = o
        results = [values[k] for k in alone]
        results += [g.join([values[k] for k in g.results]) for g in groups if g.results]
        return [*results, checks.collect(conditions, get)] if conditions else results

    return run


def outside(count: int, groups: Sequence[Group]) -> tuple[int, ...]:
    """The leaves, of `count`, that are in no pack."""
    taken = {k for g in groups for k in g.leaves}
    return tuple([k for k in range(count) if k not in taken])


class Program:
    """A compiled trace: which results it returns, which leaves it consumes, what is to be checked.

    Its arguments are the packs of numbers, the packs of small leaves (`groups`) and the other leaves (`singles`); its
    results those of `alone`, then those packs of `groups` that have results, then checks."""

    __slots__ = (
        "alone", "checks", "consumes", "donate", "executable", "fine", "given", "groups", "live", "misses", "plan",
        "positions", "renewed", "singles",
    )  # fmt: skip

    def __init__(
        self, plan: Plan, executable: Any, live: tuple[int, ...], donate: tuple[int, ...], groups: tuple[Group, ...],
        alone: list[int],
    ) -> None:  # fmt: skip
        self.plan = plan
        self.checks = checks.conditions(plan, plan.needed(live))
        self.fine = checks.fine(self.checks)
        self.executable = executable
        self.live = live
        self.donate = donate
        self.groups = [g for g in groups if g.leaves]
        self.singles = outside(len(plan.leaf_specs), groups)
        self.positions = {k: len(self.groups) + i for i, k in enumerate(self.singles)}
        self.renewed = [g for g in groups if g.results]
        self.alone = alone
        self.consumes = bool(donate) or any(g.results for g in self.groups)
        self.misses = 0
        self.given: dict[int, Any] = {}  # by leaf: weak references to the NumPy arrays of the last launch


def compile_program(
    node: TreeNode, live: tuple[int, ...], leaves: Sequence[Value], dead: tuple[int, ...], reason: str
) -> Program:
    """Compile (or load from the disk cache) the program of a path for these live results. `dead` are the leaves that
    nothing refers to any more: those that fit a result are donated, small ones in packs."""
    plan = plan_of(node)
    groups = packs.groups_for(plan, live, leaves, dead)
    host = {k for k in dead if type(leaves[k].array) is np.ndarray}
    if host:  # data from the host, at every run: only what a result replaces comes from a program the next time
        replaced = packs.replacements(plan, live, host)
        dead = tuple([k for k in dead if k not in host or k in replaced])
    donate = donations(plan, live, dead, groups)
    alone = ordered(plan, live, donate, groups)
    began = time.perf_counter()
    key = disk_key(plan, live, donate, groups)
    executable = load(key)
    loaded = executable is not None
    tracing = compiling = 0.0
    if not loaded:
        run = build(plan, live, groups, alone)
        args: list[Any] = [
            jax.ShapeDtypeStruct((count,), kind)
            for count, kind in (
                (plan.floats, np.float64),
                (plan.ints, np.int64),
                (plan.complexes, np.complex128),
            )
            if count
        ]
        donated = []
        for g in groups:
            if g.leaves:
                if g.results:
                    donated.append(len(args))
                args.append(jax.ShapeDtypeStruct((g.layout.size,), g.layout.dtype))
        for k in outside(len(plan.leaf_specs), groups):
            if k in donate:
                donated.append(len(args))
            args.append(jax.ShapeDtypeStruct(plan.leaf_specs[k].shape, plan.leaf_specs[k].dtype.np))
        with jax.enable_x64(True), backend.matmul_precision():
            lowered = jax.jit(run, donate_argnums=tuple(donated), keep_unused=True).lower(*args)
            tracing = time.perf_counter() - began
            resident = heap.resident_bytes()
            executable = backend.compile_lowered(lowered)
            compiling = time.perf_counter() - began - tracing
        heap.give_back(resident)
        stats.COUNTS["trace_seconds"] += tracing
        stats.COUNTS["compiles"] += 1
        save(key, executable)
    else:
        stats.COUNTS["disk_hits"] += 1
    took = time.perf_counter() - began
    stats.COUNTS["compile_seconds"] += took
    program = Program(plan, executable, live, donate, groups, alone)
    PROGRAMS[program] = node
    node.programs.append(program)
    if len(node.programs) > 8:
        PROGRAMS.pop(node.programs.pop(0), None)
    if len(PROGRAMS) > MAX_PROGRAMS:
        _forget_programs()
    report.compiled(node, plan, live, reason, {"seconds": took, "trace": tracing, "compile": compiling}, loaded, key)
    return program


def donations(
    plan: Plan, live: tuple[int, ...], dead: tuple[int, ...], groups: Sequence[Group] = ()
) -> tuple[int, ...]:
    """The dead leaves, but for those in packs, whose buffer some result can take over."""
    if not dead:
        return ()
    dead = tuple(sorted(set(dead).intersection(outside(len(plan.leaf_specs), groups))))
    packed = {k for g in groups for k in g.results}
    room: dict = {}
    outs: dict[int, Aval] = {}
    for e in plan.entries:
        for k, a in enumerate(e.kernel.outs):
            outs[e.first + k] = a
    for k in live:
        if k in packed:
            continue
        a = outs[k]
        room[a] = room.get(a, 0) + 1
    chosen = []
    for k in dead:
        a = plan.leaf_specs[k]
        if room.get(a, 0) > 0:
            room[a] -= 1
            chosen.append(k)
    return tuple(chosen)


def ordered(plan: Plan, live: tuple[int, ...], donate: tuple[int, ...], groups: Sequence[Group]) -> list[int]:
    """The live results that are in no pack, those that take over a donated buffer first, in the order of the leaves.

    JAX gives each donated array to the first result of its kind that is still without. A result that overwrites what
    it replaces needs no copy; with another one's memory, XLA copies both."""
    packed = {k for g in groups for k in g.results}
    rest = {k: None for k in live if k not in packed}
    if not donate:
        return list(rest)
    outs = {e.first + j: a for e in plan.entries for j, a in enumerate(e.kernel.outs) if e.first + j in rest}
    replaced = packs.replacements(plan, tuple(rest), set(donate))
    first: dict[int, int] = {k: r for k, r in replaced.items() if r in rest}
    for r in first.values():
        rest.pop(r)
    for k in donate:
        if k not in first:
            found = next((r for r in rest if outs[r] == plan.leaf_specs[k]), None)
            if found is not None:
                first[k] = found
                rest.pop(found)
    return [*[first[k] for k in donate if k in first], *rest]


def give_up(program: Program) -> None:
    """Do not use a program again: what it is given does not come in the packs that it takes."""
    program.plan.repacked += 1
    _forget(program)


def _forget(program: Program) -> None:
    node = PROGRAMS.pop(program, None)
    if node is not None:
        node.programs = [p for p in node.programs if p is not program]


PROGRAMS: dict[Program, TreeNode] = {}
MAX_PROGRAMS = 1000
"""Programs in memory: an executable takes from a hundred kilobytes to some megabytes."""


def _forget_programs() -> None:
    """Drop the programs whose paths were taken longest ago, until half of MAX_PROGRAMS are left."""
    by_age = sorted(PROGRAMS.items(), key=lambda item: item[1].used)
    for program, _ in by_age[: len(by_age) - MAX_PROGRAMS // 2]:
        _forget(program)


try:  # the C functions under the signal module: its own wrap numbers in enums, which costs as much as a small launch
    from _signal import getsignal as _get_handler
    from _signal import signal as _set_handler
except ImportError:
    from signal import getsignal as _get_handler
    from signal import signal as _set_handler
SIGINT = int(signal.SIGINT)
MAIN_THREAD = threading.main_thread().ident


class Quiet:
    """Holds back Ctrl-C while a program that consumes its inputs runs and its results are stored."""

    def __enter__(self) -> None:
        self.hit = False
        self.before: Any = None
        if threading.get_ident() == MAIN_THREAD:
            before = _get_handler(SIGINT)
            if callable(before):
                try:
                    _set_handler(SIGINT, self._note)
                    self.before = before
                except ValueError:  # not the main interpreter
                    pass

    def _note(self, number: int, frame: Any) -> None:
        self.hit = True

    def __exit__(self, *unused: object) -> None:
        if self.before is not None:
            _set_handler(SIGINT, self.before)
            if self.hit:
                signal.raise_signal(signal.SIGINT)


# -- the disk cache -------------------------------------------------------------------------------------------------


def cache_folder() -> pathlib.Path | None:
    """Where compiled programs are kept between runs: TORCHLIKE_CACHE_DIR ('' or '0' turns it off), else the user's
    cache folder."""
    chosen = os.environ.get("TORCHLIKE_CACHE_DIR")
    if chosen is not None:
        return pathlib.Path(chosen) if chosen not in ("", "0") else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "torchlike" / "programs"


_fingerprint: str | None = None
MAX_CACHE_BYTES = 2 << 30


def fingerprint() -> str:
    """Identifies this code, this JAX and this machine: a program compiled by others than these is not reused."""
    global _fingerprint
    if _fingerprint is None:
        digest = hashlib.sha256()
        root = pathlib.Path(__file__).parents[2]
        for path in sorted(root.rglob("*.py")):
            digest.update(path.read_bytes())
        device = jax.devices()[0]
        digest.update(
            repr((jax.__version__, np.__version__, device.platform, device.device_kind, jax.device_count())).encode()
        )
        digest.update(getattr(device.client, "platform_version", "").encode())
        digest.update(repr((os.environ.get("XLA_FLAGS"), cpu_flags())).encode())
        _fingerprint = digest.hexdigest()
    return _fingerprint


def cpu_flags() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return "".join(sorted({line for line in lines if line.startswith(("flags", "model name"))}))
    except OSError:
        import platform

        return platform.processor()


def disk_key(plan: Plan, live: tuple, donate: tuple, groups: Sequence[Group]) -> str | None:
    """A name for the program, from the whole recorded path; None if it cannot be named across processes."""
    if cache_folder() is None:
        return None
    parts = [repr((live, donate, [g.words() for g in groups], backend.settings()))]
    for e in plan.entries:
        named = describe(e.kernel)
        if named is None:
            return None
        parts.append(f"{named}<-{e.refs}")
    parts.append(repr(plan.leaf_specs))
    text = "\n".join(parts)
    return hashlib.sha256((fingerprint() + text).encode()).hexdigest()


def describe(kernel: Any) -> str | None:
    """The kernel in words that mean the same in another process."""
    text = kernel.cache.get("text", "")
    if text == "":
        op = kernel.op
        forward = getattr(op, "forward", None)
        words = getattr(op, "words", None)
        if words is not None:
            text = words(kernel, describe)
        elif forward is not None:
            inner = describe(forward)
            text = inner and f"grad({inner},{op.need},{op.given},{op.by_rule},{kernel.specs!r})"
        elif getattr(op, "persistent", True):
            text = f"{op.fn.__module__}.{op.name}{static_text(kernel.static)}{kernel.specs!r}"
            if " at 0x" in text or "<locals>" in text or "<lambda>" in text:
                text = None
        else:
            text = None
        kernel.cache["text"] = text
    return text


def static_text(x: Any) -> str:
    """Static arguments in such words; a kernel among them by its own."""
    if type(x) is tuple:
        return f"({', '.join(map(static_text, x))},)"
    if hasattr(x, "specs") and hasattr(x, "static"):
        return describe(x) or "<lambda>"
    return repr(x)


def load(key: str | None) -> Any:
    folder = cache_folder()
    if key is None or folder is None:
        return None
    path = folder / key[:2] / key
    try:
        if os.name == "posix" and path.stat().st_uid != os.getuid():
            return None  # only files that this user wrote are executed
        data = path.read_bytes()
        os.utime(path)
    except OSError:
        return None
    try:
        from jax.experimental.serialize_executable import deserialize_and_load

        digest, payload = data[:32], data[32:]
        if hashlib.sha256(payload).digest() != digest:
            return None
        with jax.enable_x64(True):
            return deserialize_and_load(*pickle.loads(payload))
    except Exception:
        return None


def save(key: str | None, executable: Any) -> None:
    folder = cache_folder()
    if key is None or folder is None:
        return
    try:
        # A program that calls LAPACK holds addresses that JAX looks up while it traces: loaded without tracing in
        # another process, it would jump to nowhere.
        if any(name in executable.as_text() for name in ("lapack", "blas_")):
            return
        from jax.experimental.serialize_executable import serialize

        payload = pickle.dumps(serialize(executable))
        path = folder / key[:2] / key
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, path)
    except Exception:
        return
    _trim(folder)


_saved = 0


def _trim(folder: pathlib.Path) -> None:
    """Keep the folder under its limit, least recently used files first; looked at once in 64 writes."""
    global _saved
    _saved += 1
    if _saved % 64 != 1:
        return
    try:
        files = [(p.stat().st_atime, p.stat().st_size, p) for p in folder.glob("*/*")]
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= MAX_CACHE_BYTES:
                break
            path.unlink(missing_ok=True)
            total -= size
    except OSError:
        return
