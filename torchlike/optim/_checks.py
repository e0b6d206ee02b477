"""What the constructors of optimizers check, with PyTorch's messages."""

from typing import Any

from torchlike._src.tensor.tensor import TensorBase


def check_lr(lr: Any, message: str = "Invalid learning rate: {}") -> None:
    """ValueError unless lr >= 0 and, if it is a tensor, of one element."""
    if isinstance(lr, TensorBase) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(0.0 <= lr, message, lr)


def check(good: Any, message: str, *values: Any) -> None:
    """ValueError with the values in the message unless `good`."""
    if not good:
        raise ValueError(message.format(*values))


def check_betas(betas: Any) -> None:
    """ValueError unless both lie in [0, 1)."""
    for k in range(2):
        check(0.0 <= betas[k] < 1.0, f"Invalid beta parameter at index {k}: {{}}", betas[k])


def check_fused(fused: Any, foreach: Any, differentiable: Any) -> None:
    """RuntimeError for implementations that exclude each other."""
    if fused:
        if differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def has_decay(weight_decay: Any) -> bool:
    """Whether a weight decay changes anything; a tensor is not read to find out."""
    return True if isinstance(weight_decay, TensorBase) else weight_decay != 0
