"""Full backward hooks of a module: two identity nodes, around the module's inputs and around its outputs.

The node after the outputs sees grad_output first; the node before the inputs sees grad_input later, and calls the
user's hooks with both."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import Node, OutEdge
from torchlike._src.tensor.tensor import Tensor, alias


class BackwardHookFunctionBackward(Node):
    """Passes gradients on as they are: a place in the graph for hooks."""

    __slots__ = ()

    def pull(self, grads: list, keep: bool) -> Sequence:
        return [g for g, e in zip(grads, self.edges, strict=True) if e is not None]

    pull_graph = pull


def identity_node(tensors: Sequence[Tensor]) -> tuple[BackwardHookFunctionBackward, list[Tensor]]:
    """The same tensors as results of one node; those that require no gradient are passed through detached."""
    node = BackwardHookFunctionBackward(tuple(t._edge() for t in tensors), tuple(t._aval for t in tensors))
    results = []
    for k, t in enumerate(tensors):
        out = alias(t)
        if t._rg:
            out._rg = True
            out._gf = OutEdge(node, k) if k else node
        results.append(out)
    return node, results


class BackwardHook:
    """One call of a module with full backward hooks."""

    def __init__(self, module: Any, user_hooks: list[Callable], user_pre_hooks: list[Callable]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple | None = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple) -> tuple:
        """The module's arguments, passed through a node that will call the user's hooks."""
        new, self.input_tensors_index = self._pass_through(args, self._on_inputs)
        self.n_inputs = len(args)
        return new

    def setup_output_hook(self, result: Any) -> Any:
        """The module's result, passed through a node that will note grad_output."""
        results = result if isinstance(result, tuple) else (result,)
        new, self.output_tensors_index = self._pass_through(results, self._on_outputs)
        self.n_outputs = len(results)
        return new if isinstance(result, tuple) else new[0]

    def _pass_through(self, args: tuple, hook: Callable) -> tuple[tuple, list[int] | None]:
        index = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        tensors = [args[k] for k in index]
        if not (MODE.enabled and any(t._rg for t in tensors)):
            return args, None
        node, results = identity_node(tensors)
        node.register_hook(hook)
        new = list(args)
        for k, t in zip(index, results, strict=True):
            new[k] = t
        return (tuple(new) if type(args) is tuple else type(args)(*new)), index

    @staticmethod
    def _spread(index: list[int], values: Sequence, size: int) -> tuple:
        full = [None] * size
        for k, v in zip(index, values, strict=True):
            full[k] = v
        return tuple(full)

    def _on_inputs(self, grad_input: tuple, unused: Any) -> tuple | None:
        if self.grad_outputs is None:
            # The gradient reached the inputs by a way around the outputs, as in double backward.
            return None
        grads = self._spread(self.input_tensors_index or [], grad_input, self.n_inputs)
        for hook in self.user_hooks:
            new = hook(self.module, grads, self.grad_outputs)
            if new is None:
                continue
            if len(new) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(new)}, but expected {len(grads)}"
                )
            grads = new
        self.grad_outputs = None
        return tuple(grads[k] for k in self.input_tensors_index or [])

    def _on_outputs(self, unused: Any, grad_output: tuple) -> tuple | None:
        index = self.output_tensors_index or []
        grads = self._spread(index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            new = hook(self.module, grads)
            if new is None:
                continue
            if len(new) != len(grads):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(new)}, but expected "
                    f"{len(grads)}"
                )
            grads = new
        self.grad_outputs = grads
        if self.input_tensors_index is None:
            self._finish_without_inputs(grads)
        return tuple(grads[k] for k in index)

    def _finish_without_inputs(self, grads: tuple) -> None:
        """No input requires a gradient, so this is the only moment to call the user's hooks."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no "
            "inputs require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=5,
        )
        for hook in self.user_hooks:
            new = hook(self.module, (None,) * self.n_inputs, grads)
            if new is not None and not (isinstance(new, tuple) and all(g is None for g in new)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        self.grad_outputs = None
