"""torch.autograd.graph: nodes, and hooks on saved tensors."""

from collections.abc import Callable
from typing import Any

from torchlike._src.autograd import tape
from torchlike._src.autograd.tape import Node
from torchlike._src.engine.record import set_slow
from torchlike._src.tensor.call import SavedHooks
from torchlike._src.tensor.tensor import Tensor

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version", "saved_tensors_hooks"]


class GradientEdge:
    """A node and which of its results: where a gradient goes."""

    def __init__(self, node: Any, output_nr: int) -> None:
        self.node = node
        self.output_nr = output_nr


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor that requires grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    if tensor.grad_fn is None:
        return GradientEdge(tape.accumulator(tensor), 0)
    return GradientEdge(tensor.grad_fn, tensor.output_nr)


def increment_version(tensor: Any) -> None:
    """Count an in-place change that autograd did not see."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        t._s.version += 1


class saved_tensors_hooks:
    """Within it, tensors saved for backward go through pack_hook, and come back through unpack_hook."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        SavedHooks.stack.append((self.pack_hook, self.unpack_hook))
        set_slow("saved hooks", True)

    def __exit__(self, *unused: object) -> None:
        SavedHooks.stack.pop()
        set_slow("saved hooks", bool(SavedHooks.stack))
