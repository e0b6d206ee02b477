"""Modules that hold modules: Sequential, ModuleList, ModuleDict."""

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import TYPE_CHECKING, Any

from torchlike.nn.modules._parameter_containers import ParameterDict, ParameterList, named_pairs
from torchlike.nn.modules.module import Module, _addindent

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

ParameterDict.__module__ = ParameterList.__module__ = __name__  # where pickles look for them


class Container(Module):
    """Deprecated: a Module can do all that it did."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass "
            "that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for key, value in kwargs.items():
            self.add_module(key, value)


class _Numbered(Module):
    """What Sequential and ModuleList share: children in a row, named by their position."""

    _modules: dict[str, Module]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    if TYPE_CHECKING:  # the subclasses have their own

        def __getitem__(self, idx: Any) -> Any: ...

    def _position(self, idx: Any) -> int:
        size = len(self)
        idx = operator.index(idx)
        if not -size <= idx < size:
            raise IndexError(f"index {idx} is out of range")
        return idx % size

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, list(self._modules)[self._position(idx)], module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)
        for key in keys[idx] if isinstance(idx, slice) else [keys[self._position(idx)]]:
            delattr(self, key)
        # Those behind move up.
        self._modules = OrderedDict((str(k), module) for k, module in enumerate(self._modules.values()))

    def append(self, module: Module) -> Any:
        """Add a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove and return the module (or the slice) at that position."""
        module = self[key]
        del self[key]
        return module

    def _shift_in(self, index: int, module: Module) -> None:
        for k in range(len(self._modules), index, -1):
            self._modules[str(k)] = self._modules[str(k - 1)]
        self._modules[str(index)] = module


class Sequential(_Numbered):
    """Modules that are called one after the other: `Sequential(a, b)`, or an OrderedDict of named ones.

    >>> from torchlike import nn
    >>> Sequential(nn.Linear(2, 3), nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable = args[0].items()
        else:
            named = ((str(k), module) for k, module in enumerate(args))
        for key, module in named:
            self.add_module(key, module)

    def forward(self, input: Any) -> Any:
        """The last module's output."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return list(self._modules.values())[self._position(idx)]

    @staticmethod
    def _check_other(other: Any) -> None:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def __add__(self, other: "Sequential") -> "Sequential":
        self._check_other(other)
        return Sequential().extend(self).extend(other)

    def __iadd__(self, other: "Sequential") -> "Sequential":
        self._check_other(other)
        return self.extend(list(other))

    def _check_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other: int) -> "Sequential":
        self._check_factor(other)
        combined = Sequential()
        for _ in range(other):
            combined.extend(self)
        return combined

    __rmul__ = __mul__

    def __imul__(self, other: int) -> "Sequential":
        self._check_factor(other)
        once = list(self)
        for _ in range(other - 1):
            self.extend(once)
        return self

    def insert(self, index: int, module: Module) -> "Sequential":
        """Put a module before position `index`; returns self."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        self._shift_in(index + n if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> "Sequential":
        """Add the modules at the end; returns self."""
        for module in sequential:
            self.append(module)
        return self


class ModuleList(_Numbered):
    """A list of modules that are registered; it has no forward of its own."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx: Any) -> str:
        return str(self._position(idx))

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __iadd__(self, modules: Iterable[Module]) -> "ModuleList":
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        combined = ModuleList()
        for k, module in enumerate(chain(self, other)):
            combined.add_module(str(k), module)
        return combined

    def insert(self, index: int, module: Module) -> None:
        """Put a module before position `index`."""
        self._shift_in(index, module)

    def extend(self, modules: Iterable[Module]) -> "ModuleList":
        """Add the modules at the end; returns self."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        offset = len(self)
        for k, module in enumerate(modules):
            self.add_module(str(offset + k), module)
        return self

    def __repr__(self) -> str:
        # Neighbours that look the same are shown once: (0-2): 3 x Linear(…)
        runs: list[list] = []
        for k, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = k
            else:
                runs.append([k, k, text])
        if not runs:
            return f"{self._get_name()}()"
        lines = [
            _addindent(f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}", 2) for a, b, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of modules that are registered, in insertion order."""

    _modules: dict[str, Module]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove a module and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """The (name, module) pairs."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Take over the entries of a mapping, or of an iterable of pairs, replacing those of the same names."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else named_pairs(modules, "ModuleDict")
        for key, module in pairs:
            self[key] = module
