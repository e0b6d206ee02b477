"""Adam."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.optim._checks import check, check_betas, check_fused, check_lr, has_decay
from torchlike.optim._kernel import (
    KernelOptimizer,
    StepOp,
    add,
    addcdiv,
    addcmul,
    div,
    lerp,
    mul,
    next_step,
    plus,
    sqrt,
)
from torchlike.optim.optimizer import ParamsT, _to_scalar

__all__ = ["Adam"]


def update(
    numbers: tuple,
    scalars: tuple,
    p: Any,
    g: Any,
    m: Any,
    v: Any,
    *largest: Any,
    decay: bool,
    decoupled: bool,
    maximize: bool,
) -> tuple:
    """Unlike optax.scale_by_adam, eps is added to sqrt(v) / sqrt(1 - beta2^t), and corrections are in float64."""
    lr, beta1, beta2, eps, weight_decay = numbers
    count, step = next_step(scalars)
    if maximize:
        g = -g
    if decay:
        if decoupled:
            p = mul(p, 1 - lr * weight_decay)
        else:
            g = add(g, p, weight_decay)
    m = lerp(m, g, 1 - beta1)
    v = addcmul(mul(v, beta2), g, g, 1 - beta2)
    step_size = lr / (1 - beta1**step)
    root = jnp.sqrt(1 - beta2**step)
    if largest:
        largest = (jnp.maximum(largest[0], v),)
    denominator = plus(div(sqrt(largest[0] if largest else v), root), eps)
    return (count,), addcdiv(p, m, denominator, -step_size), m, v, *largest


class Adam(KernelOptimizer):
    """Adam.

    params: tensors, named tensors or parameter groups. lr: step size. betas: decay of the running averages of the
    gradient and of its square. eps: added to the denominator. weight_decay: L2 penalty, or shrinking of the weights if
    `decoupled_weight_decay`. amsgrad: keep the largest of the second averages. maximize: go uphill. foreach, fused:
    accepted; a step is always one program. capturable: as in PyTorch, for accelerators. differentiable: put the step on
    the tape.

    ValueError: values out of range."""

    _op = StepOp(update, "adam", written_out=True)
    _sparse_error = "Adam does not support sparse gradients, please consider SparseAdam instead"
    _no_foreach_tensor_lr = True
    _group_defaults = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, TensorBase) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_lr(lr)
        check(0.0 <= eps, "Invalid epsilon value: {}", eps)
        check_betas(betas)
        check(0.0 <= weight_decay, "Invalid weight_decay value: {}", weight_decay)
        kinds = [isinstance(b, TensorBase) for b in betas]
        if kinds != [True, True] and not all(isinstance(b, float) for b in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        for k in range(2):
            if kinds[k]:
                if not capturable and foreach:
                    raise ValueError(f"betas[{k}] as a Tensor is not supported for capturable=False and foreach=True")
                check(betas[k].numel() == 1, f"Tensor betas[{k}] must be 1-element")  # type: ignore[union-attr]
        defaults = {
            "lr": lr,
            "betas": tuple(map(_to_scalar, betas)),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def _numbers(self, group: dict) -> tuple:
        beta1, beta2 = group["betas"]
        return group["lr"], beta1, beta2, group["eps"], group["weight_decay"]

    def _flags(self, group: dict) -> tuple:
        return (
            ("decay", has_decay(group["weight_decay"])),
            ("decoupled", group["decoupled_weight_decay"]),
            ("maximize", group["maximize"]),
        )
