"""The state of autocast in each thread, and the casting of operands while it is on."""

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from torchlike._src.amp.policies import BANNED, CONTRACT, LOWER, OPTIONAL, POLICIES, PROMOTE, RESULT
from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.core import dtype as dtypes
from torchlike._src.engine.record import set_slow
from torchlike._src.ops.declare import Op
from torchlike._src.ops.kernels import CAST
from torchlike._src.tensor.call import Autocast, apply
from torchlike._src.tensor.tensor import TensorBase

__all__ = [
    "DEFAULTS",
    "LOCAL",
    "cast_arguments",
    "cast_result",
    "clear_cache",
    "excluded",
    "policies_for",
    "set_enabled",
]

HALF, BFLOAT = dtypes.float16, dtypes.bfloat16
DEFAULTS = {
    "cpu": BFLOAT, "cuda": HALF, "xpu": HALF, "mps": HALF, "hpu": BFLOAT, "ipu": HALF, "xla": BFLOAT, "mtia": HALF,
    "maia": BFLOAT, "privateuseone": HALF,
}  # fmt: skip
"""Device types that have autocast, with their lower precision. Without such a device they never meet a tensor."""

BANNED_TEXT = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
)
MIXED = "Unexpected floating ScalarType in at::autocast::prioritize"


class _Local(threading.local):
    """What one thread has switched on."""

    def __init__(self) -> None:
        super().__init__()
        self.enabled: dict[str, bool] = {}
        self.dtype = dict(DEFAULTS)
        self.nesting = 0
        self.cache_enabled = True
        self.cache: dict[int, tuple[Any, Any]] = {}
        self.excluded = 0
        """How many composed functions that were cast as a whole are running."""
        self.active: tuple[str, ...] = ()
        """The device types that are on, of those that tensors can be on."""


LOCAL = _Local()
_lock = threading.Lock()
_threads = 0


def set_enabled(device_type: str, on: bool) -> None:
    """Switch autocast on or off for a device type in this thread."""
    global _threads
    LOCAL.enabled[device_type] = on
    before = LOCAL.active
    LOCAL.active = tuple(d for d in POLICIES if LOCAL.enabled.get(d))
    if bool(before) != bool(LOCAL.active):
        with _lock:
            _threads += 1 if LOCAL.active else -1
            Autocast.enabled = _threads > 0
            set_slow("autocast", Autocast.enabled)


def clear_cache() -> None:
    """Forget the weights that were cast."""
    LOCAL.cache.clear()


def policies_for(name: str) -> dict[str, str]:
    """Device type -> policy of the function that users know as `name`, for the devices that have one."""
    return {d: table[name] for d, table in POLICIES.items() if name in table}


# -- casting --------------------------------------------------------------------------------------------------------


def eligible(t: Any, device_type: str) -> bool:
    """Whether autocast may cast `t`: a floating-point tensor on the device that is not float64."""
    if not isinstance(t, TensorBase):
        return False
    a = t._aval
    return a.dtype.is_floating_point and a.dtype is not dtypes.float64 and a.device.type == device_type


def to(t: Any, dtype: Any, lower: Any) -> Any:
    """t in `dtype`. The lower precision of a weight is kept until the outermost autocast region ends."""
    if t._aval.dtype is dtype:
        return t
    local = LOCAL
    keep = (
        local.cache_enabled and dtype is lower and t._rg and t._gf is None and t._view is None and MODE.enabled
        and t._aval.dtype is dtypes.float32
    )  # fmt: skip
    if not keep:
        return _cast(t, dtype)
    known = local.cache.get(id(t))
    if known is None:
        known = local.cache[id(t)] = (t, _cast(t, dtype))  # the tensor too: its id stays its own meanwhile
    return known[1]


def _cast(t: Any, dtype: Any) -> Any:
    return apply(CAST, (("dtype", dtype),), (t,))


def _widest(operands: Sequence, device_type: str, lower: Any) -> Any:
    """The dtype that promotion gives: float32 if there is one, else the lower precision."""
    current = lower
    for t in operands:
        if eligible(t, device_type):
            dtype = t._aval.dtype
            if current is dtypes.float32 or dtype is dtypes.float32:
                current = dtypes.float32
            elif dtype is not lower:
                raise RuntimeError(MIXED)
    return current


def cast_operands(policy: str, operands: Sequence, device_type: str) -> list:
    """The flat operands of one call under a policy of one device type."""
    lower = LOCAL.dtype[device_type]
    if policy is LOWER:
        want = lower
    elif policy is PROMOTE:
        want = _widest(operands, device_type, lower)
    else:
        want = dtypes.float32
    if policy is OPTIONAL:
        first = operands[0]
        return [to(first, want, lower) if eligible(first, device_type) else first, *operands[1:]]
    return [to(t, want, lower) if eligible(t, device_type) else t for t in operands]


OPERATORS: dict[str, dict[str, str]] = {}
"""Device type -> operator name -> policy; filled by `tensor.composite_autocast`."""


def cast(op: Any, operands: Sequence) -> Sequence:
    """The operands of an operation as autocast wants them; what `tensor.call.apply` calls."""
    local = LOCAL
    if not local.active or local.excluded or type(op) is not Op:
        return operands
    for device_type in local.active:
        policy = OPERATORS[device_type].get(op.name)
        if policy is None:
            continue
        if _asked_for("out") or (policy is OPTIONAL and _asked_for("dtype")):
            return operands
        if policy is BANNED:
            raise RuntimeError(BANNED_TEXT)
        if policy is CONTRACT:
            policy = _contraction(op.name, sys._getframe(1).f_locals["static"], operands)
        operands = cast_operands(policy, operands, device_type)
    return operands


def _contraction(name: str, static: tuple, operands: Sequence) -> str:
    """How einsum and tensordot are cast: without a sum of products they are a multiplication, which only promotes."""
    if name == "_einsum":
        inputs, output = static[0].split("->")
        terms = inputs.split(",")
        sums = any(sum(letter in t for t in terms) > 1 for letter in set(inputs) - set(output) - {","})
        return LOWER if sums else PROMOTE
    a, b = operands[0]._aval, operands[1]._aval
    whole = len(static[0]) == a.ndim and len(static[1]) == b.ndim and a.numel == b.numel
    return PROMOTE if whole else LOWER


def _asked_for(parameter: str) -> bool:
    """Whether the generated function that called `apply` was given this argument: PyTorch does not autocast variants
    with out=, and a dtype= takes the place of float32."""
    frame = sys._getframe(3)
    return parameter in frame.f_code.co_varnames and frame.f_locals.get(parameter) is not None


# -- composed functions ---------------------------------------------------------------------------------------------


def _leaves(value: Any, into: list) -> None:
    if isinstance(value, TensorBase):
        into.append(value)
    elif type(value) in (list, tuple):
        for v in value:
            _leaves(v, into)


def _map(value: Any, function: Callable) -> Any:
    if isinstance(value, TensorBase):
        return function(value)
    if type(value) in (list, tuple):
        return type(value)([_map(v, function) for v in value])
    return value


def cast_arguments(policies: dict[str, str], args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a composed function, cast: also the tensors in lists and tuples."""
    for device_type in LOCAL.active:
        policy = policies.get(device_type)
        if policy is None or policy is RESULT or kwargs.get("out") is not None:
            continue
        if policy is BANNED:
            raise RuntimeError(BANNED_TEXT)
        lower = LOCAL.dtype[device_type]
        if policy is OPTIONAL:
            if kwargs.get("dtype") is None and not any(isinstance(a, dtypes.dtype) for a in args):
                args = (*_only_first(args, device_type),)
            continue
        want = dtypes.float32
        if policy is LOWER:
            want = lower
        elif policy is PROMOTE:
            found: list = []
            _leaves(list(args) + list(kwargs.values()), found)
            want = _widest(found, device_type, lower)

        def fit(t: Any, want: Any = want, device_type: str = device_type, lower: Any = lower) -> Any:
            return to(t, want, lower) if eligible(t, device_type) else t

        args = tuple([_map(a, fit) for a in args])
        kwargs = {k: _map(v, fit) for k, v in kwargs.items()}
    return args, kwargs


def cast_result(policies: dict[str, str], out: Any) -> Any:
    """The result of a function that ends in a product, in the lower precision."""
    for device_type in LOCAL.active:
        if policies.get(device_type) is RESULT and eligible(out, device_type):
            lower = LOCAL.dtype[device_type]
            out = out if out._aval.dtype is lower else _cast(out, lower)
    return out


def _only_first(args: tuple, device_type: str) -> list:
    if not args or not eligible(args[0], device_type):
        return list(args)
    return [_cast(args[0], dtypes.float32) if args[0]._aval.dtype is not dtypes.float32 else args[0], *args[1:]]


class excluded:
    """Within it, operations are not cast: PyTorch casts a listed function's arguments and then steps aside."""

    __slots__ = ()

    def __enter__(self) -> None:
        LOCAL.excluded += 1

    def __exit__(self, *unused: object) -> None:
        LOCAL.excluded -= 1


Autocast.cast = staticmethod(cast)
