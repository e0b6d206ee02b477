"""Random functions on tensors: PyTorch's CPU stream, drawn on the host at once; on GPUs JAX's, in the program. Draws
never wait for a program, and what is drawn, or its key, enters programs as data: a new mask never compiles anything."""

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlike._src.autograd.grad_mode import MODE
from torchlike._src.autograd.tape import Node
from torchlike._src.core import dtype as dt
from torchlike._src.core.aval import CPU, aval
from torchlike._src.core.device import device as Device
from torchlike._src.core.dtype import default_dtype, require_numpy
from torchlike._src.core.errors import broadcast_shapes
from torchlike._src.engine import META_ARRAY, Value
from torchlike._src.ops.declare import RawOp
from torchlike._src.random import discrete, fills, jax_stream, rejection
from torchlike._src.random.generator import HostGenerator
from torchlike._src.tensor import generators
from torchlike._src.tensor.arguments import bind, given, signed, whole_tuple
from torchlike._src.tensor.call import apply, check_writable, write
from torchlike._src.tensor.creation import (
    as_dtype,
    check_bytes,
    check_layout,
    finish,
    from_array,
    from_value,
    resolve_device,
)
from torchlike._src.tensor.factories import check_memory_format, check_out, plain, prepared
from torchlike._src.tensor.generators import HOST, source
from torchlike._src.tensor.generators import Generator as Generator
from torchlike._src.tensor.generators import default_generator as default_generator
from torchlike._src.tensor.generators import host_source as host_source
from torchlike._src.tensor.publish import PUBLIC
from torchlike._src.tensor.tensor import Tensor, TensorBase, wrap

Source = HostGenerator | jax_stream.KeyGenerator

# -- drawing -----------------------------------------------------------------------------------------------------------


class Transform:
    """The door for function transforms (vmap, jit).

    While `under_transform` is set, every function that draws a given shape calls it, instead of drawing, as
    `under_transform(draw, shape, dtype, device) -> Tensor`. draw(shape) makes a NumPy array of that logical shape and
    moves the generator, so that a transform can draw once ("same"), with a batch dim in front ("different"), refuse
    ("error"), or draw from a JAX key of its own where a host draw would be frozen into a traced program. Functions of
    probabilities or rates given as tensors read these, except `bernoulli`, which is a draw and a comparison."""

    under_transform: Callable[[Callable[[tuple], np.ndarray], tuple, Any, Any], Tensor] | None = None


def under_transform(hook: Callable | None) -> Callable | None:
    """Set `Transform.under_transform`; returns what it was, to be put back."""
    before, Transform.under_transform = Transform.under_transform, hook
    return before


def _kernel(function: Callable) -> RawOp:
    out = RawOp(function, f"random_{function.__name__}")
    out.differentiable = False
    return out


class Kind:
    """A distribution: the host's fill, the kernel of the other stream with the numbers that it takes for the fill's
    (dtype, *args), whether memory layout changes the host's numbers, and whether a tensor without elements may be of a
    dtype that the distribution does not have (PyTorch then looks at the parameters only)."""

    __slots__ = ("empty_of_any", "host", "kernel", "layout_matters", "numbers")

    def __init__(
        self, host: Callable, kernel: Callable, numbers: Callable, layout_matters: bool = False,
        empty_of_any: bool = False,
    ) -> None:  # fmt: skip
        self.host, self.kernel, self.numbers = host, _kernel(kernel), numbers
        self.layout_matters, self.empty_of_any = layout_matters, empty_of_any


def _randint_host(gen: HostGenerator, shape: tuple, dtype: np.dtype, low: int, high: int) -> np.ndarray:
    return discrete.randint(gen, low, high, shape, dtype)


UNIFORM = Kind(fills.uniform, jax_stream.uniform, lambda dtype, low=0.0, high=1.0: (low, high))
NORMAL = Kind(fills.normal, jax_stream.normal, lambda dtype, mean=0.0, std=1.0: (mean, std), True, True)
BERNOULLI = Kind(discrete.bernoulli_p, jax_stream.bernoulli, lambda dtype, p: (p,), empty_of_any=True)
EXPONENTIAL = Kind(fills.exponential, jax_stream.exponential, lambda dtype, rate=1.0: (rate,), empty_of_any=True)
CAUCHY = Kind(fills.cauchy, jax_stream.cauchy, lambda dtype, median, sigma: (median, sigma))
LOG_NORMAL = Kind(fills.log_normal, jax_stream.log_normal, lambda dtype, mean, std: (mean, std), empty_of_any=True)
GEOMETRIC = Kind(fills.geometric, jax_stream.geometric, lambda dtype, p: (p,), empty_of_any=True)
RANDINT = Kind(_randint_host, jax_stream.integers, lambda dtype, low, high: (low, high - 1))
RANDOM = Kind(discrete.random_, jax_stream.integers, discrete.bounds)
BERNOULLI_TENSOR, SLOPES = _kernel(jax_stream.bernoulli_tensor), _kernel(jax_stream.slopes)
PERMUTATION, MULTINOMIAL = _kernel(jax_stream.permutation), _kernel(jax_stream.multinomial)
POISSON, BINOMIAL = _kernel(jax_stream.poisson), _kernel(jax_stream.binomial)
GAMMA, DIRICHLET = _kernel(jax_stream.gamma), _kernel(jax_stream.dirichlet)


def drawn(
    kind: Kind, gen: Source, shape: tuple, dtype: Any, device: Device, args: tuple = (), order: Any = None
) -> Tensor:
    """New random numbers of a logical shape, drawn in the memory order `order` (outermost dim first; None: row-major).

    Not for the meta device."""
    target = require_numpy(dtype)
    if kind.empty_of_any and not dtype.is_floating_point and 0 in shape:
        kind.host(HOST, (0,), np.dtype(np.float32), *args)
        return from_array(np.empty(shape, target), dtype, device)
    other = jax_stream.chosen(gen)
    if order is None and Transform.under_transform is None and not other:  # hot
        return from_value(aval(shape, dtype, device), kind.host(gen, shape, target, *args))
    options = {"scalar_path": True} if kind.layout_matters and order is not None else {}
    host = gen if Transform.under_transform is None else host_stream(gen)

    def draw(shape: tuple) -> np.ndarray:
        if order is None or len(shape) != len(order):
            return kind.host(host, shape, target, *args, **options)
        array = kind.host(host, tuple([shape[k] for k in order]), target, *args, **options)
        return np.ascontiguousarray(array.transpose(np.argsort(order)))

    if Transform.under_transform is not None:
        return Transform.under_transform(draw, shape, dtype, device)
    if other:
        kind.host(HOST, (0,), target, *args, **options)  # checks the arguments; an empty draw moves nothing
        return by_key(kind.kernel, gen, device, kind.numbers(target, *args), dtype=target, shape=tuple(shape))
    return from_value(aval(shape, dtype, device), draw(shape))


def host_stream(gen: Source) -> HostGenerator:
    """The generator, or a host stream for one call on a GPU."""
    return gen if isinstance(gen, HostGenerator) else gen.host()


def by_key(kernel: RawOp, gen: Source, device: Device, operands: tuple, **static: Any) -> Tensor:
    """Numbers of the other stream."""
    key = from_value(aval((2,), dt.uint32, device), jax_stream.draw_key(gen))
    return apply(kernel, tuple(static.items()), (key, *operands))


def _empty(input: Any) -> np.ndarray:
    """An array of the input's dtype without elements: host functions check it, and draw nothing."""
    return np.empty(0, input._aval.dtype.np)


def visiting_order(shape: tuple, strides: tuple) -> tuple | None:
    """The dims, outermost first, in which a kernel walks a tensor: by falling stride; None for row-major."""
    dims = [k for k in range(len(shape)) if shape[k] != 1]
    order = dims[::-1]  # innermost first
    for i in range(1, len(order)):
        here = i
        for other in range(i - 1, -1, -1):
            a, b = order[other], order[here]
            if strides[a] == 0 or strides[b] == 0:
                continue
            if strides[a] < strides[b] or (strides[a] == strides[b] and shape[a] <= shape[b]):
                break
            order[other], order[here] = b, a
            here = other
    order.reverse()
    if order == dims:
        return None
    return (*[k for k in range(len(shape)) if shape[k] == 1], *order)


def memory_order(t: Tensor) -> tuple | None:
    """`visiting_order` of a tensor."""
    view = t._view
    return None if view is None else visiting_order(t._aval.shape, view.strides)


def _meta(shape: tuple, dtype: Any, requires_grad: bool) -> Tensor:
    return finish(wrap(Value(aval(shape, dtype, Device("meta")), META_ARRAY)), requires_grad)


def _factory(
    name: str, kind: Kind, shape: tuple, args: tuple, generator: Any, out: Any, dtype: Any, fallback: Any, layout: Any,
    device: Any, requires_grad: bool,
) -> Tensor:  # fmt: skip
    """A creation function: a fresh tensor, or `out` resized and filled in its own memory order."""
    if layout is not None:
        check_layout(layout)
    for n in shape:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
        if n > LARGE:
            check_bytes(aval(shape, dtype or fallback or default_dtype(), CPU))
    if dtype is not None:
        dtype = as_dtype(dtype, name)
    if out is not None:
        gen = source(generator, name, out._aval.device)
        out = fill(_prepared(out, shape, dtype, name, device), kind, gen, args)
        return out.requires_grad_() if requires_grad else out
    dtype = dtype or fallback or default_dtype()
    device = resolve_device(device)
    gen = source(generator, name, device)
    if device.type == "meta":
        return _meta(shape, dtype, requires_grad)
    t = drawn(kind, gen, shape, dtype, device, args)
    return finish(t, True) if requires_grad else t


def _prepared(out: Tensor, shape: tuple, dtype: Any, name: str = "", device: Any = None) -> Tensor:
    """`out` in the wanted shape, after PyTorch's checks."""
    check_out(out, dtype, None, device, name)
    return prepared(out, shape)


def _into(out: Tensor | None, new: Tensor) -> Tensor:
    if out is None:
        return new
    return write(_prepared(out, new._aval.shape, None), new)


def _store_out(out: Tensor, array: np.ndarray) -> Tensor:
    _prepared(out, array.shape, None)
    return write(out, from_array(array, None, out._aval.device))


# -- creation ----------------------------------------------------------------------------------------------------------


def _creation(name: str, kind: Kind, doc: str) -> Any:
    def make(
        *size: Any, generator: Any = None, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False, **kwargs: Any,
    ) -> Tensor:  # fmt: skip
        if not kwargs and generator is None and out is None and plain(dtype, device, requires_grad):
            shape = whole_tuple(name, size)
        else:
            options = given(
                generator=generator, out=out, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
            )
            shape = bind(name, size, {**kwargs, **options})["size"]
        return _factory(name, kind, shape, (), generator, out, dtype, None, layout, device, requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__module__ = "torch"
    make.__doc__ = doc
    return make


rand = _creation("rand", UNIFORM, "Uniform numbers in [0, 1) of a size (sizes, or a sequence of them).")
randn = _creation("randn", NORMAL, "Standard normal numbers of a size (sizes, or a sequence of them).")


def _like(name: str, kind: Kind, args: tuple, bound: dict[str, Any]) -> Tensor:
    """New numbers in the shape of a tensor, drawn in the memory order that `empty_like` gives the result."""
    input, memory_format = bound["input"], bound.get("memory_format")
    requires_grad = bound.get("requires_grad", False)
    check_layout(bound.get("layout"))
    a = input._aval
    dtype = a.dtype if bound.get("dtype") is None else as_dtype(bound["dtype"], name)
    device = resolve_device(bound["device"]) if "device" in bound else a.device
    gen = source(bound.get("generator"), name, device)
    check_memory_format(memory_format, a.ndim)
    if device.type == "meta":
        return _meta(a.shape, dtype, requires_grad)
    wanted = repr(memory_format)
    if memory_format is None or "preserve" in wanted:
        order = memory_order(input)
    else:
        n = a.ndim
        order = (0, *range(2, n), 1) if "channels_last" in wanted else None
        if order is not None and 1 in a.shape:  # the order of dims of one element means nothing
            keep = [k for k in order if a.shape[k] != 1]
            order = None if keep == sorted(keep) else order
    return finish(drawn(kind, gen, a.shape, dtype, device, args, order), requires_grad)


LARGE = 1 << 24


@signed("rand_like")
def rand_like(*args: Any, **kwargs: Any) -> Tensor:
    """rand_like(input, *, generator, dtype, layout, device, requires_grad, memory_format): uniform numbers in [0, 1)
    in the shape, dtype and memory order of `input`."""
    return _like("rand_like", UNIFORM, (), bind("rand_like", args, kwargs))


@signed("randn_like")
def randn_like(*args: Any, **kwargs: Any) -> Tensor:
    """randn_like(input, *, generator, dtype, layout, device, requires_grad, memory_format): standard normal numbers in
    the shape, dtype and memory order of `input`."""
    return _like("randn_like", NORMAL, (), bind("randn_like", args, kwargs))


@signed("randint")
def randint(*args: Any, **kwargs: Any) -> Tensor:
    """randint(low=0, high, size, *, generator, out, dtype, layout, device, requires_grad): integers in [low, high)."""
    bound = bind("randint", args, kwargs)
    limits = (bound.get("low", 0), bound["high"])
    return _factory(
        "randint", RANDINT, bound["size"], limits, bound.get("generator"), bound.get("out"), bound.get("dtype"),
        dt.int64, bound.get("layout"), bound.get("device"), bound.get("requires_grad", False),
    )  # fmt: skip


@signed("randint_like")
def randint_like(*args: Any, **kwargs: Any) -> Tensor:
    """randint_like(input, low=0, high, *, ...): integers in [low, high), like `input`."""
    bound = bind("randint_like", args, kwargs)
    high = bound["high"].item() if isinstance(bound["high"], TensorBase) else bound["high"]
    return _like("randint_like", RANDINT, (bound.get("low", 0), high), bound)


@signed("randperm")
def randperm(*args: Any, **kwargs: Any) -> Tensor:
    """randperm(n, *, generator, out, dtype, layout, device, requires_grad): a random permutation of 0 … n - 1."""
    bound = bind("randperm", args, kwargs)
    n, out, dtype, device = bound["n"], bound.get("out"), bound.get("dtype"), bound.get("device")
    generator, requires_grad = bound.get("generator"), bound.get("requires_grad", False)
    check_layout(bound.get("layout"))
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = None if dtype is None else as_dtype(dtype, "randperm")
    if out is not None:
        host = host_stream(source(generator, "randperm", out._aval.device))
        _prepared(out, (n,), dtype, "randperm", device)
        return write(out, from_array(discrete.randperm(host, n, out._aval.dtype.np), out._aval.dtype, out._aval.device))
    dtype, device = dtype or dt.int64, resolve_device(device)
    gen = source(generator, "randperm", device)
    if device.type == "meta":
        return _meta((n,), dtype, requires_grad)
    target = require_numpy(dtype)
    if Transform.under_transform is not None:
        host = host_stream(gen)
        return Transform.under_transform(lambda _: discrete.randperm(host, n, target), (n,), dtype, device)
    if jax_stream.chosen(gen):
        discrete.check_permutation(n, target)
        return finish(by_key(PERMUTATION, gen, device, (), n=n, dtype=target), requires_grad)
    return from_array(discrete.randperm(host_stream(gen), n, target), dtype, device, requires_grad)


def with_history(name: str, input: Any, new: Tensor) -> Tensor:
    """`new`, and if `input` is a tensor that requires gradients, a history that gives it zeros."""
    if MODE.enabled and isinstance(input, TensorBase) and input._rg:
        return PUBLIC[f"_drawn_{name}"](input, new)
    return new


@signed("normal")
def normal(*args: Any, **kwargs: Any) -> Tensor:
    """normal(mean, std, size, *, generator, out, ...): normal numbers of a size, or one for each element of tensors
    `mean` and/or `std` (dtype: that of `out`, else of `mean` if it is a tensor, else of `std`)."""
    bound = bind("normal", args, kwargs)
    mean, std, generator, out = bound["mean"], bound.get("std", 1.0), bound.get("generator"), bound.get("out")
    if "size" in bound:
        limits = (float(mean), float(std))
        return _factory(
            "normal", NORMAL, bound["size"], limits, generator, out, bound.get("dtype"), None, bound.get("layout"),
            bound.get("device"), bound.get("requires_grad", False),
        )  # fmt: skip
    first = mean if isinstance(mean, TensorBase) else std
    return _normal_tensors(source(generator, "normal", first._aval.device), first, mean, std, out)


def _normal_tensors(gen: Source, first: Any, mean: Any, std: Any, out: Any) -> Tensor:
    tensors = [t for t in (mean, std) if isinstance(t, TensorBase)]
    shape = tensors[0]._aval.shape if len(tensors) == 1 else broadcast_shapes(*[t._aval.shape for t in tensors])
    device, dtype = first._aval.device, (first if out is None else out)._aval.dtype
    if any(t._aval.device.type == "meta" for t in tensors):
        return _meta(shape, dtype, False)
    if isinstance(std, TensorBase):
        if jax_stream.chosen(gen):
            fills.normal_tensors(HOST, np.empty(0, dtype.np), _empty(std))
            shift = mean.detach() if isinstance(mean, TensorBase) else float(mean)
            new = (drawn(NORMAL, gen, shape, dtype, device) * std.detach() + shift).to(dtype)
        else:
            m = mean._host() if isinstance(mean, TensorBase) else float(mean)
            new = from_array(fills.normal_tensors(host_stream(gen), m, std._host(), dtype.np), dtype, device)
        if isinstance(mean, TensorBase):
            new = with_history("normal_both", mean if mean._rg else std, new)
        else:
            new = with_history("normal_std", std, new)
    else:  # the numbers of `mean` are not needed to draw: it need not be computed now
        new = drawn(NORMAL, gen, shape, dtype, device, (0.0, float(std)))
        new = with_history("normal_mean", mean, (new + mean.detach()).to(dtype))
    return new if out is None else write(prepared(out, new._aval.shape, warn=True), new)


def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """0 or 1 with probability `p`, or with the probabilities in `input`."""
    if not isinstance(input, TensorBase) or p is not None and (out is not None or type(p) not in (float, int)):
        options = given(generator=generator, out=out)
        p = bind("bernoulli", (input,) if p is None else (input, p), options).get("p")
    a = input._aval
    gen = source(generator, "bernoulli", a.device)
    if a.device.type == "meta":
        return _meta(a.shape, a.dtype, False)
    if p is not None:
        new = drawn(BERNOULLI, gen, a.shape, a.dtype, a.device, (float(p),))
    elif Transform.under_transform is not None:
        unit = drawn(UNIFORM, gen, a.shape, dt.float64 if a.dtype is dt.float64 else dt.float32, a.device)
        new = (unit < input.detach()).to(a.dtype)
    elif jax_stream.chosen(gen):
        discrete.bernoulli_tensor(HOST, _empty(input))
        target = (a if out is None else out._aval).dtype.np
        new = by_key(BERNOULLI_TENSOR, gen, a.device, (input.detach(),), dtype=target)
    else:
        array = discrete.bernoulli_tensor(host_stream(gen), input._host(), None if out is None else out._aval.dtype.np)
        if out is not None:
            return _store_out(out, array)
        new = from_array(array, a.dtype, a.device)
    if out is not None:
        return write(_prepared(out, a.shape, None), new)
    return with_history("bernoulli", input, new)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """Category indices drawn by weight: (C,) -> (num_samples,), (R, C) -> (R, num_samples)."""
    if not isinstance(input, TensorBase) or type(num_samples) is not int or type(replacement) is not bool:
        args = (input, num_samples, replacement)
        num_samples = bind("multinomial", args, given(generator=generator, out=out))["num_samples"]
    if out is not None and out._aval.dtype is not dt.int64:
        raise RuntimeError("multinomial expects Long tensor out, got: " + out._aval.dtype.scalar_name)
    gen = source(generator, "multinomial", input._aval.device)
    if input._aval.device.type == "meta":
        return _meta((*input._aval.shape[:-1], num_samples), dt.int64, False)
    if jax_stream.chosen(gen):
        discrete.check_multinomial(np.ones(input._aval.shape, input._aval.dtype.np), num_samples, replacement)
        options = {"count": num_samples, "replacement": replacement and num_samples > 1}
        return _into(out, by_key(MULTINOMIAL, gen, input._aval.device, (input.detach(),), **options))
    weights = input._host()
    order = memory_order(input)
    if order is not None and (not replacement or num_samples == 1):
        array = _multinomial_transposed(host_stream(gen), weights, num_samples, replacement)
    else:
        array = discrete.multinomial(host_stream(gen), weights, num_samples, replacement)
    if out is not None:
        return _store_out(out, array)
    return from_array(array, dt.int64, input._aval.device)


def _multinomial_transposed(gen: HostGenerator, weights: np.ndarray, k: int, replacement: bool) -> np.ndarray:
    """Weights stored column by column: one exponential for each in that order."""
    discrete.check_multinomial(weights, k, replacement)
    noise = fills.exponential(gen, weights.shape[::-1], weights.dtype).T
    return discrete.multinomial_scores(weights, noise, k)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Poisson numbers with the rates in `input`."""
    if not isinstance(input, TensorBase):
        bind("poisson", (input,), {})
    gen = source(generator, "poisson", input._aval.device)
    if input._aval.device.type == "meta":
        return _meta(input._aval.shape, input._aval.dtype, False)
    if jax_stream.chosen(gen):
        rejection.poisson(HOST, _empty(input))
        new = by_key(POISSON, gen, input._aval.device, (input.detach(),))
    else:
        new = from_array(rejection.poisson(host_stream(gen), input._host()), input._aval.dtype, input._aval.device)
    return with_history("poisson", input, new)


def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """Binomial numbers: `count` trials of probability `prob`, broadcast."""
    if not isinstance(count, TensorBase) or not isinstance(prob, TensorBase):
        bind("binomial", (count, prob), {})
    broadcast_shapes(count._aval.shape, prob._aval.shape)
    gen = source(generator, "binomial", count._aval.device)
    if jax_stream.chosen(gen):
        rejection.binomial(HOST, _empty(count), _empty(prob))
        new = by_key(BINOMIAL, gen, count._aval.device, (count.detach(), prob.detach()))
    else:
        c, p = np.broadcast_arrays(count._host(), prob._host())
        new = from_array(np.asarray(rejection.binomial(host_stream(gen), c, p)), count._aval.dtype, count._aval.device)
    return without_derivative("binomial", new, count, prob)


def standard_gamma(input: Tensor, generator: Any = None) -> Tensor:
    """Gamma numbers of scale 1 with the shapes in `input`, and the gradient that moves a draw with its shape."""
    gen = source(generator, "_standard_gamma", input._aval.device)
    if jax_stream.chosen(gen):
        rejection.standard_gamma(HOST, _empty(input))
        new = by_key(GAMMA, gen, input._aval.device, (input.detach(),))
    else:
        new = from_array(
            rejection.standard_gamma(host_stream(gen), input._host()), input._aval.dtype, input._aval.device
        )
    return with_history("standard_gamma", input, new)


def sample_dirichlet(input: Tensor, generator: Any = None) -> Tensor:
    """Dirichlet samples with the concentrations in the last dim of `input`, without a derivative as in PyTorch
    (torch.distributions' have one)."""
    gen = source(generator, "_sample_dirichlet", input._aval.device)
    if jax_stream.chosen(gen):
        rejection.dirichlet(HOST, _empty(input))
        new = by_key(DIRICHLET, gen, input._aval.device, (input.detach(),))
    else:
        new = from_array(rejection.dirichlet(host_stream(gen), input._host()), input._aval.dtype, input._aval.device)
    return without_derivative("_sample_dirichlet", new, input)


class _NoDerivative(Node):
    """The history of a result whose derivative PyTorch does not have either."""

    __slots__ = ("function",)
    function: str

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def pull(self, grads: list, keep: bool) -> Any:
        raise RuntimeError(f"derivative for aten::{self.function} is not implemented")

    pull_graph = pull


def without_derivative(function: str, new: Tensor, *inputs: Tensor) -> Tensor:
    """`new`, which backward cannot pass if one of the inputs requires gradients."""
    if MODE.enabled and any(t._rg for t in inputs):
        node = _NoDerivative(tuple(t._edge() if t._rg else None for t in inputs), (new._aval,))
        node.function = function
        new._rg, new._gf = True, node
    return new


# -- in place ----------------------------------------------------------------------------------------------------------


def fill(t: Tensor, kind: Kind, gen: Source, args: tuple, history: str | None = None) -> Tensor:
    """Overwrite a tensor with numbers drawn in the order in which PyTorch walks its memory."""
    check_writable(t, False)
    a = t._aval
    if a.device.type == "meta":
        return t
    require_numpy(a.dtype)
    new = drawn(kind, gen, a.shape, a.dtype, a.device, args, walk(t))
    if history is not None and t._rg:
        new = with_history(history, t, new)
    return write(t, new, fit=False)


def walk(t: Tensor) -> tuple | None:
    """The order of a fill; a row-major view with gaps counts as strided: the order of its dims, spelt out."""
    view = t._view
    if view is None:
        return None
    order = visiting_order(t._aval.shape, view.strides)
    return tuple(range(t._aval.ndim)) if order is None and not t.is_contiguous() else order


def _in_place(name: str, kind: Kind, parameters: tuple[tuple[str, Any], ...], doc: str) -> Any:
    """A method that overwrites with numbers of a distribution. A parameter without a default has None."""
    defaults = [d for _, d in parameters]
    least, most = sum(d is None for d in defaults), len(defaults)

    def method(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        if not kwargs and least <= len(args) <= most and {float, int}.issuperset(map(type, args)):  # hot
            numbers = (*map(float, args), *defaults[len(args) :])
        else:
            bound = bind(name, args, {**kwargs, **given(generator=generator)})
            numbers = tuple([float(bound.get(n, d)) for n, d in parameters])
        return fill(self, kind, source(generator, name, self._aval.device), numbers, name)

    method.__name__ = name
    method.__doc__ = doc
    return method


uniform_ = _in_place("uniform_", UNIFORM, (("from", 0.0), ("to", 1.0)), "Overwrite with numbers in [from, to).")
normal_ = _in_place("normal_", NORMAL, (("mean", 0.0), ("std", 1.0)), "Overwrite with normal numbers.")
exponential_ = _in_place("exponential_", EXPONENTIAL, (("lambd", 1.0),), "Overwrite with exponential numbers.")
cauchy_ = _in_place("cauchy_", CAUCHY, (("median", 0.0), ("sigma", 1.0)), "Overwrite with Cauchy numbers.")
log_normal_ = _in_place("log_normal_", LOG_NORMAL, (("mean", 1.0), ("std", 2.0)), "Overwrite with log-normal numbers.")
geometric_ = _in_place("geometric_", GEOMETRIC, (("p", None),), "Overwrite with numbers of trials up to a success.")


def random_(self: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
    """Overwrite with integers: random_(), random_(to), random_(from, to)."""
    bound = bind("random_", args, {**kwargs, **given(generator=generator)}) if args or kwargs else {}
    low, high = bound.get("from"), bound.get("to")
    history = "random_" if high is None and low is None else "random_to_" if low is None else "random_from_"
    return fill(self, RANDOM, source(generator, "random_", self._aval.device), (low, high), history)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite with 0 or 1, with probability p (a number, or a tensor broadcastable to self)."""
    gen = source(generator, "bernoulli_", self._aval.device)
    if not isinstance(p, TensorBase):
        if type(p) is not float:
            bind("bernoulli_", (p,), given(generator=generator))
        return fill(self, BERNOULLI, gen, (float(p),), "bernoulli_")
    check_writable(self, False)
    if self._aval.device.type == "meta":
        return self
    target, shape = self._aval.dtype.np, self._aval.shape
    if jax_stream.chosen(gen):
        discrete.bernoulli_tensor(HOST, _empty(p))
        new = by_key(BERNOULLI_TENSOR, gen, self._aval.device, (p.detach().expand(shape),), dtype=target)
        return write(self, with_history("bernoulli_tensor_", self, new), fit=False)
    probabilities = p.detach().expand(shape)._host()  # PyTorch's error if it cannot be
    order = walk(self)
    if order is None:
        array = discrete.bernoulli_tensor(host_stream(gen), probabilities, target)
    else:
        array = discrete.bernoulli_tensor(host_stream(gen), probabilities.transpose(order), target)
        array = np.ascontiguousarray(array.transpose(np.argsort(order)))
    new = from_array(array, self._aval.dtype, self._aval.device)
    return write(self, with_history("bernoulli_tensor_", self, new), fit=False)


# -- masks and slopes --------------------------------------------------------------------------------------------------


def keep_mask(shape: tuple, like: Tensor, p: float) -> Tensor:
    """Which elements dropout with 0 <= p < 1 keeps, bool of `shape`: for a tensor of like's dtype and device, drawn
    row-major from the default generator."""
    a = like._aval
    if a.device.type == "meta":
        return _meta(tuple(shape), dt.bool_, False)
    if not (a.dtype.is_floating_point or a.dtype.is_complex):
        discrete.check_bernoulli(a.dtype.np)
        drawn(BERNOULLI, HOST, tuple(shape), dt.bool_, a.device, (1.0 - p,))  # PyTorch draws first
        names = default_dtype().scalar_name, a.dtype.scalar_name
        raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
    if a.dtype.is_complex:
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{a.dtype.scalar_name}'")
    gen = HOST if a.device is CPU else source(None, None, a.device)
    return drawn(BERNOULLI, gen, tuple(shape), dt.bool_, a.device, (1.0 - p,))


def torch_rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, generator: Any = None
) -> Tensor:
    """Leaky ReLU whose slope is random in training: one draw for each element that is not positive."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training or input._aval.device.type == "meta":
        return PUBLIC["_rrelu_eval"](input, lower, upper)
    gen = source(generator, "rrelu", input._aval.device)
    if jax_stream.chosen(gen):
        fills.rrelu_noise(HOST, _empty(input), lower, upper)
        noise = by_key(SLOPES, gen, input._aval.device, (input.detach(), float(lower), float(upper)))
    else:
        array = fills.rrelu_noise(host_stream(gen), input._host(), lower, upper)
        noise = from_array(array, None, input._aval.device)
    return PUBLIC["_rrelu_with_noise"](input, noise)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Leaky ReLU whose slope is random in training."""
    out = torch_rrelu(input, lower, upper, training)
    if inplace:
        check_writable(input, out._rg)
        return write(input, out)
    return out


TORCH = (
    "Generator", "default_generator", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "rand",
    "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "bernoulli", "multinomial",
    "poisson", "binomial",
)  # fmt: skip
METHODS = (
    "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "geometric_", "bernoulli",
    "multinomial",
)  # fmt: skip


def install(torch: dict[str, Any], functional: dict[str, Any]) -> None:
    """Publish this page's names."""
    here = globals()
    for name in TORCH:
        torch[name] = here[name] if name in here else getattr(generators, name)
    torch["rrelu"], functional["rrelu"] = torch_rrelu, rrelu
    torch["_standard_gamma"], torch["_sample_dirichlet"] = standard_gamma, sample_dirichlet
    for name in METHODS:
        setattr(Tensor, name, here[name])
