"""Adagrad."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_fused, check_lr, has_decay
from torchlike.optim._kernel import (
    KernelOptimizer,
    StepOp,
    addcdiv,
    addcmul,
    decayed,
    next_step,
    plus,
    scalar_state,
    share_scalars,
    sqrt,
    zeros,
)
from torchlike.optim.optimizer import ParamsT

__all__ = ["Adagrad"]


def update(numbers: tuple, scalars: tuple, p: Any, g: Any, total: Any, *, decay: bool, maximize: bool) -> tuple:
    """Unlike optax.scale_by_rss, eps is added to the root, and the rate decays."""
    lr, lr_decay, eps, weight_decay = numbers
    count, step = next_step(scalars)
    g = decayed(p, g, weight_decay, maximize, decay)
    total = addcmul(total, g, g, jnp.ones_like(lr))
    return (count,), addcdiv(p, g, plus(sqrt(total), eps), -(lr / (1 + (step - 1) * lr_decay))), total


class Adagrad(KernelOptimizer):
    """Adagrad.

    params: tensors, named tensors or parameter groups. lr: step size. lr_decay: how it falls with the steps.
    weight_decay: L2 penalty. initial_accumulator_value: what the sums of squares begin with. eps: added to their root.
    The rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "adagrad")
    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(0.0 <= lr_decay, "Invalid lr_decay value: {}", lr_decay)
        check(0.0 <= weight_decay, "Invalid weight_decay value: {}", weight_decay)
        check(
            0.0 <= initial_accumulator_value,
            "Invalid initial_accumulator_value value: {}",
            initial_accumulator_value,
        )
        check(0.0 <= eps, "Invalid epsilon value: {}", eps)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for p in group["params"]:
                self._start(group, p, self.state[p])
            share_scalars([self.state[p] for p in group["params"]], self._scalars)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        value = self.defaults["initial_accumulator_value"]
        state["step"] = scalar_state(0.0, group, p)
        state["sum"] = zeros(p, fill=complex(value, value) if p._aval.dtype.is_complex else value)

    def share_memory(self) -> None:
        """Move the sums to memory that processes share."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return ("sum",)

    def _numbers(self, group: dict) -> tuple:
        return group["lr"], group["lr_decay"], group["eps"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return ("decay", has_decay(group["weight_decay"])), ("maximize", group["maximize"])
