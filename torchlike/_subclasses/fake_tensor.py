"""torch._subclasses.fake_tensor: there are no fake tensors."""

from typing import Any

from torchlike._src.core.absent import absent as _absent

globals().update(_absent(__name__, ["FakeTensor", "FakeTensorMode"], 'use the "meta" device'))


def is_fake(x: Any) -> bool:
    """False."""
    return False
