"""torch._inductor.config: settings of a compiler that is not here; they can be set and have no effect."""

import sys as _sys
import types as _types

from torchlike._dynamo._settings import SettingsModule as _SettingsModule

compile_threads = 1
conv_1x1_as_mm = False
coordinate_descent_check_all_directions = False
coordinate_descent_tuning = False
cpp_wrapper = False
debug = False
epilogue_fusion = True
fallback_random = False
force_fuse_int_mm_with_mul = False
force_same_precision = False
freezing = False
fx_graph_cache = True
fx_graph_remote_cache = None
max_autotune = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
max_autotune_pointwise = False
permute_fusion = False
shape_padding = True
use_mixed_mm = True

triton = _types.SimpleNamespace(
    cudagraph_trees=True, cudagraphs=False, cudagraph_skip_dynamic_graphs=False, unique_kernel_names=True
)
cpp = _types.SimpleNamespace(threads=-1, simdlen=None)
trace = _types.SimpleNamespace(enabled=False)

_sys.modules[__name__].__class__ = _SettingsModule
