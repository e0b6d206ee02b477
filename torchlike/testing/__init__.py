"""torch.testing: comparing tensors, and making them."""

from torchlike.testing._comparison import assert_allclose, assert_close
from torchlike.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
