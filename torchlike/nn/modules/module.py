"""`nn.Module`, the base of every layer and model."""

import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from torchlike._src.core.native import NATIVE
from torchlike._src.tensor.boundary import CALLS as _calls
from torchlike._src.tensor.boundary import enter_module
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules._conversion import Conversion
from torchlike.nn.modules._hooks import (  # noqa: F401 (the tables are looked up here by tools)
    HookMethods,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _WrappedHook,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torchlike.nn.modules._naming import type_name
from torchlike.nn.modules._state import _EXTRA_STATE_KEY_SUFFIX, StateDict, _IncompatibleKeys  # noqa: F401
from torchlike.nn.parameter import Buffer, Parameter

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_WrappedHook.__module__ = __name__  # where pickles look for it

# The tables of a module that has no hooks, in the order in which they appear in `__dict__`.
_TABLES = (
    ("_non_persistent_buffers_set", set),
    ("_backward_pre_hooks", OrderedDict),
    ("_backward_hooks", OrderedDict),
    ("_is_full_backward_hook", lambda: None),
    ("_forward_hooks", OrderedDict),
    ("_forward_hooks_with_kwargs", OrderedDict),
    ("_forward_hooks_always_called", OrderedDict),
    ("_forward_pre_hooks", OrderedDict),
    ("_forward_pre_hooks_with_kwargs", OrderedDict),
    ("_state_dict_hooks", OrderedDict),
    ("_state_dict_pre_hooks", OrderedDict),
    ("_load_state_dict_pre_hooks", OrderedDict),
    ("_load_state_dict_post_hooks", OrderedDict),
)


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """What the module computes; for subclasses to define. Call the module itself, not this, so that hooks run."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _addindent(text: str, spaces: int) -> str:
    """Indent all lines but the first; blank ones become empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


class Module(Conversion, StateDict, HookMethods):
    """Base class of all neural network modules.

    Parameters and modules that are assigned as attributes are registered: they are found by `parameters()`, saved by
    `state_dict()`, moved by `to()`. Call `super().__init__()` before the first assignment.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = Parameter(torch.ones(()))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    dump_patches: bool = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    call_super_init: bool = False
    training: bool
    _compiled_call_impl: Callable | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        for name, empty in _TABLES:
            fields[name] = empty()
        fields["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _quicken(cls)

    # -- calling --------------------------------------------------------------------------------------------

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        # HOT: every layer of every step passes here; without hooks it costs nine lookups.
        if _calls.inside and not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or self._compiled_call_impl
        ):
            return self.forward(*args, **kwargs)
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        hooked = (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
        )
        if _calls.inside:
            if hooked:
                return call_with_hooks(self, self.forward, args, kwargs)
            return self.forward(*args, **kwargs)
        enter_module()
        try:
            _calls.inside = True
            if hooked:
                return call_with_hooks(self, self.forward, args, kwargs)
            return self.forward(*args, **kwargs)
        finally:
            _calls.inside = False

    __call__: Callable[..., Any] = _wrapped_call_impl

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Have calls of this module go through `torch.compile(module, *args, **kwargs)`."""
        self._compiled_call_impl = torch.compile(self._call_impl, *args, **kwargs)

    # -- registering ----------------------------------------------------------------------------------------

    def _check_name(self, kind: str, table: str, name: Any, noun: str | None = None) -> None:
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {noun or kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[table] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: state that is no parameter, such as a running mean.

        persistent: whether it is part of the state_dict. A buffer of None is listed nowhere.

        KeyError: a bad name, or one in use. TypeError: neither a tensor nor None."""
        self._check_name("buffer", "_buffers", name)
        if tensor is not None and not (isinstance(tensor, Tensor) or hasattr(tensor, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in _global_buffer_registration_hooks.values():
            output = hook(self, name, tensor)
            if output is not None:
                tensor = output
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None is listed nowhere.

        KeyError: a bad name, or one in use. TypeError: no parameter. ValueError: not a leaf."""
        self._check_name("parameter", "_parameters", name)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        for hook in _global_parameter_registration_hooks.values():
            output = hook(self, name, param)
            if output is not None:
                param = output
        self._parameters[name] = param

    def add_module(self, name: str, module: "Module | None") -> None:
        """Add a child module, found as the attribute `name`.

        TypeError: no module. KeyError: a bad name, or one in use."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {type_name(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = _replaced(self, name, module)

    def register_module(self, name: str, module: "Module | None") -> None:
        """The same as add_module."""
        self.add_module(name, module)

    # -- attributes -----------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # HOT: `self.weight` in a forward comes here, because parameters are not in __dict__.
        fields = self.__dict__
        if "_parameters" in fields:
            found = fields["_parameters"]
            if name in found:
                return found[name]
        if "_buffers" in fields:
            found = fields["_buffers"]
            if name in found:
                return found[name]
        if "_modules" in fields:
            found = fields["_modules"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _forget(fields, name, "_parameters")
            self.register_parameter(name, value)
            return
        params = fields.get("_parameters")
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = fields.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            _forget(fields, name, "_modules")
            modules[name] = _replaced(self, name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _replaced(self, name, value)
            return
        buffers = fields.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value)
            return
        object.__setattr__(self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not (isinstance(value, Tensor) or hasattr(value, "__torch_function__")):
            raise TypeError(
                f"cannot assign '{type_name(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
        own = getattr(self.register_buffer, "__func__", None) is Module.register_buffer
        if own or "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif persistent:
            # A subclass's register_buffer from before that argument existed.
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the persistent argument is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        keys = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(key for key in keys if not key[0].isdigit())

    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict) -> None:
        fields = self.__dict__
        fields.update(state)
        for name, empty in _TABLES:  # what modules pickled by an older release lack
            if name not in fields:
                fields[name] = empty()

    # -- the rest -------------------------------------------------------------------------------------------

    def apply(self, fn: Callable[["Module"], Any]) -> Any:
        """Call `fn` on every child, recursively, and then on this module; returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Any:
        """Set training mode (or evaluation mode) here and below.

        ValueError: mode is not a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Set evaluation mode: `train(False)`."""
        return self.train(False)

    def extra_repr(self) -> str:
        """What repr shows between the parentheses; for subclasses to define."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({key}): {_addindent(repr(module), 2)}" for key, module in self._modules.items()]
        if len(lines) == 1 and not children:
            body = lines[0]
        else:
            lines += children
            body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({body})"

    def _replicate_for_data_parallel(self) -> "Module":
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        replica._is_replica = True
        return replica


def _quicken(cls: Any) -> None:
    """Let instances find parameters, buffers and children in C, unless the class has a look-up of its own."""
    if NATIVE is not None and cls.__getattr__ is Module.__getattr__ and cls.__getattribute__ is object.__getattribute__:
        NATIVE.quick_attributes(cls)


_quicken(Module)


def _forget(fields: dict, name: str, but: str) -> None:
    """An attribute changes its kind: remove it wherever else it is."""
    fields.pop(name, None)
    for table in ("_parameters", "_buffers", "_modules"):
        if table != but:
            fields[table].pop(name, None)
    fields["_non_persistent_buffers_set"].discard(name)


def _replaced(module: Module, name: str, child: Module | None) -> Module | None:
    """The child, after the global registration hooks."""
    for hook in _global_module_registration_hooks.values():
        output = hook(module, name, child)
        if output is not None:
            child = output
    return child
