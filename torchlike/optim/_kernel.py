"""A parameter group's step as one recorded operation.

An optimizer is a pure function that updates one parameter, and a `KernelOptimizer` that says which states it needs:

    def update(numbers, scalars, param, grad, *tensors, **flags) -> (scalars, param, *tensors)

numbers: the group's hyperparameters, float64 0-d arrays: data, so that a changed learning rate compiles nothing.
scalars: per-parameter 0-d states such as the step count; usually shared by the whole group, and then passed once.
flags: what changes the code (amsgrad, nesterov, …): part of the program's key.

Why not optax's transformations: their hyperparameters are closures' constants, their bias corrections are computed in
float32, and the order of their roundings is not PyTorch's. (`torchlike.interop.optax` runs any of them as it is.)"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.core.aval import aval
from torchlike._src.engine import META_ARRAY, Value, record
from torchlike._src.ops.declare import RawOp
from torchlike._src.tensor.call import apply, check_writable, write
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap
from torchlike.optim.optimizer import Optimizer, _get_capturable_supported_devices, _get_scalar_dtype

__all__ = [
    "KernelOptimizer",
    "StepOp",
    "add",
    "addcdiv",
    "addcmul",
    "decayed",
    "div",
    "lerp",
    "mul",
    "next_step",
    "plus",
    "scalar_state",
    "sqrt",
    "zeros",
]


# -- PyTorch's element-wise steps, rounded where it rounds --------------------------------------------------


def _wide(x: Any) -> Any:
    """The dtype that PyTorch computes in: float32 for half types, else its own."""
    return jnp.float32 if x.dtype.itemsize <= 2 else x.dtype


def mul(x: Any, number: Any) -> Any:
    """x * number, in x's dtype."""
    w = _wide(x)
    return (x.astype(w) * number.astype(w)).astype(x.dtype)


def add(x: Any, y: Any, alpha: Any) -> Any:
    """x + alpha * y, in x's dtype; here, and in `plus`, PyTorch rounds the number to x's dtype first."""
    w = _wide(x)
    return (x.astype(w) + alpha.astype(x.dtype).astype(w) * y.astype(w)).astype(x.dtype)


def addcmul(x: Any, a: Any, b: Any, value: Any) -> Any:
    """x + value * a * b, in x's dtype."""
    w = _wide(x)
    return (x.astype(w) + value.astype(w) * a.astype(w) * b.astype(w)).astype(x.dtype)


def addcdiv(x: Any, a: Any, b: Any, value: Any) -> Any:
    """x + value * a / b, in x's dtype."""
    w = _wide(x)
    return (x.astype(w) + value.astype(w) * a.astype(w) / b.astype(w)).astype(x.dtype)


def lerp(x: Any, y: Any, weight: Any) -> Any:
    """x + weight * (y - x), from whichever end is nearer, as PyTorch does."""
    w = _wide(x)
    a, b = x.astype(w), y.astype(w)
    near = jnp.abs(weight) < 0.5
    factor = jnp.where(near, weight, weight - 1).astype(w)
    return (jnp.where(near, a, b) + factor * (b - a)).astype(x.dtype)


def next_step(scalars: tuple) -> tuple[Any, Any]:
    """The step count after this step, as it is stored and as a float64 to compute with."""
    step = scalars[0] + 1
    return step, step.astype(jnp.float64)


def decayed(p: Any, g: Any, weight_decay: Any, maximize: bool, decay: bool) -> Any:
    """The gradient as most optimizers take it: uphill turned round, plus the L2 penalty's."""
    g = -g if maximize else g
    return add(g, p, weight_decay) if decay else g


def sqrt(x: Any) -> Any:
    """The square root, in x's dtype."""
    return jnp.sqrt(x.astype(_wide(x))).astype(x.dtype)


def plus(x: Any, number: Any) -> Any:
    """x + number, in x's dtype."""
    w = _wide(x)
    return (x.astype(w) + number.astype(x.dtype).astype(w)).astype(x.dtype)


def div(x: Any, number: Any) -> Any:
    """x / number, in x's dtype."""
    w = _wide(x)
    return (x.astype(w) / number.astype(w)).astype(x.dtype)


# -- the operation ------------------------------------------------------------------------------------------


def _to_real(x: Any) -> Any:
    return jnp.stack([x.real, x.imag], -1)


def _to_complex(x: Any) -> Any:
    return x[..., 0] + 1j * x[..., 1]


SMALL = 2048
"""Elements of a parameter that is updated together with others: launching a loop of its own costs as much as these."""


class StepOp(RawOp):
    """`update` of all the parameters of a group.

    Operands: numbers, (grad_scale and found_inf), sets of scalars, params, grads, tensors name by name.
    Results: sets of scalars, params, tensors, (unscaled grads): each like the operand that it replaces.
    static: (numbers, params, scalars per set, tensors per param, which set belongs to each param, scaling, flags)."""

    def __init__(
        self, update: Callable, name: str, *, pairs: bool = True, elementwise: bool = True, written_out: bool = False
    ) -> None:
        """pairs: complex arrays reach `update` as real ones with a last dim of two. elementwise: each element of a
        parameter is updated from its own gradient and state, so that small parameters may be updated as one array.
        written_out: `update` is there in NumPy, too, for the host tier."""
        super().__init__(update, name)
        self.written_out = written_out
        self.pairs = pairs
        self.elementwise = elementwise

    def _positions(self, static: tuple) -> tuple[int, int, int, int, int]:
        """Where scalings, scalars, params, grads and tensors begin."""
        numbers, count, per_set, _, which, scaling, _ = static
        sets = 1 if which is None else max(which) + 1
        a = numbers
        b = a + scaling[0] + scaling[1]
        c = b + sets * per_set
        return a, b, c, c + count, c + 2 * count

    def infer(self, static: tuple, specs: tuple) -> tuple:
        _, b, c, d, e = self._positions(static)
        grads = specs[d:e] if static[5][0] else ()
        return (*specs[b:c], *specs[c:d], *specs[e:], *grads)

    def host_function(self, kernel: Any) -> Callable | None:
        if not self.written_out:
            return None
        # Loaded with the host tier, when a first trace needs it.
        from torchlike.optim._host import step_function

        return step_function(self, kernel)

    def replaces(self, static: tuple) -> tuple[int, ...]:
        """The operand that each result takes the place of."""
        _, b, c, d, e = self._positions(static)
        count, per_param = static[1], static[3]
        grads = range(d, e) if static[5][0] else ()
        return (*range(b, d), *range(e, e + count * per_param), *grads)

    def _together(self, rows: list, sets: list) -> list[list[int]]:
        """The parameters, those together whose update is one computation: small ones alike in dtypes and scalars."""
        if not self.elementwise:
            return [[k] for k in range(len(rows))]
        groups: dict = {}
        for k, row in enumerate(rows):
            p = row[0]
            small = p.size <= SMALL and not jnp.iscomplexobj(p) and all(x.shape == p.shape for x in row)
            key = (sets[k], *[x.dtype for x in row]) if small else k
            groups.setdefault(key, []).append(k)
        return list(groups.values())

    def execute(self, static: tuple, specs: tuple, arrays: Sequence) -> tuple:
        _, count, per_set, per_param, which, (has_scale, has_inf), flags = static
        options = dict(flags)
        a, b, c, d, e = self._positions(static)
        numbers = tuple(x.reshape(()).astype(jnp.float64) for x in arrays[:a])
        scalings = list(arrays[a:b])
        scale = scalings.pop(0).reshape(()) if has_scale else None
        skip = scalings.pop(0).reshape(()) != 0 if has_inf else None
        scalars = list(arrays[b:c])
        new_scalars = list(scalars)
        new_params: list = []
        new_grads: list = []
        new_tensors: list[list] = [[] for _ in range(per_param)]
        rows = []  # parameter, gradient, tensors
        for k in range(count):
            p, g = arrays[c + k], arrays[d + k]
            if scale is not None:
                g = (g / scale.astype(_wide(g))).astype(g.dtype)
                new_grads.append(g)
            rows.append([p, g, *[arrays[e + j * count + k] for j in range(per_param)]])
        updated: list = [None] * count
        sets = list(which) if which else [0] * count
        for members in self._together(rows, sets):
            first = sets[members[0]] * per_set
            own = tuple(scalars[first : first + per_set])
            given = rows[members[0]]
            if len(members) > 1:
                given = [jnp.concatenate([x.reshape(-1) for x in row]) for row in zip(*[rows[k] for k in members])]
            is_complex = self.pairs and jnp.iscomplexobj(given[0])
            if is_complex:
                given = [_to_real(x) for x in given]
            own_new, *outs = self.fn(numbers, own, *given, **options)
            if is_complex:
                outs = [_to_complex(x) for x in outs]
            for j, (x, old) in enumerate(zip(own_new, scalars[first : first + per_set], strict=True)):
                new_scalars[first + j] = x.astype(old.dtype)
            if len(members) == 1:
                updated[members[0]] = outs
                continue
            outs = lax.optimization_barrier(outs)  # one loop for each, not one for each parameter
            at = 0
            for k in members:
                p = rows[k][0]
                updated[k] = [x[at : at + p.size].reshape(p.shape) for x in outs]
                at += p.size
        for (p, _, *tensors), outs in zip(rows, updated, strict=True):
            for x, old, into in zip(outs, [p, *tensors], [new_params, *new_tensors], strict=True):
                into.append(x.astype(old.dtype))
        results = [*new_scalars, *new_params, *(x for column in new_tensors for x in column)]
        if skip is not None:
            old = [*scalars, *arrays[c:d], *arrays[e:]]
            results = [jnp.where(skip, x, y) for x, y in zip(old, results, strict=True)]
        return (*results, *new_grads)


# -- the optimizer ------------------------------------------------------------------------------------------


def zeros(like: Tensor, shape: tuple | None = None, fill: float | complex = 0) -> Tensor:
    """A state tensor of zeros (or of `fill`), concrete, so that a first step records what later ones do."""
    a = like._aval
    if shape is not None:
        a = a.with_shape(shape)
    if a.device.type == "meta":
        return wrap(Value(a, META_ARRAY))
    return wrap(Value(a, np.full(a.shape, fill, a.dtype.np) if fill else np.zeros(a.shape, a.dtype.np)))


def scalar_state(number: float, group: dict, like: Tensor, on_device: bool = False) -> Tensor:
    """A 0-d state such as `step`; on the CPU unless the optimizer is capturable or fused, as in PyTorch."""
    dtype = _get_scalar_dtype(is_fused=group.get("fused"))
    a = aval((), dtype)
    if on_device or group.get("capturable") or group.get("fused"):
        a = aval((), dtype, like._aval.device)
    return wrap(Value(a, META_ARRAY if a.device.type == "meta" else np.asarray(number, dtype.np)))


def share_scalars(states: Sequence[dict], names: Sequence[str]) -> None:
    """Let equal scalars in host memory be one Value, so that the step passes it once. Values are immutable."""
    for name in names:
        known: dict = {}
        for state in states:
            t = state.get(name)
            if isinstance(t, Tensor) and t._view is None and type(t._s.value.array) is np.ndarray:
                value = t._s.value
                t._s.value = known.setdefault((value.aval, value.array.tobytes()), value)


class KernelOptimizer(Optimizer):
    """An optimizer whose group step is one `StepOp`. Subclasses set `_op`, `_scalars` and what a group needs."""

    _op: StepOp
    _scalars: tuple[str, ...] = ("step",)
    """Names of the 0-d states."""
    _sparse_error = ""
    """What PyTorch says about sparse gradients; empty if it takes them."""

    def _tensors(self, group: dict) -> tuple[str, ...]:
        """Names of the states with the parameter's shape, in the order that `update` takes them."""
        return ()

    def _numbers(self, group: dict) -> tuple:
        """The hyperparameters that `update` takes: numbers or one-element tensors."""
        raise NotImplementedError

    def _flags(self, group: dict) -> tuple:
        """(name, value) pairs of the static arguments that `update` takes."""
        raise NotImplementedError

    def _start(self, group: dict, p: Tensor, state: dict) -> None:
        """Fill the empty state of a parameter at its first step."""
        for name in self._scalars:
            state[name] = scalar_state(0.0, group, p)
        for name in self._tensors(group):
            state[name] = zeros(p)

    def step(self, closure: Any = None) -> Any:
        """Update the parameters once from their gradients; parameters without one are left alone.

        closure: recomputes the loss and its gradients; its result is returned."""
        loss = None
        before = MODE.enabled
        if closure is not None:
            MODE.enabled = True
            try:
                loss = closure()
            finally:
                MODE.enabled = before
        MODE.enabled = self.defaults.get("differentiable") or False
        try:
            for group in self.param_groups:
                self._step_group(group)
        finally:
            MODE.enabled = before
        return loss

    def _step_group(self, group: dict) -> None:
        # HOT: once per group and step; list comprehensions, because there can be hundreds of parameters.
        params = [p for p in group["params"] if p._grad is not None]
        if not params:
            return
        all_states = self.state
        states = [all_states[p] for p in params]
        if not all(states):
            self._start_all(group, params, states)
        self._launch(group, params, states, self._numbers(group), self._tensors(group))

    def _start_all(self, group: dict, params: list, states: list) -> None:
        fresh = [(p, s) for p, s in zip(params, states, strict=True) if not s]
        for p, s in fresh:
            self._start(group, p, s)
        share_scalars(states, self._scalars)

    def _launch(
        self, group: dict, params: list, states: list, numbers: Sequence, names: Sequence[str], flags: tuple = ()
    ) -> None:
        """Record the update of `params`, whose states are `states`, and store the results."""
        if group.get("capturable") or group.get("foreach") or group.get("fused"):
            self._check_options(group, params, states)
        grads = [p._grad for p in params]
        for g in grads:
            if g.__class__ is not Tensor and getattr(g, "is_sparse", False):
                self._refuse_sparse()
        if MODE.enabled:
            self._launch_tracked(group, params, grads, states, numbers, names, flags)
            return
        operands = [x if x.__class__ is float else _number(x) for x in numbers]
        scaling = (False, False)
        attributes = self.__dict__
        if "grad_scale" in attributes or "found_inf" in attributes:
            scaling = self._scaling(operands)
        targets = params + [s[name] for name in names for s in states] if names else params
        which = None
        sets: Any = None
        if self._scalars:
            columns = [[s[name] for s in states] for name in self._scalars]
            values = [[t._s.value for t in column] for column in columns]
            if all(column.count(column[0]) == len(params) for column in values):
                operands += [column[0] for column in values]
            else:
                which, sets = _sets(values)
                operands += sets
        operands += [t._s.value if t._view is None else t._read() for t in params]
        operands += [g._s.value if g._view is None else g._read() for g in grads]
        operands += [t._s.value if t._view is None else t._read() for t in targets[len(params) :]]
        count = len(params)
        static = (len(numbers), count, len(self._scalars), len(names), which, scaling, self._flags(group) + flags)
        outs = record(self._op, static, operands)
        first = 0
        if self._scalars:
            per_set = len(columns)
            if which is None:
                for column, v in zip(columns, outs, strict=False):
                    for t in column:
                        s = t._s
                        s.value = v
                        s.version += 1
                first = per_set
            else:
                first = len(sets)
                for j, column in enumerate(columns):
                    for t, k in zip(column, which, strict=True):
                        s = t._s
                        s.value = outs[k * per_set + j]
                        s.version += 1
        for t, v in zip(targets, outs[first:] if first else outs, strict=False):
            if t._view is None:
                s = t._s
                s.value = v
                s.version += 1
            else:
                write(t, wrap(v))
        if scaling[0]:
            for g, v in zip(grads, outs[-count:], strict=True):
                write(g, wrap(v))

    def _scaling(self, operands: list) -> tuple[bool, bool]:
        """Add what a gradient scaler asks for: divide by grad_scale, and do nothing if found_inf is not zero."""
        found = []
        for name in ("grad_scale", "found_inf"):
            t = getattr(self, name, None)
            found.append(t is not None)
            if t is not None:
                operands.append(_number(t))
        return found[0], found[1]

    def _check_options(self, group: dict, params: list, states: list) -> None:
        if group.get("fused"):
            for p in params:
                if not p._aval.dtype.is_floating_point:
                    raise RuntimeError(
                        "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                        "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone'] but "
                        f"{p._aval.dtype} and {p._aval.device.type}"
                    )
        if group.get("capturable"):
            names = _get_capturable_supported_devices(supports_xla=not group.get("foreach"))
            if any(p._aval.device.type not in names for p in params):
                raise AssertionError(
                    f"If capturable=True, {self._capturable_what} must be on supported devices: {names}."
                )
        if group.get("foreach"):
            if group.get("differentiable"):
                raise AssertionError("_foreach ops don't support autograd")
            lr = group.get("lr")
            if isinstance(lr, TensorBase) and not group.get("capturable") and self._no_foreach_tensor_lr:
                raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")

    def _refuse_sparse(self) -> None:
        if self._sparse_error:
            raise RuntimeError(self._sparse_error)
        raise NotImplementedError(f"{type(self).__name__} on sparse gradients")

    _capturable_what = "params and state_steps"
    _no_foreach_tensor_lr = False

    def _launch_tracked(
        self,
        group: dict,
        params: list,
        grads: list,
        states: list,
        numbers: Sequence,
        names: Sequence[str],
        flags: tuple,
    ) -> None:
        """`differentiable=True`: the same operation, on the tape; parameters must not be leaves that require grad."""
        for p in params:
            check_writable(p, True)
        tensors = [s[name] for name in names for s in states]
        columns = [[s[name] for s in states] for name in self._scalars]
        which = tuple(range(len(params))) if columns else None
        scalars = [column[k] for k in range(len(params)) for column in columns]
        static = (
            len(numbers),
            len(params),
            len(columns),
            len(names),
            which,
            (False, False),
            self._flags(group) + flags,
        )
        numbers = [x if isinstance(x, TensorBase) else float(x) for x in numbers]
        read = [_frozen(t) for t in (*scalars, *params, *grads, *tensors)]
        outs = apply(self._op, static, [*numbers, *read], many=True)
        for t, new in zip([*scalars, *params, *tensors], outs, strict=True):
            write(t, new)

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._group_defaults.items():
                group.setdefault(name, value)
            for p in group["params"]:
                own: Any = self.state.get(p)
                # A state without them is another class's: KeyError.
                for name in self._scalars if own else ():
                    if not isinstance(own[name], TensorBase):
                        own[name] = scalar_state(float(own[name]), group, p)
        for group in self.param_groups:
            share_scalars([self.state[p] for p in group["params"] if self.state.get(p)], self._scalars)

    _group_defaults: dict[str, Any] = {}
    """Options that older checkpoints do not have."""


def _frozen(t: Tensor) -> Tensor:
    """What t is now, at the same place on the tape: it can be saved for backward although t is written to later."""
    if not t._rg or t._gf is None:
        return t if t._rg else wrap(t._read())
    frozen = wrap(t._read())
    frozen._rg, frozen._gf = True, t._edge()
    return frozen


def _number(x: Any) -> Any:
    """A hyperparameter as an operand: a float, or the Value of a tensor."""
    if isinstance(x, TensorBase):
        return x._read()
    return float(x)


def _sets(values: list[list[Value]]) -> tuple[tuple[int, ...], list[Value]]:
    """Which parameters have which scalars: (set of each parameter, the sets one after the other)."""
    known: dict[tuple, int] = {}
    flat: list[Value] = []
    which = []
    for row in zip(*values, strict=True):
        k = known.get(row)
        if k is None:
            k = known[row] = len(known)
            flat += row
        which.append(k)
    return tuple(which), flat
