"""Loss kernels. Losses that PyTorch composes of tensor operations are composites above; these are its primitives."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.core.aval import Aval, aval
from torchlike._src.core.dtype import by_name
from torchlike._src.core.errors import broadcast_shapes, shape_text
from torchlike._src.ops.declare import TO, Promote, S, T, op
from torchlike._src.ops.matmul import HALF

INT64 = by_name("int64")


def reduce(x: Any, reduction: str) -> Any:
    """none, mean or sum over everything."""
    if reduction == "none":
        return x
    total = x.sum()
    return total / jnp.asarray(x.size, x.dtype) if reduction == "mean" else total


def unreduce(g: Any, size: int, reduction: str) -> Any:
    """The gradient of `reduce`, not yet broadcast."""
    return g / jnp.asarray(size, g.dtype) if reduction == "mean" else g


def _pointwise_floating(name: str) -> Any:
    def check(input: Aval, target: Aval, **_: Any) -> None:
        broadcast_shapes(input.shape, target.shape)
        if not any(a.dtype.is_floating_point or a.dtype.is_complex for a in (input, target)):
            from_dtype = input.dtype.scalar_name
            raise NotImplementedError(f"\"{name}\" not implemented for '{from_dtype}'")

    return check


def _size(a: Any, b: Any) -> int:
    return math.prod(jnp.broadcast_shapes(a.shape, b.shape))


def _mse_slope(g, input, target, reduction):
    return (2 * (input - target)) * unreduce(g, _size(input, target), reduction)


def _half_mse(input: Any, target: Any, reduction: str) -> Any:
    """The difference is rounded, and its square."""
    d = input - target
    return reduce((d * d).astype(jnp.float32) if reduction != "none" else d * d, reduction)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=_pointwise_floating("mse_cpu"),
    half=_half_mse,
    autocast="float32",
    vjp={"input": _mse_slope, "target": lambda g, input, target, reduction: -_mse_slope(g, input, target, reduction)},
)
def _mse_loss(input: T, target: T, *, reduction: str = "mean"):
    """(input - target) ** 2, broadcast, reduced."""
    d = input - target
    return reduce(d * d, reduction)


def _half_soft_margin(input: Any, target: Any, reduction: str) -> Any:
    """Rounded at each step."""
    loss = jnp.log1p(jnp.exp(-target * input))
    return reduce(loss.astype(jnp.float32) if reduction != "none" else loss, reduction)


def _half_smooth_l1(input: Any, target: Any, beta: Any, reduction: str) -> Any:
    """float16 is rounded at each step, bfloat16 once."""
    if input.dtype == jnp.float16:
        beta = beta.astype(jnp.float16)
    else:
        input, target = input.astype(jnp.float32), target.astype(jnp.float32)
    d = abs(input - target)
    loss = jnp.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    return reduce(loss.astype(jnp.float32) if reduction != "none" else loss, reduction)


def _half_huber(input: Any, target: Any, delta: Any, reduction: str) -> Any:
    """bfloat16 is rounded at each step, float16 once."""
    if input.dtype == jnp.bfloat16:
        delta = delta.astype(jnp.bfloat16)
    else:
        input, target = input.astype(jnp.float32), target.astype(jnp.float32)
    d = abs(input - target)
    loss = jnp.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    return reduce(loss.astype(jnp.float32) if reduction != "none" else loss, reduction)


def _smooth_slope(g, input, target, beta, reduction):
    d = input - target
    slope = jnp.where(abs(d) < beta, d / beta, jnp.sign(d))
    return slope * unreduce(g, d.size, reduction)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    promote_args=("input", "target"),
    check=_pointwise_floating("smooth_l1_cpu"),
    half=_half_smooth_l1,
    autocast="float32",
    grad_name="SmoothL1LossBackward0",
    vjp={
        "input": _smooth_slope,
        "target": lambda g, input, target, beta, reduction: -_smooth_slope(g, input, target, beta, reduction),
    },
)
def _smooth_l1_loss(input: T, target: T, *, beta: S = 1.0, reduction: str = "mean"):
    """Quadratic within beta (> 0) of the target, linear beyond."""
    d = abs(input - target)
    return reduce(jnp.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction)


def _huber_slope(g, input, target, delta, reduction):
    d = input - target
    slope = jnp.where(abs(d) <= delta, d, delta * jnp.sign(d))
    return slope * unreduce(g, d.size, reduction)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    promote_args=("input", "target"),
    check=_pointwise_floating("huber_cpu"),
    half=_half_huber,
    autocast="float32",
    vjp={
        "input": _huber_slope,
        "target": lambda g, input, target, delta, reduction: -_huber_slope(g, input, target, delta, reduction),
    },
)
def _huber_loss(input: T, target: T, *, delta: S = 1.0, reduction: str = "mean"):
    """Quadratic within delta of the target, delta * (|d| - delta / 2) beyond."""
    d = abs(input - target)
    return reduce(jnp.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def _sigmoid(x: Any) -> Any:
    return lax.logistic(x)


def _soft_margin_slope(g, input, target, reduction):
    z = -target * input
    return -target * _sigmoid(z) * unreduce(g, z.size, reduction)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    autocast="float32",
    half=_half_soft_margin,
    grad_name="SoftMarginLossBackward0",
    vjp={
        "input": _soft_margin_slope,
        "target": lambda g, input, target, reduction: (
            -input * _sigmoid(-target * input) * unreduce(g, _size(input, target), reduction)
        ),
    },
)
def _soft_margin_loss(input: T, target: T, *, reduction: str = "mean"):
    """log(1 + exp(-target * input))."""
    z = -target * input
    return reduce(jnp.log1p(jnp.exp(z)), reduction)  # overflows to inf, as PyTorch's does


# -- binary cross entropy -------------------------------------------------------------------------------------


def check_bce(input: Aval, target: Aval, weight: Aval | None, reduction: str) -> None:
    for other in (target, weight):
        if other is not None and other.dtype is not input.dtype:
            raise RuntimeError(f"Found dtype {other.dtype.scalar_name} but expected {input.dtype.scalar_name}")
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"binary_cross_entropy\" not implemented for '{input.dtype.scalar_name}'")


def _weighted(x: Any, weight: Any) -> Any:
    return x if weight is None else x * weight


def _bce_slope(g, input, target, weight, reduction):
    tiny = jnp.asarray(np.float32(1e-12), input.dtype)  # PyTorch's constant is a float32 in every dtype
    d = (input - target) / jnp.maximum((1 - input) * input, tiny)
    return _weighted(d, weight) * unreduce(g, input.size, reduction)


def _bce_target(g, input, weight, reduction):
    low = jnp.asarray(-100, input.dtype)
    d = jnp.maximum(jnp.log1p(-input), low) - jnp.maximum(jnp.log(input), low)
    return _weighted(d, weight) * unreduce(g, input.size, reduction)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=check_bce,
    half=lambda input, target, weight, reduction: reduce(
        _weighted(_cross_entropies(input, target), weight).astype(jnp.float32), reduction
    ),
    autocast="float32",
    vjp={"input": _bce_slope, "target": _bce_target},
)
def _binary_cross_entropy(input: T, target: T, weight: TO = None, *, reduction: str = "mean"):
    """-w * (t * log(x) + (1 - t) * log(1 - x)), the logarithms not below -100. Sizes agree."""
    return reduce(_weighted(_cross_entropies(input, target), weight), reduction)


def _cross_entropies(input: Any, target: Any) -> Any:
    low = jnp.asarray(-100, input.dtype)
    return (target - 1) * jnp.maximum(jnp.log1p(-input), low) - target * jnp.maximum(jnp.log(input), low)


def check_bce_logits(input: Aval, target: Aval, weight: Aval | None, pos_weight: Aval | None, reduction: str) -> None:
    if not target.dtype.is_floating_point and not target.dtype.is_complex and input.dtype.is_floating_point:
        raise RuntimeError(
            f"result type {input.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
        )
    if pos_weight is not None:
        broadcast_shapes(pos_weight.shape, target.shape)
    if weight is not None:
        broadcast_shapes(input.shape, weight.shape)


def _softplus(x: Any) -> Any:
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-abs(x)))


def _bcel_slope(g, input, target, weight, pos_weight, reduction):
    s = _sigmoid(input)
    if pos_weight is None:
        d = s - target
    else:
        t = pos_weight * target
        d = (t + 1 - target) * s - t
    d = _weighted(d, weight)
    return d * unreduce(g, d.size, reduction)


def _bcel_target(g, input, weight, pos_weight, reduction):
    d = -input if pos_weight is None else pos_weight * _softplus(-input) - _softplus(input)
    d = _weighted(d, weight)
    return d * unreduce(g, d.size, reduction)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    check=check_bce_logits,
    autocast="float32",
    grad_name="BinaryCrossEntropyWithLogitsBackward0",
    vjp={"input": _bcel_slope, "target": _bcel_target},
)
def _bce_with_logits(input: T, target: T, weight: TO = None, pos_weight: TO = None, *, reduction: str = "mean"):
    """Binary cross entropy of sigmoid(input), computed stably."""
    if pos_weight is None:
        loss = (1 - target) * input + _softplus(-input)
    else:
        loss = (1 - target) * input + ((pos_weight - 1) * target + 1) * _softplus(-input)
    return reduce(_weighted(loss, weight), reduction)


# -- negative log likelihood ----------------------------------------------------------------------------------


def check_nll(input: Aval, target: Aval, weight: Aval | None, ignore_index: int, reduction: str) -> None:
    a, t = input, target
    if a.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if a.ndim != 1 and t.ndim and a.shape[0] != t.shape[0]:
        raise ValueError(f"Expected input batch_size ({a.shape[0]}) to match target batch_size ({t.shape[0]}).")
    channels = a.shape[0 if a.ndim == 1 else 1]
    if a.ndim <= 2:
        if t.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if a.ndim == 2 and t.shape[:1] != a.shape[:1] or a.ndim == 1 and t.ndim == 1 and t.shape[0] != 1:
            raise RuntimeError(f"size mismatch (got input: {shape_text(a.shape)}, target: {shape_text(t.shape)})")
    elif t.ndim != a.ndim - 1 or t.shape[1:] != a.shape[2:]:
        if a.ndim == 4 and t.ndim == 3:
            raise RuntimeError(f"size mismatch (got input: {shape_text(a.shape)} , target: {shape_text(t.shape)}")
        if a.ndim == 4:
            raise RuntimeError(
                f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {t.ndim}"
            )
        raise RuntimeError(f"Expected target size {shape_text((a.shape[0], *a.shape[2:]))}, got {shape_text(t.shape)}")
    if t.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {t.dtype.scalar_name}")
    if weight is not None and weight.shape != (channels,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {channels} classes or no classes but got weight tensor of "
            f"shape: {shape_text(weight.shape)}"
        )
    if weight is not None and weight.dtype is not a.dtype:
        raise RuntimeError(f"expected scalar type {a.dtype.scalar_name} but found {weight.dtype.scalar_name}")
    if not a.dtype.is_floating_point:
        kernel = "nll_loss_out_frame" if a.ndim <= 2 else "nll_loss2d_forward_out_frame"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{a.dtype.scalar_name}'")


def _as_rows(input: Any, target: Any) -> tuple[Any, Any]:
    """A 1-d input and its target with a batch dim; the target in int64."""
    target = target.astype(jnp.int64)
    return (input[None], target.reshape(1)) if input.ndim == 1 else (input, target)


def _class_weights(target: Any, weight: Any, ignore_index: int, dtype: Any) -> Any:
    """Each element's weight: 0 where ignored."""
    valid = target != jnp.asarray(ignore_index, target.dtype)  # target is int64: uint8 could not hold -100
    if weight is None:
        return valid.astype(dtype)
    picked = jnp.take(weight, jnp.where(valid, target, 0), mode="clip")
    return jnp.where(valid, picked, jnp.zeros((), weight.dtype)).astype(dtype)


def nll_shape(input: Aval, target: Aval, weight: Aval | None, ignore_index: int, reduction: str) -> tuple:
    unit = aval((), input.dtype, input.device)
    return (input.with_shape(target.shape if reduction == "none" else ()), unit)


def nll_name(input: Aval, reduction: str, **_: Any) -> str:
    if input.ndim <= 2:
        return "NllLossBackward0"
    return "ViewBackward0" if reduction == "none" and input.ndim != 4 else "NllLoss2DBackward0"


def nll_grad(g0, input_aval, target, weight, out1, ignore_index, reduction):
    """A comparison with the class numbers, which fuses with log_softmax's own gradient; no scatter."""
    dtype = jnp.float32 if g0.dtype.name in HALF else g0.dtype
    one = input_aval.ndim == 1
    shape = (1, *input_aval.shape) if one else input_aval.shape
    t = (target.reshape(1) if one else target).astype(jnp.int64)
    scale = -_class_weights(t, weight, ignore_index, dtype) * (
        g0.reshape(t.shape) if reduction == "none" else g0
    ).astype(dtype)
    if reduction == "mean":
        scale = scale / out1.astype(dtype)
    classes = lax.broadcasted_iota(jnp.int32, shape, 1)
    hit = classes == jnp.expand_dims(t, 1).astype(jnp.int32)
    d = jnp.where(hit, jnp.expand_dims(scale, 1), jnp.zeros((), dtype))
    return d.reshape(input_aval.shape)


@op(
    namespaces=(),
    method=False,
    out=False,
    outputs=("out", "total_weight"),
    check=check_nll,
    shape=nll_shape,
    autocast="float32",
    grad_name=nll_name,
    vjp={"input": nll_grad},
)
def _nll_loss(input: T, target: T, weight: TO = None, *, ignore_index: int = -100, reduction: str = "mean"):
    """(N, C, ...), (N, ...) of class numbers, (C,) -> (-weight[t] * input[n, t], reduced; the sum of the weights).

    A class number out of range gives NaN; ops/faults.py makes it an error."""
    one = input.ndim == 1
    shape = target.shape
    x, t = _as_rows(input, target)
    dtype = jnp.float32 if x.dtype.name in HALF else x.dtype
    w = _class_weights(t, weight, ignore_index, dtype)
    safe = jnp.where(t != jnp.asarray(ignore_index, t.dtype), t, jnp.zeros((), t.dtype))
    safe = jnp.where(safe < 0, jnp.asarray(x.shape[1], safe.dtype), safe)  # negative counts from the end otherwise
    picked = jnp.take_along_axis(x, jnp.expand_dims(safe, 1), 1, mode="fill").squeeze(1).astype(dtype)
    loss = -w * picked
    total = w.sum()
    if reduction == "none":
        out = loss.reshape(shape) if one else loss
        total = jnp.zeros((), dtype)
    else:
        out = loss.sum()
        out = out / total if reduction == "mean" else out
    return out.astype(input.dtype), total.astype(input.dtype)


# -- margins --------------------------------------------------------------------------------------------------


def check_multi_margin(input: Aval, target: Aval, weight: Aval | None, p: int, margin: Any, reduction: str) -> None:
    n = input.shape[0] if input.ndim == 2 else 1
    if input.ndim > 2 or input.ndim == 2 and input.shape[1] == 0 or input.numel == 0 and input.ndim < 2:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: " + shape_text(input.shape)
        )
    if target.ndim > 1 or target.numel != n:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples "
            f"(batch size). Expected target size [{n}], but got {shape_text(target.shape)}. Input has shape "
            f"{shape_text(input.shape)}."
        )
    if target.dtype is not INT64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    classes = input.shape[-1] if input.ndim else 1
    if weight is not None and (weight.ndim > 1 or weight.numel != classes):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {shape_text(weight.shape)}")


def _margins(x: Any, t: Any, weight: Any, p: int, margin: Any) -> tuple[Any, Any, Any]:
    """(hinge per class, whether it counts, the class's weight per row)."""
    chosen = jnp.take_along_axis(x, t[:, None], 1)
    hinge = margin - chosen + x
    others = lax.broadcasted_iota(t.dtype, x.shape, 1) != t[:, None]
    w = jnp.ones((x.shape[0], 1), x.dtype) if weight is None else jnp.take(weight, t)[:, None]
    return hinge, others & (hinge > 0), w


def _multi_margin_slope(g, input, target, weight, p, margin, reduction):
    x, t = (input.reshape(1, -1), target.reshape(1)) if input.ndim <= 1 else (input, target.reshape(-1))
    hinge, counts, w = _margins(x, t, weight, p, margin)
    slope = jnp.where(counts, (2 * hinge if p == 2 else jnp.ones((), x.dtype)) * w, jnp.zeros((), x.dtype))
    slope = slope / jnp.asarray(x.shape[1], x.dtype)
    at = lax.broadcasted_iota(t.dtype, x.shape, 1) == t[:, None]
    d = jnp.where(at, -slope.sum(1, keepdims=True), slope)
    scale = g.reshape(-1, 1) if reduction == "none" else g
    if reduction == "mean":
        scale = scale / jnp.asarray(x.shape[0], x.dtype)
    return (d * scale).reshape(input.shape)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    promote_args=("input", "weight"),
    check=check_multi_margin,
    autocast="float32",
    vjp={"input": _multi_margin_slope},
)
def _multi_margin_loss(input: T, target: T, weight: TO = None, *, p: int = 1, margin: S = 1.0, reduction: str = "mean"):
    """(N, C), (N,): the mean over classes of max(0, margin - x[t] + x[c]) ** p for c != t."""
    x, t = (input.reshape(1, -1), target.reshape(1)) if input.ndim <= 1 else (input, target.reshape(-1))
    hinge, counts, w = _margins(x, t, weight, p, margin)
    loss = jnp.where(counts, (hinge * hinge if p == 2 else hinge) * w, jnp.zeros((), x.dtype))
    loss = loss.sum(1) / jnp.asarray(x.shape[1], x.dtype)
    return loss.reshape(target.shape) if reduction == "none" else reduce(loss, reduction)


def check_multilabel_margin(input: Aval, target: Aval, reduction: str) -> None:
    if input.ndim > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: " + shape_text(input.shape)
        )
    if input.shape != target.shape:
        raise RuntimeError(
            f"inconsistent target size: {shape_text(target.shape)} for input of size: {shape_text(input.shape)}"
        )
    if target.dtype is not INT64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")


def _label_sets(x: Any, t: Any) -> tuple[Any, Any]:
    """(whether label position j is before the first -1, whether class c is among the labels)."""
    listed = jnp.cumprod((t >= 0).astype(jnp.int32), 1) > 0
    onehot = (lax.broadcasted_iota(t.dtype, (*t.shape, x.shape[1]), 2) == t[..., None]) & listed[..., None]
    return listed, onehot.any(1)


def _multilabel_hinges(x: Any, t: Any) -> tuple[Any, Any, Any]:
    listed, member = _label_sets(x, t)
    chosen = jnp.take_along_axis(x, jnp.where(listed, t, 0), 1)
    hinge = 1 - chosen[:, :, None] + x[:, None, :]  # (N, label, class)
    counts = listed[:, :, None] & ~member[:, None, :] & (hinge > 0)
    return hinge, counts, member


def _multilabel_slope(g, input, target, reduction):
    x, t = (a.reshape(-1, input.shape[-1] if input.ndim else 1) for a in (input, target))
    _, counts, _ = _multilabel_hinges(x, t)
    c = counts.astype(x.dtype) / jnp.asarray(x.shape[1], x.dtype)
    listed, _ = _label_sets(x, t)
    pulled = c.sum(2)  # per label
    onehot = lax.broadcasted_iota(t.dtype, (*t.shape, x.shape[1]), 2) == jnp.where(listed, t, 0)[..., None]
    d = c.sum(1) - (jnp.where(onehot, pulled[..., None], jnp.zeros((), x.dtype))).sum(1)
    scale = g.reshape(-1, 1) if reduction == "none" else g
    if reduction == "mean":
        scale = scale / jnp.asarray(x.shape[0], x.dtype)
    return (d * scale).reshape(input.shape)


@op(
    namespaces=(),
    method=False,
    out=False,
    promote=Promote.DEFAULT,
    promote_args=("input",),
    check=check_multilabel_margin,
    autocast="float32",
    grad_name="MultilabelMarginLossBackward0",
    vjp={"input": _multilabel_slope},
)
def _multilabel_margin_loss(input: T, target: T, *, reduction: str = "mean"):
    """(N, C), (N, C) of class numbers ended by -1: hinges between each label and each class that is no label."""
    x, t = (a.reshape(-1, input.shape[-1] if input.ndim else 1) for a in (input, target))
    hinge, counts, _ = _multilabel_hinges(x, t)
    loss = jnp.where(counts, hinge, jnp.zeros((), x.dtype)).sum((1, 2)) / jnp.asarray(x.shape[1], x.dtype)
    if reduction == "none":
        return loss.reshape(input.shape[:-1])
    return reduce(loss, reduction)


# -- connectionist temporal classification ----------------------------------------------------------------------


def _extended(targets: Any, blank: int) -> Any:
    """(N, S) -> (N, 2S + 1): labels with blanks between and around."""
    n, s = targets.shape
    out = jnp.full((n, 2 * s + 1), blank, targets.dtype)
    return out.at[:, 1::2].set(targets) if s else out


def _log_add(*values: Any) -> Any:
    top = values[0]
    for v in values[1:]:
        top = jnp.maximum(top, v)
    safe = jnp.where(jnp.isneginf(top), jnp.zeros((), top.dtype), top)
    total = sum(jnp.exp(v - safe) for v in values)
    return jnp.where(total == 0, jnp.asarray(-jnp.inf, top.dtype), safe + jnp.log(jnp.where(total == 0, 1, total)))


def _shift(x: Any, by: int) -> Any:
    """Columns moved right by `by`, -inf coming in (left for a negative count)."""
    low = jnp.asarray(-jnp.inf, x.dtype)
    return lax.pad(x, low, [(0, 0, 0), (by, -by, 0)])


def _ctc_alpha(carry: Any, step: tuple) -> tuple[Any, Any]:
    emit, running, skip = step
    low = jnp.asarray(-jnp.inf, carry.dtype)
    moved = _log_add(carry, _shift(carry, 1), jnp.where(skip, _shift(carry, 2), low)) + emit
    new = jnp.where(running[:, None], moved, carry)
    return new, new


def _ctc_forward(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int) -> tuple:
    """alpha (T, N, 2S + 1) and the log likelihood (N,)."""
    steps, n, _ = log_probs.shape
    labels = _extended(targets, blank)
    emits = jnp.take_along_axis(log_probs, jnp.broadcast_to(labels[None], (steps, *labels.shape)), 2)
    before = jnp.concatenate([jnp.full((n, 2), -1, labels.dtype), labels[:, :-2]], 1)[:, : labels.shape[1]]
    skip = (labels != blank) & (labels != before)
    low = jnp.asarray(-jnp.inf, log_probs.dtype)
    position = jnp.arange(labels.shape[1])[None]
    reachable = (position < 2) & (position < 2 * target_lengths[:, None] + 1)
    first = jnp.where(reachable, emits[0], low)
    running = jnp.arange(1, steps)[:, None] < input_lengths[None]
    skips = jnp.broadcast_to(skip[None], (steps - 1, *skip.shape))
    last, rest = lax.scan(_ctc_alpha, first, (emits[1:], running, skips))
    alpha = jnp.concatenate([first[None], rest], 0)
    end = 2 * target_lengths[:, None]
    a = jnp.take_along_axis(last, end, 1)[:, 0]
    b = jnp.take_along_axis(last, jnp.maximum(end - 1, 0), 1)[:, 0]
    likelihood = jnp.where(target_lengths == 0, a, _log_add(a, b))
    likelihood = jnp.where(input_lengths == 0, jnp.where(target_lengths == 0, jnp.zeros((), a.dtype), low), likelihood)
    return alpha, likelihood, labels, emits, skip


def _ctc_beta(carry: Any, step: tuple) -> tuple[Any, Any]:
    """One step back in time: carry holds beta at t + 1 (each including its own emission)."""
    emit, at_end, running, skip_next, start = step
    low = jnp.asarray(-jnp.inf, carry.dtype)
    moved = _log_add(carry, _shift(carry, -1), jnp.where(skip_next, _shift(carry, -2), low)) + emit
    new = jnp.where(at_end[:, None], start + emit, jnp.where(running[:, None], moved, carry))
    return new, new


def ctc_grad(g0, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """exp(log_probs) minus the posterior occupation of each class, per sequence, times its gradient."""
    steps, n, classes = log_probs.shape
    alpha, likelihood, labels, emits, skip = _ctc_forward(log_probs, targets, input_lengths, target_lengths, blank)
    low = jnp.asarray(-jnp.inf, log_probs.dtype)
    position = jnp.arange(labels.shape[1])[None]
    end = 2 * target_lengths[:, None]
    start = jnp.where((position == end) | (position == end - 1), jnp.zeros((), low.dtype), low)
    time = jnp.arange(steps)[:, None]
    at_end = time == input_lengths[None] - 1
    running = time < input_lengths[None] - 1
    skip_next = jnp.concatenate([skip[:, 2:], jnp.zeros((n, min(2, skip.shape[1])), bool)], 1)[:, : skip.shape[1]]
    spread = (steps, *labels.shape)
    _, beta = lax.scan(
        _ctc_beta,
        jnp.full(labels.shape, -jnp.inf, log_probs.dtype),
        (emits, at_end, running, jnp.broadcast_to(skip_next[None], spread), jnp.broadcast_to(start[None], spread)),
        reverse=True,
    )
    paths = alpha + beta  # both include the emission at t
    top = paths.max(2, keepdims=True)
    top = jnp.where(jnp.isneginf(top), jnp.zeros((), top.dtype), top)
    onehot = (labels[..., None] == jnp.arange(classes, dtype=labels.dtype)).astype(log_probs.dtype)  # (N, 2S + 1, C)
    mass = lax.dot_general(jnp.exp(paths - top), onehot, (((2,), (1,)), ((1,), (0,)))).transpose(1, 0, 2)
    occupied = jnp.exp(jnp.log(mass) + top - likelihood[None, :, None] - log_probs)
    d = jnp.exp(log_probs) - occupied
    d = jnp.where((time < input_lengths[None])[..., None], d, jnp.zeros((), d.dtype))
    if zero_infinity:
        d = jnp.where(jnp.isneginf(likelihood)[None, :, None], jnp.zeros((), d.dtype), d)
    return d * g0[None, :, None]


@op(
    namespaces=(),
    method=False,
    out=False,
    autocast="float32",
    grad_name=lambda zero_infinity, **_: "WhereBackward0" if zero_infinity else "CtcLossBackward0",
    vjp={
        "log_probs": lambda g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity: ctc_grad(
            g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
        )
    },
)
def _ctc_loss(
    log_probs: T, targets: T, input_lengths: T, target_lengths: T, *, blank: int = 0, zero_infinity: bool = False
):
    """(T, N, C), (N, S), (N,), (N,) -> (N,): the negative log likelihood per sequence. Targets are padded, lengths
    int64."""
    likelihood = _ctc_forward(log_probs, targets, input_lengths, target_lengths, blank)[1]
    loss = -likelihood
    return jnp.where(jnp.isinf(loss), jnp.zeros((), loss.dtype), loss) if zero_infinity else loss
