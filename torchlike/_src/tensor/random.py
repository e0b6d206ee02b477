"""Random functions on tensors: PyTorch's CPU stream, drawn on the host at once. Draws never wait for a program, and
what is drawn enters programs as data: a new mask never compiles anything."""

from typing import Any

import numpy as np

from torchlike._src.core import dtype as dt
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import default_dtype, require_numpy
from torchlike._src.random import discrete, fills, rejection
from torchlike._src.random.generator import HostGenerator
from torchlike._src.tensor.call import check_writable, write
from torchlike._src.tensor.creation import check_layout, from_array
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import Tensor, TensorBase
from torchlike._src.tensor.views import geometry, sizes


class Generator:
    """A source of random numbers with PyTorch's CPU stream."""

    __module__ = "torch._C"

    def __init__(self, device: Any = "cpu") -> None:
        self.device = Device(device)
        if self.device.type not in ("cpu", "cuda"):
            raise RuntimeError(f"Device type {self.device.type.upper()} is not supported for torch.Generator() api.")
        self._host = HostGenerator()

    def manual_seed(self, seed: int) -> "Generator":
        """Restart from a seed; returns the generator."""
        if type(seed) is not int:
            if isinstance(seed, np.integer):
                raise TypeError("an integer is required")
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        self._host.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Restart from an unpredictable seed, which is returned."""
        return self._host.seed()

    def initial_seed(self) -> int:
        """The last seed."""
        return self._host.initial_seed()

    def get_state(self) -> Tensor:
        """The state as PyTorch stores it, uint8 (5056,)."""
        return from_array(self._host.get_state(), device="cpu")

    def set_state(self, new_state: Tensor) -> "Generator":
        """Continue from a state."""
        self._host.set_state(new_state._host() if isinstance(new_state, TensorBase) else new_state)
        return self

    def clone_state(self) -> "Generator":
        """Another generator in the same state."""
        out = Generator(self.device)
        out._host.set_state(self._host.get_state())
        return out

    graphsafe_get_state = clone_state

    def __reduce__(self) -> tuple:
        return _restore_generator, (str(self.device), self._host.get_state())


def _restore_generator(device: str, state: np.ndarray) -> Generator:
    out = Generator(device)
    out._host.set_state(state)
    return out


default_generator = Generator()
default_generator.seed()
HOST = default_generator._host


def source(generator: Any) -> HostGenerator:
    """The host generator to draw from."""
    if generator is None:
        return HOST
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return generator._host


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator (and every device's); returns it."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator unpredictably and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, uint8 (5056,)."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)


# -- creation ----------------------------------------------------------------------------------------------------------


def _creation(name: str, draw: Any) -> Any:
    def make(
        *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False, names: Any = None, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if "size" in kwargs:
            size = (kwargs.pop("size"),)
        if kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        check_layout(layout)
        shape = sizes(size)
        dtype = dtype or (out._aval.dtype if out is not None else default_dtype())
        for n in shape:
            if n < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
        return _result(draw(source(generator), shape, require_numpy(dtype)), dtype, device, requires_grad, out)

    make.__name__ = make.__qualname__ = name
    make.__module__ = "torch"
    return make


def _result(array: np.ndarray, dtype: Any, device: Any, requires_grad: bool, out: Any) -> Tensor:
    if out is not None:
        from torchlike._src.tensor.call import resize_out

        if out._aval.shape != array.shape:
            resize_out(out, out._aval.with_shape(array.shape))
        return write(out, from_array(array, dtype, out._aval.device))
    return from_array(array, dtype, device, requires_grad)


rand = _creation("rand", fills.uniform)
rand.__doc__ = "Uniform numbers in [0, 1)."
randn = _creation("randn", fills.normal)
randn.__doc__ = "Standard normal numbers."


def _like(name: str, draw: Any) -> Any:
    def make(
        input: Tensor, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, memory_format: Any = None, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        a = input._aval
        dtype = dtype or a.dtype
        array = draw(source(generator), a.shape, require_numpy(dtype))
        return from_array(array, dtype, a.device if device is None else device, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__module__ = "torch"
    return make


rand_like = _like("rand_like", fills.uniform)
randn_like = _like("randn_like", fills.normal)


def randint(
    *args: Any, low: Any = None, high: Any = None, size: Any = None, generator: Any = None, out: Any = None,
    dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Integers in [low, high): randint(high, size) or randint(low, high, size)."""
    rest = list(args)
    if size is None:
        if not rest:
            raise TypeError("randint() missing required argument 'size'")
        size = rest.pop()
    if len(rest) == 2:
        low, high = rest
    elif len(rest) == 1:
        if low is None and high is None:
            low, high = 0, rest[0]
        elif high is not None:
            low = rest[0]
        else:
            high = rest[0]
    low = 0 if low is None else low
    dtype = dtype or (out._aval.dtype if out is not None else dt.int64)
    array = discrete.randint(source(generator), int(low), int(high), sizes((size,)), require_numpy(dtype))
    return _result(array, dtype, device, requires_grad, out)


def randint_like(
    input: Tensor, low: Any, high: Any = None, *, generator: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Integers in [low, high) (or [0, low)), like `input`."""
    if high is None:
        low, high = 0, low
    a = input._aval
    dtype = dtype or a.dtype
    array = discrete.randint(source(generator), int(low), int(high), a.shape, require_numpy(dtype))
    return from_array(array, dtype, a.device if device is None else device, requires_grad)


def randperm(
    n: int, *, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A random permutation of 0 … n - 1."""
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    dtype = dtype or (out._aval.dtype if out is not None else dt.int64)
    return _result(
        discrete.randperm(source(generator), int(n), require_numpy(dtype)), dtype, device, requires_grad, out
    )


def normal(
    mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Normal numbers: of a size, or one for each element of tensors `mean` and/or `std`."""
    gen = source(generator)
    if isinstance(mean, TensorBase) or isinstance(std, TensorBase):
        m = mean._host() if isinstance(mean, TensorBase) else float(mean)
        s = std._host() if isinstance(std, TensorBase) else float(std)
        array = fills.normal_tensors(gen, m, s)
        return _result(array, dt.from_numpy(array.dtype), None, False, out)
    if size is None:
        raise TypeError("normal() received an invalid combination of arguments: float mean and std need a size")
    dtype = dtype or (out._aval.dtype if out is not None else default_dtype())
    array = fills.normal(gen, sizes((size,)), require_numpy(dtype), float(mean), float(std))
    return _result(array, dtype, device, requires_grad, out)


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """0 or 1 with probability `p`, or with the probabilities in `input`."""
    a = input._aval
    gen = source(generator)
    if p is not None:
        array = discrete.bernoulli_p(gen, a.shape, a.dtype.np, float(p))
    else:
        array = discrete.bernoulli_tensor(gen, input._host())
    return _result(array, a.dtype, a.device, False, out)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """Category indices drawn by weight: (C,) -> (num_samples,), (R, C) -> (R, num_samples)."""
    array = discrete.multinomial(source(generator), input._host(), num_samples, replacement)
    return _result(array, dt.int64, input._aval.device, False, out)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Poisson numbers with the rates in `input`."""
    return from_array(rejection.poisson(source(generator), input._host()), input._aval.dtype, input._aval.device)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Binomial numbers."""
    c, p = np.broadcast_arrays(count._host(), prob._host())
    return from_array(np.asarray(rejection.binomial(source(generator), c, p)), count._aval.dtype)


def standard_gamma(input: Tensor, generator: Any = None) -> Tensor:
    """Gamma numbers of scale 1 with the shapes in `input` (not differentiable)."""
    return from_array(rejection.standard_gamma(source(generator), input._host()), input._aval.dtype)


def sample_dirichlet(input: Tensor, generator: Any = None) -> Tensor:
    """Dirichlet samples with the concentrations in the last dimension of `input` (not differentiable)."""
    return from_array(rejection.dirichlet(source(generator), input._host()), input._aval.dtype)


# -- in place ----------------------------------------------------------------------------------------------------------


def _store(t: Tensor, array: np.ndarray) -> Tensor:
    return write(t, from_array(array, t._aval.dtype, t._aval.device), fit=False)


def _memory_order(t: Tensor) -> tuple | None:
    """The permutation of dims in which a view's elements lie in memory; None for row-major tensors."""
    if t._view is None:
        return None
    shape, strides, _ = geometry(t)
    order = list(range(len(shape)))
    for i in range(1, len(order)):
        for j in range(i, 0, -1):
            a, b = order[j - 1], order[j]
            if shape[a] == 1 or shape[b] == 1 or strides[a] == 0 or strides[b] == 0:
                continue
            if strides[a] < strides[b] or (strides[a] == strides[b] and shape[a] < shape[b]):
                order[j - 1], order[j] = b, a
            else:
                break
    return tuple(order) if order != list(range(len(shape))) else None


def _fill(t: Tensor, draw: Any) -> Tensor:
    """Draw for a tensor in the order in which PyTorch visits its memory. draw(shape, contiguous) -> array."""
    check_writable(t, False)
    if t._aval.device.type == "meta":
        return t
    require_numpy(t._aval.dtype)
    order = _memory_order(t)
    shape = t._aval.shape
    row_major = t.is_contiguous()
    if order is None:
        return _store(t, draw(shape, row_major))
    array = draw(tuple(shape[k] for k in order), row_major)
    return _store(t, np.ascontiguousarray(array.transpose(np.argsort(order))))


def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **kwargs: Any) -> Tensor:
    """Overwrite with uniform numbers in [from, to)."""
    from_ = kwargs.pop("from", from_)
    gen = source(generator)
    return _fill(self, lambda shape, _: fills.uniform(gen, shape, self._aval.dtype.np, float(from_), float(to)))


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite with normal numbers."""
    gen = source(generator)
    return _fill(
        self,
        lambda shape, row_major: fills.normal(
            gen, shape, self._aval.dtype.np, float(mean), float(std), scalar_path=not row_major
        ),
    )


def random_(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
    """Overwrite with integers: random_(), random_(to), random_(from, to)."""
    low = kwargs.pop("from", None)
    high = kwargs.pop("to", None)
    if len(args) == 1:
        high = args[0]
    elif len(args) == 2:
        low, high = args
    gen = source(generator)
    return _fill(self, lambda shape, _: discrete.random_(gen, shape, self._aval.dtype.np, low, high))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite with 0 or 1, with probability p (a number, or a tensor broadcastable to self)."""
    gen = source(generator)
    target = self._aval.dtype.np
    if isinstance(p, TensorBase):
        probabilities = np.broadcast_to(p._host(), self._aval.shape)
        order = _memory_order(self)
        check_writable(self, False)
        if order is None:
            return _store(self, discrete.bernoulli_tensor(gen, np.ascontiguousarray(probabilities), target))
        array = discrete.bernoulli_tensor(gen, np.ascontiguousarray(probabilities.transpose(order)), target)
        return _store(self, np.ascontiguousarray(array.transpose(np.argsort(order))))
    return _fill(self, lambda shape, _: discrete.bernoulli_p(gen, shape, target, float(p)))


def _simple(name: str, draw: Any, defaults: tuple) -> Any:
    names = [n for n, _ in defaults]

    def method(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        values = dict(defaults)
        if len(args) > len(names):
            raise TypeError(f"{name}() takes at most {len(names)} arguments ({len(args)} given)")
        values.update(zip(names, args, strict=False))
        for k in kwargs:
            if k not in values:
                raise TypeError(f"{name}() got an unexpected keyword argument '{k}'")
        values.update(kwargs)
        gen = source(generator)
        numbers = [float(values[n]) for n in names]
        return _fill(self, lambda shape, _: draw(gen, shape, self._aval.dtype.np, *numbers))

    method.__name__ = name
    method.__doc__ = f"Overwrite with random numbers; parameters {', '.join(names)}."
    return method


exponential_ = _simple("exponential_", fills.exponential, (("lambd", 1.0),))
cauchy_ = _simple("cauchy_", fills.cauchy, (("median", 0.0), ("sigma", 1.0)))
log_normal_ = _simple("log_normal_", fills.log_normal, (("mean", 1.0), ("std", 2.0)))
geometric_ = _simple("geometric_", fills.geometric, (("p", 0.5),))


# -- dropout -----------------------------------------------------------------------------------------------------------

RANGE = "dropout probability has to be between 0 and 1, but got {p}"


def keep_mask(shape: tuple, p: float, like: Tensor) -> Tensor:
    """Which elements dropout keeps, bool of `shape`, drawn from the default generator."""
    return from_array(discrete.dropout_noise(HOST, shape, p), dt.bool_, like._aval.device)


def _dropped(input: Tensor, p: float, shape: tuple, kernel: str, inplace: bool) -> Tensor:
    if p == 0 or not input._aval.numel:
        return input
    if p == 1:
        out = input * 0
    else:
        order = _memory_order(input) if shape == input._aval.shape else None
        if order is None:
            keep = keep_mask(shape, p, input)
        else:
            drawn = discrete.dropout_noise(HOST, tuple(shape[k] for k in order), p)
            keep = from_array(np.ascontiguousarray(drawn.transpose(np.argsort(order))), dt.bool_, input._aval.device)
        out = PUBLIC[kernel](input, keep, p=p)
    if inplace:
        check_writable(input, out._rg)
        return write(input, out)
    return out


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(RANGE.format(p=p))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability p and scale the rest by 1 / (1 - p), in training."""
    _check(p)
    return _dropped(input, p, input._aval.shape, "_dropout_apply", inplace) if training else input


def torch_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """torch.dropout(input, p, train)."""
    if p < 0.0 or p > 1.0:
        raise RuntimeError(RANGE.format(p=p))
    return dropout(input, p, train)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance after SELU."""
    _check(p)
    return _dropped(input, p, input._aval.shape, "_alpha_dropout_apply", inplace) if training else input


def _feature_shape(input: Tensor) -> tuple:
    shape = input._aval.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return shape[:2] + (1,) * (len(shape) - 2)


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool = False) -> Tensor:
    """Zero whole channels with probability p."""
    _check(p)
    return _dropped(input, p, _feature_shape(input), "_dropout_apply", inplace) if training else input


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Alpha dropout of whole channels."""
    _check(p)
    return _dropped(input, p, _feature_shape(input), "_alpha_dropout_apply", inplace) if training else input


def _channel_dropout(name: str, dims: tuple[int, ...], batch: int) -> Any:
    def function(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        _check(p)
        n = input._aval.ndim
        if n not in dims:
            import warnings

            if name == "dropout1d":
                raise RuntimeError(
                    f"dropout1d: Expected 2D or 3D input, but received a {n}D input. Note that dropout1d exists to "
                    "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an "
                    "optional batch dimension (i.e. 2D or 3D inputs)."
                )
            warnings.warn(
                f"{name}: Received a {n}-D input to {name}, which is deprecated and will result in an error in a "
                "future release. To retain the behavior and silence this warning, please use dropout instead. Note "
                f"that {name} exists to provide channel-wise dropout on inputs with {2 if name == 'dropout2d' else 3} "
                "spatial dimensions, a channel dimension, and an optional batch dimension (i.e. "
                f"{'3D or 4D' if name == 'dropout2d' else '4D or 5D'} inputs).",
                stacklevel=2,
            )
        if name == "dropout1d" and n == 2 or name == "dropout3d" and n == 4:
            from torchlike._src.tensor.views import squeeze, unsqueeze

            out = feature_dropout(unsqueeze(input, 0), p, training, False)
            out = squeeze(out, 0)
            if inplace and training:
                return write(input, out)
            return out
        return feature_dropout(input, p, training, inplace)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Zero whole channels with probability p, in training."
    return function


dropout1d = _channel_dropout("dropout1d", (2, 3), 3)
dropout2d = _channel_dropout("dropout2d", (3, 4), 4)
dropout3d = _channel_dropout("dropout3d", (4, 5), 5)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU whose slope is random in training."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if training:
        noise = from_array(fills.rrelu_noise(HOST, input._host(), lower, upper), input._aval.dtype)
        out = PUBLIC["_rrelu_with_noise"](input, noise)
    else:
        out = PUBLIC["_rrelu_eval"](input, lower, upper)
    if inplace:
        check_writable(input, out._rg)
        return write(input, out)
    return out


TORCH = (
    "Generator", "default_generator", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "rand",
    "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "bernoulli", "multinomial",
    "poisson", "binomial", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "rrelu",
)  # fmt: skip
METHODS = (
    "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_", "bernoulli",
    "multinomial",
)  # fmt: skip
FUNCTIONAL = (
    "dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "rrelu",
)  # fmt: skip


def install(torch: dict[str, Any], functional: dict[str, Any]) -> None:
    """Publish this page's names."""
    here = globals()
    for name in TORCH:
        torch[name] = here[name]
    torch["dropout"] = torch_dropout
    torch["_standard_gamma"], torch["_sample_dirichlet"] = standard_gamma, sample_dirichlet
    for name in METHODS:
        setattr(Tensor, name, here[name])
    for name in FUNCTIONAL:
        functional[name] = here[name]
