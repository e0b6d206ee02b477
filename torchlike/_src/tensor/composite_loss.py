"""Loss functions over tensors, put together as PyTorch puts them together, so that their graphs look alike."""

import math
import warnings
from typing import Any

import numpy as np

from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.ops.declare import OPS
from torchlike._src.tensor.composite import (
    NN,
    check_reduction,
    internal,
    known_array,
    legacy_reduction,
    not_differentiable,
    public,
)
from torchlike._src.tensor.creation import from_array
from torchlike._src.tensor.functions import known as known_values
from torchlike._src.tensor.namespace import F, torch
from torchlike._src.tensor.tensor import Tensor

SIZE_WARNING = (
    "Using a target size ({}) that is different to the input size ({}). This will likely lead to incorrect results due "
    "to broadcasting. Please ensure they have the same size."
)


def _apply_reduction(loss: Any, reduction: str) -> Any:
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


def _warn_sizes(input: Any, target: Any) -> None:
    if target.shape != input.shape:
        warnings.warn(SIZE_WARNING.format(target.size(), input.size()), stacklevel=3)


def _weighted(loss: Any, weight: Any, input: Any, reduction: str) -> Any:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return torch.sum(loss)
    if reduction == "mean":
        return torch.sum(loss) / torch.sum(weight)
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


@public(NN)
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean (or sum, or each) of (input - target) ** 2, weighted by `weight` of the input's size."""
    _warn_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if weight is not None:
        a, b = torch.broadcast_tensors(input, target)
        return _weighted(torch.pow(a - b, 2), weight, input, reduction)
    return internal.mse_loss(input, target, reduction=check_reduction(reduction))


@public(NN)
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """The mean (or sum, or each) of |input - target|."""
    _warn_sizes(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if weight is not None:
        a, b = torch.broadcast_tensors(input, target)
        return _weighted(torch.abs(a - b), weight, input, reduction)
    return _apply_reduction((input - target).abs(), check_reduction(reduction))


@public(NN)
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Quadratic where |input - target| < beta, linear beyond; beta 0 is l1_loss."""
    _warn_sizes(input, target)
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if beta == 0.0:
        return l1_loss(*torch.broadcast_tensors(input, target), reduction=reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return internal.smooth_l1_loss(input, target, beta=beta, reduction=reduction)


@public(NN)
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Quadratic where |input - target| <= delta, delta * (|d| - delta / 2) beyond."""
    _warn_sizes(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is None:
        return internal.huber_loss(input, target, delta=delta, reduction=check_reduction(reduction))
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = internal.huber_loss(input, target, delta=delta, reduction="none") * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return torch.sum(loss)
    if reduction == "mean":
        return loss.mean()
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


# -- classes --------------------------------------------------------------------------------------------------


@public(NN)
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """(N, C, ...) log-probabilities, (N, ...) class numbers: -weight[t] * input[t]; the mean is over the weights.

    Raises ValueError for other batch sizes, RuntimeError for other target shapes and dtypes, IndexError for a class
    number out of range, when results are read if it is still to be computed."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    not_differentiable("nll_loss_forward" if input.dim() <= 2 else "nll_loss2d_forward", "weight", weight)
    if known(target) is not None and input.dim():
        _check_operands("_nll_loss", input, target, weight, ignore_index=ignore_index, reduction=reduction)
        _check_classes(target, input.shape[0 if input.dim() == 1 else 1], ignore_index)
    return internal.nll_loss(input, target, weight, ignore_index=int(ignore_index), reduction=reduction)[0]


def known(t: Any) -> Any:
    """A tensor's values if they are at hand, else None."""
    return known_values(t) if isinstance(t, Tensor) else None


def _check_operands(name: str, *tensors: Any, **statics: Any) -> None:
    """What an operator's own check finds, before values are looked at: an operation that is going to fail must not be
    recorded."""
    check = OPS[name].check
    if check is not None:
        check(*[None if t is None else t._aval for t in tensors], **statics)


def _check_classes(target: Any, classes: int, ignore_index: int) -> None:
    """PyTorch's error for a class number out of range, where the numbers are at hand."""
    values = known(target)
    if values is None or not values.size or (values.min() >= 0 and values.max() < classes):
        return
    bad = values[((values < 0) | (values >= classes)) & (values != ignore_index)]
    if bad.size:
        raise IndexError(f"Target {int(bad.flat[0])} is out of bounds.")


@public(NN)
def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """(N, C, ...) scores against class numbers (N, ...) or class probabilities (N, C, ...)."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if input.shape == target.shape:
        return _cross_entropy_probabilities(input, target, weight, reduction, label_smoothing, ignore_index)
    log_probs = torch.log_softmax(input, 0 if input.dim() == 1 else 1)
    if label_smoothing > 0.0:
        return _cross_entropy_smoothed(log_probs, target, weight, reduction, ignore_index, label_smoothing)
    return nll_loss(log_probs, target, weight, ignore_index=ignore_index, reduction=reduction)


def _class_shape(input: Any) -> tuple[list[int], int, int]:
    """(a shape to broadcast class weights with, number of classes, the class dim)."""
    dim = 0 if input.dim() == 1 else 1
    shape = [1] * input.dim()
    shape[dim] = input.shape[dim]
    return shape, input.shape[dim], dim


def _cross_entropy_probabilities(
    input: Any, target: Any, weight: Any, reduction: str, label_smoothing: float, ignore_index: int
) -> Any:
    shape, classes, dim = _class_shape(input)
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.scalar_name}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )
    log_probs = torch.log_softmax(input, dim)
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    product = log_probs * target if weight is None else log_probs * target * weight.view(shape)
    if reduction == "mean":
        return -product.sum() / (input.numel() // classes if input.numel() else 0.0)
    return -(product.sum() if reduction == "sum" else product.sum(dim))


def _cross_entropy_smoothed(
    log_probs: Any, target: Any, weight: Any, reduction: str, ignore_index: int, label_smoothing: float
) -> Any:
    shape, classes, dim = _class_shape(log_probs)
    hard = nll_loss(log_probs, target, weight, ignore_index=ignore_index, reduction=reduction)
    smooth = -(log_probs if weight is None else log_probs * weight.view(shape)).sum(dim)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored.reshape(smooth.shape), 0.0)
    if reduction == "mean":
        kept = ignored.logical_not()
        if weight is None:
            smooth = smooth.sum() / kept.sum()
        else:
            total = weight.gather(0, target.masked_fill(ignored, 0).flatten()).masked_fill(ignored.flatten(), 0.0).sum()
            smooth = smooth.sum() / total
    elif reduction == "sum":
        smooth = smooth.sum()
    return (1 - label_smoothing) * hard + smooth * (label_smoothing / classes)


@public(NN)
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(t * log(x) + (1 - t) * log(1 - x)), the logarithms not below -100. RuntimeError for values outside [0, 1], when
    results are read if they are still to be computed."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(torch.broadcast_shapes(tuple(target.shape), tuple(weight.shape)))
        not_differentiable("binary_cross_entropy", "weight", weight)
    _check_operands("_binary_cross_entropy", input, target, weight, reduction=reduction)
    for name, values in (("input", known(input)), ("target", known(target))):
        if values is not None and values.size and not (values.min() >= 0 and values.max() <= 1):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    return internal.binary_cross_entropy(input, target, weight, reduction=reduction)


@public(NN)
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Binary cross entropy of sigmoid(input); `pos_weight` weighs the positive class."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    not_differentiable("binary_cross_entropy_with_logits", "weight", weight)
    not_differentiable("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    if input.dtype.itemsize == 2 and input.dtype.is_floating_point:  # PyTorch rounds to the half type at each step
        minus_log = F.logsigmoid(input)
        if pos_weight is not None:
            minus_log = minus_log * ((pos_weight - 1) * target + 1)
        loss = (1 - target) * input - minus_log
        return _apply_reduction(loss if weight is None else loss * weight, reduction)
    return internal.bce_with_logits(input, target, weight, pos_weight, reduction=reduction)


def _code(reduction: int) -> str:
    return ("none", "mean", "sum")[reduction]


@public("torch", name="binary_cross_entropy_with_logits")
def _torch_bce_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    return binary_cross_entropy_with_logits(input, target, weight, reduction=_code(reduction), pos_weight=pos_weight)


# -- distributions --------------------------------------------------------------------------------------------


@public(NN)
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input): input holds log-probabilities; `log_target` says that target does too."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    inner = "sum" if reduction == "batchmean" else check_reduction(reduction)
    loss = target.exp() * (target - input) if log_target else torch.xlogy(target, target) - target * input
    loss = _apply_reduction(loss, inner)
    return loss / input.shape[0] if reduction == "batchmean" and input.dim() != 0 else loss


@public("torch", name="kl_div")
def _torch_kl_div(input, target, reduction=1, *, log_target=False):
    loss = target.exp() * (target - input) if log_target else torch.xlogy(target, target) - target * input
    return _apply_reduction(loss, _code(reduction))


@public(NN)
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """exp(input) - target * input (log_input), or input - target * log(input + eps); `full` adds Stirling's term."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _poisson(input, target, log_input, full, eps, reduction)


def _poisson(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: str) -> Any:
    loss = torch.exp(input) - target * input if log_input else input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + 0.5 * torch.log(2 * math.pi * target)
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _apply_reduction(loss, reduction)


@public("torch", name="poisson_nll_loss")
def _torch_poisson_nll_loss(input, target, log_input, full, eps, reduction):
    return _poisson(input, target, log_input, full, eps, _code(reduction))


@public(NN)
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """0.5 * (log(var) + (input - target) ** 2 / var), var clamped at eps; `full` adds the constant.

    Raises ValueError for a negative variance (which reads its values) and for a var of another size."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * torch.ones_like(input)
    elif bool(torch.any(var < 0)):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = torch.unsqueeze(var, -1)
        elif not (
            input.dim() == var.dim() and sum(b for a, b in zip(input.shape, var.shape, strict=True) if a != b) == 1
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _apply_reduction(loss, reduction)


# -- margins --------------------------------------------------------------------------------------------------


def _hinge_embedding(input: Any, target: Any, margin: float, reduction: str) -> Any:
    zeros = torch.zeros_like(input)
    margin_part = torch.where(target == 1, zeros, (margin - input).clamp_min(0))
    self_part = torch.where(target == -1, torch.zeros_like(input), input)
    return _apply_reduction(margin_part + self_part, reduction)


@public(NN)
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    return _hinge_embedding(input, target, margin, reduction)


@public("torch", name="hinge_embedding_loss")
def _torch_hinge_embedding_loss(input, target, margin=1.0, reduction=1):
    return _hinge_embedding(input, target, margin, _code(reduction))


def _margin_ranking(input1: Any, input2: Any, target: Any, margin: float, reduction: str) -> Any:
    return _apply_reduction((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@public(NN)
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target * (input1 - input2) + margin)."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _margin_ranking(input1, input2, target, margin, reduction)


@public("torch", name="margin_ranking_loss")
def _torch_margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    return _margin_ranking(input1, input2, target, margin, _code(reduction))


@public(NN)
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target * input)) for targets of 1 and -1."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    broadcast_shapes(tuple(input.shape), tuple(target.shape))
    return internal.soft_margin_loss(input, target, reduction=reduction)


@public(NN)
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over other classes of max(0, margin - x[target] + x[class]) ** p."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    not_differentiable("multi_margin_loss", "weight", weight)
    values = known(target)
    if values is not None:
        _check_operands("_multi_margin_loss", input, target, weight, p=int(p), margin=float, reduction=reduction)
    if (
        values is not None
        and values.size
        and not (values.min() >= 0 and values.max() < (input.shape[-1] if input.dim() else 1))
    ):
        raise RuntimeError("target out of range")
    return internal.multi_margin_loss(input, target, weight, p=int(p), margin=margin, reduction=reduction)


@public(NN)
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Hinges between each label and each other class; `target` lists class numbers, ended by -1."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    values = known(target)
    if values is not None:
        _check_operands("_multilabel_margin_loss", input, target, reduction=reduction)
    if (
        values is not None
        and values.size
        and not (values.min() >= -1 and values.max() < (input.shape[-1] if input.dim() else 1))
    ):
        raise RuntimeError("argument #2 'target' is out of range")
    return internal.multilabel_margin_loss(input, target, reduction=reduction)


@public(NN)
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes of binary cross entropy with logits."""
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.dim() - 1) / input.shape[input.dim() - 1]
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _apply_reduction(loss, reduction)


# -- distances ------------------------------------------------------------------------------------------------


def _triplet(
    anchor: Any, positive: Any, negative: Any, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> Any:
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    near = torch.pairwise_distance(anchor, positive, p, eps)
    far = torch.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.min(far, torch.pairwise_distance(positive, negative, p, eps))
    return _apply_reduction(torch.clamp_min(margin + near - far, 0), reduction)


@public(NN)
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) with p-norm distances over the last dim."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _triplet(anchor, positive, negative, margin, p, eps, swap, reduction)


@public("torch", name="triplet_margin_loss")
def _torch_triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    return _triplet(anchor, positive, negative, margin, p, eps, swap, _code(reduction))


@public(NN)
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss with any distance function (default: pairwise_distance)."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = (anchor.dim(), positive.dim(), negative.dim())
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = distance_function or torch.pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = torch.minimum(far, distance(positive, negative))
    return _apply_reduction(torch.clamp_min(margin + near - far, 0), reduction)


def _cosine_embedding(input1: Any, input2: Any, target: Any, margin: float, reduction: str) -> Any:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            "1D target tensor expects 2D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    if target.dim() == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            "0D target tensor expects 1D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.dim()
    eps = 1e-12
    product = (input1 * input2).sum(dim)
    norm1, norm2 = (input1 * input1).sum(dim) + eps, (input2 * input2).sum(dim) + eps
    cosine = product / (norm1 * norm2).sqrt()
    zeros = torch.zeros_like(cosine)
    near = torch.where(target == 1, 1 - cosine, zeros)
    far = torch.where(target == -1, (cosine - margin).clamp_min(0), zeros)
    return _apply_reduction(near + far, reduction)


@public(NN)
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    return _cosine_embedding(input1, input2, target, margin, reduction)


@public("torch", name="cosine_embedding_loss")
def _torch_cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    return _cosine_embedding(input1, input2, target, margin, _code(reduction))


# -- connectionist temporal classification --------------------------------------------------------------------


def _length_list(lengths: Any) -> list[int]:
    return lengths.tolist() if hasattr(lengths, "tolist") else [int(n) for n in lengths]


def _padded_targets(targets: Any, lengths: list[int]) -> Any:
    """Targets given as one row for the whole batch, as a padded (N, S)."""
    longest = max(lengths, default=0)
    array = known_array(targets)
    if array is not None:  # of few widths: the lengths differ from batch to batch, and each width is one more program
        padded = np.zeros((len(lengths), -(-longest // 8) * 8), array.dtype)
        padded[np.arange(padded.shape[1]) < np.array(lengths, np.int64).reshape(-1, 1)] = array
        return from_array(padded)
    rows, start = [], 0
    for n in lengths:
        rows.append(F.pad(targets[start : start + n], (0, longest - n)))
        start += n
    return torch.stack(rows)


def _ctc(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str, zero: bool
) -> Any:
    batched = log_probs.dim() == 3
    probs = log_probs if batched else log_probs.unsqueeze(1)
    steps, batch, classes = probs.shape
    ins, outs = (
        _length_list(v) if hasattr(v, "__len__") or getattr(v, "ndim", 0) > 0 else v
        for v in (input_lengths, target_lengths)
    )
    ins = [int(input_lengths)] if not isinstance(ins, list) else ins
    outs = [int(target_lengths)] if not isinstance(outs, list) else outs
    _check_ctc(steps, batch, classes, targets, ins, outs, blank, batched)
    if not batched and targets.dim() == 1:
        targets = targets.unsqueeze(0)
    elif targets.dim() == 1:
        targets = _padded_targets(targets, outs)
    loss = internal.ctc_loss(
        probs,
        targets.long(),
        torch.tensor(ins, dtype=torch.int64),
        torch.tensor(outs, dtype=torch.int64),
        blank=blank,
        zero_infinity=bool(zero),
    )
    if reduction == "mean":
        return (loss / torch.tensor(outs, dtype=loss.dtype).clamp_min(1)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss if batched else loss.squeeze(0)


def _check_ctc(
    steps: int, batch: int, classes: int, targets: Any, ins: list[int], outs: list[int], blank: int, batched: bool
) -> None:
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if len(ins) != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(outs) != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    for n in outs:
        if n < 0:
            raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {n} {where}")
    for n in ins:
        if n < 0:
            raise RuntimeError(f"Expected input_lengths to have value at least 0, but got value {n} {where}")
        if n > steps:
            raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {n} {where}")
    longest = max(outs, default=0)
    if targets.dim() == 1 and batched:
        if targets.numel() != sum(outs):
            raise RuntimeError(
                f"Expected tensor to have size {sum(outs)} at dimension 0, but got size {targets.numel()} for "
                f"argument #2 'targets' {where}"
            )
    elif targets.dim() == 2 and targets.shape[1] < longest:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} for "
            f"argument #2 'targets' {where}"
        )


@public(NN)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """(T, N, C) log-probabilities, (N, S) or concatenated targets: the negative log likelihood over alignments; the
    mean divides each by its target's length first."""
    return _ctc(log_probs, targets, input_lengths, target_lengths, blank, check_reduction(reduction), zero_infinity)


@public("torch", name="ctc_loss")
def _torch_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    return _ctc(log_probs, targets, input_lengths, target_lengths, blank, _code(reduction), zero_infinity)


@public(NN)
def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    A linear_weight (C, d_1, ..., in) gives scores (N, C, d_1, ...). `options` say how PyTorch's kernel splits the batch
    to save memory: that does not change the result, and XLA plans the memory of the whole program, so that of them
    only `acc_dtype` matters here, the dtype to compute in."""
    if options is not None and options.acc_dtype is not None and options.acc_dtype != input.dtype:
        wide = [None if t is None else t.to(options.acc_dtype) for t in (input, linear_weight, linear_bias, weight)]
        classes = target.to(options.acc_dtype) if target.dtype.is_floating_point else target
        return linear_cross_entropy(
            wide[0], wide[1], classes, linear_bias=wide[2], weight=wide[3], reduction=reduction,
            ignore_index=ignore_index, label_smoothing=label_smoothing,
        ).to(input.dtype)  # fmt: skip
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_weight.dim() == 2:
        logits = F.linear(input, linear_weight, linear_bias)
    else:
        flat = linear_bias if linear_bias is None or linear_bias.dim() < 2 else linear_bias.reshape(-1)
        if flat is not None and flat.numel() != math.prod(linear_weight.shape[:-1]):
            flat = flat.view(-1, *[1] * (linear_weight.dim() - 2)).expand(linear_weight.shape[:-1]).reshape(-1)
        logits = F.linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), flat)
        logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    index = -100 if ignore_index is None else ignore_index
    return cross_entropy(
        logits, target, weight, ignore_index=index, reduction=reduction, label_smoothing=label_smoothing
    )
