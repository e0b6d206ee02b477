"""Stochastic gradient descent."""

from typing import Any

import jax

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_fused, check_lr, has_decay
from torchlike.optim._kernel import KernelOptimizer, StepOp, add, mul, zeros
from torchlike.optim.optimizer import ParamsT

__all__ = ["SGD"]


def update(
    numbers: tuple,
    scalars: tuple,
    p: Any,
    g: Any,
    *buffer: Any,
    decay: bool,
    nesterov: bool,
    maximize: bool,
    cut: bool = False,
) -> tuple:
    """Unlike optax.trace, dampening scales each gradient but the first. cut: no gradient through the buffer."""
    lr, weight_decay, momentum, keep, take = numbers
    if maximize:
        g = -g
    if decay:
        g = add(g, p, weight_decay)
    if not buffer:
        return scalars, add(p, g, -lr)
    b = add(mul(buffer[0], keep), g, take)
    b = jax.lax.stop_gradient(b) if cut else b
    return scalars, add(p, add(g, b, momentum) if nesterov else b, -lr), b


class SGD(KernelOptimizer):
    """Stochastic gradient descent, optionally with momentum.

    params: tensors, named tensors or parameter groups. lr: step size. momentum: how much of the last step stays.
    dampening: how much of each gradient but the first is left out of the momentum. weight_decay: L2 penalty.
    nesterov: look ahead along the momentum. maximize: go uphill. foreach, fused: accepted; a step is always one
    program. differentiable: put the step on the tape.

    ValueError: a negative lr, momentum or weight_decay; nesterov without momentum or with dampening."""

    _op = StepOp(update, "sgd", pairs=False, written_out=True)
    _scalars = ()
    _group_defaults = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        check(momentum >= 0.0, "Invalid momentum value: {}", momentum)
        check(weight_decay >= 0.0, "Invalid weight_decay value: {}", weight_decay)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        good = not nesterov or (momentum > 0 and dampening == 0)
        check(good, "Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True

    def _flags(self, group: dict) -> tuple:
        return (
            ("decay", has_decay(group["weight_decay"])),
            ("nesterov", group["nesterov"]),
            ("maximize", group["maximize"]),
        )

    def _step_group(self, group: dict) -> None:
        params = [p for p in group["params"] if p._grad is not None]
        if not params:
            return
        lr, decay, momentum = group["lr"], group["weight_decay"], group["momentum"]
        if momentum == 0:
            self._launch(group, params, [], (lr, decay, 0.0, 0.0, 0.0), ())
            return
        states = [self.state[p] for p in params]
        old = [s for s in states if s.get("momentum_buffer") is not None]
        if len(old) == len(states):
            numbers = (lr, decay, momentum, momentum, 1 - group["dampening"])
            self._launch(group, params, states, numbers, ("momentum_buffer",))
            return
        # The first gradient becomes the buffer as it is: zeros, of which nothing stays, plus all of it.
        fresh = [p for p, s in zip(params, states, strict=True) if s.get("momentum_buffer") is None]
        for p in fresh:
            self.state[p]["momentum_buffer"] = zeros(p)
        first = (lr, decay, momentum, 0.0, 1.0)
        cut = (("cut", True),) if MODE.enabled else ()
        self._launch(group, fresh, [self.state[p] for p in fresh], first, ("momentum_buffer",), cut)
        if old:
            rest = [p for p in params if not any(p is f for f in fresh)]
            numbers = (lr, decay, momentum, momentum, 1 - group["dampening"])
            self._launch(group, rest, [self.state[p] for p in rest], numbers, ("momentum_buffer",))
