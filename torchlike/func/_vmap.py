"""vmap: a function of one sample as a function of many."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchlike._src.tensor.call import write
from torchlike._src.tensor.composite_vmap import STACK
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike.func import _function as _function  # lets custom Functions know of vmap
from torchlike.func._levels import Level, enter, home_of, is_batched, leave
from torchlike.func._tree import LEAF, Spec, broadcast, flatten, unflatten

RANDOMNESS = ("error", "different", "same")


def function_name(func: Any) -> str:
    """What error messages call a function."""
    return getattr(func, "__name__", None) or repr(func)


def _split_inputs(func: Any, in_dims: Any, args: tuple) -> tuple[int, list, list, Spec]:
    """(number of samples, the dim of each leaf, leaves, structure), checked."""
    name = function_name(func)
    lead = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{lead}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, spec = flatten(args)
    dims = broadcast(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{lead}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for k, (x, d) in enumerate(zip(leaves, dims, strict=True)):
        if not isinstance(d, int) and d is not None:
            raise ValueError(
                f"{lead}Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if d is None:
            continue
        if not isinstance(x, TensorBase):
            raise ValueError(
                f"{lead}Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                "arguments, please use None as the respective in_dim"
            )
        n = x._aval.ndim
        if not -n <= d < n:
            raise ValueError(
                f"{lead}Got in_dim={d} for some input, but that input is a Tensor of dimensionality {n} so "
                f"expected in_dim to satisfy -{n} <= in_dim < {n}."
            )
        dims[k] = d % n
    sizes = [x._aval.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0], dims, leaves, spec


def _output_dims(func: Any, out_dims: Any, spec: Spec) -> list:
    """The dim of each result."""
    name = function_name(func)
    for d in flatten(out_dims)[0]:
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection "
                "of ints representing where in the outputs the vmapped dimension should appear."
            )
    # A tuple of one dim may stand for the dim of a single result.
    single = out_dims[0] if spec == LEAF and isinstance(out_dims, tuple) and len(out_dims) == 1 else out_dims
    dims = broadcast(single, spec)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _leave(func: Any, x: Any, level: Level, dim: int | None) -> Any:
    name = function_name(func)
    if dim is None:
        if isinstance(x, TensorBase) and is_batched(x, level):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return leave(x, level, 0)[0] if isinstance(x, Tensor) and level in home_of(x._read()) else x
    if not isinstance(x, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    n = x._aval.ndim + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return leave(x, level, dim % n)


def _once(
    func: Callable, size: int, dims: list, leaves: list, spec: Spec, out_dims: Any, randomness: str, kwargs: dict
) -> tuple[list, list, Spec]:
    """(results, their dims, structure) of all samples together."""
    level = Level(size, randomness)
    inside = [x if d is None else enter(x, level, d) for x, d in zip(leaves, dims, strict=True)]
    before = STACK.levels, STACK.depth
    STACK.levels, STACK.depth = [*STACK.levels, level], STACK.depth + 1
    try:
        outputs = func(*unflatten(inside, spec), **kwargs)
    finally:
        STACK.levels, STACK.depth = before
    results, out_spec = flatten(outputs)
    placed = _output_dims(func, out_dims, out_spec)
    results = [_leave(func, x, level, d) for x, d in zip(results, placed, strict=True)]
    for outer, x, d in zip(leaves, inside, dims, strict=True):
        if d is not None and x._s.version:  # the function changed its input in place, which its caller sees
            write(outer, leave(x, level, d))
    return results, placed, out_spec


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """`func` over a dim of its inputs at once: a function of inputs that have one more dim.

    in_dims: that dim of each positional argument (an int, or a structure like the arguments'; None for an argument
    that all samples share). out_dims: where the results get it. randomness: 'error', 'same' or 'different' draws for
    the samples. chunk_size: at most so many samples at once. Errors as in PyTorch."""
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, spec = _split_inputs(func, in_dims, args)
        if chunk_size is None or chunk_size >= size:
            results, _, out_spec = _once(func, size, dims, leaves, spec, out_dims, randomness, kwargs)
            return unflatten(results, out_spec)
        chunks = []
        placed: list = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            part = [x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims, strict=True)]
            results, placed, out_spec = _once(func, n, dims, part, spec, out_dims, randomness, kwargs)
            chunks.append(results)
        joined = [
            items[0] if d is None else torch.cat(items, d)
            for items, d in zip(zip(*chunks, strict=True), placed, strict=True)
        ]
        return unflatten(joined, out_spec)

    try:
        functools.update_wrapper(wrapped, func)
        wrapped.__signature__ = inspect.signature(func)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        pass
    return wrapped
