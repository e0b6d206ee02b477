"""Gradient scaling for float16: the loss is multiplied by a factor so that small gradients do not vanish.

Whether a gradient overflowed is not known when the step is recorded, and is not waited for: the update is computed, and
the program chooses between it and the old values. The factor is a tensor, too, so that training with a scaler is still
one program a step."""

import functools
import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

import jax.numpy as jnp
import numpy as np

from torchlike._src.core import dtype as dtypes
from torchlike._src.core.aval import aval
from torchlike._src.engine import Value, record
from torchlike._src.ops.declare import RawOp
from torchlike._src.tensor.boundary import end_step
from torchlike._src.tensor.call import write
from torchlike._src.tensor.modes import no_grad
from torchlike._src.tensor.tensor import TensorBase, wrap
from torchlike.amp.autocast_mode import amp_definitely_not_available

__all__ = ["GradScaler", "OptState"]


# -- what is recorded -----------------------------------------------------------------------------------------------


def _unscale(inverse: Any, *grads: Any) -> tuple:
    """() scale's inverse, gradients -> () 1 if one has an inf or nan, else 0; the gradients times the inverse."""
    found = jnp.zeros((), bool)
    out = []
    for g in grads:
        found |= ~jnp.isfinite(g).all()
        wide = g.astype(jnp.float32) if g.dtype.itemsize <= 2 else g
        out.append((wide * inverse.astype(wide.real.dtype)).astype(g.dtype))
    return found.astype(jnp.float32), *out


def _update(scale: Any, tracker: Any, found: Any, growth: Any, backoff: Any, *, interval: int) -> tuple:
    """The next scale, and the number of good steps since it last changed."""
    bad = found > 0
    good = tracker + 1
    due = good == interval
    wide = scale.astype(jnp.float64)
    grown = (wide * growth).astype(scale.dtype)
    grown = jnp.where(jnp.isfinite(grown), grown, scale)
    new_scale = jnp.where(bad, (wide * backoff).astype(scale.dtype), jnp.where(due, grown, scale))
    return new_scale, jnp.where(bad | due, 0, good).astype(tracker.dtype)


UNSCALE = RawOp(_unscale, "unscale")
UPDATE = RawOp(_update, "update_scale")


@functools.cache
def _optim() -> Any:
    """(the class of optimizers that record their step, the module of the base class): they import torch.cuda, which has
    a scaler itself."""
    from torchlike.optim import optimizer
    from torchlike.optim._kernel import KernelOptimizer

    return KernelOptimizer, optimizer


def _full(number: float, dtype: Any, device: Any) -> Any:
    """A 0-d tensor with a concrete value, so that a first step records what later ones do."""
    a = aval((), dtype, device)
    return wrap(Value(a, np.asarray(number, dtype.np)))


# -- the scaler -----------------------------------------------------------------------------------------------------


class OptState(Enum):
    """How far an optimizer is in the current iteration."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses and takes the scale out of the gradients before a step; skips steps whose gradients overflowed.

    device: "cuda" (without a GPU the scaler warns and is disabled) or "cpu". init_scale: the first scale.
    growth_factor: what it is multiplied by after growth_interval good steps in a row. backoff_factor: what it is
    multiplied
    by after a skipped step. enabled: False makes `step` the optimizer's own and everything else do nothing.

        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    AssertionError: growth_factor not above 1, or backoff_factor not below 1."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and amp_definitely_not_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._scale: Any = None  # made by the first call of scale(), which knows the device
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(f"Attempted {funcname} but {name} is None.  {fix}")
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = _full(self._init_scale, dtypes.float32, dev)
        self._growth_tracker = _full(self._init_growth_tracker, dtypes.int32, dev)

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each tensor of a (nested) iterable, times the scale. ValueError for anything else."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, TensorBase):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            scale = self._scale
            return outputs * (scale if scale._aval.device is outputs._aval.device else scale.to(outputs.device))
        if isinstance(outputs, Iterable):
            items = map(self.scale, outputs)
            return type(outputs)(items) if isinstance(outputs, (list, tuple)) else items  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    # -- unscaling -----------------------------------------------------------------------------------------------------

    @no_grad()
    def _unscale_grads_(self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool) -> dict[Any, Any]:
        """Multiply the gradients by inv_scale in place; returns, by device, whether one was not finite."""
        by_device: dict[Any, list] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, TensorBase):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                grad = param.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                if getattr(grad, "is_sparse", False):
                    raise NotImplementedError("torchlike: GradScaler with sparse gradients")
                by_device.setdefault(grad.device, []).append(grad)
        found = {}
        for device, grads in by_device.items():
            inverse = inv_scale.to(device)
            out = record(UNSCALE, (), [inverse._read(), *[g._read() for g in grads]])
            found[device] = wrap(out[0])
            for g, v in zip(grads, out[1:], strict=True):
                write(g, wrap(v))
        return found

    def unscale_(self, optimizer: Any) -> None:
        """Divide the optimizer's gradients by the scale, to clip or inspect them before `step`.

        RuntimeError if called twice between updates, or after step; ValueError for float16 gradients."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        optimizer_state = self._per_optimizer_states[id(optimizer)]
        if optimizer_state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if optimizer_state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = scale.double().reciprocal().float()
        none_yet = _full(0.0, dtypes.float32, scale.device)
        optimizer_state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, none_yet, False)
        optimizer_state["stage"] = OptState.UNSCALED

    # -- the step ------------------------------------------------------------------------------------------------------

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Step unless a gradient overflowed; inside the program where the optimizer's step allows it."""
        found = list(optimizer_state["found_inf_per_device"].values())
        if not _records_choice(optimizer, args):
            return None if sum(v.item() for v in found) else optimizer.step(*args, **kwargs)
        optimizer.found_inf = functools.reduce(lambda a, b: a + b.to(a.device), found)
        # `update` ends the recorded step, so that the new scale is part of the same program.
        _optim()[1].Holding.code = GradScaler._maybe_opt_step.__code__
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.found_inf

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients unless `unscale_` has, and step unless one has an inf or nan.

        RuntimeError if called twice between updates, or with a closure."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        optimizer_state = self._per_optimizer_states[id(optimizer)]
        if optimizer_state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False) and not isinstance(optimizer, _optim()[0]):
            return self._step_with_scale(optimizer, optimizer_state, args, kwargs)
        if optimizer_state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not optimizer_state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, optimizer_state, *args, **kwargs)
        optimizer_state["stage"] = OptState.STEPPED
        return result

    def _step_with_scale(self, optimizer: Any, optimizer_state: dict, args: tuple, kwargs: dict) -> Any:
        """The step of a user's optimizer that takes the scaling on itself: it finds `grad_scale` and `found_inf` among
        its attributes, or takes the scaler as an argument."""
        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the "
                "near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer "
                "and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            kwargs["grad_scaler"] = self
        else:
            ready = optimizer_state["stage"] is OptState.READY
            if ready:
                self._check_inf_per_device(optimizer)
            found = [t.to(self._scale.device) for t in optimizer_state["found_inf_per_device"].values()]
            before = getattr(optimizer, "grad_scale", None)
            optimizer.grad_scale = self._scale * (1 if before is None else before) if ready else before
            optimizer.found_inf = sum(found)
        result = optimizer.step(*args, **kwargs)
        optimizer_state["stage"] = OptState.STEPPED
        if not takes_scaler:
            del optimizer.grad_scale
            del optimizer.found_inf
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, zero = (_full(n, dtypes.float32, scale.device) for n in (1.0, 0.0))
        found = self._unscale_grads_(optimizer, one, zero, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # -- the scale -----------------------------------------------------------------------------------------------------

    def update(self, new_scale: Any = None) -> None:
        """Shrink the scale if a step was skipped, let it grow after enough good ones, or set it to `new_scale` (a float
        or a one-element tensor). Call it once per iteration, after all steps: it ends the recorded step."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [
                t.to(scale.device)
                for state in self._per_optimizer_states.values()
                for t in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            combined = functools.reduce(lambda a, b: a + b, found)
            operands = [scale._read(), tracker._read(), combined._read()]
            operands += [float(self._growth_factor), float(self._backoff_factor)]
            out = record(UPDATE, (("interval", int(self._growth_interval)),), operands)
            write(scale, wrap(out[0]))
            write(tracker, wrap(out[1]))
        stepped = any(s["stage"] is OptState.STEPPED for s in self._per_optimizer_states.values())
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)
        if stepped:
            end_step()

    def _set_scale(self, scale: Any, new_scale: Any) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        reason = (
            "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
            "requires_grad=False."
        )
        if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(reason)
        scale.copy_(new_scale)

    def _get_scale_async(self) -> Any:
        return self._scale

    def get_scale(self) -> float:
        """The scale; waits for it to be computed. 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by when it grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by when a step was skipped."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by when a step was skipped."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row let the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many good steps in a row let the scale grow."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    # -- state ---------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The scale and the options as Python numbers; {} if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`. RuntimeError if it is empty; nothing if disabled."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = None
            state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _records_choice(optimizer: Any, args: tuple) -> bool:
    """Whether skipping a step can be decided inside the program: a step of ours, nothing of the user's around."""
    kind, base = _optim()
    if args or not isinstance(optimizer, kind):
        return False
    step = optimizer.step
    if inspect.unwrap(getattr(step, "__func__", step)) is not inspect.unwrap(kind.step):
        return False
    if type(optimizer).__module__.split(".", 1)[0] != __name__.split(".", 1)[0] and _overridden(optimizer):
        return False
    hooks = (
        base._global_optimizer_pre_hooks, base._global_optimizer_post_hooks, optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
    )  # fmt: skip
    if any(hooks):
        return False
    for group in optimizer.param_groups:
        if group.get("differentiable"):
            return False
        # A skipped first step must leave such a buffer empty, because the first gradient is taken whole.
        if group.get("momentum") and group.get("dampening"):
            for p in group["params"]:
                if p.grad is not None and optimizer.state[p].get("momentum_buffer") is None:
                    return False
    return True


def _overridden(optimizer: Any) -> bool:
    """Whether a user's subclass replaced a part of the step."""
    names = [n for n in vars(_optim()[0]) if not n.startswith("__")]
    for cls in type(optimizer).__mro__:
        if cls.__module__.split(".", 1)[0] in (__name__.split(".", 1)[0], "torch"):
            break
        if any(n in vars(cls) for n in names):
            return True
    return False
