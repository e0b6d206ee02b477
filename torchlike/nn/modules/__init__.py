"""The layers, by family."""

from typing import TYPE_CHECKING

from torchlike.nn.modules.module import Module  # isort: skip
from torchlike.nn.modules.activation import *
from torchlike.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss
from torchlike.nn.modules.batchnorm import *
from torchlike.nn.modules.channelshuffle import ChannelShuffle
from torchlike.nn.modules.container import *
from torchlike.nn.modules.conv import *
from torchlike.nn.modules.distance import *
from torchlike.nn.modules.dropout import *
from torchlike.nn.modules.flatten import *
from torchlike.nn.modules.fold import *
from torchlike.nn.modules.instancenorm import *
from torchlike.nn.modules.linear import *
from torchlike.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from torchlike.nn.modules.loss import *
from torchlike.nn.modules.normalization import *
from torchlike.nn.modules.padding import *
from torchlike.nn.modules.pixelshuffle import *
from torchlike.nn.modules.pooling import *
from torchlike.nn.modules.rnn import *
from torchlike.nn.modules.sparse import *
from torchlike.nn.modules.transformer import *
from torchlike.nn.modules.upsampling import *

if not TYPE_CHECKING:  # type checkers read the imports; of an `__all__` that is computed, nothing
    __all__ = sorted(name for name, value in list(globals().items()) if isinstance(value, type))
