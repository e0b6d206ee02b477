"""torch.utils._python_dispatch: operators are dispatched to nobody here; using its names raises."""

from torchlike._src.core.absent import absent as _absent

globals().update(_absent(__name__, ["BaseTorchDispatchMode", "TorchDispatchMode"]))
