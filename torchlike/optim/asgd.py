"""ASGD: averaged stochastic gradient descent."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.optim._checks import check, check_lr, has_decay
from torchlike.optim._kernel import KernelOptimizer, StepOp, add, decayed, mul, next_step, scalar_state, zeros
from torchlike.optim.optimizer import ParamsT

__all__ = ["ASGD"]


def update(numbers: tuple, scalars: tuple, p: Any, g: Any, ax: Any, *, decay: bool, maximize: bool) -> tuple:
    """optax has no ASGD."""
    lr, lambd, alpha, t0, weight_decay = numbers
    count, step = next_step(scalars)
    eta, mu = (x.astype(lr.dtype) for x in scalars[1:])
    g = decayed(p, g, weight_decay, maximize, decay)
    p = add(mul(p, 1 - lambd * eta), g, -eta)
    ax = jnp.where(mu == 1, p, ax + mul(p - ax, mu))
    return (count, lr / ((1 + lambd * lr * step) ** alpha), 1 / jnp.maximum(1, step - t0)), p, ax


class ASGD(KernelOptimizer):
    """Averaged SGD.

    params: tensors, named tensors or parameter groups. lr: the first step size. lambd: decay term. alpha: power of the
    step size's decay. t0: the step at which averaging (`ax` in the state) begins. weight_decay: L2 penalty. The rest as
    in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "asgd")
    _scalars = ("step", "eta", "mu")
    _sparse_error = "ASGD does not support sparse gradients"
    _capturable_what = "params, mus, etas, and state_steps"
    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 <= weight_decay, "Invalid weight_decay value: {}", weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        lr = group["lr"]
        state["step"] = scalar_state(0.0, group, p, on_device=True)
        state["eta"] = scalar_state(lr.item() if isinstance(lr, TensorBase) else lr, group, p, on_device=True)
        state["mu"] = scalar_state(1.0, group, p, on_device=True)
        state["ax"] = zeros(p)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return ("ax",)

    def _numbers(self, group: dict) -> tuple:
        return group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return ("decay", has_decay(group["weight_decay"])), ("maximize", group["maximize"])
