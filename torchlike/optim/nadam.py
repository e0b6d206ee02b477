"""NAdam: Adam with Nesterov momentum."""

from typing import Any

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_betas, check_lr, has_decay
from torchlike.optim._kernel import (
    KernelOptimizer,
    StepOp,
    addcdiv,
    addcmul,
    decayed,
    div,
    lerp,
    mul,
    next_step,
    plus,
    scalar_state,
    sqrt,
)
from torchlike.optim.optimizer import ParamsT

__all__ = ["NAdam"]


def update(
    numbers: tuple, scalars: tuple, p: Any, g: Any, m: Any, v: Any, *, decay: bool, decoupled: bool, maximize: bool
) -> tuple:
    """optax.scale_by_adam(nesterov=True) has no momentum schedule: its mu does not change from step to step."""
    lr, beta1, beta2, eps, weight_decay, momentum_decay = numbers
    count, step = next_step(scalars)
    if decay and decoupled:
        p = mul(p, 1 - lr * weight_decay)
    g = decayed(p, g, weight_decay, maximize, decay and not decoupled)
    mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay)))
    mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * momentum_decay)))
    mu_product = mul(scalars[1], mu)
    product = mu_product.astype(mu.dtype)
    m = lerp(m, g, 1 - beta1)
    v = addcmul(mul(v, beta2), g, g, 1 - beta2)
    denominator = plus(sqrt(div(v, 1 - beta2**step)), eps)
    p = addcdiv(p, g, denominator, -lr * (1.0 - mu) / (1.0 - product))
    p = addcdiv(p, m, denominator, (-lr * mu_next) / (1.0 - product * mu_next))
    return (count, mu_product), p, m, v


class NAdam(KernelOptimizer):
    """NAdam.

    params: tensors, named tensors or parameter groups. lr: step size. betas: decay of the running averages of the
    gradient and of its square. momentum_decay: how the momentum grows. weight_decay: L2 penalty, or shrinking of the
    weights if `decoupled_weight_decay`. The rest as in `Adam`.

    ValueError: values out of range."""

    _op = StepOp(update, "nadam")
    _scalars = ("step", "mu_product")
    _sparse_error = "NAdam does not support sparse gradients"
    _capturable_what = "params, mu_products and state_steps"
    _group_defaults = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        check(0.0 <= momentum_decay, "Invalid momentum_decay value: {}", momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        super()._start(group, p, state)
        state["mu_product"] = scalar_state(1.0, group, p)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def _numbers(self, group: dict) -> tuple:
        beta1, beta2 = group["betas"]
        return group["lr"], beta1, beta2, group["eps"], group["weight_decay"], group["momentum_decay"]

    def _flags(self, group: dict) -> tuple:
        return (
            ("decay", has_decay(group["weight_decay"])),
            ("decoupled", group["decoupled_weight_decay"]),
            ("maximize", group["maximize"]),
        )
