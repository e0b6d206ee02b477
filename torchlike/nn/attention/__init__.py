"""`torch.nn.attention`: which kernel attention runs on.

XLA chooses its own kernels, and all of them compute the same: a choice made here is kept and reported, no more."""

import contextlib
import enum
from collections.abc import Callable, Iterator
from typing import Any

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl",
    "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.IntEnum):
    """PyTorch's kernels of scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {int(self)}>"

    def __str__(self) -> str:
        return f"SDPBackend.{self.name}"


class _Chosen:
    backends: list[SDPBackend] = [
        SDPBackend.CUDNN_ATTENTION,
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
        SDPBackend.OVERRIDEABLE,
    ]


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The kernels that are allowed now."""
    return list(_Chosen.backends)


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Allow only these kernels within the context. AssertionError: neither an SDPBackend nor a list of them."""
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    before = _Chosen.backends
    _Chosen.backends = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    try:
        yield {}
    finally:
        _Chosen.backends = before


# -- PyTorch's registry of flash attention kernels for CUDA -----------------------------------------------------


def list_flash_attention_impls() -> list[str]:
    """The names of replaceable kernels: none, XLA chooses."""
    return []


def current_flash_attention_impl() -> str | None:
    """The kernel that was activated: none."""
    return None


def activate_flash_attention_impl(impl: str) -> None:
    """NotImplementedError: kernels are XLA's choice."""
    raise NotImplementedError("torchlike: torch.nn.attention.activate_flash_attention_impl")


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """NotImplementedError: kernels are XLA's choice."""
    raise NotImplementedError("torchlike: torch.nn.attention.register_flash_attention_impl")


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Undo an activation, of which there can be none."""
