"""torch.ao.nn: quantized layers, which are not implemented."""

from torchlike.ao.nn import quantized as quantized
