"""Clipping gradients, in place and without reading them: the norm stays on the device and becomes part of the step."""

import functools
import math
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from torchlike._src.core.aval import Aval
from torchlike._src.engine import record
from torchlike._src.ops.declare import RawOp, infer_by_tracing
from torchlike._src.ops.host_rules import floating, note_work
from torchlike._src.tensor.call import write
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, wrap

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _wide(x: Any) -> Any:
    """x in the type that PyTorch computes in: float32 for half types."""
    return x.astype(jnp.float32) if x.dtype.itemsize <= 2 else x


def _norm(x: Any, order: float) -> Any:
    """The vector norm of all of x, in x's (real) type."""
    size = jnp.abs(_wide(x))
    if order == 2:
        out = jnp.sqrt(jnp.sum(size * size))
    elif order == 1:
        out = jnp.sum(size)
    elif order == 0:
        out = jnp.sum(size != 0).astype(size.dtype)
    elif order == math.inf:
        out = jnp.max(size)
    elif order == -math.inf:
        out = jnp.min(size)
    else:
        out = jnp.sum(size**order) ** (1 / order)
    return out if jnp.iscomplexobj(x) else out.astype(x.dtype)


def _total(*tensors: Any, order: float) -> Any:
    """The norm of the norms, as PyTorch takes it."""
    norms = [_norm(x, order) for x in tensors]
    widest = functools.reduce(jnp.promote_types, [n.dtype for n in norms])
    return _norm(jnp.stack([n.astype(widest) for n in norms]), order)


def _scale(total: Any, max_norm: Any, *grads: Any) -> tuple:
    wide = _wide(total)
    beyond = _wide((wide + 1e-6).astype(total.dtype))
    factor = jnp.minimum((max_norm.astype(wide.dtype) / beyond).astype(total.dtype), 1)
    return tuple((_wide(g) * _wide(factor.astype(g.dtype))).astype(g.dtype) for g in grads)


def _bound(bound: Any, *grads: Any) -> tuple:
    return tuple(jnp.clip(g, -bound.astype(g.dtype), bound.astype(g.dtype)) for g in grads)


TOTAL = RawOp(_total, "total_norm")
SCALE = RawOp(_scale, "clip_grad_norm")
BOUND = RawOp(_bound, "clip_grad_value")


def _total_avals(static: tuple, specs: tuple) -> tuple[Aval, ...]:
    if any(s is not specs[0].with_shape(s.shape) for s in specs) or not specs[0].dtype.is_floating_point:
        return infer_by_tracing(TOTAL, static, specs)
    return (specs[0].with_shape(()),)


def _same_as_gradients(static: tuple, specs: tuple) -> tuple[Aval, ...]:
    return specs[2:]


def _total_on_host(kernel: Any) -> Callable | None:
    """As JAX would have it, to the last bit; tracing takes tens of milliseconds."""
    if floating(*kernel.specs) is None or dict(kernel.static)["order"] != 2:
        return None
    add, multiply, sqrt = np.add.reduce, np.multiply, np.sqrt
    dtype = kernel.specs[0].dtype.np

    def run(*tensors: np.ndarray) -> Sequence[np.ndarray]:
        norms = np.array([sqrt(add(multiply(x, x), None)) for x in tensors], dtype)
        return (np.asarray(sqrt(add(multiply(norms, norms), None))),)

    note_work(kernel, 4 * len(kernel.specs), 3 * sum([s.numel for s in kernel.specs]))
    return run


def _scale_on_host(kernel: Any) -> Callable | None:
    total, number, *grads = kernel.specs
    if floating(total, *grads) is None or number not in ("f", "i"):
        return None
    dtype = total.dtype.np
    little, one = np.full((), 1e-6, dtype), np.ones((), dtype)

    def run(total: np.ndarray, number: np.ndarray, *grads: np.ndarray) -> Sequence[np.ndarray]:
        factor = np.minimum(number.astype(dtype) / (total + little), one)
        return [np.asarray(np.multiply(g, factor)) for g in grads]

    note_work(kernel, 4 + len(grads), 2 * sum([s.numel for s in grads]))
    return run


TOTAL.infer, SCALE.infer = _total_avals, _same_as_gradients  # type: ignore[method-assign]
TOTAL.host_function, SCALE.host_function = _total_on_host, _scale_on_host  # type: ignore[method-assign]


def _grads(parameters: Any) -> list[Tensor]:
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _by_device(grads: Iterable[Tensor]) -> list[list[Tensor]]:
    groups: dict = {}
    for g in grads:
        groups.setdefault(g._aval.device, []).append(g)
    return list(groups.values())


def _update(op: RawOp, grads: Sequence[Tensor], *leading: Any) -> None:
    """Replace each gradient by op's result for it; a gradient that several parameters share, as often as it comes."""
    while grads:
        once: dict[int, Tensor] = {}
        again = []
        for g in grads:
            if id(g._s) in once:
                again.append(g)
            else:
                once[id(g._s)] = g
        values = record(op, (), (*leading, *(g._read() for g in once.values())))
        for g, value in zip(once.values(), values, strict=True):
            if g._view is None:  # HOT: what `write` comes to for a base tensor without gradient recording
                storage = g._s
                storage.value = value
                storage.version += 1
            else:
                write(g, wrap(value), fit=False)
        grads = again


def _without_grad(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with torch.no_grad():
            return function(*args, **kwargs)

    return call


@_without_grad
def _get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all elements of `tensors` together, as a 0-d tensor.

    foreach: accepted; the tensors are always taken together.

    RuntimeError: error_if_nonfinite, and it is NaN or infinite (asking for this reads the value)."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    order = float(norm_type)
    if not tensors:
        return torch.tensor(0.0)
    if order == math.inf and any(t.numel() == 0 for t in tensors):
        torch.linalg.vector_norm(next(t for t in tensors if t.numel() == 0), order)  # raises
    groups = _by_device(tensors)
    norms = [wrap(record(TOTAL, (("order", order),), [t._read() for t in group])[0]) for group in groups]
    total = norms[0]
    if len(norms) > 1:
        values = [n.to(tensors[0].device)._read() for n in norms]
        total = wrap(record(TOTAL, (("order", order),), values)[0])
    if error_if_nonfinite and bool(torch.logical_or(total.isnan(), total.isinf())):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@_without_grad
def _clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiply each gradient by min(1, max_norm / (total_norm + 1e-6)), in place."""
    max_norm = float(max_norm)
    for group in _by_device(_grads(parameters)):
        _update(SCALE, group, total_norm.to(group[0].device)._read(), max_norm)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters`, in place, so that the norm of all of them together is at most max_norm.

    Returns the norm before clipping, a 0-d tensor; nothing is read unless error_if_nonfinite asks for it.

    RuntimeError: error_if_nonfinite, and the norm is NaN or infinite."""
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        is_generator = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if is_generator and not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=2,
            )
    total = _get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    _clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated: use clip_grad_norm_."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@_without_grad
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Move each element of the gradients into [-clip_value, clip_value], in place."""
    for group in _by_device(_grads(parameters)):
        _update(BOUND, group, float(clip_value))
