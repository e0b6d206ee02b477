"""torch.autograd.graph: nodes and edges of the graph, and hooks on it and on saved tensors."""

import contextlib
import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchlike._src.autograd import tape
from torchlike._src.autograd.tape import GradientEdge, Node, RemovableHandle
from torchlike._src.autograd.walk import Running, will_reach
from torchlike._src.engine.record import set_slow
from torchlike._src.tensor.call import SavedHooks
from torchlike._src.tensor.tensor import Tensor

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "region_activation_memory_budget", "register_multi_grad_hook", "save_on_cpu",
    "saved_tensors_hooks", "set_override_stale_capture_stream", "set_warn_on_accumulate_grad_stream_mismatch",
]  # fmt: skip


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge that the gradient of `tensor` flows along; it may stand for the tensor in `torch.autograd.grad` and
    `backward`. RuntimeError if the tensor does not require grad."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    if node is None:
        return GradientEdge(tape.accumulator(tensor), 0)
    return GradientEdge(node, tensor.output_nr)


def increment_version(tensor: Any) -> None:
    """Count an in-place change of a tensor (or of several) that autograd did not see."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        t._s.version += 1


_active = 0
_lock = threading.Lock()


def _count(change: int) -> None:
    """Saved-tensor hooks were put in force, or taken out, in some thread."""
    global _active
    with _lock:
        _active += change
        set_slow("saved hooks", _active > 0)


class saved_tensors_hooks:
    """Within it, each tensor saved for backward is replaced by pack_hook(tensor); backward gets unpack_hook(packed).

    The hooks run without grad mode. RuntimeError if pack_hook changes its tensor in place, TypeError in backward if
    unpack_hook does not return a tensor."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if SavedHooks.disabled is not None:
            raise RuntimeError(SavedHooks.disabled)
        SavedHooks.stack.append((self.pack_hook, self.unpack_hook))
        _count(1)

    def __exit__(self, *unused: object) -> None:
        SavedHooks.stack.pop()
        _count(-1)


class save_on_cpu(saved_tensors_hooks):
    """Within it, tensors saved for backward are kept in CPU memory and moved back when backward needs them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within it, using saved-tensor hooks raises RuntimeError(error_message)."""
    if SavedHooks.stack:
        raise RuntimeError(error_message)
    before, SavedHooks.disabled = SavedHooks.disabled, error_message
    try:
        yield
    finally:
        SavedHooks.disabled = before


class _MultiHandle(RemovableHandle):
    """Removes several hooks at once."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take the hooks back."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> RemovableHandle:
    """Call `fn` when gradients of several tensors are there: in mode "all" once for each backward, with the list of
    all of them (None for those that this backward does not reach); in mode "any" with the first that arrives."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        done: dict[int, bool] = defaultdict(bool)

        @functools.wraps(fn)
        def first(grad: Tensor) -> None:
            number = Running.walk.number
            before, done[number] = done[number], True
            if not before:
                fn(grad)

        return _MultiHandle(tuple(t.register_hook(first) for t in tensors if t.requires_grad))
    edges = [t._edge() for t in tensors]
    collected: dict[int, list] = {}
    counts: dict[int, int] = {}

    def hook_of(index: int) -> Callable:
        def hook(grad: Tensor) -> None:
            number = Running.walk.number
            found = collected.setdefault(number, [None] * len(tensors))
            found[index] = grad
            counts[number] = counts.get(number, 0) + 1
            if counts[number] == sum(map(will_reach, edges)):
                del collected[number], counts[number]
                fn(found)

        return hook

    return _MultiHandle(tuple(t.register_hook(hook_of(k)) for k, t in enumerate(tensors)))


def region_activation_memory_budget(budget: float) -> Any:
    """Only for PyTorch's compiler: RuntimeError here, as in PyTorch's eager mode."""
    raise RuntimeError(
        "torch.autograd.graph.region_activation_memory_budget can only be used inside a torch.compile region; it has "
        "no effect in eager mode."
    )


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """A warning about CUDA streams, which there are none of here."""


def set_override_stale_capture_stream(enabled: bool) -> None:
    """About capturing CUDA graphs, which there are none of here."""


class _Mutations:
    """What `allow_mutation_on_saved_tensors` gives."""

    def clear(self) -> None:
        """Forget what was cloned (nothing is: saved values never change here)."""


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Mutations]:
    """Within it, tensors saved for backward may be changed in place; backward uses what they were."""
    if tape.Mutation.allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    tape.Mutation.allowed = True
    try:
        yield _Mutations()
    finally:
        tape.Mutation.allowed = False


for _item in (saved_tensors_hooks, save_on_cpu):
    _item.__module__ = "torch.autograd.graph"
