"""Averages of weights: stochastic weight averaging and exponential moving averages."""

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import jax.numpy as jnp

from torchlike._src.engine import record
from torchlike._src.ops.declare import RawOp
from torchlike._src.tensor.call import write
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, wrap
from torchlike.nn.modules.module import Module
from torchlike.optim._kernel import lerp
from torchlike.optim._lr_base import LRScheduler, _format_param, _warn_get_lr_called_within_step
from torchlike.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


# -- one program for all parameters --------------------------------------------------------------------------


def _average(count: Any, decay: Any, *arrays: Any, rule: str) -> tuple:
    """count 0-d, decay 0-d, averages, models -> new averages; the models themselves while nothing was averaged yet."""
    half = len(arrays) // 2
    count, decay = count.reshape(()), decay.reshape(())
    out = []
    for a, m in zip(arrays[:half], arrays[half:], strict=True):
        m = m.astype(a.dtype)
        if rule == "swa":
            new = a + (m - a) / (count + 1).astype(jnp.float32)
        elif rule == "ema" or a.dtype.kind in "iub":
            new = a * decay.astype(_number_dtype(a)) + m * (1 - decay).astype(_number_dtype(a))
        elif rule == "swa_multi":
            new = lerp(a, m, 1 / (count + 1).astype(jnp.float64))
        else:
            new = lerp(a, m, 1 - decay)
        out.append(jnp.where(count == 0, m, new.astype(a.dtype)))
    return tuple(out)


def _number_dtype(a: Any) -> Any:
    return jnp.float32 if a.dtype.kind in "iub" else a.dtype


AVERAGE = RawOp(_average, "average_model")


class _Rule:
    """An averaging function that AveragedModel runs as one operation."""

    def __init__(self, rule: str, decay: float, function: Callable) -> None:
        self.rule = rule
        self.decay = decay
        self.function = function

    def __call__(self, averaged: Any, current: Any, num_averaged: Any) -> Any:
        with torch.no_grad():
            return self.function(averaged, current, num_averaged)


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """(average, current, count) -> the exponential moving average, of one tensor."""
    _check_decay(decay)
    return _Rule("ema", decay, lambda average, current, _: decay * average + (1 - decay) * current)


def get_swa_avg_fn() -> Callable:
    """(average, current, count) -> the running mean, of one tensor."""
    return _Rule("swa", 0.0, lambda average, current, count: average + (current - average) / (count + 1))


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """(averages, currents, count): updates a list of exponential moving averages in place."""
    _check_decay(decay)

    def update(averages: list, currents: list, _: Any) -> None:
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return _Rule("ema_multi", decay, update)


def get_swa_multi_avg_fn() -> Callable:
    """(averages, currents, count): updates a list of running means in place."""

    def update(averages: list, currents: list, count: Any) -> None:
        for average, current in zip(averages, currents, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 / (count + 1))
            else:
                average.add_((current - average) / (count + 1))

    return _Rule("swa_multi", 0.0, update)


class AveragedModel(Module):
    """A copy of `model` whose parameters are averages of those that `update_parameters` has seen.

    device: where to keep the averages. avg_fn: of one tensor, `avg_fn(average, current, count) -> average` (running
    mean if left out). multi_avg_fn: of lists, in place. use_buffers: average buffers, too, rather than copy them.

    Calling it calls the averaged model. AssertionError: both functions given."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the present parameters of `model` into the averages."""
        own: Iterable = self.module.parameters()
        new: Iterable = model.parameters()
        if self.use_buffers:
            own = itertools.chain(own, self.module.buffers())
            new = itertools.chain(new, model.buffers())
        averages, currents = [], []
        for average, current in zip(own, new, strict=False):
            averages.append(average.detach())
            currents.append(current.detach().to(average.device))
        rule = self.multi_avg_fn or self.avg_fn or get_swa_avg_fn()
        with torch.no_grad():
            if isinstance(rule, _Rule):
                self._update_at_once(rule, averages, currents)
            else:
                self._update_by_function(averages, currents)
            if not self.use_buffers:
                for own_buffer, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                    own_buffer.copy_(buffer.to(own_buffer.device))
            self.n_averaged += 1

    def _update_at_once(self, rule: _Rule, averages: list, currents: list) -> None:
        if rule.rule.startswith("swa") and any(not (a.is_floating_point() or a.is_complex()) for a in averages):
            self._update_by_function(averages, currents)  # integers: as the formulas of the tensors themselves
            return
        operands = [self.n_averaged._read(), float(rule.decay), *(t._read() for t in (*averages, *currents))]
        if averages:
            for t, v in zip(averages, record(AVERAGE, (("rule", rule.rule),), operands), strict=True):
                write(t, wrap(v))

    def _update_by_function(self, averages: list, currents: list) -> None:
        if self.n_averaged.item() == 0:
            for average, current in zip(averages, currents, strict=True):
                average.copy_(current)
            return
        if self.multi_avg_fn is not None:
            groups: dict = {}
            for average, current in zip(averages, currents, strict=True):
                pair = groups.setdefault((average.device, average.dtype), ([], []))
                pair[0].append(average)
                pair[1].append(current)
            for (device, _), (some, news) in groups.items():
                self.multi_avg_fn(some, news, self.n_averaged.to(device))
            return
        function = self.avg_fn or get_swa_avg_fn()
        for average, current in zip(averages, currents, strict=True):
            average.copy_(function(average, current, self.n_averaged.to(average.device)))


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of the model's batch normalisations anew, from one pass over `loader`."""
    from torchlike.nn.modules.batchnorm import _BatchNorm

    with torch.no_grad():
        momenta = {}
        for module in model.modules():
            if isinstance(module, _BatchNorm):
                module.reset_running_stats()
                momenta[module] = module.momentum
        if not momenta:
            return
        was_training = model.training
        model.train()
        for module in momenta:
            module.momentum = None  # a plain mean over all batches
        for batch in loader:
            if isinstance(batch, (list, tuple)):
                batch = batch[0]
            if device is not None:
                batch = batch.to(device)
            model(batch)
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """The rate to `swa_lr` over `anneal_epochs` epochs, along a cosine or a line, and then no further.

    ValueError: another strategy, a negative or broken number of epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ["cos", "linear"]:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    @staticmethod
    def _get_initial_lr(lr: Any, swa_lr: Any, alpha: float) -> Any:
        return swa_lr if alpha == 1 else (lr - alpha * swa_lr) / (1 - alpha)

    def get_lr(self) -> list:
        """The rates of the present epoch."""
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        epochs = max(1, self.anneal_epochs)
        before = self.anneal_func(max(0, min(1, (step - 1) / epochs)))
        alpha = self.anneal_func(max(0, min(1, step / epochs)))
        lrs = []
        for group in self.optimizer.param_groups:
            start = self._get_initial_lr(group["lr"], group["swa_lr"], before)
            lrs.append(group["swa_lr"] * alpha + start * (1 - alpha))
        return lrs

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        self.anneal_func = self._cosine_anneal if anneal_strategy == "cos" else self._linear_anneal

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the annealing function."""
        return {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "anneal_func")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
