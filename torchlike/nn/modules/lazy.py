"""Layers that learn their input size from their first input."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from torchlike._src.tensor.namespace import torch
from torchlike.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


if TYPE_CHECKING:
    from torchlike.nn.modules.module import Module as _Mixed  # what it is mixed into
else:
    _Mixed = object


class LazyModuleMixin(_Mixed):
    """To be put before a Module class. Until the first call, parameters are `UninitializedParameter`s; that call runs
    `initialize_parameters(*args)`, which must materialize them, and turns the object into a `cls_to_become`."""

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _own_tensors(self) -> Iterator[tuple[str, Any]]:
        yield from self._parameters.items()
        yield from self._buffers.items()

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        # An uninitialized tensor cannot be detached and is saved as it is.
        for name, t in self._own_tensors():
            if t is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = t if keep_vars or is_lazy(t) else t.detach()

    def _lazy_load_hook(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        """Before loading: take the shapes of what is loaded."""
        for name, t in self._own_tensors():
            loaded = state_dict.get(prefix + name)
            if loaded is not None and is_lazy(t) and not is_lazy(loaded):
                with torch.no_grad():
                    t.materialize(loaded.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize all parameters for this input; for subclasses to define."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer has no shape yet."""
        return any(is_lazy(t) for _, t in self._own_tensors())

    def _infer_parameters(self, module: Any, args: tuple, kwargs: dict | None = None) -> None:
        """The forward pre-hook of the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> NoReturn:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )
