"""The base of learning rate schedules."""

import contextlib
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any
from weakref import ref

from torchlike._src.tensor.tensor import TensorBase
from torchlike.optim.optimizer import Optimizer, _to_scalar

__all__ = ["LRScheduler"]

MORE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
STEP_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. " + MORE
)
STEP_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. " + MORE
)
RESUME_WITHOUT_LR = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


def _copy(x: Any) -> Any:
    return x.clone() if isinstance(x, TensorBase) else x


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list:
    """One value for each parameter group, from one for all or from a list."""
    groups = len(optimizer.param_groups)
    if isinstance(param, (list, tuple)):
        if len(param) != groups:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} values, "
                f"param_groups has {groups}."
            )
    else:
        param = [param] * groups
    return [_copy(p) for p in param]


def _param_groups_val_list(optimizer: Optimizer, key: str) -> list:
    """The option `key` of each parameter group; tensors are copied."""
    return [_copy(group[key]) for group in optimizer.param_groups]


def _update_param_group_val(param_group: dict[str, Any], key: str, val: Any) -> None:
    """Set an option; one that is a tensor is written to, so that it stays the same tensor."""
    if isinstance(param_group[key], TensorBase):
        param_group[key].fill_(_to_scalar(val))
    else:
        param_group[key] = val


def _warn_get_lr_called_within_step(scheduler: "LRScheduler") -> None:
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=2,
        )


@contextlib.contextmanager
def _enable_get_lr_call(scheduler: "LRScheduler") -> Iterator[None]:
    scheduler._get_lr_called_within_step = True
    try:
        yield
    finally:
        scheduler._get_lr_called_within_step = False


@contextlib.contextmanager
def _initial_mode(scheduler: "LRScheduler") -> Iterator[None]:
    scheduler._is_initial = True
    try:
        yield
    finally:
        scheduler._is_initial = False


def _note_steps(optimizer: Optimizer) -> None:
    """Have `optimizer.step` set `optimizer._opt_called`, so that a schedule can tell the wrong order of calls."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function = optimizer.step.__func__  # type: ignore[attr-defined]
    owner = ref(optimizer)  # not the optimizer itself: it would hold itself alive

    @wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        self = owner()
        self._opt_called = True  # type: ignore[union-attr]
        return function(self, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step  # type: ignore[method-assign]


class LRScheduler:
    """Base class of learning rate schedules: a subclass implements `get_lr`, the rates of epoch `last_epoch`.

    optimizer: whose groups' "lr" is set. last_epoch: the epoch that was the last one, when resuming.

    TypeError: not an optimizer. KeyError: resuming with groups that have no "initial_lr"."""

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(RESUME_WITHOUT_LR.format(i))
        self.base_lrs = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """The rate of each group that was set last."""
        return self._last_lr

    def get_lr(self) -> list:
        """The rate of each group for the epoch `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch (or, deprecated, to `epoch`) and set the groups' rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(STEP_OVERRIDDEN, UserWarning, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(STEP_TOO_EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        self._set_lrs(values)

    def _set_lrs(self, values: Sequence) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _update_param_group_val(group, "lr", lr)
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")

    # -- what several schedules share ---------------------------------------------------------------------------

    def _current(self) -> list:
        """The groups' present rates: what a schedule returns when nothing changes."""
        return _param_groups_val_list(self.optimizer, "lr")

    def _scaled(self, factor: Any) -> list:
        """The groups' present rates times `factor`."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _from_base(self, factor: Any) -> list:
        """The initial rates times `factor`."""
        return [base * factor for base in self.base_lrs]


class _LRScheduler(LRScheduler):
    """The old name of LRScheduler."""


class FunctionState:
    """State dicts of schedules with user functions: an object's attributes are kept, a plain function is not."""

    @staticmethod
    def save(function: Any) -> Any:
        return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class LambdaSchedule(LRScheduler):
    """Schedules of one function for each group."""

    lr_lambdas: list[Callable[[int], float]]

    def _take_lambdas(self, optimizer: Optimizer, lr_lambda: Any) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * groups
        else:
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; functions are left out, callable objects keep their attributes."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [FunctionState.save(f) for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`; functions stay what they are."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if saved is not None:
                function.__dict__.update(saved)


class SchedulerList(LRScheduler):
    """Schedules made of schedules, in `_schedulers`."""

    _schedulers: Sequence[LRScheduler]

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        name = self.__class__.__name__
        for k, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {k} should have `optimizer` as its attribute.")
            if getattr(s, "_needs_metrics", False):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {k} in the given schedulers sequence."
                )
            if optimizer != s.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{s.__class__.__name__} at index {k} has {s.optimizer}, which is different from "
                    f"{optimizer.__class__.__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the schedules' own state dicts."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            scheduler.load_state_dict(saved)
