from torchlike.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from torchlike.nn.modules import *
