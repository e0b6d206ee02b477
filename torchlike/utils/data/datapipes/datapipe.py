"""The base classes of data pipes, and how their methods are registered."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from torchlike.utils.data.dataset import Dataset, IterableDataset

_T_co = TypeVar("_T_co", covariant=True)

_MARK = "thrown by __iter__ of"


class DataChunk(list):
    """A list of a pipe's elements."""

    def __init__(self, items: Any) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The elements as text."""
        return indent + "[" + ", ".join(str(i) for i in iter(self)) + "]"

    def raw_iterator(self) -> Any:
        """The elements."""
        yield from self.items


def _described(pipe: Any) -> str:
    """Its class with its arguments, as far as they are attributes."""
    names = inspect.signature(type(pipe)).parameters
    shown = [
        f"{name}={value.__name__ if inspect.isfunction(value) else repr(value)}"
        for name, value in sorted(vars(pipe).items())
        if name in names
    ]
    return f"{pipe}({', '.join(shown)})"


def _no_method(pipe: Any, name: str) -> AttributeError:
    # PyTorch's message lacks the closing quote.
    return AttributeError(f"'{type(pipe).__name__}' object has no attribute '{name}")


def _add(functions: dict[str, Callable], name: str, function: Callable) -> None:
    """Give all pipes of a kind a method."""
    if name in functions:
        raise Exception(f"Unable to add DataPipe function name {name} as it is already taken")
    functions[name] = function


def _maker(kind: Any) -> Callable:
    """The method that makes a pipe of a class."""

    def function(source: Any, *args: Any, **kwargs: Any) -> Any:
        return kind(source, *args, **kwargs)

    function.__doc__ = kind.__doc__
    return function


class IterDataPipe(IterableDataset[_T_co]):
    """An iterable whose methods (`map`, `batch`, ...) make other pipes of it.

    A pipe has one iterator at a time: RuntimeError when an older one is used. `reset()`, if a subclass defines it, is
    called when an iterator begins."""

    functions: dict[str, Callable] = {}
    _valid_iterator_id = -1
    _named_in_errors = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _one_at_a_time(cls.__dict__["__iter__"])  # type: ignore[method-assign]

    def __getattr__(self, name: str) -> Any:
        if name in IterDataPipe.functions:
            function = functools.partial(IterDataPipe.functions[name], self)
            functools.update_wrapper(function, IterDataPipe.functions[name], assigned=("__doc__",))
            return function
        raise _no_method(self, name)

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Give all pipes a method. Exception if there is one."""
        _add(cls.functions, function_name, function)

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:  # fmt: skip
        """Give all pipes a method that makes a pipe of this class."""
        cls.register_function(function_name, _maker(cls_to_register))

    def reset(self) -> None:
        """Called when an iterator begins."""

    def _begin(self) -> int:
        """A new iterator begins: its number, which makes older ones invalid."""
        self._valid_iterator_id += 1
        self.reset()
        return self._valid_iterator_id

    def _current(self) -> int:
        return self._valid_iterator_id

    def __repr__(self) -> str:
        return str(type(self).__qualname__)

    def __str__(self) -> str:
        return str(type(self).__qualname__)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *IterDataPipe.functions]


def _one_at_a_time(function: Callable) -> Callable:
    """`__iter__` with checks: of the iterator's validity, and with the pipe named in errors."""

    @functools.wraps(function)
    def __iter__(self: Any) -> Iterator:
        number = self._begin()
        items = iter(function(self))
        while True:
            if number != self._current():
                raise RuntimeError(
                    "This iterator has been invalidated because another iterator has been created from the same "
                    f"IterDataPipe: {_described(self)}\nThis may be caused by multiple references to the same "
                    "IterDataPipe. We recommend using `.fork()` if that is necessary."
                    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free "
                    "to comment on this issue: https://github.com/pytorch/data/issues/45."
                )
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                if self._named_in_errors and error.args and _MARK not in str(error.args[0]):
                    note = f"{error.args[0]}\nThis exception is {_MARK} {_described(self)}"
                    error.args = (note, *error.args[1:])
                raise
            yield item

    return __iter__


class MapDataPipe(Dataset[_T_co]):
    """A map-style dataset whose methods (`map`, `batch`, ...) make other pipes of it."""

    functions: dict[str, Callable] = {}

    def __getattr__(self, name: str) -> Any:
        if name in MapDataPipe.functions:
            return functools.partial(MapDataPipe.functions[name], self)
        raise _no_method(self, name)

    @classmethod
    def register_function(cls, function_name: str, function: Callable) -> None:
        """Give all pipes a method. Exception if there is one."""
        _add(cls.functions, function_name, function)

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Any) -> None:
        """Give all pipes a method that makes a pipe of this class."""
        cls.register_function(function_name, _maker(cls_to_register))

    def __repr__(self) -> str:
        return str(type(self).__qualname__)

    def __str__(self) -> str:
        return str(type(self).__qualname__)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *MapDataPipe.functions]


class _IterDataPipeSerializationWrapper(IterDataPipe):
    """A pipe around a pipe."""

    def __init__(self, datapipe: IterDataPipe) -> None:
        self._datapipe = datapipe

    def __iter__(self) -> Iterator:
        yield from self._datapipe

    def __len__(self) -> int:
        return len(self._datapipe)  # type: ignore[arg-type]


class _MapDataPipeSerializationWrapper(MapDataPipe):
    """A pipe around a pipe."""

    def __init__(self, datapipe: MapDataPipe) -> None:
        self._datapipe = datapipe

    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]

    def __len__(self) -> int:
        return len(self._datapipe)  # type: ignore[arg-type]


class DFIterDataPipe(IterDataPipe):
    """A pipe of data frames: NotImplementedError."""

    def __init__(self) -> None:
        raise NotImplementedError("torchlike: torch.utils.data.DFIterDataPipe (data frames)")


class functional_datapipe:
    """A class decorator: pipes get a method `name` that makes a pipe of that class.

    TypeError: the class is no pipe."""

    def __init__(self, name: str, enable_df_api_tracing=False) -> None:
        if enable_df_api_tracing:
            raise NotImplementedError("torchlike: functional_datapipe(enable_df_api_tracing=True) (data frames)")
        self.name = name

    def __call__(self, cls: Any) -> Any:
        if isinstance(cls, type) and issubclass(cls, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(self.name, cls)
        elif isinstance(cls, type) and issubclass(cls, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        else:
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        return cls


_determinism = False


class guaranteed_datapipes_determinism:
    """A context in which pipes marked non_deterministic cannot be made."""

    def __init__(self) -> None:
        global _determinism
        self.prev = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *unused: object) -> None:
        global _determinism
        _determinism = self.prev


class non_deterministic:
    """A class decorator for pipes whose order is not fixed, or with a function: for those it says True of.

    TypeError, when one is made in a guaranteed_datapipes_determinism."""

    def __init__(self, arg: Any) -> None:
        self.cls: Any = None
        self.deterministic_fn: Any = lambda *args, **kwargs: True
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    f"Only `IterDataPipe` can be decorated with `non_deterministic`, but {arg.__name__} is found"
                )
            self.cls = arg
        elif isinstance(arg, Callable):  # type: ignore[arg-type]
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            if _determinism:
                raise TypeError(
                    f"{self.cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'. You "
                    "can turn off determinism for this DataPipe if that is acceptable for your application"
                )
            return self.cls(*args, **kwargs)
        cls = args[0]

        @functools.wraps(cls, updated=())
        def made(*args: Any, **kwargs: Any) -> Any:
            if _determinism and self.deterministic_fn(*args, **kwargs):
                raise TypeError(
                    f"{cls.__name__} is non-deterministic with the inputs, but you set "
                    "'guaranteed_datapipes_determinism'. You can turn off determinism for this DataPipe if that is "
                    "acceptable for your application"
                )
            return cls(*args, **kwargs)

        return made


def argument_validation(f):
    """NotImplementedError: types of pipes are not checked."""
    raise NotImplementedError("torchlike: torch.utils.data.argument_validation")


def runtime_validation(f):
    """NotImplementedError: types of pipes are not checked."""
    raise NotImplementedError("torchlike: torch.utils.data.runtime_validation")


class runtime_validation_disabled:
    """NotImplementedError: types of pipes are not checked."""

    def __init__(self) -> None:
        raise NotImplementedError("torchlike: torch.utils.data.runtime_validation_disabled")
