"""RAdam: rectified Adam."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_betas, check_lr, has_decay
from torchlike.optim._kernel import (
    KernelOptimizer,
    StepOp,
    add,
    addcmul,
    decayed,
    div,
    lerp,
    mul,
    next_step,
    plus,
    sqrt,
)
from torchlike.optim.optimizer import ParamsT

__all__ = ["RAdam"]


def update(
    numbers: tuple, scalars: tuple, p: Any, g: Any, m: Any, v: Any, *, decay: bool, decoupled: bool, maximize: bool
) -> tuple:
    """Unlike optax.scale_by_radam, eps is added to sqrt(v) before the bias correction."""
    lr, beta1, beta2, eps, weight_decay = numbers
    count, step = next_step(scalars)
    if decay and decoupled:
        p = mul(p, 1 - lr * weight_decay)
    g = decayed(p, g, weight_decay, maximize, decay and not decoupled)
    m = lerp(m, g, 1 - beta1)
    v = addcmul(mul(v, beta2), g, g, 1 - beta2)
    correction = 1 - beta2**step
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * (beta2**step) / correction
    rectified = rho > 5.0
    sure = jnp.where(rectified, rho, 6.0)  # keeps the root of a negative number out of gradients
    rectification = jnp.sqrt((sure - 4) * (sure - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * sure))
    plain = mul(div(m, 1 - beta1**step), lr)
    root = plus(sqrt(v), eps)
    adaptive = mul(1 / root, jnp.sqrt(correction))
    moved = jnp.where(rectified, mul(plain * adaptive, rectification), plain)
    return (count,), add(p, moved, -jnp.ones_like(lr)), m, v


class RAdam(KernelOptimizer):
    """RAdam.

    params: tensors, named tensors or parameter groups. lr: step size. betas: decay of the running averages of the
    gradient and of its square. weight_decay: L2 penalty, or shrinking of the weights if `decoupled_weight_decay`. The
    rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "radam")
    _sparse_error = "RAdam does not support sparse gradients"
    _group_defaults = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def _numbers(self, group: dict) -> tuple:
        beta1, beta2 = group["betas"]
        return group["lr"], beta1, beta2, group["eps"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return (
            ("decay", has_decay(group["weight_decay"])),
            ("decoupled", group["decoupled_weight_decay"]),
            ("maximize", group["maximize"]),
        )
