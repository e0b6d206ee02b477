"""torch.optim: optimizers, learning rate schedules and weight averaging."""

from torchlike.optim.adam import Adam as Adam
from torchlike.optim.adamw import AdamW as AdamW
from torchlike.optim.optimizer import Optimizer as Optimizer
from torchlike.optim.sgd import SGD as SGD

from torchlike.optim import lr_scheduler as lr_scheduler
