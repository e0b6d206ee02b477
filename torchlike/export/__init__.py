"""torch.export: there are no exported programs; the names raise NotImplementedError when they are used."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature",
    "ExportedProgram", "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection",
    "UnflattenedModule", "default_decompositions", "dims", "draft_export", "export", "load", "register_dataclass",
    "save", "unflatten",
]  # fmt: skip

globals().update(_absent(__name__, __all__))
