"""`torch.nn`: modules, parameters, functional layers."""

from torchlike.nn.parameter import (  # isort: skip
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)
from torchlike.nn import functional, init, modules
from torchlike.nn import utils
from torchlike.nn.modules import *
from torchlike.nn.utils.memory_format import factory_kwargs
