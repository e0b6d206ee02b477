"""The kernels of nn.functional.pad.

`pad` counts from the last dim: (left, right, top, bottom, …). Negative values crop."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import shape_text
from torchlike._src.ops.declare import S, T, cast, op

# -- constant --------------------------------------------------------------------------------------------------


def pad_pairs(ndim: int, pad: tuple) -> list[tuple[int, int]]:
    """(before, after) for each dim, from the front."""
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


def _length_check(input: Aval, pad: tuple) -> None:
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )


def _constant_check(input: Aval, value: Any, pad: tuple) -> None:
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    _length_check(input, pad)
    for k, (n, (before, after)) in enumerate(zip(input.shape, pad_pairs(input.ndim, pad), strict=True)):
        if n + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if n + before + after < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {before} and {after} resulted in a negative output size, "
                f"which is invalid. Check dimension {k} of your input."
            )


def _padded(input: Aval, pad: tuple) -> Aval:
    return input.with_shape(
        tuple(n + before + after for n, (before, after) in zip(input.shape, pad_pairs(input.ndim, pad), strict=True))
    )


def _constant_pull(g: Any, pad: tuple) -> Any:
    back = [(-before, -after, 0) for before, after in pad_pairs(g.ndim, pad)]
    return lax.pad(g, np.zeros((), g.dtype), back)


@op(
    check=_constant_check,
    shape=lambda input, value, pad: _padded(input, pad),
    vjp={"input": _constant_pull},
    namespaces=(),
    grad_name="ConstantPadNdBackward0",
)
def _pad_constant(input: T, value: S, *, pad):
    """`input` with `value` around it."""
    pairs = [(before, after, 0) for before, after in pad_pairs(input.ndim, pad)]
    return lax.pad(input, cast(value, input.dtype), pairs)


# -- reflect, replicate, circular ------------------------------------------------------------------------------

_COMBINATIONS = (
    "\nSupported combinations for non-constant padding:"
    "\n  - 2D or 3D input: padding size = 2 (pads last dimension)"
    "\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)"
    "\n  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
)
_SIDES = {1: "W", 2: "HW", 3: "DHW"}


def _spatial_check(mode: str) -> Any:
    def check(input: Aval, pad: tuple) -> None:
        count = len(pad) // 2
        _length_check(input, pad)
        if len(pad) not in (2, 4, 6) or input.ndim not in (count + 1, count + 2):
            raise NotImplementedError(
                f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.{_COMBINATIONS}"
            )
        pairs = pad_pairs(input.ndim, pad)
        for k in range(input.ndim - 1, input.ndim - count - 1, -1):
            n, (before, after) = input.shape[k], pairs[k]
            if mode == "reflect" and (before >= n or after >= n):
                position = 4 + 2 * (input.ndim - 1 - k)
                raise RuntimeError(
                    f"Argument #{position}: Padding size should be less than the corresponding input dimension, but "
                    f"got: padding ({before}, {after}) at dimension {k} of input {shape_text(input.shape)}"
                )
            if mode == "circular" and (before > n or after > n):
                raise RuntimeError("Padding value causes wrapping around more than once.")
            if mode == "circular" and n + before + after < 0:
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
        shape = _padded(input, pad).shape
        if mode != "circular" and min(shape[-count:]) < 1:
            shown = " ".join(f"{s}: {n}" for s, n in zip(_SIDES[count], input.shape[-count:], strict=True))
            out = " ".join(f"{s}: {n}" for s, n in zip(_SIDES[count], shape[-count:], strict=True))
            raise RuntimeError(f"input ({shown}) is too small. Calculated output {out}")

    return check


def _source_places(mode: str, n: int, before: int, after: int) -> np.ndarray:
    """For each element along a padded dim, which input element it copies."""
    places = np.arange(-before, n + after)
    if mode == "replicate":
        return np.clip(places, 0, n - 1)
    if mode == "circular":  # what is left after cropping wraps around
        first, left = max(-before, 0), n + min(before, 0) + min(after, 0)
        return first + (places - first) % max(left, 1)
    return np.where(places < 0, -places, np.where(places >= n, 2 * (n - 1) - places, places))


def _edges(x: Any, mode: str, axis: int, before: int, after: int) -> Any:
    """One dim padded by joining slices (or single copies); no gather."""
    n = x.shape[axis]
    left, right = max(before, 0), max(after, 0)
    parts = []
    if left:
        parts.append(_edge(x, mode, axis, n, left, True))
    parts.append(lax.slice_in_dim(x, max(-before, 0), n - max(-after, 0), axis=axis))
    if right:
        parts.append(_edge(x, mode, axis, n, right, False))
    return lax.concatenate(parts, axis) if len(parts) > 1 else parts[0]


def _edge(x: Any, mode: str, axis: int, n: int, width: int, front: bool) -> Any:
    if mode == "replicate":
        one = lax.slice_in_dim(x, 0 if front else n - 1, 1 if front else n, axis=axis)
        shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
        return jnp.broadcast_to(one, shape)
    if mode == "circular":
        return lax.slice_in_dim(x, n - width if front else 0, n if front else width, axis=axis)
    start, stop = (1, width + 1) if front else (n - 1 - width, n - 1)
    return lax.rev(lax.slice_in_dim(x, start, stop, axis=axis), (axis,))


def _pad_spatial(x: Any, pad: tuple, mode: str) -> Any:
    for axis, (before, after) in enumerate(pad_pairs(x.ndim, pad)):
        if before or after:
            crossing = before < 0 and after > 0 or after < 0 and before > 0
            if crossing:  # a side is cropped while the other copies from what may have been cropped
                places = _source_places(mode, x.shape[axis], before, after)
                x = jnp.take(x, places, axis=axis, mode="clip")
            else:
                x = _edges(x, mode, axis, before, after)
    return x


def _spatial_pull(mode: str) -> Any:
    def pull(g: Any, input_aval: Aval, pad: tuple) -> Any:
        return jax.linear_transpose(
            lambda x: _pad_spatial(x, pad, mode), jax.ShapeDtypeStruct(input_aval.shape, g.dtype)
        )(g)[0]

    return pull


def _spatial_name(mode: str) -> Any:
    def name(pad: tuple, **_: Any) -> str:
        return f"{mode}Pad{len(pad) // 2}DBackward0"

    return name


def _spatial_aval(input: Aval, pad: tuple) -> Aval:
    return _padded(input, pad)


@op(
    check=_spatial_check("reflect"),
    shape=_spatial_aval,
    vjp={"input": _spatial_pull("reflect")},
    namespaces=(),
    grad_name=_spatial_name("Reflection"),
)
def _pad_reflect(input: T, *, pad):
    """The last 1, 2 or 3 dims padded by mirroring about the edge element."""
    return _pad_spatial(input, pad, "reflect")


@op(
    check=_spatial_check("replicate"),
    shape=_spatial_aval,
    vjp={"input": _spatial_pull("replicate")},
    namespaces=(),
    grad_name=_spatial_name("Replication"),
)
def _pad_replicate(input: T, *, pad):
    """The last 1, 2 or 3 dims padded by repeating the edge element."""
    return _pad_spatial(input, pad, "replicate")


@op(
    check=_spatial_check("circular"),
    shape=_spatial_aval,
    vjp={"input": _spatial_pull("circular")},
    namespaces=(),
    grad_name="torch::autograd::CopySlices",
)
def _pad_circular(input: T, *, pad):
    """The last 1, 2 or 3 dims padded by wrapping around."""
    return _pad_spatial(input, pad, "circular")
