"""torch._tensor: where PyTorch defines Tensor."""

import torchlike as torch

Tensor = torch.Tensor
