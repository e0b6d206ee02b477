"""torch.quasirandom: not implemented."""

from torchlike._src.core.absent import absent as _absent

_NAMES = ["SobolEngine"]
__all__ = list(_NAMES)

globals().update(_absent(__name__, _NAMES))
