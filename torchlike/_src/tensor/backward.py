"""backward() and autograd.grad() on tensors."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from torchlike._src.autograd import tape
from torchlike._src.autograd.walk import run_backward
from torchlike._src.tensor.boundary import enter_backward
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap

NO_GRAD = "element {k} of tensors does not require grad and does not have a grad_fn"


def _roots(tensors: Sequence[Any], grads: Sequence[Any], create: bool, name: str = "grad_output") -> tuple[list, list]:
    edges, values = [], []
    for k, (t, g) in enumerate(zip(tensors, grads, strict=False)):
        if _is_edge(t):
            edges.append(tape.inner_edge(t))
            values.append(_edge_gradient(t, g, create))
            continue
        a = t._aval
        if g is None:
            if t._rg:
                if a.numel != 1:
                    raise RuntimeError("grad can be implicitly created only for scalar outputs")
                if not a.dtype.is_floating_point:
                    if a.dtype.is_complex:
                        raise RuntimeError(
                            f"grad can be implicitly created only for real scalar outputs but got {a.dtype}"
                        )
                    raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {a.dtype}")
            g = wrap(tape.ones_like(a))
        else:
            if not isinstance(g, TensorBase):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
            if g._aval.shape != a.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of "
                    f"{t.shape}."
                )
            if a.dtype.is_complex != g._aval.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch "
                    f"in dtype: grad_output[{k}] has a dtype of {g.dtype} and output[{k}] has a dtype of {t.dtype}."
                )
            if g._aval.dtype is not a.dtype:
                g = g.to(a.dtype)
        edge = t._edge()
        if edge is None:
            raise RuntimeError(NO_GRAD.format(k=k))
        edges.append(edge)
        values.append(g if create else g._read())
    if len(edges) < len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    return edges, values


def _given(x: Any, count: int) -> list:
    """grad_tensors / grad_outputs as one for each root."""
    if x is None:
        return [None] * count
    return [x] if isinstance(x, TensorBase) else list(x)


def _is_edge(x: Any) -> bool:
    return isinstance(x, tape.GradientEdge)


def _sequence_of(x: Any) -> list:
    return [x] if isinstance(x, TensorBase) or _is_edge(x) else list(x)  # a TypeError for what is no sequence


def _inputs_of(inputs: Any, function: str) -> list:
    """The tensors and edges that `inputs` names; a dict names its values."""
    if type(inputs) is dict:
        return list(inputs.values())
    if isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. Other Mapping types are "
            "not supported."
        )
    return _sequence_of(inputs)


def _target(t: Any) -> Any:
    """Where the gradient of an input arrives."""
    if not isinstance(t, (TensorBase, tape.GradientEdge)):
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    edge = t._edge() if isinstance(t, Tensor) else tape.inner_edge(t)  # type: ignore[arg-type]
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _edge_gradient(edge: Any, g: Any, create: bool) -> Any:
    """The starting gradient at a GradientEdge."""
    a = edge.node.outs[edge.output_nr]
    if g is None:
        if a.numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        g = wrap(tape.ones_like(a))
    elif g._aval.shape != a.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[0] has a shape of {g.shape} and output[0] has a shape of {list(a.shape)}."
        )
    return g if create else g._read()


CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)


def backward(
    tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    grad_variables: Any = None, inputs: Any = None,
) -> None:  # fmt: skip
    """Accumulate the gradients of `tensors` into the leaves they depend on, or only into `inputs` (tensors and edges,
    or a dict of tensors)."""
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = _inputs_of(inputs, "backward")
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _sequence_of(tensors)
    grads = _given(grad_tensors, len(roots))
    keep = create_graph if retain_graph is None else retain_graph
    enter_backward()
    edges, values = _roots(roots, grads, create_graph)
    if create_graph:
        warnings.warn(CYCLE, stacklevel=tape.user_level())
    if inputs is not None:
        for t in inputs:
            if isinstance(t, TensorBase):
                t.retain_grad()  # as PyTorch does, to have somewhere to accumulate
        run_backward(
            edges, values, keep=keep, create=create_graph, inputs=[_target(t) for t in inputs], accumulating=True
        )
        return
    run_backward(edges, values, keep=keep, create=create_graph)


def tensor_backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Accumulate the gradient of this tensor into the leaves of its graph.

    gradient: of this tensor's shape; needed unless it has one element. RuntimeError as in PyTorch for tensors
    without a graph, and for a graph whose saved values were freed."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, returned instead of accumulated: a tuple, or for a dict of
    inputs a dict with its keys.

    grad_outputs: one for each output; None for one of one element. is_grads_batched: they have one more dimension in
    front, and so have the results. allow_unused: None for an input that was not used instead of an error;
    materialize_grads: zeros for it. only_inputs: deprecated and ignored, as in PyTorch, which warns."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots, wanted = _sequence_of(outputs), _inputs_of(inputs, "grad")
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    grads = _given(grad_outputs, len(roots))
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = _grad_batched(roots, wanted, grads, keep, create_graph, allow_unused, materialize_grads)
    else:
        enter_backward()
        edges, values = _roots(roots, grads, create_graph)
        found = _grad(edges, values, wanted, keep, create_graph, allow_unused, materialize_grads)
    return dict(zip(inputs, found, strict=True)) if type(inputs) is dict else found


def _grad(
    edges: list, values: list, wanted: list, keep: bool, create: bool, allow_unused: bool, materialize: bool
) -> tuple:
    found = run_backward(edges, values, keep=keep, create=create, inputs=[_target(t) for t in wanted])
    out: list = []
    for k, (t, g) in enumerate(zip(wanted, found, strict=True)):
        if g is not None:
            out.append(g if create else wrap(g))
        elif materialize:
            if _is_edge(t):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            out.append(zero := wrap(tape.zeros_like(t._aval)))
            zero._rg = create
        elif allow_unused:
            out.append(None)
        else:
            raise RuntimeError(
                f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return tuple(out)


def _grad_batched(
    roots: list, wanted: list, grads: list, keep: bool, create: bool, allow_unused: bool, materialize: bool
) -> tuple:
    """One walk for each entry of the batch, the results stacked."""
    from torchlike._src.tensor.namespace import torch

    for k, (t, g) in enumerate(zip(roots, grads, strict=True)):
        if g is None:
            raise NotImplementedError("torchlike: autograd.grad(is_grads_batched=True) without grad_outputs")
        if g._aval.shape[1:] != t._aval.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{k}] has a shape of {g.shape[1:]} and output[{k}] "
                f"has a shape of {t.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    sizes = {g._aval.shape[0] for g in grads}
    if len(sizes) != 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{[g._aval.shape[0] for g in grads]} "
            "for the mapped dimension"
        )
    (count,) = sizes
    rows = []
    for row in range(count):
        edges, values = _roots(roots, [g[row] for g in grads], create)
        rows.append(_grad(edges, values, wanted, keep or row < count - 1, create, allow_unused, materialize))
    return tuple(None if column[0] is None else torch.stack(column) for column in zip(*rows, strict=True))
