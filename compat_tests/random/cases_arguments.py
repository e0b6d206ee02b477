"""Arguments and dtypes of random functions at their edges: values, errors and where each call leaves the stream."""

from compat_tests.harness import case
from compat_tests.random.cases_streams import outcome
from compat_tests.random.sequences import digest

nan, inf = float("nan"), float("inf")


def full_outcome(torch, call):
    """`outcome`, with the whole error text."""
    torch.manual_seed(7)
    try:
        value = call()
    except Exception as error:
        value = [type(error).__name__, str(error)]
    return [value, digest(torch.get_rng_state())]


@case(rtol=1e-5, atol=1e-6)
def case_normal_of_tensors(torch):
    normal, mean = torch.normal, torch.arange(20.0)
    std = torch.ones(20)
    calls = [
        lambda: normal(mean.half(), std), lambda: normal(mean.bfloat16(), std.half()),
        lambda: normal(mean.double(), std),
        lambda: normal(mean, std.double()), lambda: normal(mean.int(), std), lambda: normal(mean.cfloat(), std),
        lambda: normal(mean, std, out=torch.zeros(20, dtype=torch.float64)),
        lambda: normal(mean, std, out=torch.zeros(20, dtype=torch.int64)), lambda: normal(1.0, std.to(torch.uint16)),
        lambda: normal(torch.zeros(3), torch.ones(4)), lambda: normal(torch.zeros(2, 3), torch.ones(6)),
        lambda: normal("a", 1.0, (2,)), lambda: normal(0.0, std, generator=3), lambda: normal(mean, 1.0, (3,)),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]


@case(rtol=1e-5, atol=1e-6)
@case.params("dtype", ["int32", "bool", "uint16", "complex64", "bfloat16"])
def case_dtypes_without_numbers(torch, dtype):
    d = getattr(torch, dtype)
    full, none = torch.ones(20, dtype=d), torch.ones(0, dtype=d)
    calls = [
        lambda: full.bernoulli_(), lambda: full.bernoulli_(torch.full((20,), 0.5)), lambda: torch.bernoulli(full),
        lambda: torch.bernoulli(full, 0.3), lambda: full.geometric_(0.5), lambda: full.exponential_(),
        lambda: full.exponential_(-1), lambda: full.cauchy_(0, -1), lambda: full.log_normal_(),
        lambda: torch.randperm(5, dtype=d), lambda: none.normal_(), lambda: none.exponential_(),
        lambda: none.log_normal_(), lambda: none.geometric_(0.5), lambda: none.uniform_(), lambda: none.cauchy_(),
        lambda: torch.nn.functional.dropout(full, 0.5),
    ]  # fmt: skip
    return [outcome(torch, call) for call in calls]


@case(rtol=1e-5, atol=1e-6)
def case_numbers_that_do_not_fit(torch):
    x = torch.zeros(7)
    calls = [
        lambda: torch.randint(0, 2**63, (7,)), lambda: torch.randint(2**70, (3,)), lambda: torch.randperm(2**70),
        lambda: x.random_(2**63), lambda: x.random_(True), lambda: x.random_(1.5), lambda: x.random_(1, 2, 3),
        lambda: x.random_(to=1.5), lambda: x.uniform_(1j), lambda: x.uniform_("a"), lambda: x.uniform_(1, 2, 3),
        lambda: x.uniform_(torch.ones(1)), lambda: x.normal_(None), lambda: x.geometric_(),
        lambda: x.geometric_(0.5, 1),
        lambda: x.cauchy_(1, foo=2), lambda: x.bernoulli_("a"), lambda: torch.bernoulli([0.5]),
        lambda: torch.bernoulli(x, 0.5, out=x), lambda: torch.multinomial([0.5], 1), lambda: torch.randperm(True),
        lambda: torch.multinomial(torch.ones(2), 1.0), lambda: torch.multinomial(torch.ones(2), 1, out=torch.zeros(1)),
        lambda: torch.poisson([1.0]), lambda: torch.poisson(torch.tensor([inf, 1e20])),
        lambda: torch.binomial(torch.ones(3), 0.5), lambda: torch.binomial(torch.ones(3), torch.ones(4)),
        lambda: torch._standard_gamma(torch.tensor([nan, -1.0])), lambda: torch.randint(True, (3,)),
        lambda: torch.randint(torch.tensor(5.0), (3,)), lambda: torch.randint(low=1, size=(3,)),
        lambda: torch.randperm(256, dtype=torch.uint8).sum(), lambda: torch.randint_like(x, 2.0, 5),
    ]  # fmt: skip
    return [full_outcome(torch, call) for call in calls]


@case(rtol=1e-5, atol=1e-6)
def case_dropout_edges(torch):
    F = torch.nn.functional
    x = torch.arange(1.0, 25.0).reshape(4, 6)

    def in_place():
        t = x.clone()
        return [F.dropout3d(t, 0.4, True, True), t]

    calls = [
        lambda: F.dropout3d(x, 0.4), lambda: F.dropout3d(x.reshape(2, 3, 4), 0.4), lambda: F.dropout3d(x[0], 0.4),
        lambda: F.dropout3d(x.reshape(1, 2, 1, 2, 1, 6), 0.4), in_place, lambda: F.dropout(x, nan),
        lambda: F.dropout([1.0]),
        lambda: F.dropout(x, training=1), lambda: F.alpha_dropout(x, nan, False),
        lambda: F.dropout1d(x, 0.4, True, True),
        lambda: F.scaled_dot_product_attention(x, x, x, dropout_p=1.0),
        lambda: F.scaled_dot_product_attention(x, x, x, dropout_p=1.5),
        lambda: torch.rrelu(-x.bfloat16(), training=True),
        lambda: F.fractional_max_pool2d(x[None], 2, output_ratio=0.5),
    ]  # fmt: skip
    return [full_outcome(torch, call) for call in calls]


@case
def case_generators(torch):
    state = torch.Generator().manual_seed(3).get_state()
    calls = [
        lambda: torch.Generator(None).device.type, lambda: torch.Generator("cpu", "cpu"), lambda: torch.Generator(3.5),
        lambda: torch.Generator().manual_seed(seed=3), lambda: torch.Generator().manual_seed(),
        lambda: torch.Generator().set_state(state.numpy()), lambda: torch.Generator().set_state(),
        lambda: torch.Generator().set_state(torch.stack([state, state], 1)[:, 0]), lambda: torch.cuda.manual_seed("a"),
        lambda: torch.Generator().set_state(state.to("meta")), lambda: torch.cuda.manual_seed_all(None),
    ]  # fmt: skip
    return [full_outcome(torch, call) for call in calls]
