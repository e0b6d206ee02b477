"""torch.autograd.gradcheck: compare gradients with finite differences, in float64."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlike._src.tensor.backward import grad
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.modes import enable_grad, no_grad
from torchlike._src.tensor.tensor import Tensor

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
    if check_forward_ad or check_batched_grad or check_batched_forward_grad:
        raise NotImplementedError("torchlike: gradcheck in forward mode or batched")
    try:
        return _check(func, _tuple(inputs), eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False


def _check(func: Callable, inputs: tuple, eps: float, atol: float, rtol: float) -> bool:
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
        exact = _analytical(func, inputs, k)
        for index, (n, a) in enumerate(zip(numeric, exact, strict=True)):
            _compare(n, a, k, index, atol, rtol, inputs[k])
    return True


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
    items = _tuple(inputs)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        outputs = _differentiable(func(*items))
        grad_outputs = []
        for o in outputs:
            g = rng.standard_normal(o.shape)
            if o.is_complex():
                g = g + 1j * rng.standard_normal(o.shape)
            grad_outputs.append(from_array(np.asarray(g, o.dtype.np)).requires_grad_())
    grad_outputs = _tuple(grad_outputs)
    count = len(grad_outputs)

    def first(*args: Any) -> tuple:
        xs = args[:-count] if count else args
        gs = args[-count:] if count else ()
        wanted = [x for x in xs if isinstance(x, Tensor) and x.requires_grad]
        with enable_grad():
            outputs = _differentiable(func(*xs))
            return grad(outputs, wanted, gs, create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(first, (*items, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


for _item in (GradcheckError, gradcheck, gradgradcheck):
    _item.__module__ = "torch.autograd.gradcheck"
