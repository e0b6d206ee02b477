"""The base of all optimizers: parameter groups, state, hooks and state dicts."""

import functools
import sys
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from torchlike._src.autograd.tape import RemovableHandle
from torchlike._src.core import dtype as dtypes
from torchlike._src.tensor.boundary import end_step
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

StateDict = dict[str, Any]
ParamsT = Iterable[Any]

_global_optimizer_pre_hooks: dict[int, Callable] = OrderedDict()
_global_optimizer_post_hooks: dict[int, Callable] = OrderedDict()


class _RequiredParameter:
    """The default of an option that each group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


class Holding:
    """Whose calls of `step` do not end the recorded step, beside those of other optimizers: a function's code."""

    code: Any = None


def _typename(x: Any) -> str:
    if isinstance(x, TensorBase):
        return x.type()
    kind = type(x)
    return kind.__qualname__ if kind.__module__ in ("builtins", "") else f"{kind.__module__}.{kind.__qualname__}"


def _to_scalar(x: Any) -> Any:
    """A one-element tensor without its dims; anything else as it is."""
    return x.squeeze() if isinstance(x, TensorBase) and x._aval.ndim != 0 else x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of step counts: float32, or float64 where that is the default dtype."""
    if is_fused:
        return dtypes.float32
    return dtypes.float64 if dtypes.get_default_dtype() is dtypes.float64 else dtypes.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Device types on which `capturable=True` is accepted."""
    return ["cuda", "xpu", "hpu", "privateuseone"] + (["xla"] if supports_xla else [])


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, TensorBase) else x


def _use_grad_for_differentiable(function: Callable) -> Callable:
    """Run a step with grad mode on if the optimizer is differentiable, else off."""

    @functools.wraps(function)
    def call(self: "Optimizer", *args: Any, **kwargs: Any) -> Any:
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return function(self, *args, **kwargs)

    return call


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) before each step of every optimizer; it may return new (args, kwargs)."""
    return RemovableHandle(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call hook(optimizer, args, kwargs) after each step of every optimizer."""
    return RemovableHandle(_global_optimizer_post_hooks, hook)


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """Base class of optimizers.

    params: an iterable of tensors, of (name, tensor) pairs, or of dicts that define parameter groups.
    defaults: the options of groups that do not give their own.

    A subclass implements `step(closure=None)`. When the outermost `step` returns, everything recorded so far is
    computed: forward, backward and update become one program.

    TypeError, ValueError: parameters that are no tensors, not leaves, in several groups, or none at all."""

    OptimizerPreHook: TypeAlias = Callable[..., tuple[tuple[Any, ...], dict[str, Any]] | None]
    OptimizerPostHook: TypeAlias = Callable[..., None]
    _optimizer_step_pre_hooks: OrderedDict[int, Callable]
    _optimizer_step_post_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOK_TABLES:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, TensorBase):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + _typename(params)
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        # Set so that a "capturable" warning, which has no meaning here, is never given.
        self._warned_capturable_if_run_uncaptured = True

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = self.__class__.__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    def _accelerator_graph_capture_health_check(self) -> None:
        """Nothing to check: steps are always captured."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check

    def _optimizer_step_code(self) -> None:
        """Called after each step; profilers of PyTorch replace it."""

    # -- the step ---------------------------------------------------------------------------------------------

    @staticmethod
    def profile_hook_step(func: Callable) -> Callable:
        """`func`, a step, with the hooks around it and the end of the recorded step after it."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                args, kwargs = _run_pre_hooks(self, func, args, kwargs)
            out = func(*args, **kwargs)
            self._optimizer_step_code()
            if self._optimizer_step_post_hooks or _global_optimizer_post_hooks:
                for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                    hook(self, args, kwargs)
            # A step within another one's ends nothing. The stack says so: a counter would be wrong for ever after an
            # interrupt in the wrong place.
            frame: Any = sys._getframe().f_back
            while frame is not None:
                if frame.f_code is code or frame.f_code is Holding.code:
                    return out
                frame = frame.f_back
            end_step()
            return out

        made: Any = wrapper
        code = made.__code__
        return made

    def _patch_step_function(self) -> None:
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{self.__class__.__name__}.zero_grad"
        kind = self.__class__
        if not getattr(kind.step, "hooked", None):
            kind.step = self.profile_hook_step(kind.step)  # type: ignore[method-assign]
            kind.step.hooked = True  # type: ignore[attr-defined]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once.

        closure: recomputes the loss and its gradients; optional for most optimizers."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters: to None, or to zeros if not `set_to_none`."""
        for group in self.param_groups:
            for p in group["params"]:
                grad = p._grad
                if grad is None:
                    continue
                if set_to_none:
                    p._grad = None
                else:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    # -- hooks ------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) before `state_dict`; `prepend`: before the hooks registered so far."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) after `state_dict`; what it returns, if anything, replaces the dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before `load_state_dict`; what it returns, if anything, is loaded."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # -- state dicts ------------------------------------------------------------------------------------------

    def state_dict(self) -> StateDict:
        """{"state": per-parameter state by the parameter's number, "param_groups": options and parameter numbers}.

        The tensors are those of the optimizer, not copies."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        packed_groups = []
        start = 0
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            start += len(packed["params"])
            packed_groups.append(packed)
        state_dict: StateDict = {
            "state": {(numbers[id(k)] if isinstance(k, TensorBase) else k): v for k, v in self.state.items()},
            "param_groups": packed_groups,
        }
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        return state_dict

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict], key: Hashable = None
    ) -> Tensor:
        """A loaded state tensor as the optimizer keeps it: like its parameter, except for `step`."""
        group = next((g for g in param_groups if param_id in g["params"]), {})
        if key == "step":
            if group.get("capturable", False) or group.get("fused", False):
                return value.to(dtype=dtypes.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over the state and the options of a `state_dict`; parameters are matched by their order.

        ValueError: groups of other number or size."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            result = hook(self, state_dict)
            if result is not None:
                state_dict = result
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = chain.from_iterable(g["params"] for g in groups)
        by_number = dict(zip(chain.from_iterable(g["params"] for g in saved_groups), params, strict=True))
        policy_groups = state_dict["param_groups"]

        def convert(param: Tensor, value: Any, number: int, key: Hashable = None) -> Any:
            if isinstance(value, Tensor):
                return Optimizer._process_value_according_to_param_policy(param, value, number, policy_groups, key)
            if isinstance(value, dict):
                return {k: convert(param, v, number, k) for k, v in value.items()}
            if isinstance(value, Iterable):
                return type(value)(convert(param, v, number) for v in value)  # type: ignore[call-arg]
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for k, v in state_dict["state"].items():
            if k in by_number:
                state[by_number[k]] = convert(by_number[k], v, k)
            else:
                state[k] = v
        for group, saved in zip(groups, saved_groups, strict=True):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # -- parameter groups ---------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with options of their own where the dict gives them.

        TypeError, ValueError: not a dict, not tensors, not leaves, or parameters that another group has."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, TensorBase):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        param_group["params"] = params
        if names:
            if len(names) != len(params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = names
        for p in params:
            if not isinstance(p, TensorBase):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + _typename(p))
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        taken: set = set()
        for group in self.param_groups:
            taken.update(group["params"])
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {kind} to the optimizer"
                )
        if not taken.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _register(table: Any, hook: Callable, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(table, hook)
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _run_pre_hooks(self: Optimizer, func: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
        result = hook(self, args, kwargs)
        if result is not None:
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
    return args, kwargs
