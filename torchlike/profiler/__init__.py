"""torch.profiler: profile a program, as a table or as a trace for chrome://tracing."""

from torchlike.autograd.profiler import KinetoStepTracker, record_function
from torchlike.autograd.profiler_util import DeviceType
from torchlike.profiler.profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile",
    "record_function", "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip
_ = KinetoStepTracker
