"""Modules of settings: known names can be set, for a while with `patch`, and steer nothing here."""

import contextlib
import types
from collections.abc import Iterator
from typing import Any


class SettingsModule(types.ModuleType):
    """A module whose settings have no effect. AttributeError for an unknown one, NotImplementedError for one in
    `_REFUSED` that is switched on."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            if name not in self.__dict__:
                raise AttributeError(f"{self.__name__.replace('torchlike', 'torch', 1)}.{name} does not exist")
            if value and name in self.__dict__.get("_REFUSED", ()):
                raise NotImplementedError(f"torchlike: {self.__name__.replace('torchlike', 'torch', 1)}.{name}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self.__name__.replace('torchlike', 'torch', 1)}.{name} does not exist")

    def patch(self, arg1: str | dict[str, Any] | None = None, arg2: Any = None, **kwargs: Any) -> Any:
        """A context (or decorator) with other values: patch("name", value), patch({...}) or patch(name=value)."""
        if isinstance(arg1, dict):
            kwargs = arg1
        elif arg1 is not None:
            kwargs = {arg1: arg2}
        return _patched(self, kwargs)


@contextlib.contextmanager
def _patched(settings: SettingsModule, values: dict[str, Any]) -> Iterator[None]:
    before = {name: getattr(settings, name) for name in values}
    for name, value in values.items():
        setattr(settings, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
