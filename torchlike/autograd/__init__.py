"""torch.autograd: gradients."""

from torchlike._src.autograd.tape import Node
from torchlike._src.tensor.backward import backward, grad
from torchlike._src.tensor.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchlike._src.tensor.tensor import Tensor as Variable
from torchlike.autograd import anomaly_mode, forward_ad, function, functional, grad_mode, graph, profiler, variable
from torchlike.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchlike.autograd.function import Function, NestedIOFunction
from torchlike.autograd.grad_mode import is_multithreading_enabled, set_multithreading_enabled
from torchlike.autograd.gradcheck import gradcheck, gradgradcheck

__all__ = [
    "Function",
    "NestedIOFunction",
    "Node",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]
