"""Adamax: Adam with the infinity norm."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_betas, check_lr, has_decay
from torchlike.optim._kernel import KernelOptimizer, StepOp, addcdiv, decayed, lerp, mul, next_step, plus
from torchlike.optim.optimizer import ParamsT

__all__ = ["Adamax"]


def update(numbers: tuple, scalars: tuple, p: Any, g: Any, m: Any, u: Any, *, decay: bool, maximize: bool) -> tuple:
    """Unlike optax.scale_by_adamax, eps is added to each gradient's size before the maximum is taken."""
    lr, beta1, beta2, eps, weight_decay = numbers
    count, step = next_step(scalars)
    g = decayed(p, g, weight_decay, maximize, decay)
    m = lerp(m, g, 1 - beta1)
    u = jnp.maximum(mul(u, beta2), plus(jnp.abs(g), eps))
    return (count,), addcdiv(p, m, u, -(lr / (1 - beta1**step))), m, u


class Adamax(KernelOptimizer):
    """Adamax.

    params: tensors, named tensors or parameter groups. lr: step size. betas: decay of the running average of the
    gradient and of its infinity norm. eps: added to each gradient's size. weight_decay: L2 penalty. The rest as in
    `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "adamax")
    _sparse_error = "Adamax does not support sparse gradients"
    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 <= eps, "Invalid epsilon value: {}", eps)
        check_betas(betas)
        check(0.0 <= weight_decay, "Invalid weight_decay value: {}", weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return "exp_avg", "exp_inf"

    def _numbers(self, group: dict) -> tuple:
        beta1, beta2 = group["betas"]
        return group["lr"], beta1, beta2, group["eps"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return ("decay", has_decay(group["weight_decay"])), ("maximize", group["maximize"])
