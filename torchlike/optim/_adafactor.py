"""Adafactor."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_lr, has_decay
from torchlike.optim._kernel import KernelOptimizer, StepOp, add, lerp, mul, next_step, scalar_state, zeros
from torchlike.optim.optimizer import ParamsT

__all__ = ["Adafactor"]


def update(
    numbers: tuple, scalars: tuple, p: Any, g: Any, *variances: Any, decay: bool, maximize: bool, default_eps: bool
) -> tuple:
    """(rows, columns) of the variance of a matrix, or the variance of a vector. Unlike optax.adafactor: relative step
    sizes by default, another clipping, and no momentum."""
    lr, beta2_decay, eps1, eps2, d, weight_decay = numbers
    count, step = next_step(scalars)
    if default_eps:
        eps1 = jnp.asarray(float(jnp.finfo(p.dtype).eps), lr.dtype)
    g = -g if maximize else g
    take = step**beta2_decay
    rate = jnp.minimum(lr, 1 / jnp.sqrt(step))
    rate = jnp.maximum(eps2, _norm(p).astype(lr.dtype) / p.size**0.5) * rate
    if decay:
        p = mul(p, 1 - lr * weight_decay)
    if g.ndim > 1:
        rows, columns = variances
        rows = lerp(rows, jnp.square(_norm(g, -1)) / g.shape[-1], take)
        columns = lerp(columns, jnp.square(_norm(g, -2)) / g.shape[-2], take)
        mean = jnp.maximum(rows.mean(-2, keepdims=True), eps1.astype(p.dtype))
        estimate = rows * columns / mean
        variances = (rows, columns)
    else:
        estimate = lerp(variances[0], g * g, take)
        variances = (estimate,)
    moved = (1 / jnp.sqrt(jnp.maximum(estimate, (eps1 * eps1).astype(p.dtype)))) * g
    clip = jnp.maximum(1.0, _norm(moved).astype(lr.dtype) / (moved.size**0.5 * d))
    return (count,), add(p, moved, -rate / clip), *variances


def _norm(x: Any, dim: int | None = None) -> Any:
    """The 2-norm, over one dim that is kept or over all; summed in float32 or wider, in x's dtype."""
    wide = x.astype(jnp.float32) if x.dtype.itemsize <= 2 else x
    return jnp.sqrt(jnp.sum(wide * wide, dim, keepdims=dim is not None)).astype(x.dtype)


class Adafactor(KernelOptimizer):
    """Adafactor: second moments of a matrix kept as a row and a column.

    params: tensors, named tensors or parameter groups, real. lr: bound of the relative step size. beta2_decay: exponent
    of the running averages' decay. eps: (bound under the root, None for the dtype's epsilon; bound of the parameter's
    scale). d: where updates are clipped. weight_decay: shrinking of the weights. The rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "adafactor", pairs=False, elementwise=False)
    _sparse_error = "Adafactor does not support sparse gradients"
    _group_defaults = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(0.0 >= beta2_decay, "beta2_decay should be <= 0 but is: {}", beta2_decay)
        check(eps[0] is None or 0.0 <= eps[0], "epsilon1 should be >= 0 but is: {}", eps[0])
        check(0.0 <= eps[1], "epsilon2 should be >= 0 but is: {}", eps[1])
        check(1.0 <= d, "Clipping threshold d should be >= 1 but is: {}", d)
        check(0.0 <= weight_decay, "weight_decay should be >= 0 but is: {}", weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _step_group(self, group: dict) -> None:
        params = [p for p in group["params"] if p._grad is not None]
        if any(p._aval.dtype.is_complex for p in params):
            raise RuntimeError("Adafactor does not support complex parameters")
        if not params:
            return
        states = [self.state[p] for p in params]
        if not all(states):
            self._start_all(group, params, states)
        numbers = self._numbers(group)
        for names in (("row_var", "col_var"), ("variance",)):
            some = [p for p in params if (p._aval.ndim > 1) == (len(names) == 2)]
            if some:
                self._launch(group, some, [self.state[p] for p in some], numbers, names)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        state["step"] = scalar_state(0.0, {}, p)
        shape = p._aval.shape
        if len(shape) > 1:
            state["row_var"] = zeros(p, (*shape[:-1], 1))
            state["col_var"] = zeros(p, (*shape[:-2], 1, shape[-1]))
        else:
            state["variance"] = zeros(p)

    def _numbers(self, group: dict) -> tuple:
        eps1, eps2 = group["eps"]
        eps1 = 0.0 if eps1 is None else eps1
        return group["lr"], group["beta2_decay"], eps1, eps2, group["d"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return (
            ("decay", has_decay(group["weight_decay"])),
            ("maximize", group["maximize"]),
            ("default_eps", group["eps"][0] is None),
        )
