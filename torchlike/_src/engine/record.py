"""The recorder: an operation becomes one entry of the open trace, and its results are values yet to be computed.

HOT: `record` runs once per operation of every training step. It costs about a microsecond and a half for two
operands; each line is here for a reason. The trace tree makes it cheap: what an operation's results look like
(shapes, dtypes, errors) is worked out the first time a history is seen and read off the tree from then on."""

import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from torchlike._src.core.native import NATIVE
from torchlike._src.engine import stats
from torchlike._src.engine.values import MAX_LOOSE_DEPTH, Trace, TreeNode, Value

ROOT = TreeNode(None, (), None, (), ())
LOCK = threading.RLock()
KERNELS: dict = {}
MAX_KERNELS = 50_000
MAX_DEPTH = 20_000
"""Operations in one trace before it is cut: more than a step of any model that compiles in reasonable time."""
NUMBERS = {float: "f", int: "i", bool: "b", complex: "c"}

flush_hook: Any = None
"""Set by the flush module: flush_hook(trace, reason)."""
direct_hook: Any = None
"""Set by the direct module: runs an operation at once."""


def set_slow(reason: str, on: bool) -> None:
    """Note or clear a reason for the general path."""
    if on:
        SLOW.add(reason)
    else:
        SLOW.discard(reason)


class _Local(threading.local):
    def __init__(self) -> None:
        super().__init__()
        with LOCK:
            self.trace = Trace(ROOT)
            TRACES.add(self.trace)
            if len(TRACES) > 1:
                _go_threaded()


TRACES: "weakref.WeakSet[Trace]" = weakref.WeakSet()
"""Of the threads that are alive, and of ended ones whose results are still pending."""
SLOW: set[str] = set()
"""Why operations must take the general path: "threads", "direct", "autocast", "anomaly", "saved hooks", "inference".
Empty in an ordinary training loop, which then runs the generated code without looking further."""
_threaded = False
direct = False
"""True in direct mode: operations run when they are called."""


def _go_threaded() -> None:
    """From the second thread on, recording takes a lock, so that any thread can flush another's trace."""
    global _threaded
    if _threaded:
        return
    _threaded = True
    SLOW.add("threads")
    # An operation that began before the lock was in use ends within microseconds of running: let its thread run.
    for _ in range(1000):
        threading.Event().wait(0.002)
        if not MAIN.busy:
            break


_local = _Local()


def current() -> Trace:
    """The calling thread's open trace."""
    return _local.trace


def _recorded(op: Any, static: tuple, operands: Sequence) -> list[Value]:
    return emit(op, static, operands)[1]


record: Callable[[Any, tuple, Sequence], list[Value]] = _recorded if NATIVE is None else NATIVE.record
"""record(op, static, operands): append `op(*operands)` to the open trace. Operands are Values and Python numbers (which
become data).

Returns the results, pending; raises what the operator's own checks raise, at the caller's line. The extension module
has the same for operations that this history has met before (`_recorded` is called for the others)."""


def emit(op: Any, static: tuple, operands: Sequence) -> tuple[Any, list[Value]]:
    """`record`, with the kernel that the operation became: (kernel, results)."""
    trace = _local.trace
    if _threaded:
        with LOCK:
            return _record(trace, op, static, operands)
    return _record(trace, op, static, operands)


def _record(trace: Trace, op: Any, static: tuple, operands: Sequence) -> tuple[Any, list[Value]]:
    if direct:
        return direct_hook(op, static, operands)
    if trace.busy:
        trace.recover()
    trace.busy = True
    epoch = trace.epoch
    key: Any = [op, static]
    for x in operands:
        if type(x) is Value:
            if x.epoch is epoch:
                key.append(x.index)
            elif x.array is None or type(x.array) not in PLAIN:
                # Pending elsewhere, failed, or a JAX tracer: rare, and it may end this trace. Start over.
                trace.recover()
                if not settle(x):
                    return direct_hook(op, static, operands)
                return _record(trace, op, static, operands)
            else:
                leaves = trace.leaves
                leaves.append(x)  # first, so that an interrupt between these lines can be undone
                x.index = -len(leaves)
                x.epoch = epoch
                key.append(x.aval)
        elif type(x) is float:
            trace.floats.append(x)
            key.append("f")
        elif type(x) is int or type(x) is bool:
            trace.ints.append(x if SMALLEST <= x <= LARGEST else wrapped(x))
            key.append("i" if type(x) is int else "b")
        else:
            trace.complexes.append(x)
            key.append("c")
    key = tuple(key)
    parent = trace.node
    node = parent.children.get(key)
    if node is None:
        try:
            node = grow(trace, parent, key)
        except BaseException:
            trace.recover()
            raise
    values = trace.values
    if node.count == 1:
        v = NEW(Value)
        v.aval = node.outs[0]
        v.array = None
        v.epoch = epoch
        v.index = node.index
        values.append(v)
        out = [v]
    else:
        out = []
        index = node.index
        for a in node.outs:
            v = NEW(Value)
            v.aval = a
            v.array = None
            v.epoch = epoch
            v.index = index
            index += 1
            out.append(v)
        values.extend(out)
    trace.node = node
    trace.busy = False
    if node.bound:
        check_length(trace)
    return node.kernel, out


def check_length(trace: Trace) -> None:
    """Cut a trace that has become long."""
    depth = trace.node.depth
    if depth > MAX_DEPTH or (depth > MAX_LOOSE_DEPTH and not trace.taped):
        flush_hook(trace, "length")


MAIN = _local.trace
"""The importing thread's trace: the only one unless SLOW says otherwise."""
MAIN_THREAD = threading.get_ident()
"""Generated code compares: another thread's first operation must not land in MAIN."""


def new_leaf(trace: Trace, value: Value, parent: TreeNode) -> Any:
    """The key of a value that the open trace does not know yet; None if the general path must look at it. The trace is
    busy, so an error before the operation is complete takes the leaf back."""
    array = value.array
    if array is None or type(array) not in PLAIN:
        trace.recover()
        return None
    leaves = trace.leaves
    leaves.append(value)  # first, so that an interrupt between these lines can be undone
    value.index = -len(leaves)
    value.epoch = trace.epoch
    return value.aval


SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


def wrapped(number: int) -> int:
    """An integer operand beyond int64: unsigned 64-bit numbers wrap, as in PyTorch; others are its OverflowError."""
    if 0 <= number < 1 << 64:
        return number - (1 << 64)
    raise OverflowError("int too big to convert")


def grow_or_recover(trace: Trace, parent: TreeNode, key: tuple) -> TreeNode:
    """`grow`, for generated code: an error leaves the trace as it was."""
    try:
        return grow(trace, parent, key)
    except BaseException:
        trace.recover()
        raise


NEW = Value.__new__
PLAIN: set = set()
"""Array types that may be leaves: NumPy's and JAX's concrete ones (filled by the backend module)."""


def settle(value: Value) -> bool:
    """Make `value` usable as a leaf of this thread's trace; False if it is a JAX tracer (direct execution)."""
    if value.array is not None:
        return False
    epoch = value.epoch
    if epoch is not None and epoch.trace.epoch is epoch:
        flush_hook(epoch.trace, "another thread's value")
    if value.array is None:
        raise_lost(value)
    return True


def raise_lost(value: Value) -> None:
    error = getattr(value, "error", None)
    if error is not None:
        raise RuntimeError(
            f"this tensor has no value: computing it failed with {type(error).__name__}: {error}"
        ) from error
    raise RuntimeError("this tensor has no value: the operation that makes it was interrupted")


def grow(trace: Trace, parent: TreeNode, key: tuple) -> TreeNode:
    """First time this operation follows this history: check it, infer its results, remember both."""
    op, static, *refs = key
    specs = tuple([spec_of(trace, r) for r in refs])
    kernel = kernel_of(op, static, specs)
    node = TreeNode(parent, key, kernel, tuple(refs), kernel.outs)
    node.line = user_line()
    node.origin = parent.origin or node.line
    parent.children[key] = node
    stats.COUNTS["nodes"] += 1
    return node


def spec_of(trace: Trace, ref: Any) -> Any:
    if type(ref) is int:
        return trace.values[ref].aval if ref >= 0 else trace.leaves[-1 - ref].aval
    return ref


def kernel_of(op: Any, static: tuple, specs: tuple) -> Any:
    """The interned kernel of an operator on operands like these."""
    key = (op, static, specs)
    kernel = KERNELS.get(key)
    if kernel is None:
        kernel = op.make_kernel(static, specs)
        if len(KERNELS) >= MAX_KERNELS:
            KERNELS.clear()  # kernels in use live on in the tree; only sharing is lost
        KERNELS[key] = kernel
    return kernel


PACKAGE = (__name__.split(".", 1)[0] + ".", "torch.")
"""How the names of our own modules begin; the public ones go by PyTorch's while the alias is installed."""


_ours: dict[str, bool] = {}
"""Module name -> whether it is one of our own."""


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs this package's code, generated functions included."""
    name = frame.f_globals.get("__name__", "")
    found = _ours.get(name)
    if found is None:
        found = _ours[name] = (name + ".").startswith(PACKAGE)
    return found


def user_line() -> str:
    """'file.py:12' of the innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(2)
    ours = _ours.get
    while frame is not None:
        found = ours(frame.f_globals.get("__name__", ""))
        if not (is_ours(frame) if found is None else found):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def const_avals(operands: Sequence) -> tuple:
    return tuple(x.aval if type(x) is Value else NUMBERS[type(x)] for x in operands)


def configure_native(arrays: tuple[type, type]) -> None:
    """Give the extension module, if there is one, what it works on. arrays: the usual types among PLAIN."""
    if NATIVE is not None:
        NATIVE.configure_recorder(
            {
                "Value": Value, "Trace": Trace, "TreeNode": TreeNode, "MAIN": MAIN, "MAIN_THREAD": MAIN_THREAD,
                "SLOW": SLOW, "PLAIN": PLAIN, "record": _recorded, "check_length": check_length, "arrays": arrays,
            }
        )  # fmt: skip
