"""Random programs of random calls: the same Python numbers choose the same calls on any module called `torch`."""

import hashlib
import importlib
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "uint8", "int8", "bool")
Step = Callable[[Any, random.Random, Any], Any]
STEPS: dict[str, tuple[Step, bool]] = {}


def step(function: Step) -> Step:
    """A call whose values are PyTorch's to the bit."""
    STEPS[function.__name__] = function, True
    return function


def close(function: Step) -> Step:
    """A call whose draws are PyTorch's to the bit, and whose arithmetic afterwards is not."""
    STEPS[function.__name__] = function, False
    return function


def shape_of(rnd: random.Random, dims: tuple[int, ...] = (0, 1, 2, 3, 4)) -> tuple[int, ...]:
    """A shape, of 300 elements or so at most; sometimes empty."""
    n = rnd.choice(dims)
    largest = {0: 1, 1: 300, 2: 17, 3: 7, 4: 4}[n]
    return tuple(rnd.randint(0 if rnd.random() < 0.05 else 1, largest) for _ in range(n))


def dtype_of(torch: Any, rnd: random.Random, names: tuple[str, ...] = FLOATS) -> Any:
    return getattr(torch, rnd.choice(names))


def place(torch: Any, rnd: random.Random, dtype: Any, made: Callable | None = None) -> Any:
    """A tensor to write to: a whole one, or a transposed, permuted, sliced or stepped view."""
    made = made or torch.zeros
    kind = rnd.choice(("whole", "whole", "transposed", "permuted", "sliced", "stepped", "row", "single"))
    if kind == "whole":
        return made(shape_of(rnd), dtype=dtype)
    if kind == "transposed":
        return made((rnd.randint(1, 20), rnd.randint(1, 20)), dtype=dtype).t()
    if kind == "permuted":
        n = rnd.choice((3, 4))
        order = list(range(n))
        rnd.shuffle(order)
        return made(tuple(rnd.randint(1, 5) for _ in range(n)), dtype=dtype).permute(order)
    if kind == "sliced":
        a, b = rnd.randint(2, 12), rnd.randint(6, 20)
        return made((a, b), dtype=dtype)[:, 1 : b - 2]
    if kind == "stepped":
        return made((rnd.randint(1, 6), rnd.randint(2, 40)), dtype=dtype)[:, ::2]
    if kind == "row":
        return made((4, rnd.randint(1, 60)), dtype=dtype)[rnd.randint(0, 3)]
    return made((rnd.randint(1, 40), 1, 3), dtype=dtype).transpose(0, 2)


def ramp(torch: Any, rnd: random.Random, low: float, high: float, dtype: Any, shape: tuple | None = None) -> Any:
    """Numbers between low and high, no two alike, in no particular order."""
    shape = shape_of(rnd) if shape is None else shape
    n = math.prod(shape)
    values = [low + (high - low) * ((k + 1) * 0.6180339887498949 % 1.0) for k in range(n)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).to(dtype)


# -- creation


@step
def rand(torch: Any, rnd: random.Random, g: Any) -> Any:
    return torch.rand(shape_of(rnd), dtype=dtype_of(torch, rnd, (*FLOATS, "complex64")), generator=g)


@step
def randn(torch: Any, rnd: random.Random, g: Any) -> Any:
    return torch.randn(shape_of(rnd), dtype=dtype_of(torch, rnd, (*FLOATS, "complex64")), generator=g)


@step
def randn_of_a_size(torch: Any, rnd: random.Random, g: Any) -> Any:
    return torch.randn(rnd.choice((1, 3, 15, 16, 17, 100, 1000, 2500)), generator=g)


@step
def many(torch: Any, rnd: random.Random, g: Any) -> Any:
    """Enough to use words that were made ahead of their use, and to cross from some of them to the next."""
    n = rnd.choice((5000, 16380, 20001, 65520))
    return rnd.choice((
        lambda: torch.rand(n, generator=g), lambda: torch.randn(n, generator=g),
        lambda: torch.empty(n).normal_(0.3, 1.7, generator=g), lambda: torch.empty(n).normal_(0, 0.02, generator=g),
        lambda: torch.empty(n, dtype=torch.bfloat16).normal_(generator=g), lambda: torch.randperm(n, generator=g),
        lambda: torch.empty(n).bernoulli_(0.3, generator=g), lambda: torch.randint(10, (n,), generator=g),
        lambda: torch.nn.functional.dropout(torch.ones(n), 0.1), lambda: torch.empty(n).exponential_(generator=g),
    ))()  # fmt: skip


@step
def randint(torch: Any, rnd: random.Random, g: Any) -> Any:
    dtype = dtype_of(torch, rnd, ("int64", "int32", "int16", "float32", "bfloat16"))
    low = rnd.choice((0, -5, -100))
    return torch.randint(low, low + rnd.choice((1, 2, 7, 128)), shape_of(rnd), dtype=dtype, generator=g)


@step
def randint_wide(torch: Any, rnd: random.Random, g: Any) -> Any:
    return torch.randint(rnd.choice((2**28 - 1, 2**28, 2**40)), shape_of(rnd), generator=g)


@step
def randperm(torch: Any, rnd: random.Random, g: Any) -> Any:
    return torch.randperm(rnd.choice((0, 1, 2, 30, 1000, 6000)), generator=g)


@step
def likes(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = place(torch, rnd, dtype_of(torch, rnd))
    return [torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 2, 9)]


@step
def out(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = torch.empty(rnd.choice((3, 20)), rnd.choice((4, 5)))
    made = [torch.rand(x.shape, out=x, generator=g).clone()]
    made.append(torch.randn(tuple(x.t().shape), out=x.t(), generator=g).clone())
    made.append(torch.randint(0, 9, x.shape, out=x, generator=g).clone())
    return [*made, torch.randperm(6, out=torch.empty(0, dtype=torch.int64), generator=g)]


@step
def normal(torch: Any, rnd: random.Random, g: Any) -> Any:
    shape, dtype = shape_of(rnd), dtype_of(torch, rnd)
    mean, std = ramp(torch, rnd, -2, 2, dtype, shape), ramp(torch, rnd, 0.1, 3, dtype, shape)
    return [
        torch.normal(0.5, 2.0, shape, generator=g),
        torch.normal(mean, std, generator=g),
        torch.normal(mean, 0.5, generator=g),
        torch.normal(1.0, std, generator=g),
    ]


# -- in place


@step
def uniform_(torch: Any, rnd: random.Random, g: Any) -> Any:
    low = rnd.choice((0.0, -0.3, 2.0))
    return place(torch, rnd, dtype_of(torch, rnd)).uniform_(low, low + rnd.choice((1.0, 0.7)), generator=g)


@step
def normal_(torch: Any, rnd: random.Random, g: Any) -> Any:
    return place(torch, rnd, dtype_of(torch, rnd)).normal_(rnd.choice((0.0, 0.3)), rnd.choice((1.0, 0.02)), generator=g)


@step
def random_(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = place(torch, rnd, dtype_of(torch, rnd, (*FLOATS, *INTEGERS)))
    way = rnd.choice(("all", "to", "between", "from"))
    if way == "all":
        return x.random_(generator=g)
    if way == "from" and x.dtype != torch.bool:
        return x.random_(**{"from": 3, "to": None}, generator=g)
    return x.random_(2, generator=g) if way == "to" else x.random_(0, 2, generator=g)


@step
def bernoulli_(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = place(torch, rnd, dtype_of(torch, rnd, (*FLOATS, *INTEGERS)))
    if rnd.random() < 0.5:
        return x.bernoulli_(rnd.choice((0.0, 0.2, 0.5, 1.0)), generator=g)
    p = ramp(torch, rnd, 0, 1, dtype_of(torch, rnd), tuple(x.shape))
    return x.bernoulli_(p, generator=g)


@step
def exponential_(torch: Any, rnd: random.Random, g: Any) -> Any:
    return place(torch, rnd, dtype_of(torch, rnd)).exponential_(rnd.choice((1.0, 0.3)), generator=g)


@step
def other_fills(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = place(torch, rnd, dtype_of(torch, rnd))
    return [
        x.cauchy_(0.5, 2.0, generator=g).clone(), x.log_normal_(0.3, 0.25, generator=g).clone(),
        x.geometric_(0.3, generator=g).clone(), x.cauchy_().clone(), x.log_normal_().clone(), x.geometric_(0.7).clone(),
    ]  # fmt: skip


# -- from tensors


@step
def bernoulli(torch: Any, rnd: random.Random, g: Any) -> Any:
    p = ramp(torch, rnd, 0, 1, dtype_of(torch, rnd))
    out = torch.empty(p.shape, dtype=p.dtype)
    return [
        torch.bernoulli(p, generator=g), torch.bernoulli(p, 0.3, generator=g), p.bernoulli(0.6),
        torch.bernoulli(p, out=out, generator=g),
    ]  # fmt: skip


@step
def multinomial(torch: Any, rnd: random.Random, g: Any) -> Any:
    rows, columns = rnd.randint(1, 4), rnd.randint(4, 40)
    w = ramp(torch, rnd, 0.1, 1, dtype_of(torch, rnd, FLOATS[:2]), (rows, columns))
    if rnd.random() < 0.3:
        w = ramp(torch, rnd, 0.1, 1, w.dtype, (columns, rows)).t()
    k = rnd.choice((1, 3))
    return [
        torch.multinomial(w, k, generator=g),
        torch.multinomial(w, 6, True, generator=g),
        torch.multinomial(w[0], k, generator=g),
    ]


@step
def rates(torch: Any, rnd: random.Random, g: Any) -> Any:
    dtype, shape = dtype_of(torch, rnd, FLOATS[:2]), shape_of(rnd)
    count = ramp(torch, rnd, 0, 90, dtype, shape).floor()
    return [
        torch.poisson(ramp(torch, rnd, 0, 30, dtype, shape), generator=g),
        torch.binomial(count, ramp(torch, rnd, 0, 1, dtype, shape), generator=g),
        torch._standard_gamma(ramp(torch, rnd, 0.05, 4, dtype, shape), generator=g),
    ]


@close
def dirichlet(torch: Any, rnd: random.Random, g: Any) -> Any:
    """PyTorch adds the rows up in another order."""
    return torch._sample_dirichlet(ramp(torch, rnd, 0.05, 4, torch.float64, (rnd.randint(1, 9), 3)), generator=g)


# -- dropout


@step
def dropout(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = place(torch, rnd, dtype_of(torch, rnd), torch.ones)
    p = rnd.choice((0.0, 0.1, 0.5, 1.0))
    F, plain = torch.nn.functional, x.contiguous()
    return [
        F.dropout(x, p), torch.dropout(x, p, True), torch.nn.Dropout(p)(x), F.dropout(plain.clone(), p, inplace=True),
        *torch.native_dropout(plain, 0.3, True), torch.dropout_(plain.clone(), 0.3, True),
    ]  # fmt: skip


@step
def channel_dropout(torch: Any, rnd: random.Random, g: Any) -> Any:
    F = torch.nn.functional
    x = ramp(torch, rnd, -1, 1, dtype_of(torch, rnd, FLOATS[:2]), (2, rnd.randint(1, 9), 3, 2))
    return [F.dropout1d(x[0], 0.3), F.dropout2d(x, 0.3), F.dropout3d(x[None], 0.3), torch.feature_dropout(x, 0.5, True)]


@close
def alpha_dropout(torch: Any, rnd: random.Random, g: Any) -> Any:
    F = torch.nn.functional
    x = ramp(torch, rnd, -1, 1, dtype_of(torch, rnd, FLOATS[:2]), (2, rnd.randint(1, 9), 3))
    return [F.alpha_dropout(x, 0.3, True), F.feature_alpha_dropout(x, 0.3, True), torch.alpha_dropout(x.mT, 0.2, True)]


@step
def rrelu(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = ramp(torch, rnd, -1, 1, dtype_of(torch, rnd, FLOATS[:2]))
    return [
        torch.nn.functional.rrelu(x, training=True), torch.rrelu(x, 0.1, 0.3, True, g), torch.nn.RReLU(0.2, 0.4)(x),
        torch.nn.functional.rrelu(x.clone(), training=True, inplace=True),
    ]  # fmt: skip


@close
def gumbel(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = ramp(torch, rnd, -1, 1, torch.float32, (rnd.randint(1, 6), 5))
    return [torch.nn.functional.gumbel_softmax(x, hard=rnd.random() < 0.5), torch.nn.functional.gumbel_softmax(x.t())]


@step
def fractional_pool(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = ramp(torch, rnd, -1, 1, torch.float32, (2, 3, 9, 8))
    return [
        torch.nn.functional.fractional_max_pool2d(x, 2, output_size=(4, 5)),
        torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)(x[None, :, :2].expand(1, 2, 2, 9, 8).repeat(1, 1, 3, 1, 1)),
    ]


# -- layers


@step
def layers(torch: Any, rnd: random.Random, g: Any) -> Any:
    nn = torch.nn
    a, b = rnd.randint(1, 30), rnd.randint(1, 30)
    made = [
        lambda: nn.Linear(a, b), lambda: nn.Conv2d(a, b, 3), lambda: nn.ConvTranspose1d(a, b, 3),
        lambda: nn.Embedding(a, b, padding_idx=0), lambda: nn.Bilinear(a, b, 3), lambda: nn.LSTM(a, b, 2),
        lambda: nn.GRUCell(a, b), lambda: nn.MultiheadAttention(4 * b, 4, add_bias_kv=True),
        lambda: nn.TransformerEncoderLayer(4, 2, b), lambda: nn.Linear(a, b, dtype=torch.float64),
        lambda: nn.Transformer(4, 2, 1, 1, b),
    ]  # fmt: skip
    return [p.detach() for p in rnd.choice(made)().parameters()]


@step
def init(torch: Any, rnd: random.Random, g: Any) -> Any:
    init = torch.nn.init
    x = torch.empty(rnd.randint(1, 30), rnd.randint(1, 30), dtype=dtype_of(torch, rnd, FLOATS[:2]))
    y = x.t() if rnd.random() < 0.3 else x
    return rnd.choice((
        lambda: init.xavier_uniform_(y, 1.5, generator=g), lambda: init.xavier_normal_(y, generator=g),
        lambda: init.kaiming_uniform_(x, 0.2, generator=g),
        lambda: init.kaiming_normal_(y, mode="fan_out", generator=g), lambda: init.uniform_(x, -1, 2, generator=g),
        lambda: init.normal_(y, 1, 2, generator=g), lambda: init.trunc_normal_(x, std=0.02, generator=g),
        lambda: init.trunc_normal_(x, a=1.0, b=2.0, generator=g), lambda: init.sparse_(x, 0.3, generator=g),
        lambda: init.trunc_normal_(y, 0.5, 1.5, -2.5, 1.5, generator=g), lambda: init.uniform_(y, 0, 3, generator=g),
        lambda: init.trunc_normal_(y, a=1.0, b=2.0, generator=g), lambda: init.sparse_(x, 0.5, 0.3),
        lambda: init.kaiming_uniform_(y, 0.2, generator=g), lambda: init.kaiming_normal_(x, generator=g),
    ))()  # fmt: skip


@close
def orthogonal(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = torch.empty(rnd.randint(1, 9), rnd.randint(1, 9))
    return torch.nn.init.orthogonal_(x.t() if rnd.random() < 0.3 else x, 2.0, generator=g)


@step
def pruned(torch: Any, rnd: random.Random, g: Any) -> Any:
    layer = torch.nn.Linear(rnd.randint(1, 9), rnd.randint(2, 9))
    prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
    prune.random_unstructured(layer, "weight", 0.3)
    prune.random_structured(layer, "weight", 0.5, 0)
    return layer.weight_mask


@close
def attention(torch: Any, rnd: random.Random, g: Any) -> Any:
    x = ramp(torch, rnd, -1, 1, torch.float32, (2, 2, 5, 4))
    y = torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.2, is_causal=rnd.random() < 0.5)
    attend = torch.nn.MultiheadAttention(4, 2, dropout=0.3)
    return [y, attend(x[0], x[0], x[0], need_weights=rnd.random() < 0.5)[0]]


@close
def recurrent(torch: Any, rnd: random.Random, g: Any) -> Any:
    nn = torch.nn
    kind = rnd.choice((nn.LSTM, nn.GRU, nn.RNN))
    layer = kind(3, 4, 2, dropout=0.4, batch_first=rnd.random() < 0.5, bidirectional=rnd.random() < 0.5)
    return layer(ramp(torch, rnd, -1, 1, torch.float32, (3, 2, 3)))[0]


@close
def encoder(torch: Any, rnd: random.Random, g: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2)(ramp(torch, rnd, -1, 1, torch.float32, (3, 2, 4)))


# -- data, distributions, generators


@step
def loader(torch: Any, rnd: random.Random, g: Any) -> Any:
    data = torch.utils.data
    set_ = data.TensorDataset(torch.arange(rnd.randint(1, 40)))
    found = data.DataLoader(set_, rnd.randint(1, 7), shuffle=rnd.random() < 0.7, generator=rnd.choice((g, None)))
    return [b[0] for _ in range(2) for b in found]


@step
def samplers(torch: Any, rnd: random.Random, g: Any) -> Any:
    data = torch.utils.data
    n = rnd.randint(1, 50)
    parts = data.random_split(range(n), [0.5, 0.25, 0.25], generator=g)
    found = [list(part.indices) for part in parts]
    found.append(list(data.RandomSampler(range(n), replacement=rnd.random() < 0.5, num_samples=n + 3, generator=g)))
    found.append(list(data.SubsetRandomSampler(range(n), generator=g)))
    found.append(list(data.WeightedRandomSampler([1.0 + k % 5 for k in range(n)], 7, generator=g)))
    found.append(list(data.WeightedRandomSampler([1.0 + k / 64 for k in range(n)], n, False, generator=g)))
    found.append(list(data.DistributedSampler(range(n), 2, 1, seed=n)))
    return [torch.tensor(f, dtype=torch.int64) for f in found]


@close
def distributions(torch: Any, rnd: random.Random, g: Any) -> Any:
    d = torch.distributions
    return rnd.choice((
        lambda: d.Normal(0.5, 2.0).sample((5,)), lambda: d.Categorical(torch.tensor([0.2, 0.5, 0.3])).sample((7,)),
        lambda: d.Bernoulli(torch.tensor([0.2, 0.7])).sample((4,)), lambda: d.Gamma(2.0, 3.0).sample((9,)),
        lambda: d.Beta(0.5, 2.0).sample((6,)), lambda: d.Dirichlet(torch.tensor([0.5, 1.0, 2.0])).sample((3,)),
        lambda: d.Poisson(4.0).sample((8,)), lambda: d.Exponential(2.0).sample((8,)),
        lambda: d.Uniform(-1.0, 2.0).sample((8,)), lambda: d.Cauchy(0.0, 1.0).sample((8,)),
        lambda: d.StudentT(3.0).sample((4,)), lambda: d.Laplace(0.0, 1.0).sample((4,)),
        lambda: d.Multinomial(9, torch.tensor([0.2, 0.8])).sample((3,)), lambda: d.Gumbel(0.0, 1.0).sample((4,)),
        lambda: d.Binomial(20, torch.tensor([0.2, 0.8])).sample((3,)), lambda: d.LogNormal(0.0, 1.0).sample((4,)),
        lambda: d.Geometric(0.3).sample((4,)), lambda: d.VonMises(0.0, 2.0).sample((4,)),
        lambda: d.Weibull(1.0, 2.0).sample((4,)), lambda: d.Pareto(1.0, 2.0).sample((4,)),
        lambda: d.HalfNormal(1.0).sample((4,)), lambda: d.HalfCauchy(1.0).sample((4,)),
        lambda: d.NegativeBinomial(5.0, torch.tensor([0.3, 0.6])).sample((3,)), lambda: d.Chi2(3.0).sample((4,)),
        lambda: d.FisherSnedecor(3.0, 4.0).sample((4,)), lambda: d.Kumaraswamy(0.5, 2.0).sample((4,)),
        lambda: d.OneHotCategorical(torch.tensor([0.2, 0.5, 0.3])).sample((4,)),
        lambda: d.MultivariateNormal(torch.zeros(3), torch.eye(3)).sample((4,)),
        lambda: d.RelaxedBernoulli(torch.tensor(0.5), torch.tensor([0.2, 0.7])).sample((3,)),
        lambda: d.RelaxedOneHotCategorical(torch.tensor(0.5), torch.tensor([0.2, 0.5, 0.3])).sample((3,)),
        lambda: d.ContinuousBernoulli(torch.tensor([0.2, 0.7])).sample((3,)),
        lambda: d.InverseGamma(2.0, 3.0).sample((4,)), lambda: d.LKJCholesky(3, 1.5).sample((2,)),
        lambda: d.LogisticNormal(torch.zeros(2), torch.ones(2)).sample((3,)),
        lambda: d.LowRankMultivariateNormal(torch.zeros(3), torch.ones(3, 1), torch.ones(3)).sample((2,)),
    ))()  # fmt: skip


@step
def forks(torch: Any, rnd: random.Random, g: Any) -> Any:
    before = torch.get_rng_state()
    with torch.random.fork_rng():
        torch.manual_seed(rnd.randint(-(2**63), 2**64 - 1))
        inside = torch.randn(rnd.randint(1, 40))
    twin = torch.Generator()
    twin.set_state(before)
    return [inside, torch.rand(3), torch.rand(3, generator=twin), torch.rand(3, generator=twin.clone_state())]


@step
def reseed(torch: Any, rnd: random.Random, g: Any) -> Any:
    torch.manual_seed(rnd.randint(-(2**63), 2**64 - 1))
    return torch.tensor(torch.initial_seed() % 2**32)


# -- running


def flat(value: Any) -> list:
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


def run(torch: Any, seed: int, length: int) -> Iterator[tuple[str, bool, list, Any]]:
    """The calls of one program: (name, whether to the bit, tensors, the second generator), one after the other."""
    rnd = random.Random(seed)
    torch.manual_seed(rnd.randint(0, 2**64 - 1))
    g = torch.Generator().manual_seed(rnd.randint(0, 2**63))
    names = list(STEPS)
    for _ in range(length):
        name = rnd.choice(names)
        function, exact = STEPS[name]
        with torch.no_grad():
            values = flat(function(torch, rnd, rnd.choice((None, g))))
        yield name, exact, values, g


def digest(state: Any) -> str:
    """A short digest of a generator's state."""
    return hashlib.sha1(state.numpy().tobytes()).hexdigest()[:12]
