"""Custom autograd Functions under vmap."""

from typing import Any, NamedTuple

from torchlike._src.tensor import composite_vmap
from torchlike._src.tensor.composite_vmap import STACK
from torchlike._src.tensor.function import Function
from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.func._levels import enter, is_batched, leave
from torchlike.func._tree import broadcast, flatten, unflatten

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What a Function's vmap staticmethod learns of the vmap around it."""

    batch_size: int
    randomness: str


def apply_function(cls: Any, args: tuple) -> Any:
    """A call of a Function inside of vmap; NotImplemented where the samples do not differ, and where forward and
    backward themselves are to be vectorised."""
    leaves, spec = flatten(args)
    tensors = [x for x in leaves if isinstance(x, TensorBase)]
    level = STACK.levels[-1]
    if not any(is_batched(t, level) for t in tensors):
        return NotImplemented
    overridden = cls.vmap is not Function.vmap
    if cls.generate_vmap_rule:
        if overridden:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap"
                " staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to "
                f"avoid ambiguity. {MORE}"
            )
        return NotImplemented
    if not overridden:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            f"the vmap staticmethod or set generate_vmap_rule=True. {MORE}"
        )
    dims = [0 if isinstance(x, TensorBase) and is_batched(x, level) else None for x in leaves]
    outer = [x if d is None else leave(x, level, 0) for x, d in zip(leaves, dims, strict=True)]
    before = STACK.levels
    STACK.levels = before[:-1]
    try:
        result = cls.vmap(VmapInfo(level.size, level.randomness), unflatten(dims, spec), *unflatten(outer, spec))
    finally:
        STACK.levels = before
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got a {type(result)} instead"
        )
    output, out_dims = result
    found, out_spec = flatten(output)
    placed = broadcast(out_dims, out_spec)
    if placed is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{flatten(out_dims)[1]} but output has structure {out_spec}. {MORE}"
        )
    back = [
        enter(x, level, d % x._aval.ndim) if d is not None and isinstance(x, Tensor) else x
        for x, d in zip(found, placed, strict=True)
    ]
    return unflatten(back, out_spec)


composite_vmap.apply_function = apply_function
