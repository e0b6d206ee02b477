"""torch._dynamo.config: settings of a compiler of Python code that is not here; they can be set and have no effect."""

import sys as _sys

from torchlike._dynamo._settings import SettingsModule as _SettingsModule

accumulated_cache_size_limit = accumulated_recompile_limit = 256
allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = recompile_limit = 8
capture_dynamic_output_shape_ops = False
capture_func_transforms = True
capture_scalar_outputs = False
compiled_autograd = False
disable = False
dynamic_shapes = True
error_on_recompile = False
fail_on_recompile_limit_hit = False
force_parameter_static_shapes = True
force_nn_module_property_static_shapes = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
log_level = None
optimize_ddp = True
print_graph_breaks = False
recompile_limit = 8
skip_nnmodule_hook_guards = True
specialize_float = False
specialize_int = False
suppress_errors = False
verbose = False

_REFUSED = ("error_on_recompile", "fail_on_recompile_limit_hit", "compiled_autograd")

_sys.modules[__name__].__class__ = _SettingsModule
