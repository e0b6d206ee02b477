"""torch.autograd.gradcheck: compare gradients with finite differences, in float64."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchlike._src.tensor.backward import grad
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.modes import enable_grad, no_grad
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.autograd import forward_ad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A gradient does not agree with finite differences."""


def _tuple(x: Any) -> tuple:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _differentiable(outputs: Any) -> list[Tensor]:
    return [o for o in _tuple(outputs) if isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())]


def _set(t: Tensor, array: np.ndarray) -> None:
    with no_grad():
        t.copy_(from_array(array.copy()))


def _numerical(fn: Callable, inputs: Sequence, k: int, eps: float) -> list[np.ndarray]:
    """For each output the Jacobian with respect to input k, (input elements, output elements)."""
    x = inputs[k]
    original = np.array(x.detach().numpy(force=True), copy=True)
    directions = [1.0, 1j] if x.is_complex() else [1.0]
    columns: list = []
    for position in range(original.size):
        parts = []
        for direction in directions:
            sides = []
            for sign in (1, -1):
                moved = original.copy()
                moved.reshape(-1)[position] += sign * eps * direction
                _set(x, moved)
                with no_grad():
                    sides.append([o._host().copy().reshape(-1) for o in _differentiable(fn(*inputs))])
            parts.append([(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)])
        columns.append(parts)
    _set(x, original)
    count = len(columns[0][0]) if columns else 0
    out = []
    for o in range(count):
        rows = np.stack([np.stack([p[o] for p in parts]) for parts in columns])  # (elements, directions, outputs)
        out.append(rows)
    return out


def _analytical(fn: Callable, inputs: Sequence, k: int) -> list[np.ndarray]:
    """The same through autograd: for each output, the gradient of each of its elements."""
    x = inputs[k]
    outputs = _differentiable(fn(*inputs))
    result = []
    for o in outputs:
        numel = o.numel()
        weights = [1.0, 1j] if o.is_complex() else [1.0]
        rows = np.zeros((numel, len(weights), x.numel()), np.complex128)
        for e in range(numel):
            for w, weight in enumerate(weights):
                g = np.zeros(numel, o.dtype.np)
                g[e] = weight
                if o.requires_grad:
                    (d,) = grad(o, x, from_array(g.reshape(o.shape)), retain_graph=True, allow_unused=True)
                    if d is not None:
                        rows[e, w] = d._host().reshape(-1)
        result.append(rows)
    return result


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether autograd's gradients of `func` agree with finite differences at `inputs` (float64 tensors).

    eps: the step; atol, rtol: how close they must be. fast_mode: makes no difference, every element is checked.
    GradcheckError (or False without raise_exception) where they do not agree."""
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    try:
        items = _tuple(inputs)
        _check(func, items, eps, atol, rtol, check_forward_ad, check_backward_ad)
        if check_batched_grad:
            _check_batched(func, items, _row_by_row, "vmap of autograd.grad", atol, rtol)
        if check_batched_forward_grad:
            _check_batched(func, items, _column_by_column, "vmap of forward mode", atol, rtol)
        return True
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _forward(fn: Callable, inputs: Sequence, k: int) -> list[np.ndarray]:
    """Like `_numerical`, by forward mode."""
    x = inputs[k]
    directions = [1.0, 1j] if x.is_complex() else [1.0]
    columns: list = []
    for position in range(x.numel()):
        parts = []
        for direction in directions:
            along = np.zeros(x.numel(), x.dtype.np)
            along[position] = direction
            parts.append([t._host().reshape(-1) for t in _along(fn, inputs, k, from_array(along.reshape(x.shape)))])
        columns.append(parts)
    count = len(columns[0][0]) if columns else 0
    return [np.stack([np.stack([p[o] for p in parts]) for parts in columns]) for o in range(count)]


def _along(fn: Callable, inputs: Sequence, k: int, tangent: Tensor) -> list[Tensor]:
    """The derivatives of the outputs along a tangent of input k."""
    with forward_ad.dual_level():
        given = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        given[k] = forward_ad.make_dual(given[k], tangent)
        found = [(o, forward_ad.unpack_dual(o).tangent) for o in _differentiable(fn(*given))]
        return [torch.zeros_like(o) if t is None else t.detach() for o, t in found]


def _row_by_row(fn: Callable, inputs: Sequence, k: int) -> Iterator[tuple[Callable, Tensor]]:
    for o in _differentiable(fn(*inputs)):
        if o.requires_grad:

            def pull(g: Tensor, o: Tensor = o) -> Tensor:
                found = grad(o, inputs[k], g, retain_graph=True, allow_unused=True, materialize_grads=True)
                return found[0]

            yield pull, _random((2, *o.shape), o.dtype)


def _column_by_column(fn: Callable, inputs: Sequence, k: int) -> Iterator[tuple[Callable, Tensor]]:
    yield lambda t: tuple(_along(fn, inputs, k, t)), _random((2, *inputs[k].shape), inputs[k].dtype)


def _random(shape: Sequence[int], dtype: Any) -> Tensor:
    rng = np.random.default_rng(0)
    g = rng.standard_normal(tuple(shape))
    if dtype.is_complex:
        g = g + 1j * rng.standard_normal(tuple(shape))
    return from_array(np.asarray(g, dtype.np))


def _check_batched(func: Callable, inputs: tuple, functions: Callable, what: str, atol: float, rtol: float) -> None:
    """vmap of a derivative gives what a loop over it gives."""
    from torchlike._namespace import vmap  # when it is needed: `import torch` stays quick

    for k, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        for function, batch in functions(func, inputs, k):
            together = _tuple(vmap(function)(batch))
            for row in range(batch.shape[0]):
                for index, (all_rows, one) in enumerate(zip(together, _tuple(function(batch[row])), strict=True)):
                    a, b = all_rows[row]._host(), one._host()
                    if not np.allclose(a, b, rtol, atol, equal_nan=True):
                        raise GradcheckError(
                            f"{what} differs from a loop over it, for input {k} and result {index}:\n{a}\n{b}"
                        )


def _check(func: Callable, inputs: tuple, eps: float, atol: float, rtol: float, forward: bool, backward: bool) -> None:
    wanted = [k for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for k in wanted:
        if inputs[k].dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
    for k in wanted:
        numeric = _numerical(func, inputs, k, eps)
        if forward:
            for index, (n, a) in enumerate(zip(numeric, _forward(func, inputs, k), strict=True)):
                _compare_forward(n, a, k, index, atol, rtol)
        if backward:
            for index, (n, a) in enumerate(zip(numeric, _analytical(func, inputs, k), strict=True)):
                _compare(n, a, k, index, atol, rtol, inputs[k])


def _compare_forward(n: np.ndarray, a: np.ndarray, k: int, index: int, atol: float, rtol: float) -> None:
    """Both (input elements, directions, output elements)."""
    for d in range(a.shape[1]):
        if not np.allclose(a[:, d], n[:, d], rtol, atol, equal_nan=True):
            numeric, exact = (from_array(np.ascontiguousarray(m[:, d])) for m in (n, a))
            part = f"While considering the {('real', 'imaginary')[d]} part of complex inputs only, "
            part = part if a.shape[1] == 2 else ""
            raise GradcheckError(
                f"{part}Jacobian computed with forward mode mismatch for output {index} with respect to input "
                f"{k},\nnumerical:{numeric}\nanalytical:{exact}\n"
            )


def _compare(n: np.ndarray, a: np.ndarray, k: int, index: int, atol: float, rtol: float, x: Tensor) -> None:
    """n: finite differences, (input elements, directions, output elements); a: (output elements, weights, inputs).

    PyTorch's gradient of a real loss L = Re(w* . y) at x is dL/dRe(x) + i dL/dIm(x)."""
    complex_output = a.shape[1] == 2
    for w in range(a.shape[1]):
        weight = 1.0 if w == 0 else 1j
        expected = np.real(np.conj(weight) * n)
        want = expected[:, 0, :] + (1j * expected[:, 1, :] if x.is_complex() else 0)
        got = a[:, w, :].T
        if np.allclose(got, want, rtol, atol, equal_nan=True):
            continue
        part = ""
        if complex_output:
            part = f"While considering the {'real' if w == 0 else 'imaginary'} part of complex outputs only, "
        numeric, exact = (from_array(np.asarray(m if x.is_complex() else np.real(m), x.dtype.np)) for m in (want, got))
        raise GradcheckError(
            f"{part}Jacobian mismatch for output {index} with respect to input "
            f"{k},\nnumerical:{numeric}\nanalytical:{exact}\n"
        )


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """gradcheck of the gradient: second derivatives agree with finite differences."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    items = _tuple(inputs)
    if grad_outputs is None:
        grad_outputs = [_random(o.shape, o.dtype).requires_grad_() for o in _differentiable(func(*items))]
    grad_outputs = _tuple(grad_outputs)
    count = len(grad_outputs)

    def first(*args: Any) -> tuple:
        xs = args[:-count] if count else args
        gs = args[-count:] if count else ()
        with enable_grad():
            # In forward mode arguments come without history.
            xs = tuple(
                x.view_as(x).requires_grad_() if isinstance(x, Tensor) and given.requires_grad > x.requires_grad else x
                for x, given in zip(xs, items, strict=True)
            )
            wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
            outputs = _differentiable(func(*xs))
            return grad(outputs, wanted, gs, create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(
        first, (*items, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )  # fmt: skip


for _item in (GradcheckError, gradcheck, gradgradcheck):
    _item.__module__ = "torch.autograd.gradcheck"
