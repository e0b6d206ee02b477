"""Where the pending trace is cut, so that unrelated small work does not become part of a training step's program."""

from torchlike._src.engine import flush
from torchlike._src.engine.record import _local


def enter_module() -> None:
    """An outermost Module call begins: what is pending and needs no gradient (data preparation, a logged metric) is
    computed on its own. Work that a gradient will need stays in the trace, so that a step is one program."""
    trace = _local.trace
    if trace.node is not trace.root and not trace.taped:
        flush(trace, "the first module call")


def end_step() -> None:
    """An optimizer's step ends: the whole step is computed."""
    flush(None, "optimizer.step()")
