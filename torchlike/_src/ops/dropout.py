"""The arithmetic of dropout. The masks come from the random family; these kernels apply them in PyTorch's order of
operations, so that equal masks give equal bits."""

from typing import Any

import jax.numpy as jnp

from torchlike._src.ops.declare import S, T, op


def _noise(keep: Any, p: Any, dtype: Any) -> Any:
    """keep / (1 - p), the division in the tensor's dtype; zeros for p = 1. One division for all: keep is 0 or 1."""
    dtype = jnp.dtype(dtype)
    wide = jnp.float32 if dtype.itemsize < 4 else jnp.finfo(dtype).dtype
    rest = (1.0 - p.astype(jnp.float64)).astype(wide)
    kept = jnp.where(rest == 0, jnp.zeros((), wide), 1 / rest).astype(dtype)
    if keep.dtype == jnp.bool_:
        return jnp.where(keep, kept, jnp.zeros((), dtype))
    return keep.astype(dtype) * kept


@op(
    namespaces=(),
    method=False,
    out=False,
    grad_name="MulBackward0",
    shape=lambda input, keep, p: input,
    vjp={"input": lambda g, keep, p: g * _noise(keep, p, g.dtype)},
)
def _dropout_apply(input: T, keep: T, *, p: S):
    """input * (keep / (1 - p)); `keep` (bool or of input's dtype) broadcasts against input, which is how feature
    dropout drops whole channels."""
    return input * _noise(keep, p, input.dtype)


def _alpha_constants(p: Any, dtype: Any) -> tuple[Any, Any]:
    """alpha' = -scale * alpha of SELU; (a, shift at kept, ...) of alpha dropout, in float64."""
    alpha = 1.7580993408473766
    q = p.astype(jnp.float64)
    a = 1.0 / jnp.sqrt((alpha * alpha * q + 1.0) * (1.0 - q))
    return a.astype(dtype), (a * alpha).astype(dtype)


def _alpha_shift(keep: Any, p: Any, dtype: Any) -> tuple[Any, Any]:
    alpha = 1.7580993408473766
    a, a_alpha = _alpha_constants(p, dtype)
    noise = keep.astype(dtype)
    b = (noise - jnp.ones((), dtype)) * a_alpha + (a.astype(jnp.float64) * alpha * p.astype(jnp.float64)).astype(dtype)
    return noise * a, b


@op(
    namespaces=(),
    method=False,
    out=False,
    grad_name="AddBackward0",
    shape=lambda input, keep, p: input,
    vjp={"input": lambda g, keep, p: g * _alpha_shift(keep, p, g.dtype)[0]},
)
def _alpha_dropout_apply(input: T, keep: T, *, p: S):
    """SELU's dropout for 0 < p < 1: dropped elements become -alpha', then an affine map restores mean and variance."""
    slope, shift = _alpha_shift(keep, p, input.dtype)
    return input * slope + shift
