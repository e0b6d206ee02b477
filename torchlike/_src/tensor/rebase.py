"""The history of views after their base was written to: remade on the graph, or refused as PyTorch refuses it."""

from typing import Any

from torchlike._src.autograd.grad_mode import MODE, Anomaly
from torchlike._src.autograd.tape import OpNode, OutEdge, _sequence, grad_plan, note_stack, operator_name
from torchlike._src.core.aval import Aval
from torchlike._src.engine.record import NUMBERS, kernel_of
from torchlike._src.ops import views as ops
from torchlike._src.storage.storage import FUNCTION, INFERENCE, MULTI, NO_GRAD, View


def regenerate(t: Any) -> Any:
    """A view's place on the graph after its base was written to: the view of what the base has become."""
    base = t._base_tensor
    if t._view.made is not None and MODE.enabled:
        raise RuntimeError(forbidden(t, "its base or another view of its base has been modified inplace"))
    t._gf = view_node(base, t._view, base._edge())
    t._vversion = t._s.version
    return t._gf


def view_node(base: Any, view: View, edge: Any) -> Any:
    """The graph nodes from a base to one of its views, remade after a write; PyTorch remakes them as one AsStrided
    node where the dtype allows, which is how the last one is labelled."""
    source = base._aval
    steps = relative_steps(base, view)
    for op, static, numbers in steps:
        node = single_view_node(op, static, numbers, source, edge, None)
        source = node.outs[0]
        edge = node
    if steps and steps[-1][0].strided:
        edge.relabel("AsStridedBackward0")
    return edge


def single_view_node(op: Any, static: tuple, numbers: tuple, source: Aval, edge: Any, label: str | None) -> OpNode:
    """The graph node of one view step."""
    specs = (source, *[NUMBERS[type(n)] for n in numbers]) if numbers else (source,)
    kernel = kernel_of(op, static, specs)
    node = object.__new__(OpNode)
    node.edges = (edge, *[None] * len(numbers)) if numbers else (edge,)
    node.seq = _sequence()
    node.extra = None
    node.plan = grad_plan(kernel, (True, *[False] * len(numbers)) if numbers else (True,), label)
    node.saved = tuple([(n, None, 0) for n in numbers])
    if Anomaly.enabled:
        note_stack(node)
    return node


def relative_steps(base: Any, view: View) -> tuple:
    """The steps from what `base` sees to what `view` sees. A base is itself a view of its storage if it was made by
    `detach()` of a view, or changed its geometry in place (`t_`)."""
    own = base._view
    if own is None:
        return view.steps
    n = len(own.steps)
    if view.steps[:n] == own.steps:
        return view.steps[n:]
    back = []
    source = base._s.value.aval
    for op, static, _ in own.steps:
        if op is ops.PERMUTE:
            dims = static[0][1]
            back.append((op, (("dims", tuple(sorted(range(len(dims)), key=dims.__getitem__))),), ()))
        elif op is ops.RESHAPE:
            back.append((op, (("shape", source.shape),), ()))
        else:
            raise NotImplementedError("torchlike: writing through a view of a view that was then changed in place")
        source = kernel_of(op, static, (source,)).outs[0]
    return (*reversed(back), *view.steps)


FORBIDDEN = {
    FUNCTION: " This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
    "Function.",
    MULTI: " This view is the output of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    NO_GRAD: " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
    "moving both the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
    "tracked) or both outside (if you want the inplace to be tracked).",
    INFERENCE: " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
    "moving both the view and the inplace either both inside the inference_mode block (if you don't want the inplace "
    "to be tracked) or both outside (if you want the inplace to be tracked).",
}


def forbidden(t: Any, what: str) -> str:
    """PyTorch's text for a tracked write to a view that must not be written to, or to its base."""
    made = t._view.made
    gf = t._gf
    if gf is not None:
        node, nr = (gf.node, gf.nr) if type(gf) is OutEdge else (gf, 0)
        start = f"Output {nr} of {operator_name(node)} is a view and {what}."
    elif made == INFERENCE:
        start = f"A view was created in inference mode and {what} in normal mode."
    else:
        start = f"A view was created in no_grad mode and {what} with grad mode enabled."
    return start + FORBIDDEN[made]
