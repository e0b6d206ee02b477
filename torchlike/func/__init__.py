"""torch.func: functions of functions. vmap, grad, vjp, jvp, Jacobians and Hessians, and modules as functions.

They nest in any order, work on containers of tensors, and are recorded like any other operation: a step made of them
is one program."""

from torchlike._namespace import vmap
from torchlike.func import _function as _function
from torchlike.func._misc import debug_unwrap, functionalize, rearrange
from torchlike.func._modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from torchlike.func._transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

for _name in __all__:
    globals()[_name].__module__ = "torch.func"
