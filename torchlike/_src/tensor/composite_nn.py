"""Normalisation, attention, dropout and tensor contractions over tensors: what chooses between operators, updates
running statistics or reads an equation."""

import math
from typing import Any

from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.ops.declare import OPS
from torchlike._src.tensor.call import apply
from torchlike._src.tensor.composite import NN, internal, public
from torchlike._src.tensor.namespace import F, torch
from torchlike._src.tensor.publish import TENSOR_TYPES, static_argument
from torchlike._src.tensor.random import keep_mask, memory_order
from torchlike._src.tensor.tensor import TensorBase

# -- normalisation --------------------------------------------------------------------------------------------


def _update(running: Any, momentum: float, value: Any) -> None:
    running.copy_(running * (1 - momentum) + value.to(running.dtype) * momentum)


def _update_running(running_mean: Any, running_var: Any, momentum: float, mean: Any, var: Any, count: int) -> None:
    """Exponential averages of the batch's mean and unbiased variance."""
    with torch.no_grad():
        if running_mean is not None:
            _update(running_mean, momentum, mean)
        if running_var is not None:
            _update(running_var, momentum, var * (count / (count - 1)) if count > 1 else var * float("inf") * 0.0)


def _half_statistics(input: Any, *parameters: Any) -> bool:
    """Whether PyTorch keeps the statistics in a half type: the input's, unless there are float32 parameters."""
    return input.dtype.itemsize == 2 and all(p is None or p.dtype == input.dtype for p in parameters)


def _batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float
) -> tuple:
    shape = input._aval.shape
    channels = shape[1] if len(shape) > 1 else 0
    for name, t in (("running_mean", running_mean), ("running_var", running_var)):
        if t is None:
            if not training:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif t._aval.numel != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel()}")
    if training and not eps > 0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {float(eps)}")
    if not eps >= 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {float(eps)}")
    if shape == (0,):
        return input.clone(), torch.empty(0, dtype=input.dtype), torch.empty(0, dtype=input.dtype)
    if not training:
        return (internal.batch_norm_eval(input, weight, bias, running_mean, running_var, eps=float(eps)),)
    rounded = _half_statistics(input, weight, bias, running_mean, running_var)
    out, mean, invstd, var = internal.batch_norm_train(input, weight, bias, eps=float(eps), rounded=rounded)
    if (running_mean is not None or running_var is not None) and input.numel():
        _update_running(running_mean, running_var, momentum, mean, var, input.numel() // max(channels, 1))
    return out, mean, invstd


@public(NN)
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """(N, C, ...) normalised per channel: by the batch's statistics in training (which update running_mean and
    running_var in place), by the running ones otherwise. Raises ValueError for one value per channel in training."""
    if training:
        count = math.prod((input.shape[0], *input.shape[2:])) if input.dim() else 1
        if count == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    elif TENSOR_TYPES.issuperset(map(type, operands := (input, weight, bias, running_mean, running_var))):
        shape = input._aval.shape
        if len(shape) > 1 and running_mean._aval.numel == shape[1] == running_var._aval.numel and eps >= 0:
            return apply(BATCH_NORM_EVAL, (static_argument(float(eps)), ALL_GIVEN), operands)
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


BATCH_NORM_EVAL = OPS["_batch_norm_eval"]
ALL_GIVEN = (-1,) * 5


@public("torch", name="batch_norm")
def _torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@public("torch")
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """(out, mean, 1/std); the statistics are empty outside training."""
    found = _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if training:
        out, mean, invstd = found
        return out, *_stats_like(input, weight, mean.detach(), invstd.detach())
    empty = torch.empty(0, dtype=input.dtype, device=input.device)
    return found[0], empty, empty.clone()


def _stats_like(input: Any, weight: Any, *stats: Any) -> list:
    """Statistics in the parameters' dtype, or the input's: half only if everything is."""
    dtype = input.dtype if weight is None else weight.dtype
    return [s if s.dtype == dtype else s.to(dtype) for s in stats]


@public("torch")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(normalised over the last dims, mean, 1/std); the statistics keep dims of 1."""
    out, mean, rstd = internal.native_layer_norm(input, tuple(normalized_shape), weight, bias, float(eps))
    return out, *_stats_like(input, weight, mean.detach(), rstd.detach())


@public("torch")
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(out, mean, 1/std), statistics of shape (N, groups)."""
    out, mean, rstd = internal.group_norm(input.reshape(N, C, HxW), weight, bias, num_groups=int(group), eps=float(eps))
    return out.reshape(input.shape), *_stats_like(input, weight, mean, rstd)


@public(NN)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(..., *normalized_shape) normalised over the last dims, times weight, plus bias."""
    if not isinstance(normalized_shape, (tuple, list)):
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
            f"{type(normalized_shape).__name__}"
        )
    return internal.native_layer_norm(input, tuple(normalized_shape), weight, bias, float(eps))[0]


@public("torch", name="layer_norm")
def _torch_layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    return layer_norm(input, normalized_shape, weight, bias, eps)


@public(NN)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """(N, C, ...) normalised per sample and group of channels."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    sizes = [input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]]
    if math.prod((sizes[0], *sizes[2:])) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.size())}")
    return internal.group_norm(input, weight, bias, num_groups=int(num_groups), eps=float(eps))[0]


@public("torch", name="group_norm")
def _torch_group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    return internal.group_norm(input, weight, bias, num_groups=int(num_groups), eps=float(eps))[0]


def _instance_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Any:
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return internal.batch_norm_eval(input, weight, bias, running_mean, running_var, eps=float(eps))
    rounded = _half_statistics(input, weight, bias, running_mean, running_var)
    out, mean, _, var = internal.instance_norm(input, weight, bias, eps=float(eps), rounded=rounded)
    if running_mean is not None or running_var is not None:
        count = math.prod(input.shape[2:])
        _update_running(running_mean, running_var, momentum, mean.mean(0), var.mean(0), count)
    return out


@public(NN)
def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    """(N, C, ...) normalised per sample and channel."""
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


@public("torch", name="instance_norm")
def _torch_instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


@public(NN)
def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """(N, C, ...): input / (k + alpha * mean of squares over `size` neighbouring channels) ** beta."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    div = input.mul(input)
    if dim == 3:
        div = F.pad(div.unsqueeze(1), (0, 0, size // 2, (size - 1) // 2))
        div = F.avg_pool2d(div, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        div = div.view(sizes[0], 1, sizes[1], sizes[2], -1)
        div = F.pad(div, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        div = F.avg_pool3d(div, (size, 1, 1), stride=1).squeeze(1).view(sizes)
    return input / div.mul(alpha).add(k).pow(beta)


@public(NN)
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input / max(p-norm along dim, eps)."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else torch.div(input, denominator, out=out)


# -- attention ------------------------------------------------------------------------------------------------


@public(NN)
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """(..., L, E), (..., S, E), (..., S, Ev) -> (..., L, Ev): softmax(query @ key.T * scale + mask) @ value.

    A bool mask keeps where True. `is_causal` masks keys after the query's position. `enable_gqa` lets several query
    heads share a key and value head. scale defaults to 1 / sqrt(E)."""
    if dropout_p != 0.0:
        _check_dropout_p(dropout_p, query.dim() == 4 and attn_mask is None)
    if dropout_p > 0.0 and query.dtype.itemsize == 2:  # PyTorch's path with dropout works in float32
        if attn_mask is not None and attn_mask.dtype != torch.bool:
            attn_mask = attn_mask.float()
        q, k, v = query.float(), key.float(), value.float()
        return scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale, enable_gqa).to(query.dtype)
    keep = None
    if dropout_p > 0.0:
        batch = query.shape[:-2] if enable_gqa else broadcast_shapes(tuple(query.shape[:-2]), tuple(key.shape[:-2]))
        shape = (*batch, query.shape[-2], key.shape[-2])
        keep = _keep_mask(shape, query, dropout_p) if dropout_p < 1.0 else query.new_zeros(shape, dtype=torch.bool)
    out = internal.attention(
        query,
        key,
        value,
        attn_mask,
        keep,
        dropout_p=float(dropout_p),
        is_causal=bool(is_causal),
        scale=None if scale is None else float(scale),
        enable_gqa=bool(enable_gqa),
    )
    return out[0]


def _check_dropout_p(p: float, fused: bool) -> None:
    """PyTorch's errors of attention; its fused kernel finds every probability but 0 too large."""
    if p < 0.0 and fused:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    if p > 1.0 or p != p:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


# -- dropout --------------------------------------------------------------------------------------------------


def _keep_mask(shape: Any, like: Any, p: float) -> Any:
    """True where kept: the draws that PyTorch's kernel makes for this shape and dtype."""
    return keep_mask(tuple(shape), like, p)


def _keep_elements(input: Any, p: float) -> Any:
    """True where kept, for each element, drawn in the order in which the elements lie in memory."""
    order = memory_order(input)
    if order is None or len(order) != input.dim():
        return _keep_mask(input.shape, input, p)
    keep = _keep_mask(tuple([input.shape[k] for k in order]), input, p)
    return keep.permute(sorted(range(len(order)), key=order.__getitem__))


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _feature_shape(input: Any) -> tuple[int, ...]:
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (input.shape[0], input.shape[1], *[1] * (input.dim() - 2))


def _drop(input: Any, p: float, train: bool, feature: bool, alpha: bool) -> Any:
    """The dropout of any kind, out of place."""
    if type(train) is not bool or not isinstance(input, TensorBase):
        _refuse(input, train, feature, alpha)
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or input.numel() == 0:
        return input
    if p == 1:
        return input.mul(torch.zeros((), dtype=input.dtype, device=input.device))
    keep = _keep_mask(_feature_shape(input), input, p) if feature else _keep_elements(input, p)
    apply = internal.alpha_dropout_apply if alpha else internal.dropout_apply
    return apply(input, keep, p=float(p))


def _refuse(input: Any, train: Any, feature: bool, alpha: bool) -> None:
    name = "feature_" * feature + "alpha_" * alpha + "dropout"
    if not isinstance(input, torch.Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if not hasattr(type(train), "dtype"):  # NumPy's bool is one
        raise TypeError(f"{name}(): argument 'train' (position 3) must be bool, not {type(train).__name__}")


def _drop_(input: Any, p: float, train: bool, feature: bool, alpha: bool) -> Any:
    new = _drop(input, p, train, feature, alpha)
    return input if new is input else input.copy_(new)


def _dropout_functions(name: str, feature: bool, alpha: bool) -> None:
    def function(input, p, train):
        return _drop(input, p, train, feature, alpha)

    def in_place(input, p, train):
        return _drop_(input, p, train, feature, alpha)

    function.__name__ = function.__qualname__ = name
    in_place.__name__ = in_place.__qualname__ = name + "_"
    function.__doc__ = f"{name.replace('_', ' ')} with probability p, if train."
    in_place.__doc__ = f"In-place version of {name}."
    public("torch")(function)
    public("torch")(in_place)


for _name, _feature, _alpha in (
    ("dropout", False, False), ("feature_dropout", True, False), ("alpha_dropout", False, True),
    ("feature_alpha_dropout", True, True),
):  # fmt: skip
    _dropout_functions(_name, _feature, _alpha)


@public("torch")
def native_dropout(input, p, train):
    """(dropped out, mask): the mask is True where kept."""
    if input.numel() == 0:
        return input, torch.empty_like(input)  # a mask of the input's dtype, as in PyTorch
    if train is False:
        return input.clone(), torch.ones(input.shape, dtype=torch.bool, device=input.device)
    keep = _keep_elements(input, p)  # also for p = 1, unlike dropout
    return internal.dropout_apply(input, keep, p=float(p)), keep


@public(NN)
def dropout(input, p=0.5, training=True, inplace=False):
    """Zeroes elements with probability p in training and scales the rest by 1 / (1 - p)."""
    _check_p(p)
    return (_drop_ if inplace else _drop)(input, p, training, False, False)


@public(NN)
def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps the mean and variance of SELU's activations."""
    _check_p(p)
    return (_drop_ if inplace else _drop)(input, p, training, False, True)


@public(NN)
def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    _check_p(p)
    return (_drop_ if inplace else _drop)(input, p, training, True, True)


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, stacklevel=3)


def _channel_dropout(input: Any, p: float, training: bool, inplace: bool) -> Any:
    return (_drop_ if inplace else _drop)(input, p, training, True, False)


@public(NN)
def dropout1d(input, p=0.5, training=True, inplace=False):
    """(N, C, L) or (C, L): zeroes whole channels with probability p."""
    _check_p(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists "
            "to provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _unbatched_dropout(input, 3, p, training, inplace)


def _unbatched_dropout(input: Any, batched: int, p: float, training: bool, inplace: bool) -> Any:
    """Channel dropout of a tensor that has `batched` dims, or else lacks the batch's."""
    if input.dim() == batched:
        return _channel_dropout(input, p, training, inplace)
    if inplace:
        return _channel_dropout(input.unsqueeze_(0), p, training, True).squeeze_(0)
    return _channel_dropout(input.unsqueeze(0), p, training, False).squeeze(0)


@public(NN)
def dropout2d(input, p=0.5, training=True, inplace=False):
    """(N, C, H, W): zeroes whole channels with probability p."""
    _check_p(p)
    if input.dim() not in (3, 4):
        _warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 3D or 4D inputs)."
        )
    if input.dim() == 3:
        _warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
        )
    return _channel_dropout(input, p, training, inplace)


@public(NN)
def dropout3d(input, p=0.5, training=True, inplace=False):
    """(N, C, D, H, W) or (C, D, H, W): zeroes whole channels with probability p."""
    _check_p(p)
    if input.dim() not in (4, 5):
        _warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead. "
            "Note that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial dimensions, a channel "
            "dimension, and an optional batch dimension (i.e. 4D or 5D inputs)."
        )
    return _unbatched_dropout(input, 5, p, training, inplace)
