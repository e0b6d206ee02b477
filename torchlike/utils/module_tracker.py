"""torch.utils.module_tracker: which modules a forward pass is in."""

from typing import Any

from torchlike.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """While it is entered, `parents` holds the names of the modules whose forward is running, and "Global".

    is_bw is False: names are followed in the forward pass alone."""

    def __init__(self) -> None:
        self.parents: set[str] = {"Global"}
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        return False

    def _name_of(self, module: Any) -> str:
        if id(module) not in self._names:
            top = type(module).__name__
            for name, part in module.named_modules():
                self._names.setdefault(id(part), f"{top}.{name}" if name else top)
        return self._names[id(module)]

    def _enter(self, module: Any, inputs: Any) -> None:
        self.parents.add(self._name_of(module))

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        self.parents.discard(self._name_of(module))

    def __enter__(self) -> "ModuleTracker":
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        return self

    def __exit__(self, *args: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []
