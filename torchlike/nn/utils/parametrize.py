"""Parametrizations: a parameter computed from others each time it is asked for."""

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NoReturn

from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules.container import ModuleDict, ModuleList
from torchlike.nn.modules.module import Module
from torchlike.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """The tensors that `cached()` keeps, by (id of module, name)."""

    depth = 0
    tensors: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within this context a parametrized tensor is computed once, at its first use."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.tensors = {}


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(target: Tensor, source: Tensor) -> None:
    """target's data becomes source's; target stays the object that it is."""
    if target is not source:
        target.data = source.detach()


def _check_same(what: str, new: Tensor, old_dtype: Any, old_shape: Any, old_name: str, new_name: str) -> None:
    """ValueError: `new` differs in dtype or shape from the tensor it stands for."""
    for kind, a, b in (("dtype", old_dtype, new.dtype), ("shape", old_shape, new.shape)):
        if a != b:
            raise ValueError(what.format(kind=kind) + f"\n{old_name} {kind}: {a}\n{new_name} {kind}: {b}")


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they are computed from: `original`, or `original0`, `original1`, ….

    unsafe: dtype and shape may change, and consistency is not checked. ValueError: a check fails."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with torch.no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            for kind in ("dtype", "device"):
                a, b = getattr(original, kind), getattr(new, kind)
                if a != b:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {kind}.\n"
                        f"original.{kind}: {a}\nright_inverse(original).{kind}: {b}"
                    )
            with torch.no_grad():
                _set(original, new)
            _register(self, "original", original)
        else:
            for k, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {k} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{k}", part)
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
            _check_same(
                "Registering a parametrization may not change the {kind} of the tensor, unless `unsafe` flag is "
                "enabled.",
                result,
                dtype,
                shape,
                "unparametrized",
                "parametrized",
            )

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrized tensor becomes `value`, as far as each right_inverse can.

        RuntimeError: one has none. ValueError: one gives something unfit."""
        with torch.no_grad():
            result: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                result = module.right_inverse(result)
            if self.is_tensor:
                if not isinstance(result, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(result).__name__}")
                if result.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {result.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _set(self.original, result)
                return
            if not isinstance(result, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(result).__name__}.")
            if len(result) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence "
                    f"of length {len(result)}."
                )
            for k, tensor in enumerate(result):
                original = getattr(self, f"original{k}")
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                        f"Got element {k} of type {type(tensor).__name__}."
                    )
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {k} returned by `right_inverse` has dtype {tensor.dtype} while `original{k}` has "
                        f"dtype {original.dtype}"
                    )
                _set(original, tensor)

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        first, *others = self
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*[getattr(self, f"original{k}") for k in range(self.ntensors)])
        for module in others:
            x = module(x)
        return x


def _copy_parametrized(self: Module, memo: dict) -> Module:
    """deepcopy of an object whose __getstate__ refuses."""
    found = memo.get(id(self))
    if found is not None:
        return found
    replica = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
        if hasattr(self, slot):
            setattr(replica, slot, deepcopy(getattr(self, slot), memo))
    return replica


def _refuse_state(self: Module) -> NoReturn:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _own_class(module: Module) -> None:
    """Give the module a class of its own, on which properties can be put."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_state}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _copy_parametrized
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module: Module, name: str) -> None:
    if hasattr(module, name):
        raise AssertionError(f"Module already has an attribute named '{name}'")

    def get(self: Module) -> Tensor:
        compute = self.parametrizations[name]
        if not _Cache.depth:
            return compute()
        key = (id(self), name)
        found = _Cache.tensors.get(key)
        if found is None:
            found = _Cache.tensors[key] = compute()
        return found

    def set(self: Module, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set))


def _check_addition(module: Module, name: str, parametrization: Module) -> None:
    """Whether a further parametrization fits on the present tensor; ValueError if not."""
    present = getattr(module, name)
    result = parametrization(present)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for kind in ("dtype", "shape"):
        a, b = getattr(present, kind), getattr(result, kind)
        if a != b:
            raise ValueError(
                f"Registering a parametrization may not change the {kind} of the tensor, unless the `unsafe` flag "
                "is enabled.\n"
                f"module.{name}.{kind}: {a}\nparametrization(module.{name}).{kind}: {b}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for kind in ("dtype", "shape"):
        a, b = getattr(present, kind), getattr(back, kind)
        if a != b:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {kind} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{kind}: {a}\nreturned {kind}: {b}"
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """From now on `module.tensor_name` is `parametrization(original)`, computed each time; several are applied in turn.

    Assigning to the tensor calls the parametrizations' right_inverse, if they have one. `module.parametrizations` holds
    them and the originals. unsafe: see ParametrizationList. Returns the module.

    ValueError: no such parameter or buffer, or the parametrization does not fit."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_addition(module, tensor_name, parametrization)
        own = module.parametrizations[tensor_name]
        own.append(parametrization)
        own.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        own = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = own
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module has parametrizations (of that tensor)."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary one again: what it is now, or (leave_parametrized=False) its original.

    ValueError: it has none, or leave_parametrized=False and it is computed from several tensors."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    own = module.parametrizations[tensor_name]
    if own.is_tensor:
        original = own.original
        if leave_parametrized:
            with torch.no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before its first parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Put the parametrizations (of that tensor) and their originals on another module; returns that."""
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        if hasattr(source, "original"):
            target.original = source.original
        else:
            for k in range(source.ntensors):
                setattr(target, f"original{k}", getattr(source, f"original{k}"))
    return to_module
