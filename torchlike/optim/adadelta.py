"""Adadelta."""

from typing import Any

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_lr, has_decay
from torchlike.optim._kernel import KernelOptimizer, StepOp, add, addcmul, decayed, mul, next_step, plus, sqrt
from torchlike.optim.optimizer import ParamsT

__all__ = ["Adadelta"]


def update(numbers: tuple, scalars: tuple, p: Any, g: Any, v: Any, u: Any, *, decay: bool, maximize: bool) -> tuple:
    """optax.scale_by_adadelta's formula, with PyTorch's roundings."""
    lr, rho, eps, weight_decay = numbers
    count, _ = next_step(scalars)
    g = decayed(p, g, weight_decay, maximize, decay)
    v = addcmul(mul(v, rho), g, g, 1 - rho)
    delta = sqrt(plus(u, eps)) / sqrt(plus(v, eps)) * g
    u = addcmul(mul(u, rho), delta, delta, 1 - rho)
    return (count,), add(p, delta, -lr), v, u


class Adadelta(KernelOptimizer):
    """Adadelta.

    params: tensors, named tensors or parameter groups. lr: scales the step. rho: decay of the running averages of
    squared gradients and steps. eps: added under the roots. weight_decay: L2 penalty. The rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "adadelta")
    _sparse_error = "Adadelta does not support sparse gradients"
    _group_defaults = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        check(0.0 <= rho <= 1.0, "Invalid rho value: {}", rho)
        check(0.0 <= eps, "Invalid epsilon value: {}", eps)
        check(0.0 <= weight_decay, "Invalid weight_decay value: {}", weight_decay)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return "square_avg", "acc_delta"

    def _numbers(self, group: dict) -> tuple:
        return group["lr"], group["rho"], group["eps"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return ("decay", has_decay(group["weight_decay"])), ("maximize", group["maximize"])
