"""The call path: operands in, the operation recorded, a node put on the tape; and the one door for writes.

HOT: `apply`, `apply1`, `apply2` and `attach` run once per operation."""

import gc
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.autograd import tape
from torchlike._src.autograd.dual import DualKernel, Kept, dual_of, lifted, still_dual
from torchlike._src.autograd.grad_mode import MAIN_MODE, MODE, Anomaly, MainMode
from torchlike._src.autograd.tape import GradPlan, Node, OpNode, OutEdge, _sequence, grad_plan
from torchlike._src.autograd.walk import accumulate
from torchlike._src.core import dtype as dtypes
from torchlike._src.core.aval import Aval
from torchlike._src.core.native import NATIVE
from torchlike._src.engine import Value, record
from torchlike._src.engine.record import SLOW, emit
from torchlike._src.ops.declare import Kernel
from torchlike._src.ops.kernels import ADD, CAST, COPY_INTO
from torchlike._src.ops.views import AS_STRIDED_OF_VIEW, fused
from torchlike._src.storage.storage import Storage, write_view
from torchlike._src.tensor.boundary import parameter_written
from torchlike._src.tensor.rebase import forbidden, regenerate, relative_steps, view_node
from torchlike._src.tensor.tensor import NEW, TENSOR_TYPES, Tensor, TensorBase, wrap

INFERENCE_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


class Autocast:
    """Set by torch.amp: `cast(op, operands)` gives the operands in the dtype that autocast wants."""

    enabled = False
    cast: Any = None


def _apply(op: Any, static: tuple, operands: Sequence, many: bool = False) -> Any:
    if Autocast.enabled:
        operands = Autocast.cast(op, operands)
    values = []
    tracked = False
    for t in operands:
        if isinstance(t, TensorBase):
            values.append(t._s.value if t._view is None else t._read())
            if t._rg:
                tracked = True
        else:
            values.append(t)
    kernel, outs = emit(op, static, values)
    if many:
        results: Any = [wrap(v) for v in outs]
        if tracked and MODE.enabled and op.differentiable:
            attach(kernel, operands, values, results)
        elif MODE.inference:
            _mark_inference(results)
        return results
    out = outs[0]
    t = NEW(Tensor)
    s = NEW(Storage)
    s.value = out
    s.version = 0
    t._s = s
    t._view = None
    t._aval = out.aval
    t._rg = False
    t._gf = None
    if tracked and MODE.enabled and op.differentiable:
        attach(kernel, operands, values, (t,))
    elif MODE.inference:
        t._is_inference = True
    return t


apply: Callable[..., Any] = _apply if NATIVE is None else NATIVE.apply
"""apply(op, static, operands, many=False): record `op` on tensors and Python numbers, with a node on the tape. One
tensor, or with `many` a list. The extension module has it for the common case, and calls `_apply` for the rest."""


def _mark_inference(results: Sequence) -> None:
    for t in results:
        t._is_inference = True


def attach(kernel: Any, operands: Sequence, values: Sequence, results: Sequence, label: str | None = None) -> Any:
    """Make the node of a recorded operation and hang its results on it; None if no result can have a gradient."""
    edges = []
    for t in operands:
        if isinstance(t, TensorBase) and t._rg:
            edges.append((t._gf or t) if t._view is None else t._edge())
        else:
            edges.append(None)
    if type(kernel) is DualKernel:
        kernel, edges = lifted(kernel, edges)
    plan = grad_plan(kernel, tuple([e is not None for e in edges]), label)
    if plan is None:
        return None
    saved: list = []
    for k in plan.inputs:
        t = operands[k]
        if isinstance(t, TensorBase):
            if t._is_inference:
                raise RuntimeError(INFERENCE_SAVED)
            s = t._s
            saved.append((values[k], s, s.version))
        else:
            saved.append((t, None, 0))
    for k in plan.outputs:
        s = results[k]._s
        saved.append((s.value, s, s.version))
    if plan.whole:
        saved += [(v, None, 0) for v in values]
    node = NEW(OpNode)
    node.edges = tuple(edges)
    node.seq = _sequence()
    node.extra = None
    node.plan = plan
    node.saved = tuple(saved)
    if Anomaly.enabled:
        tape.note_stack(node)
    if SLOW:
        if SavedHooks.stack:
            SavedHooks.pack(node, operands, plan.inputs, plan.outputs, results)
        if dual_of(results[0]._s.value) is not None:
            node.saved = Kept(node.saved)
    if len(results) == 1:
        t = results[0]
        t._rg = True
        t._gf = node
    else:
        for k, t in enumerate(results):
            dtype = t._aval.dtype
            if dtype.is_floating_point or dtype.is_complex:
                t._rg = True
                t._gf = node if k == 0 else OutEdge(node, k)
    record_taped()
    return node


def record_taped() -> None:
    """Tell the recorder that the open trace holds operations that a gradient will need."""
    from torchlike._src.engine.record import _local

    _local.trace.taped = True


class _SavedHooks(threading.local):
    """torch.autograd.graph.saved_tensors_hooks: the pairs of hooks in force in this thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list = []
        self.disabled: str | None = None

    def pack(self, node: OpNode, operands: Sequence, inputs: tuple, outputs: tuple, results: Sequence) -> None:
        """Pass the tensors that a new node saved through the innermost pack hook."""
        hooks = self.stack[-1]
        tensors = [operands[k] for k in inputs] + [results[k] for k in outputs]
        saved = list(node.saved)
        for k, t in enumerate(tensors):
            if isinstance(t, TensorBase):
                saved[k] = (tape.pack(wrap(t._read()), *hooks), None, 0)  # as it is now: `t` may be about to change
        for k in range(len(tensors), len(saved)):  # operands that the node keeps only for second derivatives
            if type(saved[k][0]) is Value:
                saved[k] = (tape.pack(wrap(saved[k][0]), *hooks), None, 0)
        node.saved = tuple(saved)


SavedHooks = _SavedHooks()


# -- writing -----------------------------------------------------------------------------------------------------------

LEAF_INPLACE = "a leaf Variable that requires grad is being used in an in-place operation."
LEAF_VIEW_INPLACE = "a view of a leaf Variable that requires grad is being used in an in-place operation."
OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)
INFERENCE_INPLACE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)


def check_writable(target: Tensor, tracked: bool, overlap: bool = False) -> None:
    """PyTorch's conditions on a tensor that is about to be modified. `tracked`: the write will be recorded; `overlap`:
    elements that share memory are fine (a fill)."""
    if target._is_inference and not MODE.inference:
        raise RuntimeError(INFERENCE_INPLACE)
    if tracked or target._rg:
        check_history(target)
    view = target._view
    if view is not None and not overlap and 0 in view.strides and overlaps(target._aval.shape, view.strides):
        raise RuntimeError(OVERLAP)


def check_history(target: Tensor) -> None:
    """PyTorch's conditions on a tensor whose modification will be recorded."""
    if not MODE.enabled:
        return
    base = target._base_tensor if target._view is not None else None
    if base is not None:
        if target._view.made is not None:
            raise RuntimeError(forbidden(target, "is being modified inplace"))
        if base._rg and base._gf is None:
            raise RuntimeError(LEAF_VIEW_INPLACE)
        if isinstance(target._gf, OpNode) and target._gf.plan.kernel.op is AS_STRIDED_OF_VIEW:
            target._gf = view_node(base, target._view, base._edge())  # a write goes to the base itself
    if target._rg and target.is_leaf:
        raise RuntimeError(LEAF_INPLACE)


def overlaps(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True))


def write(target: Tensor, new: Tensor, *, fit: bool = True) -> Tensor:
    """Replace the data of `target` by that of `new`, history included: the one door of every in-place operation.

    new: broadcastable to target's shape; cast to its dtype. Callers have checked both."""
    tracked = MODE.enabled and (new._rg or target._rg)
    aval = target._aval
    if fit and new._aval is not aval:
        new = apply(COPY_INTO, (("aval", aval),), (new,))
    value = new._read()
    storage = target._s
    view = target._view
    if view is None:
        storage.value = value if not SLOW else still_dual(storage.value, value)
        count_write(target)
        if tracked:
            become(target, new, 2)
            if new._gf is not None:
                _rename_saved(new, target)
        return target
    base = storage.value
    if tracked:
        _write_tracked_view(target, new, value)
        return target
    storage.value = write_view(base, view.steps, value)
    count_write(target)
    target._vb, target._vv = storage.value, value
    return target


def count_write(target: Tensor) -> None:
    """One more write: `.data` and its views have a count of their own."""
    if target._silent is None:
        target._s.version += 1
        if target._rg and not MODE.enabled:
            parameter_written()
    else:
        parameter_written()
        target._silent[0] += 1


def become(base: Tensor, new: Tensor, holders: int = 1) -> None:
    """Give a tensor the history of `new`. If it had none before, its views now have one too.

    holders: how many references to the storage are known: the tensor's, the written view's, the callers' variables.
    With no others there are no views to look for: a search through all of Python's objects (some 20 ms)."""
    first = not base._rg
    if base._retains:
        tape.move_retained(base, new._gf)
    base._rg, base._gf = new._rg, new._gf
    if first and new._rg and sys.getrefcount(base._s) > holders + 1:
        for t in gc.get_referrers(base._s):
            if isinstance(t, TensorBase) and t._view is not None and t._base_tensor is base and not t._rg:
                dtype = t._aval.dtype
                if dtype.is_floating_point or dtype.is_complex:
                    t._rg, t._gf, t._vversion = True, None, -1  # made when it is needed


def _rename_saved(new: Tensor, target: Tensor) -> None:
    """What the node of an in-place operation saved: its own output lives in `target` from now on, and the operand that
    it overwrote is kept as it was (PyTorch saves a clone of it), so that this write does not count against it."""
    edge = new._gf
    node = edge.node if type(edge) is OutEdge else edge
    if type(node) is not OpNode or node.saved is None:
        return
    temporary, storage = new._s, target._s
    inputs = node.plan.inputs
    saved: list = []
    for k, (value, of, version) in enumerate(node.saved):
        if of is temporary:
            saved.append((value, storage, storage.version))
        elif of is storage and k < len(inputs) and inputs[k] == 0:
            saved.append((value, None, 0))
        else:
            saved.append((value, of, version))
    node.saved = type(node.saved)(saved)


def _write_tracked_view(target: Tensor, new: Tensor, value: Value) -> None:
    """In-place on a view that has a history: the base becomes 'itself, with this part replaced' (CopySlices)."""
    base = target._base_tensor
    storage = target._s
    view = target._view
    if base is None:  # a detached view: a tensor of its own for autograd
        storage.value = write_view(storage.value, view.steps, value)
        count_write(target)
        become(target, new, 3)
        if new._gf is not None:
            _rename_saved(new, target)
        target._vb, target._vv = storage.value, value
        return
    steps = fused(relative_steps(base, view))
    # Through a chain of views, each level is one differentiable write.
    seen = [wrap(base._read())]
    seen[0]._rg, seen[0]._gf = base._rg, base._edge() if base._rg else None
    for op, static, numbers in steps[:-1]:
        seen.append(apply(op, static, (seen[-1], *numbers)))
    piece = new
    for (op, static, numbers), outer in zip(reversed(steps), reversed(seen), strict=True):
        piece = apply(op.write, static, (outer, piece, *numbers))
    if base._view is None:
        storage.value = piece._read()
    else:
        storage.value = write_view(storage.value, base._view.steps, piece._read())
    count_write(target)
    if new._gf is not None:
        _rename_saved(new, target)
    become(base, piece, 4)
    target._rg, target._gf = piece._rg, None
    if piece._rg:
        regenerate(target)
    target._vb, target._vv = storage.value, value


def inplace(target: Tensor, new_of: Any, name: str) -> Tensor:
    """Run an out-of-place operation and store its result in `target` under the rules of in-place operations."""
    check_writable(target, False)
    new = new_of()
    check_result(target, new)
    if new._rg and not target._rg:
        check_writable(target, True)
    return write(target, new)


def check_result(target: Tensor, new: Tensor) -> None:
    """Whether an in-place operation's result can be stored: same shape, castable dtype."""
    a, b = target._aval, new._aval
    if a is b:
        return
    if b.shape != a.shape:
        raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(b.shape)}")
    check_cast(b.dtype, a.dtype)


def check_cast(source: Any, target: Any) -> None:
    """RuntimeError if results of dtype `source` may not be stored as `target` (float into integer, …)."""
    from torchlike._src.core.promotion import can_cast

    if source is not target and not can_cast(source, target):
        raise RuntimeError(
            f"result type {source.scalar_name} can't be cast to the desired output type {target.scalar_name}"
        )


def write_out(out: Tensor, new: Tensor, name: str, operands: Sequence) -> Tensor:
    """Store a result in `out=`; resizes it with PyTorch's warning if it has elements of another shape."""
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if SLOW and dual_of(new._read()) is not None:
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    if MODE.enabled and (out._rg or any(isinstance(t, TensorBase) and t._rg for t in operands)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    check_cast(new._aval.dtype, out._aval.dtype)
    if out._aval.shape != new._aval.shape:
        resize_out(out, new._aval)
    return write(out, new)


def resize_out(out: Tensor, aval: Any) -> None:
    """Give an out= tensor the result's shape."""
    if out._aval.numel > 0:
        import warnings

        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out._aval.shape)}, which does "
            f"not match the required output shape {list(aval.shape)}. This behavior is deprecated, and in a future "
            "PyTorch release outputs will not be resized unless they have zero elements. You can explicitly reuse an "
            "out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            stacklevel=4,
        )
    reshape_storage(out, aval.shape)


def reshape_storage(t: Tensor, shape: tuple[int, ...]) -> None:
    """Give `t` a storage of zeros of another shape (its identity, dtype and device stay)."""
    new = wrap(tape.zeros_like(t._aval.with_shape(tuple(shape))))
    t._s, t._view, t._aval = new._s, None, new._aval
    t._vb = t._vv = None


def cast_to(t: Tensor, dtype: Any) -> Tensor:
    """t in another dtype (differentiable); t itself if it has it."""
    if t._aval.dtype is dtype:
        return t
    return apply(CAST, (("dtype", dtype),), (t,))


tape.Hooks.apply = staticmethod(apply)
_ = dtypes, record


def configure_native() -> None:
    """Give the extension module, if there is one, what it works on."""
    if NATIVE is not None:
        NATIVE.configure_tape(
            {
                "Tensor": Tensor, "Storage": Storage, "OpNode": OpNode, "OutEdge": OutEdge, "GradPlan": GradPlan,
                "Aval": Aval, "MainMode": MainMode, "MAIN_MODE": MAIN_MODE, "TENSOR_TYPES": TENSOR_TYPES,
                "Node": Node, "Kernel": Kernel, "ADD": ADD, "apply": _apply, "accumulate": accumulate,
                "grad_plan": grad_plan, "sequence": _sequence.__self__,  # type: ignore[attr-defined]  # a C method's
            }
        )  # fmt: skip


configure_native()
