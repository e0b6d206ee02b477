"""Rprop: steps from the signs of gradients."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.optim._checks import check, check_lr
from torchlike.optim._kernel import KernelOptimizer, StepOp, addcmul, next_step, scalar_state, zeros
from torchlike.optim.optimizer import ParamsT

__all__ = ["Rprop"]


def update(numbers: tuple, scalars: tuple, p: Any, g: Any, previous: Any, size: Any, *, maximize: bool) -> tuple:
    """As optax.scale_by_rprop, but the gradient that is remembered after a change of sign is zero for every rule."""
    shrink, grow, smallest, largest = (x.astype(p.dtype) for x in numbers)
    count, _ = next_step(scalars)
    g = -g if maximize else g
    sign = jnp.sign(g * previous)
    factor = jnp.where(sign > 0, grow, jnp.where(sign < 0, shrink, jnp.where(sign == 0, jnp.ones_like(sign), sign)))
    size = jnp.clip(size * factor, smallest, largest)
    g = jnp.where(sign < 0, jnp.zeros_like(g), g)
    return (count,), addcmul(p, jnp.sign(g), size, -jnp.ones_like(numbers[0])), g, size


class Rprop(KernelOptimizer):
    """Rprop.

    params: tensors, named tensors or parameter groups. lr: the first step's size. etas: factors of the step size after
    a change of the gradient's sign and without one. step_sizes: its bounds. The rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "rprop")
    _sparse_error = "Rprop does not support sparse gradients"
    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 < etas[0] < 1.0 < etas[1], "Invalid eta values: {}, {}", *etas)
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        lr = group["lr"]
        lr = lr.item() if isinstance(lr, TensorBase) else lr
        state["step"] = scalar_state(0.0, group, p)
        state["prev"] = zeros(p)
        state["step_size"] = zeros(p, fill=complex(lr, lr) if p._aval.dtype.is_complex else lr)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return "prev", "step_size"

    def _numbers(self, group: dict) -> tuple:
        return (*group["etas"], *group["step_sizes"])

    def _flags(self, group: dict) -> tuple:
        return (("maximize", group["maximize"]),)
