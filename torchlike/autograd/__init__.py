"""torch.autograd: gradients."""

from torchlike._src.autograd.tape import Node
from torchlike._src.tensor.backward import backward, grad
from torchlike._src.tensor.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchlike._src.tensor.tensor import Tensor as Variable
from torchlike.autograd import anomaly_mode, function, grad_mode, graph
from torchlike.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchlike.autograd.function import Function
from torchlike.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function", "Node", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "function", "grad", "grad_mode",
    "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
