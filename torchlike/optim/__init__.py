"""torch.optim: optimizers, learning rate schedules and weight averaging."""

from torchlike.optim._adafactor import Adafactor as Adafactor
from torchlike.optim._muon import Muon as Muon
from torchlike.optim.adadelta import Adadelta as Adadelta
from torchlike.optim.adagrad import Adagrad as Adagrad
from torchlike.optim.adam import Adam as Adam
from torchlike.optim.adamax import Adamax as Adamax
from torchlike.optim.adamw import AdamW as AdamW
from torchlike.optim.asgd import ASGD as ASGD
from torchlike.optim.nadam import NAdam as NAdam
from torchlike.optim.optimizer import Optimizer as Optimizer
from torchlike.optim.radam import RAdam as RAdam
from torchlike.optim.rmsprop import RMSprop as RMSprop
from torchlike.optim.rprop import Rprop as Rprop
from torchlike.optim.sgd import SGD as SGD
from torchlike.optim.sparse_adam import SparseAdam as SparseAdam

from torchlike.optim import lr_scheduler as lr_scheduler  # isort: skip
