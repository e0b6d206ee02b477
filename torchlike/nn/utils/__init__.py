"""`torch.nn.utils`."""

from torchlike.nn.utils import rnn
from torchlike.nn.utils.clip_grad import _clip_grads_with_norm_ as clip_grads_with_norm_
from torchlike.nn.utils.clip_grad import _get_total_norm as get_total_norm
from torchlike.nn.utils.clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_
