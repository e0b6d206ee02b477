"""torch.distributed.pipelining: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
    "pipe_split", "pipeline",
]  # fmt: skip

globals().update(_absent(__name__, __all__, "several processes"))
