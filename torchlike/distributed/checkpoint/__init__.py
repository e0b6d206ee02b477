"""torch.distributed.checkpoint: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "HuggingFaceStorageReader", "HuggingFaceStorageWriter", "LoadPlan",
    "LoadPlanner", "Metadata", "QuantizedHuggingFaceStorageReader", "ReadItem", "SavePlan", "SavePlanner",
    "StorageReader", "StorageWriter", "TensorStorageMetadata", "WriteItem", "async_save", "load",
    "load_sharded_optimizer_state_dict", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip

globals().update(_absent(__name__, __all__, "several processes"))
