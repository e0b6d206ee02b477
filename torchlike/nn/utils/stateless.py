"""Calling a module with other parameters than its own."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from torchlike._src.tensor.tensor import Tensor
from torchlike.nn.modules.module import Module

__all__ = ["functional_call"]

_MISSING = object()


def _owner(module: Module, name: str) -> tuple[Module, str]:
    """The module that holds a dotted name, and the last part of the name."""
    path, _, last = name.rpartition(".")
    for part in path.split(".") if path else ():
        if not hasattr(module, part):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = getattr(module, part)
        if not isinstance(module, Module):
            raise TypeError(f"submodule `{path}`: {module} is not an instance of torch.nn.Module")
    return module, last


def _swap(module: Module, name: str, tensor: Any) -> Any:
    """Put `tensor` (or nothing) at a dotted name and return what was there."""
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    owner, last = _owner(module, name)
    if last == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for table in (owner._parameters, owner._buffers):
        if last in table:
            before = table[last]
            if tensor is _MISSING:
                del table[last]
            else:
                table[last] = tensor
            return before
    before = getattr(owner, last, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{last}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(owner, last, tensor)
    elif before is not _MISSING:
        delattr(owner, last)
    return before


def _named_tensors(module: Module) -> dict[str, Tensor]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _untied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """`given` and, for each name that shares its tensor with others, the same for those.

    ValueError: different tensors for names that are one."""
    groups: dict[Tensor, set[str]] = {}
    for name, tensor in _named_tensors(module).items():
        groups.setdefault(tensor, set()).add(name)
    full = dict(given)
    for names in groups.values():
        mentioned = [name for name in given if name in names] if len(names) > 1 else []
        if len({given[name] for name in mentioned}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if mentioned:
            full.update(dict.fromkeys(names, given[mentioned[0]]))
    return full


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Within the context the module's parameters and buffers are these; buffers it changes are handed back in the
    dict."""
    given = _untied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        known = set(_named_tensors(module))
        errors = [
            f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
            for what, names in (("Unexpected", given.keys() - known), ("Missing", known - given.keys()))
            if names
        ]
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{text}")
    before: dict[str, Any] = {}
    try:
        for name, tensor in given.items():
            before[name] = _swap(module, name, tensor)
        yield
    finally:
        after = {name: _swap(module, name, old) for name, old in reversed(before.items())}
        parameters_and_buffers.update({k: after[k] for k in parameters_and_buffers if k in after})


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """torch.func.functional_call with one dict."""
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Deprecated: use torch.func.functional_call. Calls `module` with these tensors in place of its own.

    tie_weights: a parameter under several names is replaced under all. strict: all names must be given, and no
    others."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
