"""backward() and autograd.grad() on tensors."""

from collections.abc import Sequence
from typing import Any

from torchlike._src.autograd import tape
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap

NO_GRAD = "element {k} of tensors does not require grad and does not have a grad_fn"


def _roots(tensors: Sequence[Tensor], grads: Sequence[Any], create: bool, name: str = "grad_output") -> tuple[list, list]:
    edges, values = [], []
    for k, (t, g) in enumerate(zip(tensors, grads, strict=True)):
        a = t._aval
        if g is None:
            if t._rg:
                if a.numel != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if not a.dtype.is_floating_point:
                    if a.dtype.is_complex:
                        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {a.dtype}")
                    raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {a.dtype}")
            g = wrap(tape.ones_like(a))
        else:
            if not isinstance(g, TensorBase):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
            if g._aval.shape != a.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of {t.shape}."
                )
            if a.dtype.is_complex != g._aval.dtype.is_complex:
                raise RuntimeError(
                    f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{k}] has a dtype of {g.dtype} and output[{k}] has a dtype of {t.dtype}."
                )
            if g._aval.dtype is not a.dtype:
                g = g.to(a.dtype)
        edge = t._edge()
        if edge is None:
            raise RuntimeError(NO_GRAD.format(k=k))
        edges.append(edge)
        values.append(g if create else g._read())
    return edges, values


def _list(x: Any) -> list:
    return [x] if isinstance(x, TensorBase) or x is None else list(x)


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    grad_variables: Any = None, inputs: Any = None,
) -> None:  # fmt: skip
    """Accumulate the gradients of `tensors` into the leaves they depend on (or only into `inputs`)."""
    roots = _list(tensors)
    grads = _list(grad_tensors) if grad_tensors is not None else [None] * len(roots)
    if len(grads) == 1 and grads[0] is None:
        grads = [None] * len(roots)
    if len(grads) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    edges, values = _roots(roots, grads, create_graph)
    if inputs is not None:
        wanted = _list(inputs)
        if not wanted:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        targets = []
        for t in wanted:
            edge = t._edge()
            if edge is None:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            targets.append(edge)
        found = tape.run_backward(edges, values, keep=keep, create=create_graph, inputs=targets)
        for t, g in zip(wanted, found, strict=True):
            if g is not None:
                tape.accumulate(t, g, create_graph)
        return
    tape.run_backward(edges, values, keep=keep, create=create_graph)


def tensor_backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Accumulate the gradient of this tensor into the leaves of its graph.

    gradient: of this tensor's shape; needed unless it has one element. RuntimeError as in PyTorch for tensors
    without a graph, and for a graph whose saved values were freed."""
    if gradient is not None and not isinstance(gradient, TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, returned instead of accumulated."""
    if is_grads_batched:
        raise NotImplementedError("torchlike: autograd.grad(is_grads_batched=True)")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    if allow_unused is None:
        allow_unused = materialize_grads
    roots, wanted = _list(outputs), _list(inputs)
    grads = _list(grad_outputs) if grad_outputs is not None else [None] * len(roots)
    if len(grads) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    if not wanted:
        raise ValueError("grad requires non-empty inputs.")
    targets = []
    edges, values = _roots(roots, grads, create_graph)
    for t in wanted:
        edge = t._edge()
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        targets.append(edge)
    found = tape.run_backward(edges, values, keep=keep, create=create_graph, inputs=targets)
    out = []
    first: dict = {}
    for k, (t, g) in enumerate(zip(wanted, found, strict=True)):
        key = tape.edge_key(targets[k])
        if g is None and key in first:
            g = first[key]
        elif g is not None:
            first[key] = g
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set allow_unused=True "
                    "if this is the desired behavior."
                )
            out.append(wrap(tape.zeros_like(t._aval)) if materialize_grads else None)
        else:
            out.append(g if create_graph else wrap(g))
    return tuple(out)
