"""torch.utils.swap_tensors: two tensor objects trade places."""

import gc
import weakref
from collections.abc import Sequence
from typing import Any

from torchlike._src.autograd.tape import Node
from torchlike._src.tensor.tensor import TensorBase

FIELDS = ("_aval", "_gf", "_rg", "_s", "_view")
POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
    "backward on a tensor that was swapped. For a module m with "
    "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of the "
    "module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change "
    "the device/dtype before running forward (or after both forward and backward)."
)


class PoisonedNode(Node):
    """Stands in a graph for a leaf that was swapped since."""

    __slots__ = ()

    def pull(self, grads: list, keep: bool) -> Sequence:
        raise RuntimeError(POISONED)

    pull_graph = pull


def _check(t: TensorBase, name: str) -> None:
    for other in gc.get_referrers(t):
        kept = other if isinstance(other, dict) else getattr(other, "__dict__", None)
        if isinstance(kept, dict) and kept.get("_base_tensor") is t:
            raise RuntimeError(
                f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got 3 make sure you are "
                "not holding references to the tensor in other places."
            )


def _poison(t: TensorBase) -> None:
    """Graphs that end at the leaf `t` can no longer be walked."""
    for edges in gc.get_referrers(t):
        if type(edges) is not tuple:
            continue
        for node in gc.get_referrers(edges):
            if isinstance(node, Node) and node.edges is edges:
                node.edges = tuple(PoisonedNode((), (t._aval,)) if e is t else e for e in edges)


def swap_tensors(t1: Any, t2: Any) -> None:
    """Swap two tensors: data, history, attributes and class; each keeps its identity.

    RuntimeError: one of them has a weak reference or a view. Backward through a graph made before raises one, too."""
    for t, name in ((t1, "t1"), (t2, "t2")):
        if any(r() is t for r in weakref.getweakrefs(t)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    for t, name in ((t1, "t1"), (t2, "t2")):
        _check(t, name)
    for t in (t1, t2):
        _poison(t)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for field in FIELDS:
        mine, other = getattr(t1, field), getattr(t2, field)
        setattr(t1, field, other)
        setattr(t2, field, mine)


swap_tensors.__module__ = "torch.utils"
