"""SummaryWriter over TensorBoard's own record files."""

import datetime
import os
import socket
import struct
import time
import zlib
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.hparams.api_pb2 import Experiment, HParamInfo, MetricInfo, MetricName, Status
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from torchlike._src.tensor.tensor import Tensor

__all__ = ["FileWriter", "SummaryWriter"]


def array(value: Any) -> Any:
    """A tensor, number or list as an array; bfloat16 as float32."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    return np.asarray(value)


def _number(value: Any) -> float:
    found = array(value).squeeze()
    if found.ndim != 0:
        raise AssertionError("scalar should be 0D")
    return float(found)


def _bins() -> list[float]:
    """TensorBoard's bucket limits: a tenth apart, from 1e-12 to 1e20, both signs."""
    limit, out = 1e-12, []
    while limit < 1e20:
        out.append(limit)
        limit *= 1.1
    return [-v for v in out[::-1]] + [0.0] + out


def _histogram(values: Any, bins: Any, max_bins: int | None) -> HistogramProto:
    values = array(values).astype(np.float64).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts = np.add.reduceat(counts, np.arange(0, len(counts), step))
        limits = np.append(limits[:-1][::step], limits[-1])
    used = np.flatnonzero(counts)
    first, last = (used[0], used[-1] + 1) if len(used) else (0, len(counts))
    return HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(), sum_squares=values.dot(values),
        bucket_limit=[limits[first], *limits[first + 1 : last + 1]], bucket=[0, *counts[first:last]],
    )  # fmt: skip


def png(pixels: Any) -> bytes:
    """(H, W, 1, 3 or 4) bytes as a PNG file."""
    height, width, channels = pixels.shape
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], 1)

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes()))
        + chunk(b"IEND", b"")
    )


def _to_hwc(image: Any, dataformats: str) -> Any:
    """An image, or a grid of a batch of them, as bytes (H, W, 3)."""
    if image.ndim != len(dataformats):
        raise AssertionError(
            f"size of input tensor and input format are different. tensor shape: {image.shape}, input_format: "
            f"{dataformats}"
        )
    letters = dataformats.upper()
    if image.dtype != np.uint8:
        image = np.clip(image.astype(np.float32) * 255, 0, 255).astype(np.uint8)
    if len(letters) == 4:
        image = image.transpose([letters.index(c) for c in "NHWC"])
        image = np.repeat(image, 3, -1) if image.shape[-1] == 1 else image
        n, height, width, channels = image.shape
        columns = min(n, 8)
        rows = -(-n // columns)
        grid = np.zeros((rows * height, columns * width, channels), np.uint8)
        for k in range(n):
            y, x = k // columns * height, k % columns * width
            grid[y : y + height, x : x + width] = image[k]
        return grid
    if len(letters) == 2:
        return np.repeat(image.transpose([letters.index(c) for c in "HW"])[..., None], 3, -1)
    image = image.transpose([letters.index(c) for c in "HWC"])
    return np.repeat(image, 3, -1) if image.shape[-1] == 1 else image


class FileWriter:
    """Event files in a folder."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix="") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self):
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None) -> None:
        """Write an Event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None) -> None:
        """Write a Summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what is waiting to disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what is waiting and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on in another file."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes what it is given into event files in log_dir (by default runs/<date>_<host><comment>)."""

    def __init__(
        self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] = {}
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            made = FileWriter(self.log_dir, self.max_queue, self.flush_secs, self.filename_suffix)
            if self.purge_step is not None:
                made.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                made.add_event(Event(step=self.purge_step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
            self.file_writer = made
            self.all_writers[made.get_logdir()] = made
        return self.file_writer

    def _add(self, value: Any, step: Any, walltime: Any) -> None:
        step = int(array(step)) if step is not None else None
        self._get_file_writer().add_summary(Summary(value=[value]), step, walltime)

    def get_logdir(self):
        """The folder of the event files."""
        return self.log_dir

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False
    ) -> None:  # fmt: skip
        """Log a number. new_style writes it as a tensor."""
        number = _number(scalar_value)
        if new_style:
            tensor = TensorProto(float_val=[number], dtype="DT_FLOAT")
            if double_precision:
                tensor = TensorProto(double_val=[number], dtype="DT_DOUBLE")
            metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
            value = Summary.Value(tag=tag, tensor=tensor, metadata=metadata)
        else:
            value = Summary.Value(tag=tag, simple_value=number)
        self._add(value, global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None) -> None:
        """Log several numbers into one diagram: each goes into a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        for tag, number in tag_scalar_dict.items():
            folder = f"{self._get_file_writer().get_logdir()}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            value = Summary.Value(tag=main_tag, simple_value=_number(number))
            self.all_writers[folder].add_summary(Summary(value=[value]), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None) -> None:
        """Log a histogram of values."""
        self._add(Summary.Value(tag=tag, histo=_histogram(values, bins, max_bins)), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ) -> None:  # fmt: skip
        """Log a histogram that is counted already."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        histogram = HistogramProto(
            min=min,
            max=max,
            num=num,
            sum=sum,
            sum_squares=sum_squares,
            bucket_limit=bucket_limits,
            bucket=bucket_counts,
        )
        self._add(Summary.Value(tag=tag, histo=histogram), global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW") -> None:
        """Log an image: bytes, or floats from 0 to 1."""
        pixels = _to_hwc(array(img_tensor), dataformats)
        height, width, channels = pixels.shape
        image = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=png(pixels))
        self._add(Summary.Value(tag=tag, image=image), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW") -> None:
        """Log a batch of images as one grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """Log a matplotlib figure, or several."""
        import matplotlib.backends.backend_agg as agg
        import matplotlib.pyplot as plt

        images = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = agg.FigureCanvasAgg(one)
            canvas.draw()
            images.append(np.asarray(canvas.buffer_rgba())[..., :3])
            if close:
                plt.close(one)
        if isinstance(figure, list):
            self.add_images(tag, np.stack(images), global_step, walltime, dataformats="NHWC")
        else:
            self.add_image(tag, images[0], global_step, walltime, dataformats="HWC")

    def add_text(self, tag, text_string, global_step=None, walltime=None) -> None:
        """Log Markdown text."""
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text", content=b""))
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[text_string.encode("utf-8")],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        self._add(Summary.Value(tag=tag + "/text_summary", metadata=metadata, tensor=tensor), global_step, walltime)

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:  # fmt: skip
        """Log hyperparameters and the metrics that they led to, in a folder of their own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        if hparam_domain_discrete is not None:
            raise NotImplementedError("torchlike: SummaryWriter.add_hparams(hparam_domain_discrete=...)")
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        start = SessionStartInfo()
        experiment = Experiment(
            hparam_infos=[HParamInfo(name=k) for k in hparam_dict],
            metric_infos=[MetricInfo(name=MetricName(tag=k)) for k in metric_dict],
        )
        for name, value in hparam_dict.items():
            if isinstance(value, str):
                start.hparams[name].string_value = value
            elif isinstance(value, bool):
                start.hparams[name].bool_value = value
            else:
                start.hparams[name].number_value = _number(value)
        end = SessionEndInfo(status=Status.STATUS_SUCCESS)
        with SummaryWriter(log_dir=folder) as writer:
            file = writer._get_file_writer()
            for tag, content in (
                ("_hparams_/experiment", HParamsPluginData(experiment=experiment, version=0)),
                ("_hparams_/session_start_info", HParamsPluginData(session_start_info=start, version=0)),
                ("_hparams_/session_end_info", HParamsPluginData(session_end_info=end, version=0)),
            ):
                plugin = SummaryMetadata.PluginData(plugin_name="hparams", content=content.SerializeToString())
                file.add_summary(Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))]))
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Write everything that is waiting to disk."""
        for writer in self.all_writers.values():
            writer.flush()

    def close(self) -> None:
        """Write everything and close the files."""
        for writer in self.all_writers.values():
            writer.flush()
            writer.close()
        self.file_writer = None
        self.all_writers = {}

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name in _MISSING:
            raise NotImplementedError(f"torchlike: SummaryWriter.{name}")
        raise AttributeError(f"'SummaryWriter' object has no attribute '{name}'")


_MISSING = (
    "add_audio", "add_custom_scalars", "add_custom_scalars_marginchart", "add_custom_scalars_multilinechart",
    "add_embedding", "add_graph", "add_image_with_boxes", "add_mesh", "add_onnx_graph", "add_pr_curve",
    "add_pr_curve_raw", "add_tensor", "add_video",
)  # fmt: skip
