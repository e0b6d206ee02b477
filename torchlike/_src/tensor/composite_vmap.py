"""Random functions under vmap: which samples share a draw is the choice of vmap's `randomness`.

The machinery is in `torchlike.func`, which is imported when it is first used."""

import functools
import threading
from collections.abc import Callable
from typing import Any

from torchlike._src.tensor import composite_nn
from torchlike._src.tensor.namespace import SPACES, names
from torchlike._src.tensor.random_plain import SMALL, shortened
from torchlike._src.tensor.tensor import Tensor, TensorBase

ERROR = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
SAME_BATCHED = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
DIFFERENT_UNBATCHED = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
    "randomness. If this is necessary for your usage, please file an issue with functorch."
)


class _Stack(threading.local):
    """The function transforms in progress in this thread: the levels of vmap, outermost first, and their count."""

    def __init__(self) -> None:
        self.levels: list = []
        self.depth = 0


STACK = _Stack()


enter: Any = None
leave: Any = None
is_batched: Any = None
apply_function: Any = None
"""Set by `torchlike.func` when it is loaded; until then there are no levels."""


# -- random functions ------------------------------------------------------------------------------------------


def drawing_levels() -> tuple:
    """The levels whose samples get draws of their own; raises where vmap forbids draws."""
    if any(level.randomness == "error" for level in STACK.levels):
        raise RuntimeError(ERROR)
    return tuple(level for level in STACK.levels if level.randomness == "different")


class _Outside:
    """Within it, functions are called as if outside of every vmap."""

    def __enter__(self) -> None:
        self.before, STACK.levels = STACK.levels, []

    def __exit__(self, *unused: object) -> None:
        STACK.levels = self.before


def _draw(shape: tuple, make: Callable[[tuple], Tensor]) -> Tensor:
    """What make(shape) draws, for each sample that gets its own."""
    different = drawing_levels()
    with _Outside():
        if not different:
            return make(shape)
        physical = make(tuple(level.size for level in different) + tuple(shape))
    return _hidden(physical, different)


def _hidden(physical: Tensor, levels: tuple) -> Tensor:
    """A tensor whose first dims are those of `levels`, as the samples see it."""
    for level in levels:
        physical = enter(physical, level, 0)
    return physical


def _visible(t: Any, levels: tuple) -> Tensor:
    for level in reversed(levels):
        t = leave(t, level, 0)
    return t


def _batched(t: Any) -> bool:
    return isinstance(t, TensorBase) and is_batched(t)


def _sized(name: str, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    """rand, randn, randint, normal with a size."""
    from torchlike._src.tensor.views import sizes

    kwargs = dict(kwargs)
    if "size" in kwargs:
        given, args = kwargs.pop("size"), args
    elif name in ("rand", "randn"):
        given, args = args, ()
    else:
        given, args = args[-1], args[:-1]
    given = given if name in ("rand", "randn") and type(given) is tuple else (given,)
    return _draw(sizes(given), lambda shape: function(*args, size=shape, **kwargs))


def _like(name: str, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    kwargs = dict(kwargs)
    input = args[0] if args else kwargs.pop("input")

    def make(shape: tuple) -> Tensor:
        kwargs.setdefault("dtype", input.dtype)
        like = names("torch")["empty"](shape, dtype=input.dtype, device=input.device)
        return function(like, *args[1:], **kwargs)

    return _draw(tuple(input.shape), make)


def _permutation(name: str, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    def make(shape: tuple) -> Tensor:
        drawn = [function(*args, **kwargs) for _ in range(_count(shape))]
        return names("torch")["stack"](drawn).reshape(*shape, -1) if shape else drawn[0]

    return _draw((), make)


def _count(shape: tuple) -> int:
    out = 1
    for n in shape:
        out *= n
    return out


def _elementwise(name: str, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    """bernoulli, poisson, normal(tensor), …: a draw for each element of the tensors given."""
    if name == "normal" and not any(isinstance(a, TensorBase) for a in (*args, *kwargs.values())):
        return _sized(name, function, args, kwargs)
    different = drawing_levels()
    if not different:
        if any(_batched(a) for a in (*args, *kwargs.values())):
            raise RuntimeError(SAME_BATCHED)
        with _Outside():
            return function(*args, **kwargs)
    if len(different) > 1 and name == "multinomial":
        raise NotImplementedError("torchlike: torch.multinomial under nested vmap")

    def physical(a: Any) -> Any:
        return _visible(a.detach(), different) if isinstance(a, TensorBase) else a

    args = tuple(physical(a) for a in args)
    kwargs = {k: physical(a) for k, a in kwargs.items()}
    with _Outside():
        drawn = function(*args, **kwargs)
    return _hidden(drawn, different)


def _inplace(name: str, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    self, *rest = args
    different = drawing_levels()
    if any(_batched(a) for a in (*rest, *kwargs.values())):
        if not different:
            raise RuntimeError(SAME_BATCHED)
        rest = [_visible(a, different) if isinstance(a, TensorBase) else a for a in rest]
        kwargs = {k: _visible(a, different) if isinstance(a, TensorBase) else a for k, a in kwargs.items()}
    if different and not _batched(self):
        raise RuntimeError(DIFFERENT_UNBATCHED)
    empty = names("torch")["empty"]
    drawn = _draw(
        tuple(self.shape),
        lambda shape: function(empty(shape, dtype=self.dtype, device=self.device), *rest, **kwargs),
    )
    return self.copy_(drawn)


def _unsupported(name: str, function: Callable, args: tuple, kwargs: dict) -> Tensor:
    if kwargs.get("training", args[3] if len(args) > 3 else False):
        drawing_levels()
        raise NotImplementedError(f"torchlike: {name}(training=True) under vmap")
    return function(*args, **kwargs)


def _guarded(name: str, function: Callable, way: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not STACK.levels:
            return function(*args, **kwargs)
        return way(name, function, args, kwargs)

    return shortened(call, SMALL[name], STACK) if name in SMALL else call


WAYS = {
    "rand": _sized, "randn": _sized, "randint": _sized, "rand_like": _like, "randn_like": _like, "randint_like": _like,
    "randperm": _permutation, "normal": _elementwise, "bernoulli": _elementwise, "multinomial": _elementwise,
    "poisson": _elementwise, "binomial": _elementwise, "_standard_gamma": _elementwise,
    "_sample_dirichlet": _elementwise, "rrelu": _unsupported,
}  # fmt: skip
METHODS = {
    "bernoulli": _elementwise, "multinomial": _elementwise, "uniform_": _inplace, "normal_": _inplace,
    "random_": _inplace, "bernoulli_": _inplace, "exponential_": _inplace, "cauchy_": _inplace, "log_normal_": _inplace,
    "geometric_": _inplace,
}  # fmt: skip


def _install() -> None:
    for space in SPACES:
        known = names(space)
        for name, way in WAYS.items():
            if name in known:
                known[name] = _guarded(name, known[name], way)
    for name, way in METHODS.items():
        setattr(Tensor, name, _guarded(name, getattr(Tensor, name), way))
    keep_mask = composite_nn._keep_mask

    @functools.wraps(keep_mask)
    def masks(shape: Any, like: Any, p: float) -> Any:
        if not STACK.levels:
            return keep_mask(shape, like, p)
        return _draw(tuple(shape), lambda drawn: keep_mask(drawn, like, p))

    composite_nn._keep_mask = masks


_install()


# -- autograd inside of transforms -----------------------------------------------------------------------------

REQUIRES_GRAD = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
    "inside of a function being transformed by a functorch transform. This is unsupported, please attempt to use the "
    "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of a function "
    "being transformed instead."
)
BACKWARD = (
    "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
    "instead or call backward() outside of functorch transforms."
)


def _outside_only(name: str, text: str) -> None:
    """Let a method raise PyTorch's error inside of a transform: a leaf made there would belong to no sample."""
    function = getattr(Tensor, name)

    @functools.wraps(function)
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if STACK.depth and (name == "backward" or (args[0] if args else kwargs.get("requires_grad", True))):
            raise RuntimeError(text)
        return function(self, *args, **kwargs)

    setattr(Tensor, name, call)


_outside_only("requires_grad_", REQUIRES_GRAD)
_outside_only("backward", BACKWARD)
