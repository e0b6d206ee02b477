"""SummaryWriter from the package tensorboardX, with PyTorch's arguments."""

from typing import Any

from tensorboardX import FileWriter, RecordWriter
from tensorboardX import SummaryWriter as _Writer

from torchlike._src.tensor.tensor import Tensor

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]


def plain(value: Any) -> Any:
    """Tensors as arrays, in containers too."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


class SummaryWriter(_Writer):  # type: ignore[misc]
    """Writes what it is given into event files in log_dir (by default runs/<date>_<host><comment>)."""

    def __init__(
        self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""
    ) -> None:  # fmt: skip
        super().__init__(log_dir, comment, purge_step, max_queue, flush_secs, filename_suffix)


def _converting(name: str) -> Any:
    method = getattr(_Writer, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *map(plain, args), **plain(kwargs))

    call.__name__, call.__doc__ = name, method.__doc__
    return call


for _name in (
    "add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_image_with_boxes", "add_video",
    "add_audio", "add_embedding", "add_pr_curve", "add_mesh", "add_hparams",
):  # fmt: skip
    setattr(SummaryWriter, _name, _converting(_name))


def _no_graph(self: Any, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True):
    raise NotImplementedError("torchlike: SummaryWriter.add_graph (no TorchScript graphs)")


SummaryWriter.add_graph = _no_graph
