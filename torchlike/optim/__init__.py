"""torch.optim: optimizers, learning rate schedules and weight averaging."""

from torchlike.optim._adafactor import Adafactor as Adafactor
from torchlike.optim._muon import Muon as Muon
from torchlike.optim._stateless import swap_in_optimizer_params_and_state as swap_in_optimizer_params_and_state
from torchlike.optim.adadelta import Adadelta as Adadelta
from torchlike.optim.adagrad import Adagrad as Adagrad
from torchlike.optim.adam import Adam as Adam
from torchlike.optim.adamax import Adamax as Adamax
from torchlike.optim.adamw import AdamW as AdamW
from torchlike.optim.asgd import ASGD as ASGD
from torchlike.optim.lbfgs import LBFGS as LBFGS
from torchlike.optim.nadam import NAdam as NAdam
from torchlike.optim.optimizer import Optimizer as Optimizer
from torchlike.optim.radam import RAdam as RAdam
from torchlike.optim.rmsprop import RMSprop as RMSprop
from torchlike.optim.rprop import Rprop as Rprop
from torchlike.optim.sgd import SGD as SGD
from torchlike.optim.sparse_adam import SparseAdam as SparseAdam

from torchlike.optim import lr_scheduler as lr_scheduler  # isort: skip
from torchlike.optim import swa_utils as swa_utils  # isort: skip

for _class in (Adafactor, Muon):
    _class.__module__ = __name__  # their files are private, as in PyTorch

# In PyTorch the modules of single optimizers are no attributes of torch.optim; they are imported by their path.
for (
    _name
) in "adadelta adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop rprop sgd sparse_adam".split():
    del globals()[_name]
del _class, _name

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]
