"""torch.storage: what lies behind a tensor."""

import torchlike as torch

__all__ = ["TypedStorage", "UntypedStorage"]

TypedStorage, UntypedStorage = torch.TypedStorage, torch.UntypedStorage
