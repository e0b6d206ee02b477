"""torch.onnx: there is no export; the names raise NotImplementedError when they are used."""

from typing import Any

from torchlike._src.core.absent import absent as _absent

__all__ = ["ExportableModule", "InputObserver", "ONNXProgram", "OnnxExporterError", "export", "is_in_onnx_export"]


class OnnxExporterError(RuntimeError):
    """What PyTorch raises for failed exports."""


def is_in_onnx_export() -> bool:
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Nothing: a description of an operator for an exporter that is not here, and whose `export` raises."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Nothing, as register_custom_op_symbolic."""


globals().update(_absent(__name__, ["ExportableModule", "InputObserver", "ONNXProgram", "export"]))
