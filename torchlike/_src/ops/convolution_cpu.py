"""Convolutions on CPU: the three maps of `convolution` on channels-last arrays, formulated by shape.

XLA's own convolution works channels-last and costs a transpose before and after otherwise; with every operator written
this way the transposes between two of them cancel. Other formulations where it is slow: one product for 1x1 kernels,
patches and one product for very few input channels, Winograd's F(2x2, 3x3) for 3x3 kernels on many channels (2.25
times fewer multiplications, errors about twice those of the direct sum), one convolution per output phase for the
gradient of a strided one (XLA's multiplies by the zeros between). Weights keep PyTorch's layout throughout.
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.ops.products import LARGE_MATRIX, barrier

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def last(x: Any) -> Any:
    """(N, C, *sizes) -> (N, *sizes, C)."""
    return x.transpose(0, *range(2, x.ndim), 1)


def first(x: Any) -> Any:
    """(N, *sizes, C) -> (N, C, *sizes)."""
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1))


def pad(x: Any, pads: Any) -> Any:
    """Zeros around the spatial dims of a channels-last array; negative numbers crop."""
    if not any(low or high for low, high in pads):
        return x
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *((low, high, 0) for low, high in pads), (0, 0, 0)])


def rows(x: Any) -> Any:
    """(..., C) -> (positions, C)."""
    return x.reshape(-1, x.shape[-1])


def transposed_product(a: Any, b: Any) -> Any:
    """(K, m), (K, n) -> (m, n)."""
    return lax.dot_general(a, b, (((0,), (0,)), ((), ())))


def product_transposed(a: Any, b: Any) -> Any:
    """(m, K), (n, K) -> (m, n)."""
    return lax.dot_general(a, b, (((1,), (1,)), ((), ())))


def last_sum(a: Any) -> Any:
    """(..., C) -> (C,), in two steps: XLA's CPU backend sums a long column with one channel after another, but adds up
    samples as fast as memory allows."""
    if a.ndim == 2 and a.shape[0] % 16 == 0:
        a = a.reshape(16, -1, a.shape[1])
    if a.ndim > 2:
        axis = 0 if a.shape[0] >= 4 else 1
        a = barrier(a.sum(axis))
    return a.sum(tuple(range(a.ndim - 1)))


# -- which formulation ----------------------------------------------------------------------------------------


def tiled(sizes: tuple, kernel: tuple, c: Any) -> bool:
    """Whether the windows lie side by side, as a patch embedding's do, or there is only one."""
    return kernel in (c.stride, sizes) and c.groups == 1 and set(c.dilation) == {1} and not any(map(any, c.pads))


def in_planes(kernel: tuple, c: Any) -> bool:
    """Whether a convolution of volumes is formed as a sum of convolutions of planes, which XLA is better at."""
    return len(kernel) == 3 and c.groups == 1 and kernel[0] <= 8


def few_channels(w_shape: tuple) -> bool:
    return w_shape[1] <= 4 and math.prod(w_shape[1:]) <= 64


def winograd(x_shape: tuple, w_shape: tuple, c: Any, dtype: Any) -> bool:
    """Whether Winograd's form pays: a 3x3 kernel moved by ones, at least 128 channels on both sides, and enough
    tiles of the output for the transform of the weight not to count."""
    if w_shape[2:] != (3, 3) or c.stride != (1, 1) or c.dilation != (1, 1) or dtype != jnp.float32:
        return False
    height, width = [n + low + high - 2 for n, (low, high) in zip(x_shape[1:3], c.pads, strict=True)]
    tiles = x_shape[0] * -(-height // 2) * -(-width // 2)
    return min(w_shape[:2]) >= 128 and min(height, width) >= 4 and tiles >= 64


# -- forward --------------------------------------------------------------------------------------------------


def xla(x: Any, w: Any, c: Any) -> Any:
    letters = SPATIAL[x.ndim - 2]
    numbers = ("N" + letters + "C", "OI" + letters, "N" + letters + "C")
    return lax.conv_general_dilated(
        x, w, c.stride, c.pads, rhs_dilation=c.dilation, dimension_numbers=numbers, feature_group_count=c.groups
    )


def shifted(x: Any, at: tuple, out: tuple, c: Any) -> Any:
    """The padded input's elements that kernel position `at` meets, one per output position."""
    starts = [i * d for i, d in zip(at, c.dilation, strict=True)]
    ends = [b + (n - 1) * s + 1 for b, n, s in zip(starts, out, c.stride, strict=True)]
    return lax.slice(x, (0, *starts, 0), (x.shape[0], *ends, x.shape[-1]), (1, *c.stride, 1))


def patches(x: Any, kernel: tuple, out: tuple, c: Any) -> Any:
    """(N, *sizes, C) -> (N * positions, taps * C)."""
    padded = pad(x, c.pads)
    parts = [shifted(padded, at, out, c) for at in itertools.product(*map(range, kernel))]
    return barrier(rows(jnp.concatenate(parts, -1)))


def heavy(x_shape: tuple, w_shape: tuple, out: tuple) -> bool:
    """Whether the weight is much larger than all patches of one image: then it is multiplied as it lies. Other forms
    copy it with the channels last, which takes longer than the product."""
    return x_shape[0] == 1 and math.prod(out) <= min(w_shape[0], 64) and math.prod(w_shape) >= LARGE_MATRIX


def heavy_forward(x: Any, w: Any, c: Any, out: tuple) -> Any:
    """`forward` by patches whose channels come first, (O, C * taps) @ (C * taps, positions)."""
    padded = pad(x, c.pads)
    parts = [shifted(padded, at, out, c) for at in itertools.product(*map(range, w.shape[2:]))]
    columns = jnp.stack(parts, -1).reshape(math.prod(out), -1).T
    y = lax.dot_general(w.reshape(w.shape[0], -1), barrier(columns), (((1,), (0,)), ((), ())))
    return barrier(y).T.reshape(1, *out, w.shape[0])


def forward(x: Any, w: Any, c: Any, out: tuple) -> Any:
    """(N, *sizes, C), (O, C / groups, *kernel) -> (N, *out, O)."""
    kernel = w.shape[2:]
    if c.groups > 1:
        return grouped_forward(x, w, c, out)
    if heavy(x.shape, w.shape, out):
        return heavy_forward(x, w, c, out)
    if math.prod(kernel) == 1:
        columns = rows(shifted(pad(x, c.pads), (0,) * len(kernel), out, c))
        return product_transposed(columns, w.reshape(w.shape[:2])).reshape(x.shape[0], *out, w.shape[0])
    small = x.shape[0] * math.prod(out) * math.prod(w.shape[1:]) <= 1 << 16  # to start XLA's threads costs more
    if tiled(x.shape[1:-1], kernel, c):
        y = product_transposed(rows_of_tiles(x, kernel, out), rows_of_taps(w))
        return y.reshape(x.shape[0], *out, w.shape[0])
    if small or few_channels(w.shape):
        y = product_transposed(patches(x, kernel, out, c), rows_of_taps(w))
        return y.reshape(x.shape[0], *out, w.shape[0])
    if in_planes(kernel, c):
        flat, steps = planes(x, kernel, out, c)
        return sum(forward(part, w[:, :, i], flat, out[1:]) for i, part in enumerate(steps)).reshape(
            x.shape[0], *out, w.shape[0]
        )
    if winograd(x.shape, w.shape, c, x.dtype):
        return winograd_forward(x, w, c.pads, out)
    return xla(x, w, c)


def planes(x: Any, kernel: tuple, out: tuple, c: Any) -> tuple[Any, list]:
    """The settings for planes, and for each kernel position in depth the planes it meets, (N * out[0], H, W, C)."""
    flat = c._replace(stride=c.stride[1:], pads=c.pads[1:], dilation=c.dilation[1:])
    padded = pad(x, (c.pads[0], (0, 0), (0, 0)))
    starts = [i * c.dilation[0] for i in range(kernel[0])]
    parts = [lax.slice_in_dim(padded, s, s + (out[0] - 1) * c.stride[0] + 1, c.stride[0], 1) for s in starts]
    return flat, [barrier(part.reshape(-1, *x.shape[2:])) for part in parts]


def rows_of_tiles(x: Any, kernel: tuple, out: tuple) -> Any:
    """(N, *sizes, C) -> (N * positions, taps * C) for windows side by side; what they leave over is dropped."""
    n = len(kernel)
    x = lax.slice(x, (0,) * x.ndim, (x.shape[0], *(o * k for o, k in zip(out, kernel, strict=True)), x.shape[-1]))
    x = x.reshape(x.shape[0], *(v for pair in zip(out, kernel, strict=True) for v in pair), x.shape[-1])
    order = [0, *range(1, 2 * n, 2), *range(2, 2 * n + 1, 2), 2 * n + 1]
    return barrier(x.transpose(order).reshape(x.shape[0] * math.prod(out), -1))


def tiles_of_rows(columns: Any, kernel: tuple, out: tuple, sizes: tuple) -> Any:
    """The transpose of `rows_of_tiles`."""
    n = len(kernel)
    channels = columns.shape[1] // math.prod(kernel)
    d = columns.reshape(-1, *out, *kernel, channels)
    d = d.transpose([0, *(axis for k in range(n) for axis in (1 + k, 1 + n + k)), 1 + 2 * n])
    d = d.reshape(d.shape[0], *(o * k for o, k in zip(out, kernel, strict=True)), channels)
    return pad(d, [(0, size - have) for size, have in zip(sizes, d.shape[1:], strict=False)])


def rows_of_taps(w: Any) -> Any:
    """(O, C, *kernel) -> (O, taps * C), the order of `patches`."""
    return w.transpose(0, *range(2, w.ndim), 1).reshape(w.shape[0], -1)


# -- the gradient of the input --------------------------------------------------------------------------------


def input_gradient(g: Any, w: Any, sizes: tuple, c: Any) -> Any:
    """(N, *out, O), (O, C / groups, *kernel) -> (N, *sizes, C)."""
    kernel = w.shape[2:]
    shape = (g.shape[0], *sizes, w.shape[1] * c.groups)
    if c.groups > 1:
        return grouped_input_gradient(g, w, sizes, c)
    if math.prod(kernel) == 1:
        d = (rows(g) @ w.reshape(w.shape[:2])).reshape(*g.shape[:-1], w.shape[1])
        return unshifted([d], kernel, sizes, c)
    if tiled(sizes, kernel, c):
        return tiles_of_rows(barrier(rows(g) @ rows_of_taps(w)), kernel, g.shape[1:-1], sizes)
    if few_channels(w.shape):
        columns = barrier(rows(g) @ rows_of_taps(w)).reshape(*g.shape[:-1], -1, w.shape[1])
        return unshifted([columns[..., k, :] for k in range(columns.shape[-2])], kernel, sizes, c)
    if in_planes(kernel, c):
        flat = c._replace(stride=c.stride[1:], pads=c.pads[1:], dilation=c.dilation[1:])
        layers = g.reshape(-1, *g.shape[2:])
        parts = [input_gradient(layers, w[:, :, i], sizes[1:], flat) for i in range(kernel[0])]
        parts = [part.reshape(*g.shape[:2], *part.shape[1:]) for part in parts]
        deep = c._replace(stride=(c.stride[0], 1, 1), pads=(c.pads[0], (0, 0), (0, 0)), dilation=(c.dilation[0], 1, 1))
        return unshifted(parts, (kernel[0], 1, 1), sizes, deep)
    if winograd(shape, w.shape, c, g.dtype):
        pads = [(2 - low, n - have + low) for n, have, (low, _) in zip(sizes, g.shape[1:3], c.pads, strict=True)]
        return winograd_forward(g, w, pads, sizes, transposed=True)
    covered = all(k >= s for k, s in zip(kernel, c.stride, strict=True))
    if covered and 1 < math.prod(c.stride) <= 8 and set(c.dilation) == {1}:
        return phases(g, w, sizes, c)
    spec = jax.ShapeDtypeStruct(shape, g.dtype)
    (d,) = jax.linear_transpose(lambda x: xla(x, w, c), spec)(g)
    return d


def unshifted(parts: list, kernel: tuple, sizes: tuple, c: Any) -> Any:
    """The transpose of padding and `shifted`: each kernel position's part is added where it came from."""
    total = None
    for part, at in zip(parts, itertools.product(*map(range, kernel)), strict=True):
        config = [(0, 0, 0)]
        for i, d, s, n, have, (low, _) in zip(at, c.dilation, c.stride, sizes, part.shape[1:], c.pads, strict=False):
            start = i * d - low
            config.append((start, n - start - (have - 1) * s - 1, s - 1))
        part = lax.pad(part, jnp.zeros((), part.dtype), [*config, (0, 0, 0)])
        total = part if total is None else total + part
    return barrier(total)


def phases(g: Any, w: Any, sizes: tuple, c: Any) -> Any:
    """Positions of the input that are equal modulo the stride meet the same kernel positions: an ordinary convolution
    of g for each such phase, interleaved."""
    n = len(sizes)
    letters = SPATIAL[n]
    numbers = ("N" + letters + "C", "IO" + letters, "N" + letters + "C")
    counts = [-(-size // s) for size, s in zip(sizes, c.stride, strict=True)]
    parts = []
    for phase in itertools.product(*map(range, c.stride)):
        index, pads = [], []
        have = g.shape[1:-1]
        for a, s, k, count, length, (low, _) in zip(phase, c.stride, w.shape[2:], counts, have, c.pads, strict=True):
            taps = range((a + low) % s, k, s)  # an output position meets them in descending order
            offset = (a + low - taps[-1]) // s
            index.append(slice(taps[0], taps[-1] + 1, s))
            pads.append((-offset, count - 1 + offset + len(taps) - length))
        kernel = lax.rev(w[(slice(None), slice(None), *index)], tuple(range(2, n + 2)))
        parts.append(lax.conv_general_dilated(g, kernel, (1,) * n, pads, dimension_numbers=numbers))
    return interleave(parts, counts, c.stride, sizes)


def interleave(parts: list, counts: Any, stride: tuple, sizes: tuple) -> Any:
    """One (N, *counts, C) for each phase -> (N, *sizes, C)."""
    n = len(sizes)
    d = jnp.stack(parts, n + 1).reshape(parts[0].shape[0], *counts, *stride, -1)
    d = d.transpose([0, *(axis for k in range(n) for axis in (1 + k, 1 + n + k)), 1 + 2 * n])
    d = d.reshape(d.shape[0], *(a * s for a, s in zip(counts, stride, strict=True)), -1)
    return barrier(lax.slice(d, (0,) * d.ndim, (d.shape[0], *sizes, d.shape[-1])))


# -- the gradient of the weight -------------------------------------------------------------------------------


def weight_gradient(g: Any, x: Any, shape: tuple, c: Any) -> Any:
    """(N, *out, O), (N, *sizes, C) -> (O, C / groups, *kernel)."""
    kernel, out = shape[2:], g.shape[1:-1]
    if c.groups > 1:
        return grouped_weight_gradient(g, x, shape, c)
    if math.prod(kernel) == 1:
        columns = rows(shifted(pad(x, c.pads), (0,) * len(kernel), out, c))
        return transposed_product(rows(g), barrier(columns)).reshape(shape)
    if tiled(x.shape[1:-1], kernel, c):
        d = transposed_product(rows(g), rows_of_tiles(x, kernel, out))
        return jnp.moveaxis(d.reshape(shape[0], *kernel, shape[1]), -1, 1)
    if few_channels(shape):
        d = transposed_product(patches(x, kernel, out, c), rows(g))
        return jnp.moveaxis(d.reshape(*kernel, shape[1], shape[0]), (-1, -2), (0, 1))
    if in_planes(kernel, c):
        flat, steps = planes(x, kernel, out, c)
        layers = g.reshape(-1, *g.shape[2:])
        return jnp.stack([weight_gradient(layers, part, (*shape[:2], *kernel[1:]), flat) for part in steps], 2)
    if winograd(x.shape, shape, c, g.dtype):
        return winograd_weight_gradient(g, x, c.pads)
    spec = jax.ShapeDtypeStruct(shape, g.dtype)
    (d,) = jax.linear_transpose(lambda w: xla(x, w, c), spec)(g)
    return d


# -- groups ---------------------------------------------------------------------------------------------------
# A few groups are convolutions of their own; more are patches and one product per group (XLA's gradient of a grouped
# convolution takes seconds).

FEW_GROUPS = 4


def split(a: Any, groups: int, axis: int) -> list:
    size = a.shape[axis] // groups
    return [lax.slice_in_dim(a, k * size, (k + 1) * size, 1, axis) for k in range(groups)]


def grouped_patches(x: Any, kernel: tuple, out: tuple, c: Any) -> Any:
    """(N, *sizes, C) -> (groups, N * positions, taps * C / groups)."""
    padded = pad(x, c.pads)
    parts = [shifted(padded, at, out, c) for at in itertools.product(*map(range, kernel))]
    parts = [by_group(part, c) for part in parts]
    return barrier(jnp.concatenate(parts, -1))


def by_group(a: Any, c: Any) -> Any:
    """(..., channels) -> (groups, positions, channels / groups)."""
    return barrier(rows(a).reshape(-1, c.groups, a.shape[-1] // c.groups).transpose(1, 0, 2))


def grouped_rows(w: Any, c: Any) -> Any:
    """(O, C / groups, *kernel) -> (groups, O / groups, taps * C / groups), the order of `grouped_patches`."""
    return rows_of_taps(w).reshape(c.groups, w.shape[0] // c.groups, -1)


def group_product(a: Any, b: Any, left: int, right: int) -> Any:
    return lax.dot_general(a, b, (((left,), (right,)), ((0,), (0,))))


def grouped_forward(x: Any, w: Any, c: Any, out: tuple) -> Any:
    if c.groups <= FEW_GROUPS:
        pairs = zip(split(x, c.groups, -1 % x.ndim), split(w, c.groups, 0), strict=True)
        return jnp.concatenate([forward(a, b, c._replace(groups=1), out) for a, b in pairs], -1)
    y = group_product(grouped_patches(x, w.shape[2:], out, c), grouped_rows(w, c), 2, 2)
    return y.transpose(1, 0, 2).reshape(x.shape[0], *out, w.shape[0])


def grouped_input_gradient(g: Any, w: Any, sizes: tuple, c: Any) -> Any:
    if c.groups <= FEW_GROUPS:
        pairs = zip(split(g, c.groups, -1 % g.ndim), split(w, c.groups, 0), strict=True)
        return jnp.concatenate([input_gradient(a, b, sizes, c._replace(groups=1)) for a, b in pairs], -1)
    columns = barrier(group_product(by_group(g, c), grouped_rows(w, c), 2, 1))
    columns = columns.reshape(*columns.shape[:2], -1, w.shape[1]).transpose(2, 1, 0, 3)
    return unshifted([part.reshape(*g.shape[:-1], -1) for part in columns], w.shape[2:], sizes, c)


def grouped_weight_gradient(g: Any, x: Any, shape: tuple, c: Any) -> Any:
    if c.groups <= FEW_GROUPS:
        pairs = zip(split(g, c.groups, -1 % g.ndim), split(x, c.groups, -1 % x.ndim), strict=True)
        part = (shape[0] // c.groups, *shape[1:])
        return jnp.concatenate([weight_gradient(a, b, part, c._replace(groups=1)) for a, b in pairs])
    d = group_product(by_group(g, c), grouped_patches(x, shape[2:], g.shape[1:-1], c), 1, 1)
    return jnp.moveaxis(d.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


# -- Winograd's F(2x2, 3x3) -----------------------------------------------------------------------------------
# y = A'((G w G') * (B' x B))A for each 4x4 tile of x and 2x2 tile of y (Lavin and Gray, "Fast algorithms for
# convolutional neural networks", 2016): 16 products over channels, one for each place in the tile.

INPUT = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))  # B'
OUTPUT = ((1, 1, 1, 0), (0, 1, -1, -1))  # A'
WEIGHT = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])  # G


def combine(factors: Any, parts: Any) -> Any:
    """The sum of parts times factors of 1, 0 or -1."""
    total = None
    for factor, part in zip(factors, parts, strict=True):
        if factor:
            part = part if factor > 0 or total is not None else -part
            total = part if total is None else total + part if factor > 0 else total - part
    return total


def transform(x: Any, matrix: Any, tiles: tuple) -> list:
    """(N, H, W, C) -> matrix @ tile @ matrix', for each of its 16 places a (tiles, C). Tiles start at every second
    element and have as many rows and columns as the matrix has columns."""
    size = len(matrix[0])
    height, width = tiles

    def place(i: int, j: int) -> Any:
        ends = (x.shape[0], i + 2 * height - 1, j + 2 * width - 1, x.shape[3])
        return lax.slice(x, (0, i, j, 0), ends, (1, 2, 2, 1))

    places = [[place(i, j) for j in range(size)] for i in range(size)]
    out = []
    for a in matrix:
        across = [combine(a, [places[i][j] for i in range(size)]) for j in range(size)]
        out += [rows(combine(b, across)) for b in matrix]
    return out


def tile_counts(out: tuple) -> tuple[int, int]:
    return -(-out[0] // 2), -(-out[1] // 2)


def input_tiles(x: Any, pads: Any, out: tuple) -> list:
    tiles = tile_counts(out)
    whole = [(low, 2 * t + 2 - n - low) for t, n, (low, _) in zip(tiles, x.shape[1:3], pads, strict=True)]
    return transform(barrier(pad(x, whole)), INPUT, tiles)


def products(a: list, b: Any, contract: tuple) -> Any:
    """The 16 products of a's and b's arrays: (16, ...). Stacked where slicing the weight's transform would cost more
    than the one loop over all 16 places of the activations', which is slower than 16 loops."""
    if a[0].shape[1] > a[0].shape[0]:
        b = b if not isinstance(b, list) else barrier(jnp.stack(b))
        ((left,), (right,)) = contract
        return lax.dot_general(barrier(jnp.stack(a)), b, (((left + 1,), (right + 1,)), ((0,), (0,))))
    a, b = barrier((a, b))
    return [lax.dot_general(p, b[k], (contract, ((), ()))) for k, p in enumerate(a)]


def winograd_forward(x: Any, w: Any, pads: Any, out: tuple, transposed: bool = False) -> Any:
    """The convolution of x (N, H, W, C) with w (O, C, 3, 3), -> (N, *out, O); `transposed`: of x (N, H, W, O) with w
    turned about and its channels exchanged, -> (N, *out, C)."""
    tiles = tile_counts(out)
    matrix = WEIGHT[:, ::-1] if transposed else WEIGHT
    square = jnp.asarray(np.kron(matrix, matrix), w.dtype)  # (16, 9)
    weights = product_transposed(square, w.reshape(-1, 9)).reshape(16, *w.shape[:2])
    m = products(input_tiles(x, pads, out), weights, ((1,), (0 if transposed else 1,)))
    m = barrier(m)
    m = [part.reshape(x.shape[0], *tiles, -1) for part in m]
    lines = []
    for a in OUTPUT:
        across = [combine(a, m[k::4]) for k in range(4)]
        lines.append(jnp.stack([combine(b, across) for b in OUTPUT], 3))
    y = jnp.stack(lines, 2)  # (N, tiles, 2, tiles, 2, O)
    y = y.reshape(x.shape[0], 2 * tiles[0], 2 * tiles[1], -1)
    return barrier(lax.slice(y, (0,) * 4, (x.shape[0], *out, y.shape[3])))


def winograd_weight_gradient(g: Any, x: Any, pads: Any) -> Any:
    """(N, H', W', O), (N, H, W, C) -> (O, C, 3, 3)."""
    out = g.shape[1:3]
    tiles = tile_counts(out)
    whole = [(0, 2 * t - n) for t, n in zip(tiles, out, strict=True)]
    grads = transform(pad(g, whole), tuple(zip(*OUTPUT, strict=True)), tiles)
    m = products(grads, input_tiles(x, pads, out), ((0,), (0,)))
    square = jnp.asarray(np.kron(WEIGHT, WEIGHT), g.dtype)
    m = m if not isinstance(m, list) else jnp.stack(m)
    d = transposed_product(barrier(m).reshape(16, -1), square)  # (O * C, 9)
    return d.reshape(g.shape[3], x.shape[3], 3, 3)
