"""torch.fx.experimental.proxy_tensor: nothing is traced."""

from typing import Any

from torchlike._src.core.absent import absent as _absent

globals().update(_absent(__name__, ["ProxyTorchDispatchMode", "make_fx"]))


def get_proxy_mode() -> Any:
    """None."""
