"""torch.utils.tensorboard: logging for TensorBoard, through the package `tensorboard`, or `tensorboardX` without it.

ModuleNotFoundError (an ImportError) if neither is installed."""

import importlib.util

if importlib.util.find_spec("tensorboard") is None and importlib.util.find_spec("tensorboardX") is not None:
    from torchlike.utils.tensorboard._tensorboardx import (
        FileWriter,
        RecordWriter,
        SummaryWriter,
    )
else:
    import tensorboard as _found  # the error for a missing package is the import's own

    if not hasattr(_found, "__version__") or tuple(map(int, _found.__version__.split(".")[:2])) < (1, 15):
        raise ImportError("TensorBoard logging requires TensorBoard version 1.15 or above")
    from tensorboard.summary.writer.record_writer import RecordWriter

    from torchlike.utils.tensorboard.writer import FileWriter, SummaryWriter  # type: ignore[assignment]  # same uses

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
