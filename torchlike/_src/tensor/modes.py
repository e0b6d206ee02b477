"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers, decorators and functions."""

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any

from torchlike._src.autograd.grad_mode import MODE, Anomaly, grad_enabled, set_grad, set_inference
from torchlike._src.tensor.boundary import leave_no_grad


class _Decorator:
    """A context manager that also decorates functions, generators and classes' methods."""

    if TYPE_CHECKING:  # of the subclasses

        def __enter__(self) -> Any: ...
        def __exit__(self, *exc: Any) -> None: ...

    def clone(self) -> "_Decorator":
        return type(self)()

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args: Any, **kwargs: Any) -> Any:
                generator = function(*args, **kwargs)
                with self.clone():
                    try:
                        item = next(generator)
                    except StopIteration as end:
                        return end.value
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as e:
                        with self.clone():
                            try:
                                item = generator.throw(e)
                            except StopIteration as end:
                                return end.value
                    else:
                        with self.clone():
                            try:
                                item = generator.send(sent)
                            except StopIteration as end:
                                return end.value

            return generate

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return call


class no_grad(_Decorator):
    """Within it, operations are not recorded for gradients. Also a decorator, with or without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        self.before = False

    def __enter__(self) -> None:
        if MODE.inference:
            self.before, MODE.shown = MODE.shown, False
        else:
            self.before, MODE.enabled = MODE.enabled, False

    def __exit__(self, kind: object = None, *unused: object) -> None:
        set_grad(self.before)
        if kind is None:
            leave_no_grad()


class enable_grad(_Decorator):
    """Within it, operations are recorded for gradients, also inside no_grad (but not in inference mode)."""

    def __new__(cls, orig_func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if orig_func is None else self(orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        self.before = False

    def __enter__(self) -> None:
        self.before = grad_enabled()
        set_grad(True)

    def __exit__(self, *unused: object) -> None:
        set_grad(self.before)


class set_grad_enabled(_Decorator):
    """Sets grad mode at once; as a context manager or decorator, for its duration."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        self.before = grad_enabled()
        self.mode = mode
        set_grad(mode)

    def clone(self) -> "set_grad_enabled":
        return set_grad_enabled(self.mode)

    def __call__(self, function: Any) -> Any:
        set_grad(self.before)
        return super().__call__(function)

    def __enter__(self) -> None:
        set_grad(self.mode)

    def __exit__(self, *unused: object) -> None:
        set_grad(self.before)

    def __str__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    def __repr__(self) -> str:
        return str(self)


class inference_mode(_Decorator):
    """no_grad, and tensors made within it can never take part in autograd. `inference_mode(False)` leaves it."""

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        self = super().__new__(cls)
        self.__init__(True)  # type: ignore[misc]
        return self(mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = mode if isinstance(mode, bool) else True

    def clone(self) -> "inference_mode":
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        self.before = (MODE.enabled, MODE.inference, MODE.shown)
        MODE.enabled = not self.mode
        MODE.shown = False
        set_inference(self.mode)

    def __exit__(self, *unused: object) -> None:
        MODE.enabled, inference, MODE.shown = self.before
        set_inference(inference)


def is_grad_enabled() -> bool:
    """Whether grad mode is on in this thread: operations are recorded for gradients, except in inference mode."""
    return grad_enabled()


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return Anomaly.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode raises where a gradient is NaN."""
    return Anomaly.check_nan


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return MODE.inference


for _cls in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _cls.__module__ = "torch.autograd.grad_mode"
