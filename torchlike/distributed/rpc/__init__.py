"""torch.distributed.rpc: for several processes; using its names raises."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "AllGatherStates", "BackendType", "RRef", "TensorPipeRpcBackendOptions", "get_worker_info", "init_rpc",
    "method_factory", "new_method", "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip

globals().update(_absent(__name__, __all__, "several processes"))


def is_available() -> bool:
    """False."""
    return False


__all__ += ["is_available"]
