"""no_grad, enable_grad, set_grad_enabled, inference_mode: context managers, decorators and functions."""

import functools
import inspect
from typing import Any

from torchlike._src.autograd.grad_mode import MODE, set_inference


class _Decorator:
    """A context manager that also decorates functions, generators and classes' methods."""

    def clone(self) -> "_Decorator":
        return type(self)()

    def __call__(self, function: Any) -> Any:
        if inspect.isclass(function):
            raise NotImplementedError(f"{type(self).__name__} on a class: decorate its methods instead")
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
                    except BaseException as e:  # noqa: BLE001 - passed on into the generator
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
    """Within it, operations are not recorded for gradients."""

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __init__(self, function: Any = None) -> None:
        self.before = False

    def __enter__(self) -> None:
        self.before = MODE.enabled
        MODE.enabled = False

    def __exit__(self, *unused: object) -> None:
        MODE.enabled = self.before


class enable_grad(_Decorator):
    """Within it, operations are recorded for gradients, also inside no_grad."""

    def __new__(cls, function: Any = None) -> Any:
        self = super().__new__(cls)
        return self if function is None else self(function)

    def __init__(self, function: Any = None) -> None:
        self.before = False

    def __enter__(self) -> None:
        self.before = MODE.enabled
        MODE.enabled = not MODE.inference

    def __exit__(self, *unused: object) -> None:
        MODE.enabled = self.before


class set_grad_enabled(_Decorator):
    """Sets grad mode at once; as a context manager or decorator, for its duration."""

    def __init__(self, mode: bool) -> None:
        self.before = MODE.enabled
        self.mode = mode
        MODE.enabled = mode

    def clone(self) -> "set_grad_enabled":
        return set_grad_enabled(self.mode)

    def __call__(self, function: Any) -> Any:
        MODE.enabled = self.before
        return super().__call__(function)

    def __enter__(self) -> None:
        MODE.enabled = self.mode

    def __exit__(self, *unused: object) -> None:
        MODE.enabled = self.before


class inference_mode(_Decorator):
    """no_grad, and tensors made within it can never take part in autograd."""

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
        self.before = (MODE.enabled, MODE.inference)
        if self.mode:
            MODE.enabled = False
            set_inference(True)
        else:
            MODE.enabled = MODE.enabled or MODE.inference
            set_inference(False)

    def __exit__(self, *unused: object) -> None:
        MODE.enabled = self.before[0]
        set_inference(self.before[1])


def is_grad_enabled() -> bool:
    """Whether operations are recorded for gradients in this thread."""
    return MODE.enabled


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on in this thread."""
    return MODE.inference


for _cls in (no_grad, enable_grad, set_grad_enabled, inference_mode):
    _cls.__module__ = "torch.autograd.grad_mode"
