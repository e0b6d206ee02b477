"""torch.ao.pruning: not implemented; the names raise NotImplementedError when they are used."""

from torchlike._src.core.absent import absent as _absent

__all__ = [
    "BaseScheduler", "BaseSparsifier", "CubicSL", "FakeSparsity", "LambdaSL", "NearlyDiagonalSparsifier",
    "WeightNormSparsifier", "fqn_to_module", "get_arg_info_from_tensor_fqn", "get_dynamic_sparse_quantized_mapping",
    "get_static_sparse_quantized_mapping", "module_to_fqn",
]  # fmt: skip

globals().update(_absent(__name__, __all__))
