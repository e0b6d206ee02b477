"""torch.distributed.checkpoint.hf_storage: see torch.distributed.checkpoint."""

from torchlike.distributed.checkpoint import HuggingFaceStorageReader as HuggingFaceStorageReader
from torchlike.distributed.checkpoint import HuggingFaceStorageWriter as HuggingFaceStorageWriter
