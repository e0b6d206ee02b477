"""Finite differences, integrals by trapezoids, covariance, Vandermonde matrices."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import Aval
from torchlike._src.core.errors import broadcast_shapes, canonical_dim
from torchlike._src.core.promotion import Promote
from torchlike._src.ops.declare import TL, TO, T, op
from torchlike._src.ops.reduction import widen

# -- differences -----------------------------------------------------------------------------------------------


def _ends(x: Any, dim: int, first: int, last: int) -> Any:
    """x[first:size-last] along `dim`."""
    return lax.slice_in_dim(x, first, x.shape[dim] - last, axis=dim)


def _diff_check(input: Aval, n: int, dim: int, prepend: Any, append: Any) -> None:
    if input.ndim < 1:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = canonical_dim(dim, input.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    for other in (prepend, append):
        if other is None:
            continue
        if other.ndim != input.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for k, (a, b) in enumerate(zip(input.shape, other.shape, strict=True)):
            if k != axis and a != b:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({k}) = {a}, but got tensor.size({k}) = {b}"
                )


@op(promote=Promote.NO_OPMATH, check=_diff_check, grad_name="SubBackward0")
def diff(input: T, n=1, dim=-1, prepend: TO = None, append: TO = None):
    """The n-th difference of neighbours along `dim`, after joining `prepend` and `append` on."""
    dim %= input.ndim
    if n == 0:
        return input
    parts = [p for p in (prepend, input, append) if p is not None]
    x = lax.concatenate(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        if x.shape[dim] <= 1:
            return lax.slice_in_dim(x, 0, 0, axis=dim)
        after, before = _ends(x, dim, 1, 0), _ends(x, dim, 0, 1)
        x = lax.bitwise_xor(after, before) if x.dtype == bool else after - before
    return x


# -- trapezoids ------------------------------------------------------------------------------------------------


def _trapezoid_check(name: str) -> Any:
    def check(y: Aval, x: Any, dx: Any, dim: int) -> None:
        if any(given is not None and given.dtype is dt.bool_ for given in (y, x)):
            shown = "`y`" if x is None else "`x` or `y`"
            raise RuntimeError(f"{name}: received a bool input for {shown}, but bool is not supported")
        if not y.ndim:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        axis = canonical_dim(dim, y.ndim)
        if x is None:
            return
        if x.ndim == 1:
            if x.shape[0] != y.shape[axis]:
                raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        elif x.shape and x.ndim > 1:
            sizes = [1] * (max(x.ndim, y.ndim) - x.ndim) + list(x.shape)
            broadcast_shapes(
                tuple(
                    n
                    for k, n in enumerate([1] * (len(sizes) - y.ndim) + list(y.shape))
                    if k != len(sizes) - y.ndim + axis
                ),
                tuple(n for k, n in enumerate(sizes) if k != len(sizes) - y.ndim + axis),
            )

    return check


def _float_of(a: Any) -> Any:
    return a.astype(dt.default_dtype().np) if a.dtype.kind in "iu" else a


def _times(a: Any, number: float) -> Any:
    """a * number in floating point, rounded once for half types."""
    a = _float_of(a)
    return (widen(a) * np.asarray(number, widen(a).dtype)).astype(a.dtype)


def _total(a: Any, axis: int, running: bool) -> Any:
    """The sum or running sum along a dim: of integers in int64, of half types in float32, rounded."""
    wide = a.astype(jnp.int64) if a.dtype.kind in "iu" else widen(a)
    out = lax.cumsum(wide, axis) if running else lax.reduce_sum(wide, (axis,))
    return out if a.dtype.kind in "iu" else out.astype(a.dtype)


def _trapezoid(y: Any, x: Any, dx: Any, dim: int, running: bool) -> Any:
    """PyTorch's order of operations, which shows in half types and in integers (they wrap around)."""
    dim %= y.ndim
    if x is None and not running:
        if not y.shape[dim]:
            return jnp.zeros(y.shape[:dim] + y.shape[dim + 1 :], _float_of(y).dtype)
        ends = lax.index_in_dim(y, 0, dim, False) + lax.index_in_dim(y, y.shape[dim] - 1, dim, False)
        return _times(_float_of(_total(y, dim, False)) - _times(ends, 0.5), dx)
    pairs = _ends(y, dim, 1, 0) + _ends(y, dim, 0, 1)
    if x is None:
        return _total(_times(pairs, dx / 2), dim, True)
    if x.ndim == 1:
        x = x.reshape(tuple(-1 if k == dim else 1 for k in range(y.ndim)))
    axis = dim - y.ndim + x.ndim
    widths = _ends(x, axis, 1, 0) - _ends(x, axis, 0, 1)
    both = jnp.promote_types(pairs.dtype, widths.dtype)
    areas = widths.astype(both) * pairs.astype(both)
    return _times(_total(areas, dim - y.ndim + areas.ndim, running), 0.5)


@op(check=_trapezoid_check("trapezoid"), method=False, out=False, aliases=("trapz",), grad_name="MulBackward1")
def trapezoid(y: T, x: TO = None, *, dx=1, dim=-1):
    """The integral of y along `dim` by trapezoids, at points x or a distance dx apart."""
    return _trapezoid(y, x, dx, dim, False)


@op(check=_trapezoid_check("cumulative_trapezoid"), method=False, out=False, grad_name="CumsumBackward0")
def cumulative_trapezoid(y: T, x: TO = None, *, dx=1, dim=-1):
    """The running integral of y along `dim` by trapezoids."""
    return _trapezoid(y, x, dx, dim, True)


# -- gradient --------------------------------------------------------------------------------------------------


def _half_gradient(x: Any, dim: int, spacing: float, edge_order: int) -> Any:
    """`gradient_along` of a half type: differences are rounded to it, spacings are not."""

    def over(difference: Any, width: float) -> Any:
        return (difference.astype(jnp.float32) / np.float32(width)).astype(x.dtype)

    def at(k: int) -> Any:
        return lax.index_in_dim(x, k % x.shape[dim], dim)

    inside = over(_ends(x, dim, 2, 0) - _ends(x, dim, 0, 2), 2 * spacing)
    if edge_order == 1:
        ends = over(at(1) - at(0), spacing), over(at(-1) - at(-2), spacing)
    else:
        left, right = 4 * at(1) - 3 * at(0) - at(2), 3 * at(-1) - 4 * at(-2) + at(-3)
        ends = over(left, 2 * spacing), over(right, 2 * spacing)
    return lax.concatenate([ends[0], inside, ends[1]], dim)


def gradient_along(x: Any, dim: int, spacing: Any, edge_order: int) -> Any:
    """Second-order differences inside, first- or second-order at the edges; `spacing` a number or coordinates."""
    n = x.shape[dim]
    shape = tuple(-1 if k == dim else 1 for k in range(x.ndim))

    def at(k: int) -> Any:
        return lax.index_in_dim(x, k % n, dim)

    if isinstance(spacing, (int, float)):
        if x.dtype.name in ("float16", "bfloat16"):
            return _half_gradient(x, dim, spacing, edge_order)
        spacing = np.asarray(spacing, x.dtype)
        inside = (_ends(x, dim, 2, 0) - _ends(x, dim, 0, 2)) / (spacing * 2)
        if edge_order == 1:
            left, right = (at(1) - at(0)) / spacing, (at(-1) - at(-2)) / spacing
        else:
            left = (4 * at(1) - 3 * at(0) - at(2)) / (spacing * 2)
            right = (3 * at(-1) - 4 * at(-2) + at(-3)) / (spacing * 2)
        return lax.concatenate([left, inside, right], dim)
    widths = spacing[1:] - spacing[:-1]
    before, after = widths[:-1].reshape(shape), widths[1:].reshape(shape)
    inside = (
        _ends(x, dim, 0, 2) * (-after / (before * (before + after)))
        + _ends(x, dim, 1, 1) * ((after - before) / (before * after))
        + _ends(x, dim, 2, 0) * (before / (after * (before + after)))
    )
    first, last = widths[0], widths[-1]
    if edge_order == 1:
        return lax.concatenate([(at(1) - at(0)) / first, inside, (at(-1) - at(-2)) / last], dim)
    second, third = widths[1], widths[-2]
    left = (
        at(0) * (-(2 * first + second) / (first * (first + second)))
        + at(1) * ((first + second) / (first * second))
        + at(2) * (-first / (second * (first + second)))
    )
    right = (
        at(-3) * (last / (third * (third + last)))
        + at(-2) * (-(third + last) / (third * last))
        + at(-1) * ((2 * last + third) / (last * (third + last)))
    )
    return lax.concatenate([left, inside, right], dim)


@op(namespaces=(), grad_name="CatBackward0")
def _gradient(input: T, coordinates: TL, *, dim, spacing=1, edge_order=1):
    """One dim of torch.gradient: `coordinates` holds no tensor (then `spacing` is the step) or one 1-D tensor."""
    x = input.astype(dt.default_dtype().np) if input.dtype.kind in "iu" else input
    given = coordinates[0].astype(jnp.promote_types(coordinates[0].dtype, x.dtype)) if coordinates else spacing
    return gradient_along(x, dim % x.ndim, given, edge_order)


# -- covariance ------------------------------------------------------------------------------------------------


def _cov_check(input: Aval, correction: int, fweights: Any, aweights: Any) -> None:
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype is dt.bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    count = input.shape[-1] if input.ndim else 1
    for name, w in (("fweights", fweights), ("aweights", aweights)):
        if w is None:
            continue
        if w.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {w.ndim} dimensions"
            )
        integral = not (w.dtype.is_floating_point or w.dtype.is_complex)
        if name == "fweights" and not integral:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype but got fweights with {w.dtype.scalar_name} dtype"
            )
        if name == "aweights" and integral:
            raise RuntimeError(
                "cov(): expected aweights to have floating point dtype but got aweights with "
                f"{w.dtype.scalar_name} dtype"
            )
        if w.numel != count:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got "
                f"{w.numel} != {count}"
            )


def _cov(x: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    if x.dtype.kind in "iu":
        x = x.astype(dt.default_dtype().np)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    count = rows.shape[1]
    weights: Any = None
    total: Any
    if fweights is not None:
        weights = fweights
    if aweights is not None:
        weights = aweights if weights is None else weights * aweights
    if weights is None:
        total = np.asarray(count, rows.dtype)
        mean = rows.sum(1, keepdims=True) / total
        norm = total - correction
    else:
        weights = weights.reshape(-1)
        total = weights.sum()
        mean = (rows * weights).sum(1, keepdims=True) / total
        if aweights is not None and correction:
            norm = total - correction * (weights * aweights.reshape(-1)).sum() / total
        else:
            norm = total - correction
    norm = jnp.maximum(lax.real(norm) if norm.dtype.kind == "c" else norm, 0)
    centred = rows - mean
    scaled = centred if weights is None else centred * weights
    out = jnp.matmul(scaled, jnp.conj(centred).T) / norm
    return out.reshape(()) if out.size == 1 else out


@op(check=_cov_check, out=False, grad_name=lambda input, **_: "SqueezeBackward0")
def cov(input: T, *, correction=1, fweights: TO = None, aweights: TO = None):
    """(variables, observations) -> (variables, variables): the covariance matrix; a scalar for one variable."""
    return _cov(input, correction, fweights, aweights)


def _corrcoef_check(input: Aval) -> None:
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    _cov_check(input, 1, None, None)


@op(check=_corrcoef_check, out=False, grad_name=lambda input: "ClampBackward1" if input.ndim == 2 else "DivBackward0")
def corrcoef(input: T):
    """(variables, observations) -> the matrix of correlation coefficients; a scalar for one variable."""
    c = _cov(input, 1, None, None)
    if c.ndim == 0:
        return c / c
    deviation = jnp.sqrt(lax.real(jnp.diagonal(c)) if c.dtype.kind == "c" else jnp.diagonal(c))
    c = c / deviation[:, None] / deviation[None, :]
    if c.dtype.kind == "c":
        return lax.complex(jnp.clip(lax.real(c), -1, 1), jnp.clip(lax.imag(c), -1, 1))
    return jnp.clip(c, -1, 1)


# -- Vandermonde -----------------------------------------------------------------------------------------------


def _vander_check(x: Aval, N: Any, increasing: bool) -> None:
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")


@op(
    check=_vander_check,
    method=False,
    out=False,
    grad_name=lambda increasing, **_: "CatBackward0" if increasing else "FlipBackward0",
)
def vander(x: T, N=None, increasing=False):
    """(n,) -> (n, N): the powers of each element, descending unless `increasing`."""
    count = x.shape[0] if N is None else N
    if x.dtype == bool or x.dtype.kind in "iu":
        x = x.astype(jnp.int64)
    powers = [jnp.ones_like(x)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    if not count:
        return jnp.zeros((x.shape[0], 0), x.dtype)
    return jnp.stack(powers if increasing else powers[::-1], 1)
