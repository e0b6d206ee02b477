"""torch.utils.checkpoint: forget what a part of the model computed, and compute it again in backward.

Both the forward pass and the recomputation are part of the same compiled program, where a compiler would find that they
are the same and keep the first one's results. An optimization barrier on what the recomputation starts from keeps them
apart; the gradient that has arrived goes through it, too, so that the recomputation is not done early."""

import contextlib
import enum
import functools
import itertools
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax

from torchlike import cuda, random
from torchlike._src.amp.state import LOCAL
from torchlike._src.autograd import walk
from torchlike._src.autograd.tape import Running
from torchlike._src.engine import Value, record
from torchlike._src.ops.declare import RawOp
from torchlike._src.tensor.backward import backward as run_backward
from torchlike._src.tensor.function import Function
from torchlike._src.tensor.modes import enable_grad, no_grad
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap
from torchlike.amp.autocast_mode import autocast, is_autocast_available
from torchlike.autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError", "CheckpointFunction", "CheckpointPolicy", "DefaultDeviceType", "GraphExecGroup",
    "SelectiveCheckpointContext", "check_backward_validity", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "detach_variable", "noop_context_fn", "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]  # fmt: skip

PASS_EXPLICITLY = (
    "the use_reentrant parameter should be passed explicitly. {} without use_reentrant will raise an exception. "
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can pass "
    "use_reentrant=True. Refer to docs for more details on the differences between the two variants."
)
TIP = (
    "\nTip: To see a more detailed error message, either pass `debug=True` "
    "to\n`torch.utils.checkpoint.checkpoint(...)` or "
    "wrap the code block\nwith `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable "
    "checkpoint‑debug mode globally.\n"
)


class CheckpointError(RuntimeError):
    """The recomputation did not save what the forward pass had saved."""


# -- apart from the forward pass --------------------------------------------------------------------------


def _barrier(*arrays: Any) -> tuple:
    return tuple(jax.lax.optimization_barrier(arrays))


class _BarrierOp(RawOp):
    """Its operands, which the compiler may not trace back to where they come from."""

    def infer(self, static: tuple, specs: tuple) -> tuple:
        return tuple(specs)


BARRIER = _BarrierOp(_barrier, "optimization_barrier", linear=True)


def _walk_under_way() -> dict[str, Any]:
    """The variables of the backward that is running in this thread; empty outside of one."""
    if Running.walk is None:
        return {}
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code is not walk._run.__code__:
        frame = frame.f_back
    return {} if frame is None else frame.f_locals


def _apart(tensors: Sequence[Tensor], values: Sequence[Value]) -> list[Tensor]:
    """Tensors like `tensors`, of these values, that the compiler takes for others."""
    if not values:
        return []
    received = _walk_under_way().get("received") or ()
    extra = [g if type(g) is Value else g._read() for g in received if g is not None]
    out = []
    for t, v in zip(tensors, record(BARRIER, (), [*values, *extra]), strict=False):
        new = wrap(v)
        if t._rg:
            new._rg = True
            if t._gf is not None or t._view is not None:
                new._gf = t._edge()  # no leaf, so that it may be modified in place
        out.append(new)
    return out


# -- state that the recomputation repeats -----------------------------------------------------------------


def _autocast_state(device_type: str) -> list[dict[str, Any]]:
    kinds = ["cpu"] if device_type == "cpu" or not is_autocast_available(device_type) else [device_type, "cpu"]
    return [
        {
            "device_type": k,
            "enabled": LOCAL.enabled.get(k, False),
            "dtype": LOCAL.dtype[k],
            "cache_enabled": LOCAL.cache_enabled,
        }
        for k in kinds
    ]


class DefaultDeviceType:
    """The device type whose generator is saved if no tensor argument is on a device."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type that was set; by default the GPU's if there is one, else "cpu"."""
        if not DefaultDeviceType._default_device_type:
            from torchlike._src.tensor import devices

            DefaultDeviceType._default_device_type = "cuda" if devices.gpus() else "cpu"
        return DefaultDeviceType._default_device_type


def _infer_device_type(*args: Any) -> str:
    kinds = [a.device.type for a in args if isinstance(a, TensorBase) and a.device.type != "cpu"]
    if len(set(kinds)) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of devices. Device state "
            "will only be saved for devices of a single device type, and the remaining devices will be ignored. "
            "Consequently, if any checkpointed functions involve randomness, this may result in incorrect gradients. "
            "(Note that if CUDA devices are among the devices detected, it will be prioritized; otherwise, the first "
            f"device encountered will be selected.)\nDevice types: {sorted(set(kinds))} first device type: {kinds[0]}",
            stacklevel=2,
        )
    if not kinds:
        return DefaultDeviceType.get_device_type()
    return "cuda" if "cuda" in kinds else kinds[0]


def _rng_state() -> tuple:
    """The states of the generators: the CPU's, and a list of the GPUs'."""
    return random.get_rng_state(), cuda.get_rng_state_all()


@contextlib.contextmanager
def _as_in_forward(rng_state: Any, autocasts: list[dict[str, Any]]) -> Iterator[None]:
    """The generators (unless rng_state is None) and autocast as they were; put back afterwards."""
    with contextlib.ExitStack() as stack:
        if rng_state is not None:
            host, gpus = rng_state
            stack.enter_context(random.fork_rng(devices=range(len(gpus))))
            random.set_rng_state(host)
            cuda.set_rng_state_all(gpus)
        for options in autocasts:
            stack.enter_context(autocast(**options))
        yield


def detach_variable(inputs: tuple) -> tuple:
    """The tensors in a tuple without their history, still requiring grad where they did. RuntimeError for no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    out = []
    for x in inputs:
        if isinstance(x, TensorBase):
            requires = x.requires_grad
            x = x.detach()
            x.requires_grad = requires
        out.append(x)
    return tuple(out)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of the inputs requires grad."""
    if not any(x.requires_grad for x in inputs if isinstance(x, TensorBase)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


# -- reentrant --------------------------------------------------------------------------------------------


class CheckpointFunction(Function):
    """The variant whose backward runs a backward of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable, preserve_rng_state: bool, *args: Any) -> Any:
        """Run without recording gradients, and keep the arguments only."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.autocasts = _autocast_state(_infer_device_type(*args))
        ctx.rng_state = _rng_state() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(a, TensorBase) else a for a in args]
        ctx.tensor_indices = [k for k, a in enumerate(args) if isinstance(a, TensorBase)]
        ctx.save_for_backward(*[args[k] for k in ctx.tensor_indices])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Run again, now recording, and run backward through that."""
        if _walk_under_way().get("inputs") is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        tensors = ctx.saved_tensors
        for k, t, new in zip(ctx.tensor_indices, tensors, _apart(tensors, [t._read() for t in tensors]), strict=True):
            new = new.detach()
            new.requires_grad = t.requires_grad
            inputs[k] = new
        with _as_in_forward(ctx.rng_state, ctx.autocasts), enable_grad():
            outputs = ctx.run_function(*inputs)
        if isinstance(outputs, TensorBase):
            outputs = (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, args, strict=False) if isinstance(o, TensorBase) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, None, *[x.grad if isinstance(x, TensorBase) else None for x in inputs]


# -- not reentrant ----------------------------------------------------------------------------------------


def noop_context_fn() -> tuple[AbstractContextManager, AbstractContextManager]:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_temporary = itertools.count(-1, -1).__next__
_early_stop: bool | None = None
_debug: bool | None = None


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Within it, whether recomputation stops as soon as backward has all it needs, whatever checkpoint is told."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Within it, whether errors tell what was saved and where, whatever checkpoint is told (None: as it is told)."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


class _Group(threading.local):
    """The GraphExecGroup in force in a thread."""

    current: Any = None


_GROUP = _Group()


class GraphExecGroup:
    """Within it, several backwards share one recomputation; they may not need the same saved tensor."""

    def __enter__(self) -> "GraphExecGroup":
        if _GROUP.current is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_GROUP.current}")
        _GROUP.current = self
        return self

    def __exit__(self, *unused: object) -> None:
        _GROUP.current = None

    @classmethod
    def _get_current_group(cls) -> "GraphExecGroup | None":
        return _GROUP.current


class _Stop(Exception):
    """Raised when recomputation has all that it was for."""


class _Holder:
    """What the tape keeps in place of a saved tensor."""

    __slots__ = ("__weakref__", "position")

    def __init__(self, position: int) -> None:
        self.position = position


def _metadata(t: Tensor) -> dict[str, Any]:
    return {"shape": t.shape, "dtype": t.dtype, "device": t.device}


CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _metadata, "none": lambda t: None}


class _Frame:
    """One checkpointed call: what it needs to run again, and what that saved."""

    def __init__(self, run: Callable, args: Sequence, early_stop: bool, metadata: Callable, debug: bool) -> None:
        self.run = run
        self.args = list(args)
        self.saved = {k: (a, a._read(), a._s, a._s.version) for k, a in enumerate(args) if isinstance(a, TensorBase)}
        for k in self.saved:
            self.args[k] = None
        self.early_stop = early_stop
        self.metadata = metadata
        self.holders: list[weakref.ref] = []
        self.seen: list[Any] = []
        self.complete = False
        self.lenient = False
        self.recomputed: dict[Any, dict[int, Tensor]] = {}
        self.log: dict[str, list[str]] | None = {"forward": [], "recomputation": []} if debug else None

    def inputs(self) -> list:
        """The arguments as they were, apart from the forward pass."""
        for _, value, storage, version in self.saved.values():
            if storage.version != version:
                shape = ", ".join(map(str, value.aval.shape))
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[{value.aval.dtype.type_name} [{shape}]] is at version {storage.version}; expected version "
                    f"{version} instead. Hint: enable anomaly detection to find the operation that failed to compute "
                    "its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
                )
        args = list(self.args)
        tensors: list[Any] = [s[0] for s in self.saved.values()]
        for k, new in zip(self.saved, _apart(tensors, [s[1] for s in self.saved.values()]), strict=True):
            args[k] = new
        return args

    # In the forward pass.

    def pack(self, t: Tensor) -> _Holder:
        """Keep a note in place of a saved tensor."""
        holder = _Holder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.seen.append(self.metadata(t))
        self.note("forward", t)
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        """The tensor, computed again together with all others of the call when backward asks for the first."""
        gid = _GROUP.current
        if gid is None:
            gid = Running.walk.number if Running.walk is not None else _temporary()
        if gid not in self.recomputed:
            self.recompute(gid)
        found = self.recomputed[gid].pop(holder.position, None)
        if found is None:
            extra = ""
            if _GROUP.current is not None:
                extra = (
                    "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                    "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
                )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{extra}If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise "
                f"please open an issue with details on your use case."
            )
        return found

    # In backward.

    def recompute(self, gid: Any) -> None:
        """Run the function again and keep what it saves."""
        found: dict[int, Tensor] = {}
        count = 0
        if self.log is not None:
            self.log["recomputation"] = []

        def pack(t: Tensor) -> Tensor:
            nonlocal count
            t = wrap(t._read())  # its value as it is now: the function may go on to modify the tensor in place
            k = count
            count += 1
            self.note("recomputation", t)
            if k >= len(self.holders):
                if not self.complete:  # a gradient is taken inside the function
                    self.lenient = True
                    return t
                self.fail(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
                    f"original forward pass.\n{TIP}"
                )
            if self.holders[k]() is not None:
                found[k] = t
            if self.early_stop and count == len(self.holders):
                raise _Stop
            return t

        args = self.inputs()
        with contextlib.suppress(_Stop), saved_tensors_hooks(pack, _same), enable_grad():
            self.run(*args)
        self.recomputed[gid] = found
        if not self.lenient:
            self.check(found, count)

    def check(self, found: dict[int, Tensor], count: int) -> None:
        """CheckpointError unless the recomputation saved what the forward pass had saved."""
        if count != len(self.holders):
            self.fail(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors "
                f"saved during recomputation: {count}.\n{TIP}"
            )
        wrong = ""
        for k, t in found.items():
            now = self.metadata(t)
            if now != self.seen[k]:
                wrong += f"tensor at position {k}:\nsaved metadata: {self.seen[k]}\nrecomputed metadata: {now}\n"
        if wrong:
            self.fail(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{wrong}.\n{TIP}"
            )

    def note(self, phase: str, t: Tensor) -> None:
        """With debug: write down what is saved, and where the user's code was."""
        if self.log is not None:
            package = __name__.split(".", 1)[0]
            lines = [f for f in traceback.extract_stack() if package not in f.filename][-4:]
            where = "".join(f"    {f.filename}:{f.lineno}:{f.name}\n" for f in reversed(lines))
            self.log[phase].append(f"{t.dtype} {list(t.shape)}\n{where}")

    def fail(self, text: str) -> None:
        """Raise CheckpointError, with debug after the two logs."""
        if self.log is None:
            raise CheckpointError(text)
        parts = []
        for phase, entries in self.log.items():
            parts.append(f"Tensors saved during the {phase}, and where:\n\n")
            parts += [f"{k}: {entry}" for k, entry in enumerate(entries)]
            parts.append("\n")
        raise CheckpointError("".join(parts) + text)


def _same(t: Tensor) -> Tensor:
    return t


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[AbstractContextManager, AbstractContextManager]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), whose intermediate results are not kept but computed again in backward.

    use_reentrant: which variant; False is recommended, and the only one that takes keyword arguments and supports
    torch.autograd.grad. preserve_rng_state (True): the recomputation draws the random numbers of the forward pass.
    context_fn: makes the contexts that the forward pass and the recomputation run in. determinism_check: "default"
    compares shapes, dtypes and devices of both, "none" does not. debug: errors tell what was saved where. early_stop:
    the recomputation ends as soon as it has everything.

    CheckpointError in backward if the recomputation did something else."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: " + PASS_EXPLICITLY.format("Starting in PyTorch 2.9, calling checkpoint"),
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    debug = debug if _debug is None else _debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    autocasts = _autocast_state(_infer_device_type(*args))
    rng_state = _rng_state() if preserve else None
    if not walk.MODE.enabled:
        return function(*args, **kwargs)

    def run(*again: Any) -> None:
        with _as_in_forward(rng_state, autocasts), recompute_context:
            function(*again, **kwargs)

    frame = _Frame(run, args, early_stop if _early_stop is None else _early_stop, CHECKS[determinism_check], debug)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        out = function(*args, **kwargs)
        frame.complete = True
    if not frame.complete:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    return out


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run a Sequential, or a list of functions, in `segments` parts, all but the last of them checkpointed.

    preserve_rng_state, use_reentrant: as for `checkpoint`."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: "
            + PASS_EXPLICITLY.format(
                "In version 2.9 we will raise an exception if use_reentrant is not passed."
            ).replace(" without use_reentrant will raise an exception.", ""),
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    from torchlike.nn import Sequential

    if isinstance(functions, Sequential):
        functions = list(functions.children())

    def part(start: int, end: int) -> Callable:
        return functools.partial(_chain, functions[start:end])

    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end, len(functions))(input)


def _chain(functions: Sequence, input: Any) -> Any:
    for function in functions:
        input = function(input)
    return input


# -- selective policies -----------------------------------------------------------------------------------


class CheckpointPolicy(enum.Enum):
    """What selective checkpointing does with an operator's results."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy function is told about the call."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> Any:
    """Not available: policies name PyTorch's internal operators."""
    raise NotImplementedError(
        "torchlike: torch.utils.checkpoint.create_selective_checkpoint_contexts (selective activation checkpointing)"
    )
