"""Images: pixel and channel shuffles, resampling, sampling at a grid."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import shape_text
from torchlike._src.ops.declare import Promote, T, op

# -- shuffles -------------------------------------------------------------------------------------------------


def _shuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    n = len(lead)
    x = x.reshape(*lead, c // (r * r), r, r, h, w)
    x = x.transpose(*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return x.reshape(*lead, c // (r * r), h * r, w * r)


def _unshuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    n = len(lead)
    x = x.reshape(*lead, c, h // r, r, w // r, r)
    x = x.transpose(*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return x.reshape(*lead, c * r * r, h // r, w // r)


def check_shuffle(input: Aval, upscale_factor: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}")
    square = upscale_factor * upscale_factor
    if input.shape[-3] % square:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={input.shape[-3]} is not divisible by {square}"
        )


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    check=check_shuffle,
    vjp={"input": lambda g, upscale_factor: _unshuffle(g, upscale_factor)},
)
def pixel_shuffle(input: T, upscale_factor):
    """(*, C * r², H, W) -> (*, C, H * r, W * r)."""
    return _shuffle(input, upscale_factor)


def check_unshuffle(input: Aval, downscale_factor: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if downscale_factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}")
    for name, dim in (("height", -2), ("width", -1)):
        if input.shape[dim] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={input.shape[dim]} is not divisible by {downscale_factor}"
            )


@op(
    namespaces=("torch", "torch.nn.functional"),
    method=False,
    out=False,
    check=check_unshuffle,
    vjp={"input": lambda g, downscale_factor: _shuffle(g, downscale_factor)},
)
def pixel_unshuffle(input: T, downscale_factor):
    """(*, C, H * r, W * r) -> (*, C * r², H, W): the inverse of pixel_shuffle."""
    return _unshuffle(input, downscale_factor)


def check_channel_shuffle(input: Aval, groups: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {shape_text(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if input.shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {input.shape[1]} channels and {groups} groups."
        )


def _channels(x: Any, groups: int) -> Any:
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(x.shape)


@op(
    namespaces=("torch", "torch.nn.functional"),
    aliases=("native_channel_shuffle",),
    method=False,
    out=False,
    check=check_channel_shuffle,
    vjp={"input": lambda g, groups: _channels(g, g.shape[1] // groups)},
)
def channel_shuffle(input: T, groups):
    """(N, C, ...): channels of `groups` groups interleaved."""
    return _channels(input, groups)


# -- resampling -----------------------------------------------------------------------------------------------
#
# Each spatial dim has its own rows of source positions and weights, computed here in the element type's arithmetic
# (float32, or float64 for double) as PyTorch's kernels do, because rounding decides which pixel is nearest.


def _real(dtype: Any) -> Any:
    return np.float64 if dtype == np.float64 else np.float32


def _scale(size: int, out: int, align: bool, factor: float | None, real: Any) -> Any:
    if align:
        return real(size - 1) / real(out - 1) if out > 1 else real(0)
    if factor is not None and factor > 0:
        return real(1.0 / factor)
    return real(size) / real(out)


def _nearest_rows(size: int, out: int, exact: bool, factor: float | None, real: Any) -> np.ndarray:
    scale = _scale(size, out, False, factor, real)
    at = np.arange(out).astype(real)
    at = np.floor((at + real(0.5)) * scale) if exact else np.floor(at * scale)
    return np.minimum(at.astype(np.int64), size - 1)


def _linear_rows(size: int, out: int, align: bool, factor: float | None, real: Any) -> tuple[np.ndarray, np.ndarray]:
    """(out, 2) positions and weights."""
    scale = _scale(size, out, align, factor, real)
    at = np.arange(out).astype(real)
    source = at * scale if align else np.maximum(scale * (at + real(0.5)) - real(0.5), real(0))
    low = np.minimum(source.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    frac = np.clip(source - low.astype(real), 0, 1)
    return np.stack([low, high], 1), np.stack([1 - frac, frac], 1)


def _cubic_weights(t: np.ndarray, a: float = -0.75) -> np.ndarray:
    """Keys' kernel at distances 1 + t, t, 1 - t, 2 - t."""

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return np.stack([far(t + 1), near(t), near(1 - t), far(2 - t)], -1)


def _cubic_rows(size: int, out: int, align: bool, factor: float | None, real: Any) -> tuple[np.ndarray, np.ndarray]:
    scale = _scale(size, out, align, factor, real)
    at = np.arange(out).astype(real)
    source = at * scale if align else scale * (at + real(0.5)) - real(0.5)
    low = np.floor(source)
    rows = np.clip(low.astype(np.int64)[:, None] + np.arange(-1, 3), 0, size - 1)
    return rows, _cubic_weights((source - low).astype(real)).astype(real)


def _antialias_rows(size: int, out: int, align: bool, factor: float | None, mode: str, real: Any) -> np.ndarray:
    """(out, size) weights: the kernel stretched by the scale when shrinking."""
    scale = _scale(size, out, align, factor, real)
    width = {"bilinear": 2, "bicubic": 4, "lanczos": 6}[mode]
    support = real(width * 0.5) * scale if scale >= 1 else real(width * 0.5)
    inverse = real(1) / scale if scale >= 1 else real(1)
    matrix = np.zeros((out, size), real)
    for i in range(out):
        centre = scale * real(i + 0.5)
        low = max(int(centre - support + real(0.5)), 0)
        high = min(int(centre + support + real(0.5)), size)
        at = (np.arange(low, high).astype(real) - centre + real(0.5)) * inverse
        w = _aa_kernel(at, mode)
        matrix[i, low:high] = w / w.sum() if w.sum() != 0 else w
    return matrix


def _aa_kernel(x: np.ndarray, mode: str) -> np.ndarray:
    x = np.abs(x)
    if mode == "bilinear":
        return np.maximum(1 - x, 0)
    if mode == "lanczos":
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)
    a = -0.5
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _rows(
    mode: str, size: int, out: int, align: bool, factor: float | None, real: Any, half: Any = None
) -> tuple[Any, Any]:
    """(positions, weights) of one dim; weights None for a plain choice; positions None for a dense matrix.

    PyTorch's kernels of a `half` type round weights to it, but for bilinear."""
    if mode in ("nearest", "nearest-exact"):
        return _nearest_rows(size, out, mode == "nearest-exact", factor, real)[:, None], None
    if mode in ("linear", "bilinear", "trilinear"):
        rows, weights = _linear_rows(size, out, align, factor, real)
        if half is not None and mode != "bilinear":
            frac = weights[:, 1].astype(half).astype(real)
            weights = np.stack([(1 - frac).astype(half).astype(real), frac], 1)
        return rows, weights
    if mode == "bicubic":
        rows, weights = _cubic_rows(size, out, align, factor, real)
        return rows, weights if half is None else weights.astype(half).astype(real)
    return None, _antialias_rows(size, out, align, factor, mode.removesuffix("-aa"), real)


def _matrix(rows: Any, weights: Any, size: int) -> np.ndarray:
    if rows is None:
        return weights
    matrix = np.zeros((rows.shape[0], size))
    for k in range(rows.shape[1]):
        np.add.at(matrix, (np.arange(len(rows)), rows[:, k]), 1.0 if weights is None else weights[:, k])
    return matrix


def _along(x: Any, matrix: np.ndarray, dim: int, transpose: bool) -> Any:
    m = jnp.asarray(matrix, x.dtype)
    y = lax.dot_general(x, m, (((dim,), (0 if transpose else 1,)), ((), ())))
    return jnp.moveaxis(y, -1, dim)


def _resample_dim(x: Any, dim: int, rows: Any, weights: Any) -> Any:
    if rows is None:
        return _along(x, weights, dim, False)
    if weights is None:
        return _choose(x, dim, rows[:, 0])
    shape = [1] * x.ndim
    shape[dim] = len(rows)
    total = None
    for k in range(rows.shape[1]):
        part = _choose(x, dim, rows[:, k]) * jnp.asarray(weights[:, k].reshape(shape), x.dtype)
        total = part if total is None else total + part
    return total


def _choose(x: Any, dim: int, positions: np.ndarray) -> Any:
    size, out = x.shape[dim], len(positions)
    if out == size and (positions == np.arange(size)).all():
        return x
    if out % size == 0 and (positions == np.arange(out) // (out // size)).all():  # whole factor: repetition
        y = jnp.broadcast_to(jnp.expand_dims(x, dim + 1), (*x.shape[: dim + 1], out // size, *x.shape[dim + 1 :]))
        return y.reshape(*x.shape[:dim], out, *x.shape[dim + 1 :])
    return jnp.take(x, jnp.asarray(positions), axis=dim)


def _choose_grad(g: Any, dim: int, positions: np.ndarray, size: int) -> Any:
    out = len(positions)
    if out == size and (positions == np.arange(size)).all():
        return g
    if out % size == 0 and (positions == np.arange(out) // (out // size)).all():
        return g.reshape(*g.shape[:dim], size, out // size, *g.shape[dim + 1 :]).sum(dim + 1)
    return _along(g, _matrix(positions[:, None], None, size), dim, True)


def resample(x: Any, mode: str, sizes: tuple, align: bool, factors: Any, half: Any = None) -> Any:
    n = len(sizes)
    real = _real(x.dtype)
    for k in reversed(range(n)):
        dim = x.ndim - n + k
        factor = None if factors is None else factors[k]
        rows, weights = _rows(mode, x.shape[dim], sizes[k], align, factor, real, half)
        if x.shape[dim] == sizes[k] and _is_identity(rows, weights):
            continue
        x = _resample_dim(x, dim, rows, weights)
    return x


def _is_identity(rows: Any, weights: Any) -> bool:
    if rows is None:
        return bool((weights == np.eye(len(weights))).all())
    same = (rows[:, 0] == np.arange(len(rows))).all() if weights is None else False
    return bool(same)


def resample_grad(g: Any, input_aval: Aval, mode: str, sizes: tuple, align: bool, factors: Any) -> Any:
    n = len(sizes)
    if g.dtype.itemsize == 2:
        g = g.astype(jnp.float32)
    real = _real(g.dtype)
    for k in range(n):
        dim = g.ndim - n + k
        size = input_aval.shape[input_aval.ndim - n + k]
        rows, weights = _rows(mode, size, sizes[k], align, None if factors is None else factors[k], real)
        if rows is not None and weights is None:
            g = _choose_grad(g, dim, rows[:, 0], size)
        else:
            g = _along(g, _matrix(rows, weights, size), dim, True)
    return g


_NAMES = {
    "nearest": "UpsampleNearest{}DBackward0", "nearest-exact": "UpsampleNearestExact{}DBackward0",
    "linear": "UpsampleLinear{}DBackward0", "bilinear": "UpsampleBilinear{}DBackward0",
    "trilinear": "UpsampleTrilinear{}DBackward0", "bicubic": "UpsampleBicubic{}DBackward0",
    "bilinear-aa": "UpsampleBilinear{}DAaBackward0", "bicubic-aa": "UpsampleBicubic{}DAaBackward0",
    "lanczos-aa": "UpsampleLanczos{}DAaBackward0",
}  # fmt: skip


def check_upsample(input: Aval, mode: str, sizes: tuple, align_corners: bool, factors: Any) -> None:
    n = len(sizes)
    given = input.shape[2:]
    if min((*given, *sizes)) <= 0:
        names = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}[n]
        text = [", ".join(f"{a}: {v}" for a, v in zip(names, values, strict=True)) for values in (given, sizes)]
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({text[0]}) output ({text[1]})"
        )
    if not (input.dtype.is_floating_point or input.dtype.name == "uint8"):
        kernel = {"nearest": f"upsample_nearest{n}d", "nearest-exact": f"upsample_nearest{n}d"}.get(
            mode, f"upsample_{mode}{n}d"
        )
        channels_last = "_channels_last" if n == 2 and mode in ("nearest", "nearest-exact", "bilinear") else ""
        raise NotImplementedError(f"\"{kernel}{channels_last}\" not implemented for '{input.dtype.scalar_name}'")


def _for_integers(x: Any, mode: str, sizes: tuple, align: bool, factors: Any) -> Any:
    if x.dtype.kind != "u" or mode in ("nearest", "nearest-exact"):
        half = x.dtype if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else None
        y = resample(x if half is None else x.astype(jnp.float32), mode, sizes, align, factors, half)
        return y.astype(x.dtype)
    n = len(sizes)
    y = x
    for k in reversed(range(n)):  # PyTorch rounds to bytes after each dim
        one = tuple(sizes[j] if j == k else y.shape[y.ndim - n + j] for j in range(n))
        z = resample(y.astype(jnp.float32), mode, one, align, factors)
        y = jnp.clip(jnp.round(z), 0, 255).astype(x.dtype)
    return y


@op(
    namespaces=(),
    method=False,
    out=False,
    check=check_upsample,
    shape=lambda input, mode, sizes, align_corners, factors: input.with_shape((*input.shape[:2], *sizes)),
    grad_name=lambda mode, sizes, **_: _NAMES[mode].format(len(sizes)),
    vjp={
        "input": lambda g, input_aval, mode, sizes, align_corners, factors: resample_grad(
            g, input_aval, mode, sizes, align_corners, factors
        )
    },
)
def _upsample(input: T, mode: str, sizes: tuple, align_corners: bool, factors: Any):
    """(N, C, *spatial) -> (N, C, *sizes). `factors`: the scale factors where the user gave them, else None."""
    return _for_integers(input, mode, sizes, align_corners, factors)


# -- sampling at a grid ---------------------------------------------------------------------------------------


def _unnormalise(x: Any, size: int, align: bool) -> Any:
    if align:
        return (x + 1) / 2 * (size - 1)
    return ((x + 1) * size - 1) / 2


def _reflect(x: Any, size: int, align: bool) -> Any:
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return jnp.zeros_like(x)
    away = abs(x - low)
    flips = jnp.floor(lax.stop_gradient(away) / span)
    rest = away - flips * span
    return jnp.where(flips % 2 == 0, rest + low, span - rest + low)


def _clip(x: Any, size: int) -> Any:
    """Inside [0, size - 1]; no gradient at or beyond the ends."""
    top = jnp.asarray(size - 1, x.dtype)
    inside = (x > 0) & (x < top)
    return jnp.where(inside, x, lax.stop_gradient(jnp.where(x < top, jnp.where(x > 0, x, 0), top)))


def _source(x: Any, size: int, padding: str, align: bool) -> Any:
    x = _unnormalise(x, size, align)
    if padding == "border":
        return _clip(x, size)
    return _clip(_reflect(x, size, align), size) if padding == "reflection" else x


def _fetch(flat: Any, positions: list[Any], sizes: tuple) -> Any:
    """(N, C, volume) at integer positions of shape (N, points); zero outside."""
    inside: Any = None
    index: Any = 0
    for at, size in zip(positions, sizes, strict=True):
        here = (at >= 0) & (at < size)
        inside = here if inside is None else inside & here
        index = index * size + jnp.clip(at, 0, size - 1)
    taken = jnp.take_along_axis(flat, index[:, None, :], 2)
    return jnp.where(inside[:, None, :], taken, jnp.zeros((), flat.dtype))


def _to_index(x: Any) -> Any:
    """A float position as int64; what is far outside or NaN lands outside."""
    limit = 1 << 30
    return jnp.clip(jnp.where(x == x, x, -limit), -limit, limit).astype(jnp.int64)


def grid_sample_values(x: Any, grid: Any, mode: str, padding: str, align: bool) -> Any:
    n = x.ndim - 2
    sizes = x.shape[2:]
    flat = x.reshape(*x.shape[:2], -1)
    points = grid.reshape(grid.shape[0], -1, n)
    coordinates = [points[..., n - 1 - k] for k in range(n)]  # the grid's last dim is (x, y, z), the input's (z, y, x)
    if mode == "bicubic":
        out = _bicubic(flat, coordinates, sizes, padding, align)
    else:
        at = [_source(c, size, padding, align) for c, size in zip(coordinates, sizes, strict=True)]
        if mode == "nearest":
            out = _fetch(flat, [_to_index(jnp.round(lax.stop_gradient(a))) for a in at], sizes)
        else:
            out = _multilinear(flat, at, sizes)
    return out.reshape(*x.shape[:2], *grid.shape[1:-1])


def _multilinear(flat: Any, at: list[Any], sizes: tuple) -> Any:
    lows = [jnp.floor(lax.stop_gradient(a)) for a in at]
    total = None
    for corner in np.ndindex(*[2] * len(at)):
        weight: Any = None
        positions = []
        for a, low, up in zip(at, lows, corner, strict=True):
            w = (a - low) if up else (low + 1 - a)
            weight = w if weight is None else weight * w
            positions.append(_to_index(low) + up)
        part = _fetch(flat, positions, sizes) * weight[:, None, :]
        total = part if total is None else total + part
    return total


def _cubic(t: Any) -> list[Any]:
    a = -0.75

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _bicubic(flat: Any, coordinates: list[Any], sizes: tuple, padding: str, align: bool) -> Any:
    at = [_unnormalise(c, size, align) for c, size in zip(coordinates, sizes, strict=True)]
    lows = [jnp.floor(lax.stop_gradient(a)) for a in at]
    weights = [_cubic(a - low) for a, low in zip(at, lows, strict=True)]
    total = None
    for i in range(4):
        row = _bounded(lows[0] + (i - 1), sizes[0], padding, align)
        for j in range(4):
            column = _bounded(lows[1] + (j - 1), sizes[1], padding, align)
            value = _fetch(flat, [_to_index(row), _to_index(column)], sizes)
            part = value * (weights[0][i] * weights[1][j])[:, None, :]
            total = part if total is None else total + part
    return total


def _bounded(x: Any, size: int, padding: str, align: bool) -> Any:
    if padding == "border":
        return jnp.clip(x, 0, size - 1)
    return jnp.clip(_reflect(x, size, align), 0, size - 1) if padding == "reflection" else x


def check_grid_sample(input: Aval, grid: Aval, mode: str, padding_mode: str, align_corners: bool) -> None:
    x, g = input, grid
    if x.ndim not in (4, 5):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{shape_text(x.shape)} and grid with sizes {shape_text(g.shape)}"
        )
    if x.shape[0] != g.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{shape_text(x.shape)} and grid with sizes {shape_text(g.shape)}"
        )
    if g.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got grid with sizes "
            f"{shape_text(g.shape)}"
        )
    if g.ndim != x.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
            f"{shape_text(x.shape)} and grid with sizes {shape_text(g.shape)}"
        )
    for k in range(2, x.ndim):
        if x.shape[k] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{shape_text(x.shape)} with dimension {k} being empty"
            )
    if mode == "bicubic" and x.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype is not g.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.scalar_name} but found {g.dtype.scalar_name}")


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=check_grid_sample,
    shape=lambda input, grid, mode, padding_mode, align_corners: input.with_shape(
        (*input.shape[:2], *grid.shape[1:-1])
    ),
    autocast="float32",
    grad_name=lambda input, **_: f"GridSampler{input.ndim - 2}DBackward0",
)
def _grid_sample(input: T, grid: T, mode: str, padding_mode: str, align_corners: bool):
    """(N, C, H, W), (N, Ho, Wo, 2) of (x, y) in [-1, 1] -> (N, C, Ho, Wo); 5-d alike."""
    return grid_sample_values(input, grid, mode, padding_mode, align_corners)


def _base_line(size: int, align: bool, real: Any) -> np.ndarray:
    line = np.linspace(-1, 1, size, dtype=real) if size > 1 else np.zeros(1, real)
    return line if align else line * real(size - 1) / real(size)


def _base_grid(sizes: tuple, align: bool, dtype: Any) -> Any:
    """(positions, n + 1): homogeneous coordinates (x, y, …, 1) of every output position."""
    real = _real(dtype)
    lines = [_base_line(s, align, real) for s in sizes]
    mesh = np.meshgrid(*lines, indexing="ij")
    columns = [m.reshape(-1) for m in reversed(mesh)] + [np.ones(math.prod(sizes), real)]
    return jnp.asarray(np.stack(columns, 1), dtype)


def affine_grad(g: Any, size: tuple, align_corners: bool) -> Any:
    n = len(size) - 2
    base = _base_grid(size[2:], align_corners, g.dtype)
    return lax.dot_general(g.reshape(g.shape[0], -1, n), base, (((1,), (0,)), ((), ())))


@op(
    namespaces=("torch",),
    name="affine_grid_generator",
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    grad_name="AffineGridGeneratorBackward0",
    vjp={"theta": affine_grad},
)
def affine_grid_generator(theta: T, size, align_corners):
    """(N, n, n + 1) affine maps -> (N, *size[2:], n): where each output position samples from."""
    base = _base_grid(size[2:], align_corners, theta.dtype)
    grid = lax.dot_general(theta, base, (((2,), (1,)), ((), ())))  # (N, n, positions)
    return grid.swapaxes(1, 2).reshape(theta.shape[0], *size[2:], len(size) - 2)
