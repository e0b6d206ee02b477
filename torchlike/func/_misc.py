"""functionalize, debug_unwrap and rearrange."""

import functools
import re
from collections.abc import Callable
from typing import Any

from torchlike._src.tensor.composite_vmap import STACK
from torchlike._src.tensor.namespace import torch
from torchlike._src.tensor.tensor import Tensor, wrap
from torchlike.func._levels import Batched


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """A function that does what `func` does. In PyTorch its operations would be free of mutations; here every recorded
    operation is: an in-place operation makes a new value, and a view is computed from its base."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and "
            "replaced with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor seen inside of `vmap` stands for: the samples together, the dims mapped over in front. With
    recurse=False only the innermost vmap's. Other tensors, of `grad` too, come back without their history, or as they
    are. For debugging."""
    value = tensor._read()
    if type(value.array) is Batched:
        levels = value.array.levels
        if recurse or not levels:
            return wrap(value.array.value)
        from torchlike.func._levels import leave

        return leave(tensor, levels[-1], 0).detach()
    return tensor.detach() if STACK.depth and tensor.requires_grad else tensor


TOKEN = re.compile(r"\s*(->|\.\.\.|\(|\)|[A-Za-z_]\w*|\d+|\S)")


def _side(text: str, pattern: str) -> list:
    """One side of a pattern: names, '...', and lists of names for what is in parentheses."""
    out: list = []
    group: list | None = None
    for token in TOKEN.findall(text):
        if token == "(":
            if group is not None:
                raise ValueError(f"brackets are not balanced in pattern: {pattern}")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError(f"brackets are not balanced in pattern: {pattern}")
            out.append(group)
            group = None
        elif token.isdigit():
            if token != "1":
                raise ValueError(f"Non-unitary anonymous axes are not supported in rearrange: {token}")
            if group is None:
                out.append([])
        elif token == "..." or token.isidentifier():
            (out if group is None else group).append(token)
        else:
            raise ValueError(f"Unknown character '{token}' in pattern: {pattern}")
    if group is not None:
        raise ValueError(f"brackets are not balanced in pattern: {pattern}")
    return out


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Permute, split and merge dims as a pattern says: rearrange(x, 'b (h w) c -> b c h w', h=4).

    tensor: one, or a sequence that is stacked first. '...' stands for any dims, 1 for a dim of size one.
    ValueError: a pattern that does not fit."""
    if not isinstance(tensor, Tensor):
        tensor = torch.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"pattern must contain exactly one '->': {pattern}")
    left, right = _side(sides[0], pattern), _side(sides[1], pattern)
    rest = tensor.dim() - sum(1 for x in left if x != "...")
    if rest < 0 or (rest > 0 and "..." not in left):
        raise ValueError(f"{len(left)} dims in the pattern do not match the tensor's {tensor.dim()}: {pattern}")
    more = [f"...{k}" for k in range(rest)] if "..." in left else []

    def spread(items: list) -> list:
        out: list = []
        for x in items:
            if isinstance(x, list):
                out.append([n for y in x for n in (more if y == "..." else [y])])
            else:
                out += more if x == "..." else [x]
        return out

    left, right = spread(left), spread(right)
    names = [n for x in left for n in (x if isinstance(x, list) else [x])]
    wanted = [n for x in right for n in (x if isinstance(x, list) else [x])]
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        odd = sorted(set(names) ^ set(wanted)) or sorted(n for n in set(names) if names.count(n) > 1)
        raise ValueError(f"Identifiers must occur once on each side of the pattern: {odd} in {pattern}")
    for n in axes_lengths:
        if n not in names:
            raise ValueError(f"Identifier '{n}' of axes_lengths is not in the pattern: {pattern}")
    sizes: list[int] = []
    of: dict[str, int] = {}
    for x, n in zip(left, tensor.shape, strict=True):
        group = x if isinstance(x, list) else [x]
        unknown = [name for name in group if name not in axes_lengths]
        known = 1
        for name in group:
            known *= axes_lengths.get(name, 1)
        if len(unknown) > 1:
            raise ValueError(f"Could not infer sizes for {unknown} in pattern: {pattern}")
        if n % known or (not unknown and n != known):
            raise ValueError(f"Shape mismatch: a dim of size {n} cannot be split as {group} with sizes {axes_lengths}")
        for name in group:
            of[name] = axes_lengths.get(name, n // known)
            sizes.append(of[name])
    split = tensor.reshape(sizes).permute([names.index(n) for n in wanted])
    shape = []
    for x in right:
        size = 1
        for name in x if isinstance(x, list) else [x]:
            size *= of[name]
        shape.append(size)
    return split.reshape(shape)
