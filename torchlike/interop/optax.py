"""Any optax transformation as a `torch.optim.Optimizer`.

optimizer = OptaxOptimizer(model.parameters(), optax.chain(optax.clip_by_global_norm(1.0), optax.lion(1e-4)))
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from torchlike._src.engine import record
from torchlike._src.ops.declare import RawOp
from torchlike._src.tensor.call import write
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap
from torchlike.optim._kernel import zeros
from torchlike.optim.optimizer import Optimizer, ParamsT

__all__ = ["OptaxOptimizer"]


class OptaxOptimizer(Optimizer):
    """Steps by an optax transformation; each parameter group is one pytree (a list) with a state of its own.

    params: tensors, named tensors or parameter groups. transformation: an `optax.GradientTransformation`; what is
    constant in it (a learning rate that is not injected) is part of the compiled program.

    A parameter without a gradient counts as one with a gradient of zeros, and is not changed. The state is kept, and
    saved by `state_dict`, as a list of tensors for each group under "optax"."""

    def __init__(self, params: ParamsT, transformation: optax.GradientTransformation) -> None:
        self.transformation = optax.with_extra_args_support(transformation)
        super().__init__(params, {})
        self._make_ops()

    def _make_ops(self) -> None:
        # Their functions are closures: they have no name that means the same in another process.
        self._init_op = RawOp(self._init, "optax_init")
        self._update_op = RawOp(self._update, "optax_update")
        self._init_op.persistent = self._update_op.persistent = False  # type: ignore[attr-defined]

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"transformation": self.transformation}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._make_ops()

    def _init(self, *params: Any) -> tuple:
        with jax.enable_x64(_wide(params)):
            return tuple(jnp.asarray(x) for x in jax.tree.leaves(self.transformation.init(list(params))))

    def _update(self, *arrays: Any, count: int, names: tuple[str, ...]) -> tuple:
        params, grads = list(arrays[:count]), list(arrays[count : 2 * count])
        leaves = arrays[2 * count : len(arrays) - len(names)]
        extra = dict(zip(names, arrays[len(arrays) - len(names) :], strict=True))
        with jax.enable_x64(_wide(params)):
            shapes = [jax.ShapeDtypeStruct(p.shape, p.dtype) for p in params]
            structure = jax.tree.structure(jax.eval_shape(self.transformation.init, shapes))
            state = jax.tree.unflatten(structure, leaves)
            updates, new_state = self.transformation.update(grads, state, params, **extra)
            new_params = optax.apply_updates(params, updates)
            new_leaves = [jnp.asarray(x) for x in jax.tree.leaves(new_state)]
        new_params = [n.astype(p.dtype) for n, p in zip(new_params, params, strict=True)]
        return (*new_params, *(n.astype(x.dtype) for n, x in zip(new_leaves, leaves, strict=True)))

    def step(self, closure: Callable[[], Any] | None = None, **extra: Any) -> Any:
        """Update the parameters once.

        closure: recomputes the loss and its gradients; its result is returned, and given to the transformation as
        `value`. extra: further arguments of the transformation's update, tensors or numbers."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
            extra = {"value": loss} | extra
        with torch.no_grad():
            for k, group in enumerate(self.param_groups):
                self._step_group(k, group["params"], extra)
        return loss

    def _step_group(self, k: int, params: list[Tensor], extra: dict[str, Any]) -> None:
        states = self.state["optax"]
        values = [p._read() for p in params]
        if k not in states:
            states[k] = [wrap(v) for v in record(self._init_op, (), values)]
        state = states[k]
        grads = [(zeros(p) if p._grad is None else p._grad)._read() for p in params]
        operands = [*values, *grads, *(t._read() for t in state)]
        operands += [x._read() if isinstance(x, TensorBase) else x for x in extra.values()]
        static = (("count", len(params)), ("names", tuple(extra)))
        out = record(self._update_op, static, operands)
        for t, v, moves in zip(
            (*params, *state), out, [p._grad is not None for p in params] + [True] * len(state), strict=True
        ):
            if moves:
                write(t, wrap(v))


def _wide(params: Any) -> bool:
    """Whether 64-bit numbers are in use: otherwise optax's own constants must not widen the computation."""
    return any(p.dtype in (jnp.float64, jnp.complex128) for p in params)
