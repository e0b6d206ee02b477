"""torch.autograd: gradients."""

from torchlike._src.autograd.shown import SavedTensor
from torchlike._src.autograd.tape import Node
from torchlike._src.tensor.backward import backward, grad
from torchlike._src.tensor.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from torchlike.autograd import anomaly_mode, forward_ad, function, functional, grad_mode, graph, profiler
from torchlike.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from torchlike.autograd.function import Function, NestedIOFunction
from torchlike.autograd.grad_mode import (
    enforce_grad_layout_policy,
    is_multithreading_enabled,
    is_view_replay_enabled,
    set_multithreading_enabled,
)
from torchlike.autograd.gradcheck import gradcheck, gradgradcheck
from torchlike.autograd.variable import Variable, variable

__all__ = [
    "Function",
    "NestedIOFunction",
    "Node",
    "SavedTensor",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
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
    "is_view_replay_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "variable",
]
