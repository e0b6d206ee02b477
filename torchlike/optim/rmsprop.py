"""RMSprop."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_lr, has_decay
from torchlike.optim._kernel import (
    KernelOptimizer,
    StepOp,
    add,
    addcdiv,
    addcmul,
    decayed,
    lerp,
    mul,
    next_step,
    plus,
    sqrt,
)
from torchlike.optim.optimizer import ParamsT

__all__ = ["RMSprop"]


def update(
    numbers: tuple,
    scalars: tuple,
    p: Any,
    g: Any,
    v: Any,
    *rest: Any,
    decay: bool,
    maximize: bool,
    momentum: bool,
    centered: bool,
) -> tuple:
    """Unlike optax.rmsprop, eps is outside the root, and lr scales the momentum buffer, not what enters it."""
    lr, alpha, eps, weight_decay, keep = numbers
    count, _ = next_step(scalars)
    one = jnp.ones_like(lr)
    buffer = rest[0] if momentum else None
    mean = rest[-1] if centered else None
    g = decayed(p, g, weight_decay, maximize, decay)
    v = addcmul(mul(v, alpha), g, g, 1 - alpha)
    if centered:
        mean = lerp(mean, g, 1 - alpha)
        root = plus(sqrt(addcmul(v, mean, mean, -one)), eps)
    else:
        root = plus(sqrt(v), eps)
    if momentum:
        buffer = addcdiv(mul(buffer, keep), g, root, one)
        p = add(p, buffer, -lr)
    else:
        p = addcdiv(p, g, root, -lr)
    return (count,), p, v, *((buffer,) if momentum else ()), *((mean,) if centered else ())


class RMSprop(KernelOptimizer):
    """RMSprop.

    params: tensors, named tensors or parameter groups. lr: step size. alpha: decay of the running average of squared
    gradients. eps: added to its root. weight_decay: L2 penalty. momentum: how much of the last step stays. centered:
    divide by the gradient's deviation rather than by its size. The rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "rmsprop")
    _sparse_error = "RMSprop does not support sparse gradients"
    _group_defaults = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 <= eps, "Invalid epsilon value: {}", eps)
        check(0.0 <= momentum, "Invalid momentum value: {}", momentum)
        check(0.0 <= weight_decay, "Invalid weight_decay value: {}", weight_decay)
        check(0.0 <= alpha, "Invalid alpha value: {}", alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        names: tuple[str, ...] = ("square_avg",)
        if group["momentum"] > 0:
            names += ("momentum_buffer",)
        return (*names, "grad_avg") if group["centered"] else names

    def _numbers(self, group: dict) -> tuple:
        return group["lr"], group["alpha"], group["eps"], group["weight_decay"], group["momentum"]

    def _flags(self, group: dict) -> tuple:
        return (
            ("decay", has_decay(group["weight_decay"])),
            ("maximize", group["maximize"]),
            ("momentum", group["momentum"] > 0),
            ("centered", group["centered"]),
        )
