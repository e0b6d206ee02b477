"""Random numbers as PyTorch recorded them: programs of random calls, and each function's arguments and errors.

`test_sequences.py` compares 200 longer programs to the bit, where PyTorch is installed."""

import copy

from compat_tests.harness import case, raises
from compat_tests.random.sequences import digest, run


def shown(name, values):
    """A step in a few numbers: what its first tensors begin with, and how large they are."""
    parts = []
    for t in values[:3]:
        flat = t.reshape(-1)
        flat = flat.real if flat.is_complex() else flat
        parts.append([str(t.dtype), list(t.shape), [float(v) for v in flat[:4].tolist()]])
    return [name, len(values), parts]


@case(rtol=1e-5, atol=1e-6)
@case.params("seed", range(1000, 1012))
def case_programs(torch, seed):
    steps = []
    for name, _, values, g in run(torch, seed, 15):  # noqa: B007 - its last one is read below
        steps.append([*shown(name, values), digest(torch.get_rng_state())])
    return [*steps, digest(g.get_state())]


def outcome(torch, call):
    """What a call returns, with where it leaves the stream; or its error."""
    torch.manual_seed(7)
    try:
        value = call()
    except Exception as error:
        value = [type(error).__name__, str(error).split(" - got")[0].split(", but expected one")[0]]
    return [value, digest(torch.get_rng_state())]


@case
def case_sizes_and_out(torch):
    seeded = lambda: torch.Generator().manual_seed(5)  # noqa: E731
    calls = [
        lambda: torch.rand(3, 4), lambda: torch.rand((3, 4)), lambda: torch.rand([3, 4], generator=seeded()),
        lambda: torch.rand(size=(2, 2)), lambda: torch.rand(()), lambda: torch.rand(0, 3), lambda: torch.rand(),
        lambda: torch.rand(2, -1), lambda: torch.rand("a"), lambda: torch.rand(3.0), lambda: torch.rand(2, foo=1),
        lambda: torch.rand(2, names=("N",)), lambda: torch.rand(2, names=None), lambda: torch.rand(2, generator=3),
        lambda: torch.rand(2, dtype=float), lambda: torch.rand(2, dtype=torch.int64),
        lambda: torch.rand(2, device="meta").shape, lambda: torch.randn(2, dtype=torch.int64),
        lambda: torch.rand(3, out=torch.empty(5)), lambda: torch.rand(3, out=torch.empty(3, dtype=torch.float64)),
        lambda: torch.randn(20, 2, out=torch.empty(2, 20).t()),
        lambda: torch.rand(3, out=torch.empty(3, dtype=torch.float64), dtype=torch.float32),
        lambda: torch.rand(3, requires_grad=True), lambda: torch.rand(2, dtype=torch.float8_e4m3fn),
        lambda: torch.randperm(4, generator=seeded()), lambda: torch.randperm(-1), lambda: torch.randperm(2.0),
        lambda: torch.randperm(4, dtype=torch.float16), lambda: torch.randperm(3, device="meta").shape,
        lambda: torch.randperm(300, dtype=torch.uint8),
        lambda: torch.randperm(4, out=torch.empty(4, dtype=torch.int32)),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]


@case
def case_integers(torch):
    like = torch.zeros(2, 3)
    calls = [
        lambda: torch.randint(5, (3,)), lambda: torch.randint(2, 5, [3]), lambda: torch.randint(high=5, size=(3,)),
        lambda: torch.randint(low=1, high=5, size=(3,)), lambda: torch.randint(5, 3), lambda: torch.randint(5.0, (3,)),
        lambda: torch.randint(5, 5, (3,)), lambda: torch.randint(0, 300, (3,), dtype=torch.uint8),
        lambda: torch.randint(torch.tensor(5), (3,)), lambda: torch.randint(0, 5),
        lambda: torch.randint(5, (3,), device="meta").shape,
        lambda: torch.randint(0, 3, (3,), out=torch.empty(3, dtype=torch.int32)), lambda: torch.randint_like(like, 5),
        lambda: torch.randint_like(like, 2, 5), lambda: torch.randint_like(like, high=5),
        lambda: torch.randint_like(like, 5, generator=torch.Generator().manual_seed(1)),
        lambda: torch.zeros(4).random_(), lambda: torch.zeros(4).random_(5), lambda: torch.zeros(4).random_(2, 5),
        lambda: torch.zeros(4).random_(2, to=5), lambda: torch.zeros(4).random_(**{"from": 2, "to": None}),
        lambda: torch.zeros(4).random_(1.5), lambda: torch.zeros(4).random_(None),
        lambda: torch.zeros(4).random_(1, 2, 3), lambda: torch.zeros(4, dtype=torch.complex64).random_(),
        lambda: torch.zeros(4, dtype=torch.bool).random_(),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]


@case(rtol=1e-6, atol=1e-7)
def case_fills(torch):
    z = lambda *s, **k: torch.zeros(*s, **k)  # noqa: E731
    calls = [
        lambda: z(3).uniform_(2, 5), lambda: z(3).uniform_(to=5), lambda: z(3).uniform_(**{"from": 2, "to": 5}),
        lambda: z(3).uniform_(5, 2), lambda: z(3).uniform_(1, 2, 3), lambda: z(3).uniform_(foo=3),
        lambda: z(3).uniform_("a"), lambda: z(3, device="meta").uniform_().shape,
        lambda: z(3, 1).expand(3, 4).uniform_(), lambda: z(3, 1).expand(3, 4).bernoulli_(torch.full((3, 4), 0.5)),
        lambda: z(3, dtype=torch.int64).normal_(), lambda: z(40, 3).t().normal_(), lambda: z(3, 40)[:, ::2].normal_(),
        lambda: z(3, 40)[1:].normal_(), lambda: z(20).normal_(1, -3), lambda: z(20).normal_(mean=1, std=3),
        lambda: z(3).normal_(generator=3), lambda: z(3).bernoulli_(1.5), lambda: z(3).bernoulli_(torch.full((2,), 0.5)),
        lambda: z(3).bernoulli_("a"), lambda: z(3).bernoulli_(torch.full((2, 3), 0.5)),
        lambda: z(3).bernoulli_(torch.tensor(0.5)), lambda: z(3).exponential_(0), lambda: z(3).exponential_(1, 2),
        lambda: z(3).cauchy_(1, median=2), lambda: z(3).cauchy_(sigma=0), lambda: z(3).geometric_(),
        lambda: z(3).geometric_(1.5), lambda: z(3, dtype=torch.int64).exponential_(),
        lambda: z(3, requires_grad=True).normal_(), lambda: z((), dtype=torch.float32).bernoulli_(torch.tensor(0.5)),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]


@case(rtol=1e-6, atol=1e-7)
def case_from_tensors(torch):
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    meta = torch.ones(2, 3, device="meta")
    calls = [
        lambda: torch.normal(x, 2.0), lambda: torch.normal(x), lambda: torch.normal(x, x.abs()),
        lambda: torch.normal(2.0, x.abs()), lambda: torch.normal(x, -1.0), lambda: torch.normal(x, x),
        lambda: torch.normal(0.0, 1.0), lambda: torch.normal(x, 1.0, (3,)), lambda: torch.normal(0, 1, size=(3,)),
        lambda: torch.normal(torch.zeros(3, 1), torch.ones(4)),
        lambda: torch.normal(torch.zeros(3, dtype=torch.int64), 1.0), lambda: torch.normal(x.t(), 1.0),
        lambda: torch.normal(meta, 1.0).shape, lambda: torch.normal(0.0, 1.0, (3,), device="meta").shape,
        lambda: torch.bernoulli(x.abs()), lambda: torch.bernoulli(x), lambda: torch.bernoulli(x, 0.3),
        lambda: x.bernoulli(0.3), lambda: torch.bernoulli(x.abs(), out=torch.empty(3, 4, dtype=torch.int64)),
        lambda: torch.bernoulli(x.long()), lambda: torch.bernoulli(meta).shape,
        lambda: torch.multinomial(meta, 2).shape, lambda: torch.poisson(meta).shape,
        lambda: torch.multinomial(torch.ones(5), 2), lambda: torch.multinomial(torch.ones(5), 7),
        lambda: torch.multinomial(torch.ones(5), 0), lambda: torch.multinomial(torch.ones(5).long(), 2),
        lambda: torch.ones(5).multinomial(2), lambda: torch.poisson(x),
        lambda: torch.multinomial(torch.arange(1.0, 7).reshape(3, 2).t(), 2),
        lambda: torch.binomial(torch.full((3,), 10.0), torch.tensor(0.3)), lambda: torch._standard_gamma(x.abs() + 0.1),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]


@case
def case_history(torch):
    """What depends on a tensor that requires gradients has a grad_fn; its gradient is zero."""
    x = torch.full((3,), 0.5, requires_grad=True)
    functions = {
        "bernoulli": lambda: torch.bernoulli(x), "poisson": lambda: torch.poisson(x),
        "mean": lambda: torch.normal(x, 1.0), "std": lambda: torch.normal(1.0, x), "both": lambda: torch.normal(x, x),
        "normal_": lambda: (x * 1).normal_(), "uniform_": lambda: (x * 1).uniform_(),
        "bernoulli_": lambda: (x * 1).bernoulli_(), "random_": lambda: (x * 1).random_(),
        "exponential_": lambda: (x * 1).exponential_(), "geometric_": lambda: (x * 1).geometric_(0.3),
        "dropout": lambda: torch.nn.functional.dropout(x), "rrelu": lambda: torch.nn.functional.rrelu(x, training=True),
    }  # fmt: skip
    found = {}
    for name, function in functions.items():
        out = function()
        (gradient,) = torch.autograd.grad(out.sum(), x)
        found[name] = [type(out.grad_fn).__name__, gradient]
    view = (x * 1)[:2].normal_()
    return [found, type(view.grad_fn).__name__, torch.rand_like(x).requires_grad, torch.multinomial(x, 1).requires_grad]


@case(rtol=1e-4, atol=1e-12)
def case_derivatives(torch):
    """Gamma draws move with their shape; what PyTorch has no derivative of raises when asked for it."""
    x = torch.tensor([0.5, 2.0, 0.03], requires_grad=True)
    y = torch._standard_gamma(x)
    (gradient,) = torch.autograd.grad((y * torch.tensor([1.0, 2.0, 3.0])).sum(), x)
    found = [type(y.grad_fn).__name__, gradient]
    for call in (lambda: torch._sample_dirichlet(x), lambda: torch.binomial(torch.full((3,), 5.0), x.clamp(0, 1))):
        y = call()
        found += [y.grad_fn.name(), y.requires_grad]
        try:
            torch.autograd.grad(y.sum(), x)
        except RuntimeError as error:
            found.append(str(error))
    return found


@case
def case_truncated_normals_of_views(torch):
    views = {
        "transposed": lambda: torch.empty(12, 5).t(),
        "permuted": lambda: torch.empty(2, 3, 4, dtype=torch.float64).permute(2, 0, 1),
        "sliced": lambda: torch.empty(6, 9)[:, 1:5],
        "half": lambda: torch.empty(5, 4, dtype=torch.bfloat16).t(),
    }
    found = {}
    for name, view in views.items():
        for bounds in ((0.0, 1.0, -1.0, 1.0), (0.0, 1.0, 1.0, 2.0)):
            torch.manual_seed(4)
            found[f"{name} {bounds}"] = [torch.nn.init.trunc_normal_(view(), *bounds), digest(torch.get_rng_state())]
    return found


@case
def case_generators(torch):
    g = torch.Generator().manual_seed(5)
    calls = [
        lambda: str(torch.Generator("cpu:0").device), lambda: torch.Generator("meta"), lambda: g.get_offset(),
        lambda: g.set_offset(3), lambda: g.graphsafe_get_state(), lambda: g.graphsafe_set_state(3),
        lambda: g.manual_seed(1.5), lambda: g.manual_seed(True), lambda: g.manual_seed(torch.tensor(3)),
        lambda: g.manual_seed(2**64), lambda: g.manual_seed(-(2**63) - 1),
        lambda: torch.manual_seed("5").initial_seed(), lambda: torch.manual_seed(5.7).initial_seed(),
        lambda: torch.manual_seed(-1).initial_seed(), lambda: torch.manual_seed(torch.tensor(9)).initial_seed(),
        lambda: torch.manual_seed("x"), lambda: torch.manual_seed(None), lambda: torch.manual_seed(2**65),
        lambda: torch.manual_seed(seed=3) is torch.default_generator,
        lambda: torch.random.default_generator is torch.default_generator, lambda: torch.set_rng_state([1]),
        lambda: torch.set_rng_state(torch.zeros(5056)), lambda: torch.set_rng_state(torch.zeros(9, dtype=torch.uint8)),
        lambda: torch.set_rng_state(torch.zeros(5056, dtype=torch.uint8)), lambda: g.clone_state().initial_seed(),
        lambda: copy.deepcopy(g).initial_seed(), lambda: torch.rand(3, generator=copy.deepcopy(g)),
        lambda: torch.seed() == torch.initial_seed(), lambda: sorted(n for n in dir(g) if n[0] != "_"),
        lambda: sorted(torch.random.__all__), lambda: torch.Generator().initial_seed(),
    ]  # fmt: skip
    found = [outcome(torch, call) for call in calls]
    found[27][1] = None  # torch.seed() is unpredictable
    torch.set_rng_state(torch.Generator().manual_seed(3).get_state())
    return [*found, torch.rand(3), torch.get_rng_state()]


@case
def case_cuda_and_forks(torch):
    """Without a GPU, seeding one does nothing; fork_rng keeps the CPU's stream."""
    found = []
    if not torch.cuda.is_available():
        torch.manual_seed(1)
        for name in ("manual_seed", "manual_seed_all"):
            getattr(torch.cuda, name)(3)
        torch.cuda.seed()
        torch.cuda.seed_all()
        found += [torch.rand(2), torch.cuda.get_rng_state_all()]
    for options in ({}, {"enabled": False}, {"devices": []}, {"device_type": "meta"}):
        torch.manual_seed(1)
        with torch.random.fork_rng(**options):
            torch.randn(3)
        found.append(torch.randn(3))
    torch.manual_seed(1)

    def broken():
        with torch.random.fork_rng():
            torch.randn(3)
            raise ValueError("inside")

    return [*found, raises(torch, broken), torch.randn(3)]


@case
def case_dropouts(torch):
    F = torch.nn.functional
    x = torch.linspace(-1, 1, 24).reshape(2, 3, 4)
    calls = [
        lambda: F.dropout(x, 0.3), lambda: F.dropout(x, 0.3, False), lambda: F.dropout(x, 1.0),
        lambda: F.dropout(x, 0.0), lambda: F.dropout(x, 1.5), lambda: torch.dropout(x, 1.5, True),
        lambda: F.dropout(x.clone(), 0.3, True, True), lambda: F.dropout(x.transpose(0, 2), 0.3),
        lambda: F.dropout(x[:, ::2], 0.3), lambda: F.dropout(x.expand(2, 2, 3, 4), 0.3),
        lambda: F.dropout(x.half(), 0.3), lambda: F.dropout(x.bfloat16(), 0.3), lambda: F.dropout(x.double(), 0.3),
        lambda: F.dropout(torch.ones(4, dtype=torch.complex64), 0.3), lambda: F.dropout(x.to("meta"), 0.3).shape,
        lambda: F.dropout1d(x[0], 0.3), lambda: F.dropout2d(x[None], 0.3), lambda: F.dropout3d(x[None, None], 0.3),
        lambda: F.alpha_dropout(x, 0.3, True), lambda: F.feature_alpha_dropout(x, 0.3, True),
        lambda: torch.dropout_(x.clone(), 0.3, True), lambda: torch.native_dropout(x, 0.3, True)[1],
        lambda: torch.native_dropout(x, 1.0, True)[1], lambda: torch.native_dropout(x[:0].half(), 0.3, True)[1],
        lambda: torch.native_dropout(x, 0.3, False)[1], lambda: torch.feature_dropout(x, 0.3, True),
        lambda: F.rrelu(x, training=True), lambda: F.rrelu(x, 0.3, 0.1, True), lambda: torch.rrelu(x, 0.1, 0.3, True),
        lambda: torch.rrelu(x, 0.1, 0.3, True, generator=torch.Generator().manual_seed(5)),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]
