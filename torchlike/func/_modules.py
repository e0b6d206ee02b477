"""Modules as functions of their parameters."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from torchlike import nn
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import TensorBase


def functional_call(
    module: nn.Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call `module` with these tensors, by name, in the place of its parameters and buffers.

    parameter_and_buffer_dicts: a dict, or several with different names. args: one argument, or a tuple of them.
    tie_weights: what replaces one of several names of the same parameter replaces all of them. strict: every parameter
    and buffer must be given, and nothing else."""
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        keys = [k for d in parameter_and_buffer_dicts for k in d]
        repeated = [k for k in dict.fromkeys(keys) if keys.count(k) > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {k: v for d in parameter_and_buffer_dicts for k, v in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _swapped(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _named(module: nn.Module) -> dict[str, Any]:
    """All names of all parameters and buffers, shared ones under each of theirs."""
    out: dict[str, Any] = dict(module.named_parameters(remove_duplicate=False))
    out.update(module.named_buffers(remove_duplicate=False))
    return out


def _untied(module: nn.Module, given: dict) -> dict:
    """`given`, with each replacement under all names of what it replaces."""
    groups: dict[int, list[str]] = {}
    for name, t in _named(module).items():
        groups.setdefault(id(t), []).append(name)
    out = dict(given)
    for names in groups.values():
        present = [n for n in names if n in given]
        if len(names) < 2 or not present:
            continue
        if any(given[n] is not given[present[0]] for n in present):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(present)}, which are tied. Consider using "
                "tie_weights=False"
            )
        out.update(dict.fromkeys(names, given[present[0]]))
    return out


@contextlib.contextmanager
def _swapped(module: nn.Module, given: dict, tie: bool, strict: bool) -> Iterator[None]:
    if tie:
        given = _untied(module, given)
    if strict:
        known = set(_named(module))
        missing, unexpected = sorted(known - set(given)), sorted(set(given) - known)
        text = ""
        if unexpected:
            text += "\n\tUnexpected key(s): " + ", ".join(map(repr, unexpected)) + "."
        if missing:
            text += "\n\tMissing key(s): " + ", ".join(map(repr, missing)) + "."
        if text:
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{text}")
    owners = dict(module.named_modules(remove_duplicate=False))
    undo: list = []
    try:
        for name, t in given.items():
            path, _, key = name.rpartition(".")
            owner = owners.get(path)
            if owner is None:
                continue
            if not isinstance(t, TensorBase):
                raise TypeError(f"{t} is not an instance of torch.Tensor")
            for table in (owner._parameters, owner._buffers):
                if key in table:
                    undo.append((table, key, table[key]))
                    table[key] = t
                    break
        yield
    finally:
        for table, key, before in reversed(undo):
            table[key] = before


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of several models of one class, each stacked along a new first dim, by name."""
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: _stacked([dict(m.named_parameters())[name] for m in models]) for name, _ in models[0].named_parameters()
    }
    buffers = {name: _stacked([dict(m.named_buffers())[name] for m in models]) for name, _ in models[0].named_buffers()}
    return parameters, buffers


def _stacked(tensors: list) -> Any:
    """A leaf with the tensors along a new first dim; all require grad, or none does."""
    wanted = [t.requires_grad for t in tensors]
    if any(wanted) != all(wanted):
        raise RuntimeError(
            "Expected tensors to all have requires_grad either True or False; got some with and some without"
        )
    return torch.stack([t.detach() for t in tensors]).requires_grad_(wanted[0])


def replace_all_batch_norm_modules_(root: nn.Module) -> nn.Module:
    """Let every batch norm in `root` use the statistics of its batch and keep none, in place; returns `root`."""
    from torchlike.nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root
