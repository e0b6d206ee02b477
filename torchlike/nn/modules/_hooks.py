"""Hooks of modules: the tables common to all modules, the methods that register hooks, and the call with hooks."""

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import RemovableHandle
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules._backward_hook import BackwardHook

_global_buffer_registration_hooks: dict[int, Callable] = OrderedDict()
_global_module_registration_hooks: dict[int, Callable] = OrderedDict()
_global_parameter_registration_hooks: dict[int, Callable] = OrderedDict()
_global_backward_pre_hooks: dict[int, Callable] = OrderedDict()
_global_backward_hooks: dict[int, Callable] = OrderedDict()
_global_forward_pre_hooks: dict[int, Callable] = OrderedDict()
_global_forward_hooks: dict[int, Callable] = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()


class _GlobalKind:
    """Whether the global backward hooks are full ones: None until the first is registered."""

    full: bool | None = None


def register(table: dict, hook: Callable, *marks: tuple[dict, bool], prepend: bool = False) -> RemovableHandle:
    """Enter `hook` in `table` (first, if `prepend`), and its id in each marked table; the handle removes all."""
    handle = RemovableHandle(table, extra_dict=[m for m, _ in marks])
    table[handle.id] = hook
    for mark, wanted in marks:
        if wanted:
            mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)  # type: ignore[attr-defined]
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, buffer) for every buffer that any module registers; what it returns is used instead."""
    return register(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, submodule) for every child that any module gets; what it returns is used instead."""
    return register(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, name, param) for every parameter that any module registers; what it returns is used instead."""
    return register(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, args) before the forward of every module, and before the module's own pre-hooks."""
    return register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call hook(module, args, output) after the forward of every module, before the module's own hooks.

    with_kwargs: call hook(module, args, kwargs, output). always_call: also when forward raises."""
    return register(
        _global_forward_hooks,
        hook,
        (_global_forward_hooks_with_kwargs, with_kwargs),
        (_global_forward_hooks_always_called, always_call),
    )


_MIXED_GLOBAL = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
    "Please use only one of them."
)
_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Deprecated form of `register_module_full_backward_hook`: sees the gradients of a module's last operation only."""
    if _GlobalKind.full is True:
        raise RuntimeError(_MIXED_GLOBAL)
    _GlobalKind.full = False
    return register(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_output) before the gradients of any module are computed."""
    return register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call hook(module, grad_input, grad_output) when the gradients of any module's inputs are known."""
    if _GlobalKind.full is False:
        raise RuntimeError(_MIXED_GLOBAL)
    _GlobalKind.full = True
    return register(_global_backward_hooks, hook)


class _WrappedHook:
    """A hook bound, weakly, to its module."""

    def __init__(self, hook: Callable, module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class HookMethods:
    """The part of Module that registers hooks."""

    _forward_hooks: Any
    _forward_hooks_with_kwargs: Any
    _forward_hooks_always_called: Any
    _forward_pre_hooks: Any
    _forward_pre_hooks_with_kwargs: Any
    _backward_hooks: Any
    _backward_pre_hooks: Any
    _is_full_backward_hook: bool | None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args) before forward; a result that is not None replaces args (a lone value is wrapped).

        with_kwargs: call hook(module, args, kwargs); a result must be the pair (args, kwargs).
        prepend: before the hooks that are registered already."""
        return register(
            self._forward_pre_hooks, hook, (self._forward_pre_hooks_with_kwargs, with_kwargs), prepend=prepend
        )

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args, output) after forward; a result that is not None replaces the output.

        with_kwargs: call hook(module, args, kwargs, output). always_call: also when an exception was raised.
        prepend: before the hooks that are registered already."""
        return register(
            self._forward_hooks,
            hook,
            (self._forward_hooks_with_kwargs, with_kwargs),
            (self._forward_hooks_always_called, always_call),
            prepend=prepend,
        )

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_output) before the module's gradients are computed; a result replaces grad_output."""
        return register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated form of `register_full_backward_hook`: sees the gradients of the module's last operation only."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = False
        return register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when the gradients of the module's inputs are known.

        Entries for arguments that are no tensors are None. A result replaces grad_input. If no input requires a
        gradient, the hook runs when the gradients of the outputs are known."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = True
        return register(self._backward_hooks, hook, prepend=prepend)

    def _get_backward_hooks(self) -> tuple[list[Callable], list[Callable]]:
        """Full backward hooks, and those of the deprecated kind; global ones first."""
        full: list[Callable] = []
        plain: list[Callable] = []
        for kind, table in (
            (_GlobalKind.full, _global_backward_hooks),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            if kind is not None:
                (full if kind else plain).extend(table.values())
        return full, plain

    def _get_backward_pre_hooks(self) -> list[Callable]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]


def call_with_hooks(module: Any, forward: Callable, args: tuple, kwargs: dict) -> Any:
    """Module.__call__ for a module that has hooks, or while there are global ones."""
    called: set[int] = set()
    state: list = [args, kwargs, None]
    try:
        return _run(module, forward, state, called)
    except Exception:
        _run_always_called(module, state, called)
        raise


def _run(module: Any, forward: Callable, state: list, called: set[int]) -> Any:
    """`state` holds args, kwargs and the result so far, for the hooks that run after an exception."""
    for key, hook in (*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()):
        args, kwargs, _ = state
        if key in module._forward_pre_hooks_with_kwargs:
            new = hook(module, args, kwargs)
            if new is not None:
                if not (isinstance(new, tuple) and len(new) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                    )
                state[0], state[1] = new
        else:
            new = hook(module, args)
            if new is not None:
                state[0] = new if isinstance(new, tuple) else (new,)

    full, plain = module._get_backward_hooks()
    before = module._get_backward_pre_hooks()
    backward = None
    if full or before:
        backward = BackwardHook(module, full, before)
        state[0] = backward.setup_input_hook(state[0])

    args, kwargs, _ = state
    result = state[2] = forward(*args, **kwargs)
    for key, hook in (*_global_forward_hooks.items(), *module._forward_hooks.items()):
        if key in module._forward_hooks_always_called or key in _global_forward_hooks_always_called:
            called.add(key)
        if key in module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            new = hook(module, args, kwargs, result)
        else:
            new = hook(module, args, result)
        if new is not None:
            result = state[2] = new

    if backward is not None:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=4,
            )
        result = state[2] = backward.setup_output_hook(result)
    if plain:
        _hook_last_operation(module, plain, args, result)
    return result


def _run_always_called(module: Any, state: list, called: set[int]) -> None:
    """After an exception: the hooks that asked for it and have not run."""
    for key, hook in _global_forward_hooks.items():
        if key in _global_forward_hooks_always_called and key not in called:
            _run_silenced(functools.partial(hook, module, state[0], state[2]), state, "global module")
    for key, hook in module._forward_hooks.items():
        if key in module._forward_hooks_always_called and key not in called:
            extra = (state[1],) if key in module._forward_hooks_with_kwargs else ()
            _run_silenced(functools.partial(hook, module, state[0], *extra, state[2]), state, "module")


def _run_silenced(call: Callable[[], Any], state: list, whose: str) -> None:
    try:
        new = call()
    except Exception as error:
        warnings.warn(
            f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another error "
            f"was raised in forward: {error}",
            stacklevel=4,
        )
        return
    if new is not None:
        state[2] = new


def _hook_last_operation(module: Any, hooks: list[Callable], args: tuple, result: Any) -> None:
    """The deprecated backward hooks: attached to the node of the first tensor found in the result."""
    var = result
    while not isinstance(var, Tensor):
        var = next(v for v in var.values() if isinstance(v, Tensor)) if isinstance(var, dict) else var[0]
    node = var.grad_fn
    if node is None or not MODE.enabled:
        return
    for hook in hooks:
        node.register_hook(_WrappedHook(hook, module))
    _warn_plain_hook(args, result, node)


def _warn_plain_hook(inputs: Any, result: Any, node: Any) -> None:
    """Say in which cases such a hook sees less than its user may expect."""
    results = (result,) if isinstance(result, Tensor) else result
    arguments = (inputs,) if isinstance(inputs, Tensor) else inputs
    use_full = "Please use register_full_backward_hook to get the documented behavior."
    text = None
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        text = (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is "
            "deprecated and will be removed in future versions. This hook will be missing some of the grad_output. "
            f"{use_full}"
        )
    elif not (isinstance(arguments, tuple) and all(isinstance(i, Tensor) for i in arguments)):
        text = (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
            "Tensors is deprecated and will be removed in future versions. This hook will be missing some of the "
            f"grad_input. {use_full}"
        )
    else:
        made = {r.grad_fn for r in results if r.grad_fn is not None}
        if not made or (len(made) == 1 and node not in made):
            text = (
                "Using a non-full backward hook when outputs are nested in python data structure is deprecated and "
                "will be removed in future versions. This hook will be missing some grad_output."
            )
        elif len(made) > 1:
            text = (
                "Using a non-full backward hook when outputs are generated by different autograd Nodes is "
                "deprecated and will be removed in future versions. This hook will be missing some grad_output. "
                f"{use_full}"
            )
        elif {i.grad_fn for i in arguments if i.grad_fn is not None} != {n[0] for n in node.next_functions}:
            text = (
                "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and "
                f"will be removed in future versions. This hook will be missing some grad_input. {use_full}"
            )
    if text is not None:
        warnings.warn(text, FutureWarning, stacklevel=6)
