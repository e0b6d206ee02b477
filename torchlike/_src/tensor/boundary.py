"""Where the pending trace is cut, so that unrelated small work does not become part of a training step's program."""

import threading

from torchlike._src.engine.flush import flush
from torchlike._src.engine.record import _local


class _Calls(threading.local):
    """Whether this thread is inside a Module's forward: only the outermost call is a boundary for the engine."""

    inside = False


CALLS = _Calls()


def enter_module() -> None:
    """An outermost Module call begins: what is pending and needs no gradient (data preparation, a logged metric) is
    computed on its own. Work that a gradient will need stays in the trace, so that a step is one program."""
    trace = _local.trace
    if trace.node is trace.root:
        return
    if not trace.taped:
        flush(trace, "the first module call")
    elif trace.updated or (trace.backwards and trace.node.depth > LONG):
        flush(trace, "a module call after backward()")


LONG = 600
"""Operations before a module call after which an earlier backward() (accumulated gradients, an attack's iterations) is
computed on its own: compiling takes longer than in proportion."""
LONGER = 1500
"""The same where no module is called. Cutting a trace between a forward and its backward computes things twice."""


def enter_backward() -> None:
    """A backward pass begins."""
    CALLS.inside = False  # an interrupt may have left it on; a Module that calls backward() loses nothing by this
    trace = _local.trace
    if trace.updated or (trace.backwards and trace.node.depth > LONGER):
        flush(trace, "backward()")
    trace.taped = True
    trace.backwards += 1


def parameter_written() -> None:
    """A tensor that requires grad was written to outside the tape: after a backward pass, a step made by hand."""
    trace = _local.trace
    if trace.backwards:
        trace.updated = True


def leave_no_grad() -> None:
    """A no_grad block ends: if it was a step made by hand, the step is computed."""
    trace = _local.trace
    if trace.updated:
        flush(trace, "the end of the update under no_grad()")


def end_step() -> None:
    """An optimizer's step ends: the whole step is computed."""
    CALLS.inside = False
    flush(None, "optimizer.step()")
