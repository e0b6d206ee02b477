"""torch.library: operators of one's own, by `custom_op`. A dispatcher to register other kernels with does not exist."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import torchlike as torch
from torchlike._src.core.absent import absent as _absent

_ABSENT = [
    "Library", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl", "impl_abstract", "infer_schema",
    "register_autocast", "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip
__all__ = ["custom_op", "register_autograd", "register_fake", "register_kernel", *_ABSENT]

REGISTERED: dict[str, "CustomOpDef"] = {}
"""Operators by qualified name: what torch.ops finds."""


class CustomOpDef:
    """An operator made of a Python function. Calling it calls the function on tensors without gradients.

    The gradient is what `register_autograd` was given; RuntimeError if backward reaches an operator without one."""

    def __init__(self, namespace: str, name: str, fn: Callable, mutates_args: Any) -> None:
        self._namespace = namespace
        self._name = name
        self._qualname = f"{namespace}::{name}"
        self._init_fn = fn
        self._kernels: dict[str, Callable] = {}
        self._signature = inspect.signature(fn)
        names = list(self._signature.parameters)
        self._mutated = [] if mutates_args == "unknown" else list(mutates_args)
        for arg in self._mutated:
            if arg not in names:
                raise ValueError(f"mutates_args: {arg!r} is no argument of {self._qualname}")
        self._backward: Callable | None = None
        self._setup_context: Callable | None = None
        self.__doc__ = fn.__doc__
        REGISTERED[self._qualname] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        tracked = torch.is_grad_enabled() and any(
            isinstance(v, torch.Tensor) and v.requires_grad
            for value in values
            for v in (value if isinstance(value, (list, tuple)) else (value,))
        )
        if tracked and self._mutated:
            raise NotImplementedError(f"torchlike: gradients through {self._qualname}, which writes to its arguments")
        return self._function().apply(*values) if tracked else self._run(values)

    def _run(self, values: tuple[Any, ...]) -> Any:
        device = next((v.device.type for v in values if isinstance(v, torch.Tensor)), "cpu")
        with torch.no_grad():
            return self._kernels.get(device, self._init_fn)(*values)

    def _function(self) -> Any:
        op = self

        class Custom(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *values: Any) -> Any:
                out = op._run(values)
                if op._setup_context is not None:
                    op._setup_context(ctx, values, out)
                return out

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if op._backward is None:
                    raise RuntimeError(
                        f"Trying to backward through {op._namespace}.{op._name}.default but no autograd "
                        "formula was registered. Please use "
                        "register_autograd to add one."
                    )
                return op._backward(ctx, *grads)

        Custom.__name__ = f"GeneratedBackwardFor_{self._namespace}_{self._name}_default"
        return Custom

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """The gradient: backward(ctx, *grads), after setup_context(ctx, inputs, output)."""
        if self._mutated:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {self}")
        self._backward, self._setup_context = backward, setup_context

    def register_fake(self, fn: Callable, /) -> Callable:
        """`fn` itself: the operator is run, not traced, so that its shapes need no description."""
        return fn

    def register_kernel(self, device_types: Any, fn: Callable | None = None, /) -> Callable:
        """The function for tensors on a kind of device; without it a decorator."""

        def register(fn: Callable) -> Callable:
            kinds = ["cpu", "cuda"] if device_types is None else device_types
            self._kernels.update(dict.fromkeys([kinds] if isinstance(kinds, str) else kinds, fn))
            return fn

        return register if fn is None else register(fn)


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: str | Iterable[str], device_types: Any = None,
    schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """The operator "namespace::name" made of `fn`, or a decorator that makes it.

    mutates_args: the names of arguments that fn writes to. device_types: fn is for these only (NotImplementedError
    for tensors elsewhere). ValueError: a name without a namespace."""

    def make(fn: Callable) -> CustomOpDef:
        namespace, separator, short = name.partition("::")
        if not separator:
            raise ValueError(
                f"Expected `name` to be of the form `namespace::name`, got {name!r}: give the operator a namespace"
            )
        op = CustomOpDef(namespace, short, fn, mutates_args)
        if device_types is not None:
            op.register_kernel(device_types, fn)
            op._init_fn = _elsewhere(op._qualname)
        return op

    return make if fn is None else make(fn)


def _elsewhere(name: str) -> Callable:
    def refuse(*args: Any) -> Any:
        raise NotImplementedError(f"{name}: no kernel is registered for the device of its arguments")

    return refuse


def _definition(op: Any) -> CustomOpDef:
    found = op if isinstance(op, CustomOpDef) else REGISTERED.get(str(op).replace(".default", ""))
    if found is None:
        raise NotImplementedError(f"torchlike: {op} is not made by torch.library.custom_op")
    return found


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """As CustomOpDef.register_autograd, for an operator or its name."""
    _definition(op).register_autograd(backward, setup_context=setup_context)


def register_fake(
    op: Any, func: Callable | None = None, /, *, lib: Any = None, _stacklevel: int = 1, allow_override: bool = False
) -> Any:
    """The function itself, or a decorator that returns it: operators are run, not traced, so that their shapes need no
    description."""
    return (lambda fn: fn) if func is None else func


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """As CustomOpDef.register_kernel, for an operator or its name."""
    return _definition(op).register_kernel(device_types, func)


globals().update(_absent(__name__, _ABSENT, "there is no dispatcher; use custom_op"))  # fmt: skip
