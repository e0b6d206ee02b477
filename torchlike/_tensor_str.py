"""torch._tensor_str: how tensors print."""

from typing import Any

from torchlike._src.tensor.printing import PRINT_OPTS, contents, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]


def _tensor_str(self: Any, indent: int) -> str:
    """The elements of a tensor, in brackets, without the word around them."""
    return contents(self.detach().cpu().numpy(), indent)
