"""Muon: momentum whose steps are made orthogonal."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchlike._src.tensor.tensor import Tensor
from torchlike.optim._checks import check, check_lr
from torchlike.optim._kernel import KernelOptimizer, StepOp, add, lerp, mul, zeros
from torchlike.optim.optimizer import ParamsT

__all__ = ["Muon"]

EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5


def update(numbers: tuple, scalars: tuple, p: Any, g: Any, m: Any, *, nesterov: bool, steps: int, adjust: str) -> tuple:
    """Unlike optax.contrib.muon, the momentum is a running average, and the iteration is in bfloat16."""
    lr, weight_decay, momentum, eps, *coefficients = numbers
    m = lerp(m, g, 1 - momentum)
    step = orthogonal(lerp(g, m, momentum) if nesterov else m, coefficients, steps, eps)
    rows, columns = p.shape
    if adjust == "original":
        ratio = math.sqrt(max(1, rows / columns))
    else:
        ratio = 0.2 * math.sqrt(max(rows, columns))
    p = mul(p, 1 - lr * weight_decay)
    return scalars, add(p, step.astype(p.dtype), -lr * ratio), m


def orthogonal(g: Any, coefficients: Any, steps: int, eps: Any) -> Any:
    """(N, M) -> (N, M) bfloat16: about the nearest matrix with orthonormal rows or columns, by Newton-Schulz."""
    a, b, c = (x.astype(jnp.float32) for x in coefficients)
    x = g.astype(jnp.bfloat16)
    tall = g.shape[0] > g.shape[1]
    x = x.T if tall else x
    wide = x.astype(jnp.float32)
    norm = jnp.sqrt(jnp.sum(wide * wide)).astype(x.dtype)
    x = (wide / jnp.maximum(norm, eps.astype(x.dtype)).astype(jnp.float32)).astype(x.dtype)
    for _ in range(steps):
        gram = _product(x, x.T).astype(x.dtype)
        polynomial = (b * gram.astype(jnp.float32) + c * _product(gram, gram)).astype(x.dtype)
        x = (a * x.astype(jnp.float32) + _product(polynomial, x)).astype(x.dtype)
    return x.T if tall else x


def _product(x: Any, y: Any) -> Any:
    return jax.lax.dot(x, y, preferred_element_type=jnp.float32)


class Muon(KernelOptimizer):
    """Muon, for the matrices of hidden layers; other parameters need another optimizer.

    params: 2-d real tensors, named tensors or parameter groups. lr: step size. weight_decay: shrinking of the weights.
    momentum, nesterov: of the running average of gradients. ns_coefficients, ns_steps, eps: of the Newton-Schulz
    iteration. adjust_lr_fn: how lr depends on the shape, "original" or "match_rms_adamw".

    ValueError: values out of range, parameters that are not matrices."""

    _op = StepOp(update, "muon", pairs=False, elementwise=False)
    _scalars = ()
    _sparse_error = "Muon does not support sparse gradients"

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        check(0.0 <= momentum, "momentum should be >= 0 but is: {}", momentum)
        check(0.0 <= weight_decay, "weight decay should be >= 0 but is: {}", weight_decay)
        check(
            adjust_lr_fn in (None, "original", "match_rms_adamw"),
            "Adjust learning rate function {} is not supported",
            adjust_lr_fn,
        )
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                check(
                    p.ndim == 2,
                    "Muon only supports 2D parameters whereas we found a parameter with size: {}",
                    p.size(),
                )

    def _step_group(self, group: dict) -> None:
        if any(p._aval.dtype.is_complex for p in group["params"] if p._grad is not None):
            raise RuntimeError("Muon does not support complex parameters")
        check(group["ns_steps"] < 100, "Number of steps must be less than 100 for computational efficiency")
        check(len(group["ns_coefficients"]) == 3, "Coefficients must be a tuple of exactly 3 values")
        super()._step_group(group)

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        state["momentum_buffer"] = zeros(p)

    def _tensors(self, group: dict) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def _numbers(self, group: dict) -> tuple:
        return group["lr"], group["weight_decay"], group["momentum"], group["eps"], *group["ns_coefficients"]

    def _flags(self, group: dict) -> tuple:
        return (
            ("nesterov", group["nesterov"]),
            ("steps", group["ns_steps"]),
            ("adjust", group["adjust_lr_fn"] or "original"),
        )
