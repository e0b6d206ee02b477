"""What surrounds the stream: the compiled transform, the other stream, hooks, costs inside a training step."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlike as torch
from torchlike import config

F = torch.nn.functional


@pytest.fixture
def jax_random() -> Iterator[None]:
    before, config.jax_random = config.jax_random, True
    yield
    config.jax_random = before


def draws() -> list[Any]:
    torch.manual_seed(3)
    g = torch.Generator().manual_seed(9)
    return [
        torch.rand(3, 4),
        torch.randn(20, dtype=torch.float64),
        torch.randn(5, dtype=torch.float16, generator=g),
        torch.rand(2, dtype=torch.complex64),
        torch.zeros(4, 6)[:, ::2].normal_(2.0, 0.1),
        torch.empty(9).uniform_(2, 3),
        torch.empty(9, dtype=torch.int64).bernoulli_(0.5),
        torch.empty(9).exponential_(2.0),
        torch.rand_like(torch.ones(3, 2)),
        F.dropout(torch.ones(30), 0.5),
        F.dropout2d(torch.ones(3, 5, 2, 2), 0.5),
        torch.randperm(9),
    ]


def same(a: Any, b: Any) -> bool:
    """Equal, numbers with a fraction up to their last bits: NumPy's and XLA's logarithms are two, and a program that
    is new runs on NumPy."""
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return torch.allclose(a, b, rtol=4 * torch.finfo(a.dtype).eps, atol=4 * torch.finfo(a.dtype).eps)
    return torch.equal(a, b)


def test_other_stream_repeats_and_differs(jax_random: None) -> None:
    first, second = draws(), draws()
    config.jax_random = False
    host = draws()
    for a, b, c in zip(first, second, host, strict=True):
        assert same(a, b)
        assert a.dtype == c.dtype and a.shape == c.shape
    assert not any(torch.equal(a, c) for a, c in zip(first, host, strict=True))


X = torch.arange(1.0, 41).reshape(4, 10) / 40
EVERY = {
    "rand": lambda: torch.rand(4, 10),
    "randn_like": lambda: torch.randn_like(X),
    "randint": lambda: torch.randint(-5, 100, (40,)),
    "randint_like": lambda: torch.randint_like(X, 100),
    "randperm": lambda: torch.randperm(40),
    "normal": lambda: torch.normal(X, 2.0),
    "normal of two": lambda: torch.normal(X, X),
    "normal of std": lambda: torch.normal(1.0, X),
    "bernoulli": lambda: torch.bernoulli(X),
    "bernoulli out": lambda: torch.bernoulli(X, out=torch.empty(4, 10, dtype=torch.int64)),
    "bernoulli number": lambda: torch.bernoulli(X, 0.5),
    "bernoulli_": lambda: torch.empty(4, 10).bernoulli_(X),
    "multinomial": lambda: torch.multinomial(X, 9),
    "multinomial with replacement": lambda: torch.multinomial(X, 9, True),
    "poisson": lambda: torch.poisson(9 * X),
    "binomial": lambda: torch.binomial(torch.full((4, 10), 30.0), X),
    "gamma": lambda: torch._standard_gamma(X),
    "dirichlet": lambda: torch._sample_dirichlet(X),
    "uniform_": lambda: torch.empty(40, dtype=torch.bfloat16).uniform_(2, 3),
    "random_": lambda: torch.empty(40).random_(),
    "random_ to": lambda: torch.empty(40, dtype=torch.int16).random_(100),
    "random_ int64": lambda: torch.empty(40, dtype=torch.int64).random_(),
    "random_ from": lambda: torch.empty(40, dtype=torch.uint8).random_(**{"from": 3, "to": None}),
    "exponential_": lambda: torch.empty(40).exponential_(),
    "cauchy_": lambda: torch.empty(40).cauchy_(),
    "log_normal_": lambda: torch.empty(40, dtype=torch.float16).log_normal_(),
    "geometric_": lambda: torch.empty(40, dtype=torch.int64).geometric_(0.2),
    "rrelu": lambda: F.rrelu(-X, training=True),
    "dropout": lambda: F.dropout(X, 0.5),
    "alpha_dropout": lambda: F.alpha_dropout(X, 0.5, True),
    "gumbel_softmax": lambda: F.gumbel_softmax(X),
    "trunc_normal_": lambda: torch.nn.init.trunc_normal_(torch.empty(40), a=1.0, b=2.0),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_function_has_the_other_stream(name: str, jax_random: None) -> None:
    torch.manual_seed(3)
    first = EVERY[name]()
    torch.manual_seed(3)
    second = EVERY[name]()
    new = EVERY[name]()
    config.jax_random = False
    torch.manual_seed(3)
    host = EVERY[name]()
    assert same(first, second) and not torch.equal(first, new) and not torch.equal(first, host)
    assert (first.dtype, first.shape) == (host.dtype, host.shape)
    assert bool(torch.isfinite(first).all())


def test_other_stream_moments(jax_random: None) -> None:
    """Means and variances of what isn't JAX's own distribution."""
    torch.manual_seed(1)
    n = 20_000
    for draw, mean, variance in (
        (torch.empty(n).geometric_(0.25), 4, 12),
        (torch.randint(-3, 5, (n,)).float(), 0.5, 5.25),
        (torch.multinomial(torch.tensor([1.0, 2, 1]), n, True).float(), 1, 0.5),
        (torch.multinomial(torch.tensor([1.0, 2, 1]).expand(n, 3), 1).float(), 1, 0.5),
        (torch.empty(n).log_normal_(0.0, 0.5), 1.1331, 0.3647),
        (F.rrelu(-torch.ones(n), 0.2, 0.4, training=True), -0.3, 0.04 / 12),
    ):
        assert abs(draw.mean().item() - mean) < 5 * (variance / n) ** 0.5
        assert abs(draw.var().item() / variance - 1) < 0.15
    assert sorted(torch.randperm(1000).tolist()) == list(range(1000))


def test_keys_inside_of_jit() -> None:
    import jax
    import jax.numpy as jnp

    from torchlike.interop import from_jax, random_key, to_jax

    def f(key: Any, x: Any) -> Any:
        with random_key(key):
            t = from_jax(x)
            return to_jax(F.dropout(t, 0.5)) + to_jax(torch.randn(64)), to_jax(torch.bernoulli(t / 2))

    x, g = jnp.ones(64), jax.jit(f)
    one, again, two, plain = (call(jax.random.key(k), x) for call, k in ((g, 1), (g, 1), (g, 2), (f, 1)))
    for a, b, c, d in zip(one, again, two, plain, strict=True):
        assert (a == b).all() and not (a == c).all()
        np.testing.assert_allclose(a, d, 1e-5, 1e-6)
    mapped = jax.vmap(lambda k: f(k, x)[0])(jax.random.split(jax.random.key(3), 4))
    assert len({row.tobytes() for row in np.asarray(mapped)}) == 4
    for wrong in (3, jnp.ones(3), jax.random.split(jax.random.key(1))):
        with pytest.raises(TypeError, match=r"random_key\(\): expected"), random_key(wrong):
            pass


def test_inside_of_jit_without_a_key() -> None:
    """Constants of the program, from the seed; said so. Where JAX only differentiates, draws are PyTorch's."""
    import jax
    import jax.numpy as jnp

    from torchlike.interop import from_jax, to_jax

    def f(x: Any) -> Any:
        return to_jax(torch.bernoulli(from_jax(x)) + torch.randn(30)).sum()

    values = []
    for _ in range(2):
        torch.manual_seed(5)
        with pytest.warns(UserWarning, match="become constants"):
            values.append(jax.jit(lambda x: f(x))(jnp.full(30, 0.5)).item())
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    torch.manual_seed(5)
    expected = torch.randn(30)
    torch.manual_seed(5)
    seen = []
    jax.grad(lambda x: (seen.append(torch.randn(30)), (x * x).sum())[1])(jnp.ones(3))
    assert torch.equal(seen[0], expected)


def test_other_stream_distributions(jax_random: None) -> None:
    torch.manual_seed(0)
    normal, uniform = torch.randn(200_000), torch.empty(200_000).uniform_(2, 4)
    assert abs(normal.mean().item()) < 0.01 and abs(normal.std().item() - 1) < 0.01
    assert 2 <= uniform.min().item() and uniform.max().item() <= 4 and abs(uniform.mean().item() - 3) < 0.01
    assert abs(torch.empty(200_000).exponential_(2.0).mean().item() - 0.5) < 0.01
    assert abs(torch.empty(200_000).bernoulli_(0.2).mean().item() - 0.2) < 0.01
    dropped = F.dropout(torch.ones(200_000), 0.2)
    assert set(dropped.unique().tolist()) == {0.0, 1.25} and abs(dropped.mean().item() - 1) < 0.01
    state = torch.get_rng_state()
    once = torch.randn(5)
    torch.set_rng_state(state)
    assert same(once, torch.randn(5))
    with pytest.raises(RuntimeError, match="expects to return a"):
        torch.empty(3).uniform_(3, 1)


def test_settings() -> None:
    with pytest.raises(AttributeError, match="no setting 'jaxrandom'"):
        config.jaxrandom = True
    with pytest.raises(TypeError, match="must be None, True or False"):
        config.jax_random = 1


@pytest.mark.parametrize("other", [False, True])
def test_new_masks_compile_nothing_and_never_repeat(other: bool) -> None:
    before, config.jax_random = config.jax_random, other
    try:
        weight = torch.ones(32, 32, requires_grad=True)
        x = torch.ones(32, 32)
        seen, compiles = [], []
        for _ in range(12):
            weight.grad = None
            out = F.dropout(x @ weight, 0.5)
            out.sum().backward()
            seen.append(out.detach().numpy().tobytes())
            compiles.append(torch.stats()["compiles"])
        assert len(set(seen)) == len(seen)
        assert compiles[-1] == compiles[6]
    finally:
        config.jax_random = before


def test_normal_of_a_tensor_runs_nothing() -> None:
    x = torch.ones(5, 5)
    x.sum().item()
    mean = x @ x
    flushes = torch.stats()["flushes"]
    sample = torch.normal(mean, 2.0)
    assert torch.stats()["flushes"] == flushes
    assert sample.shape == mean.shape


@pytest.fixture
def compiled() -> Any:
    """The compiled words and normals, if this machine's have NumPy's bits."""
    from torchlike._src.random import box_muller, compiled

    if compiled.have_words(1 << 40) and compiled.have_normals(1 << 40, box_muller.normals_numpy):
        return compiled
    pytest.skip("this processor or compiler fuses otherwise: NumPy makes the numbers")


def test_compiled_programs_have_numpys_bits(compiled: Any) -> None:
    from torchlike._src.random import box_muller

    bits = np.random.MT19937(11)
    for shift, (mean, std) in zip((0, 1, 7, 15), ((0, 1), (0, 0.02), (0.37, 1.618), (-3, 1e-3)), strict=True):
        state = bits.state["state"]
        placed, rows = compiled.words(state["key"].astype(np.uint32), state["pos"])
        words = bits.random_raw(compiled.WORDS).astype(np.uint32)
        assert np.array_equal(np.asarray(placed)[: compiled.WORDS], words)
        tables = np.asarray(rows).reshape(-1)[compiled.TABLES_AT :]
        assert np.array_equal(tables[:624], state["key"])
        assert np.array_equal(tables[compiled.WORDS : compiled.WORDS + 624], bits.state["state"]["key"])
        assert bits.state["state"]["pos"] == state["pos"]
        whole = (compiled.WORDS - shift) // 16 * 16
        made = compiled.normals(placed, shift, mean, std)[:whole]
        assert made.tobytes() == box_muller.normals_numpy(words[shift : shift + whole], mean, std).tobytes()


def test_words_ahead_change_nothing(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same calls with and without words made ahead of their use: values, and the state after each."""
    from torchlike._src.random import discrete, fills
    from torchlike._src.random.generator import HostGenerator

    f32, f16 = np.dtype(np.float32), np.dtype(np.float16)
    calls = (
        lambda g, n: fills.uniform(g, (n,), f32), lambda g, n: fills.normal(g, (n,), f32),
        lambda g, n: fills.normal(g, (n,), f32, 0.5, 2.0), lambda g, n: fills.normal(g, (n,), f16),
        lambda g, n: discrete.randperm(g, n), lambda g, n: discrete.bernoulli_p(g, (n,), f32, 0.3),
        lambda g, n: fills.normal(g, (5,), f32), lambda g, n: fills.exponential(g, (n,), f32),
    )  # fmt: skip
    ahead, plain = HostGenerator(5), HostGenerator(5)
    choice = np.random.RandomState(2)
    opened = 0
    for k in range(120):
        call, n = calls[choice.randint(len(calls))], int(10 ** choice.uniform(0, 4.9))
        found = call(ahead, n)
        opened += ahead.ahead is not None and ahead.ahead.placed is not None
        with monkeypatch.context() as patched:
            patched.setattr(compiled, "have_words", lambda n: False)
            assert found.tobytes() == call(plain, n).tobytes(), (k, n)
        assert plain.ahead is None or plain.ahead.placed is None
        assert np.array_equal(ahead.get_state(), plain.get_state()), (k, n)
        if k % 40 == 39:
            ahead.set_state(ahead.get_state())
            assert ahead.ahead is None
    assert opened > 20


def test_equal_calls_in_a_row(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What many calls for as many normals will ask for is made at once: other calls between them change nothing."""
    from torchlike._src.random import fills
    from torchlike._src.random.generator import HostGenerator

    f32 = np.dtype(np.float32)
    ahead, plain = HostGenerator(8), HostGenerator(8)
    fills.normal(ahead, (100_000,), f32)
    planned = 0
    with monkeypatch.context() as patched:
        patched.setattr(compiled, "have_words", lambda n: False)
        fills.normal(plain, (100_000,), f32)
    for n, times in ((1001, 120), (20, 9), (1001, 3), (17, 5), (5000, 40), (100, 30)):
        found = [fills.normal(ahead, (n,), f32, 0.0, 1.0 + k % 2).tobytes() for k in range(times)]
        found.append(fills.uniform(ahead, (n,), f32).tobytes())
        planned += ahead.ahead is not None and ahead.ahead.plan is not None
        with monkeypatch.context() as patched:
            patched.setattr(compiled, "have_words", lambda n: False)
            expected = [fills.normal(plain, (n,), f32, 0.0, 1.0 + k % 2).tobytes() for k in range(times)]
            expected.append(fills.uniform(plain, (n,), f32).tobytes())
        assert found == expected, n
        assert np.array_equal(ahead.get_state(), plain.get_state()), n
    assert planned > 2


def test_threads_interleave_calls_not_words() -> None:
    """Threads that share the generator get among them what one thread would get."""
    import threading

    torch.manual_seed(9)
    expected = sorted(torch.randn(64).numpy().tobytes() for _ in range(800))
    torch.manual_seed(9)
    found: list = []

    def work() -> None:
        found.extend([torch.randn(64) for _ in range(200)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(t.numpy().tobytes() for t in found) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore")
def test_a_forked_child_draws_the_same() -> None:
    torch.manual_seed(5)
    torch.randn(1_500_000)  # words are made ahead from here on
    state = torch.get_rng_state()
    expected = torch.randn(200_000).numpy().tobytes()
    torch.set_rng_state(state)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = torch.randn(200_000).numpy().tobytes() == expected
        finally:
            os.write(write, b"y" if same else b"n")
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"y"
    os.close(read)
    os.close(write)


def test_hook() -> None:
    from torchlike._src.tensor import random

    shapes = []

    def hook(draw: Any, shape: tuple, dtype: Any, device: Any) -> Any:
        shapes.append(shape)
        return torch.tensor(draw((2, *shape))[1]).to(dtype)

    before = random.under_transform(hook)
    try:
        torch.rand(3)
        torch.randn(4).normal_()
        torch.bernoulli(torch.full((2, 2), 0.5))
        F.dropout(torch.ones(5), 0.5)
    finally:
        random.under_transform(before)
    assert shapes == [(3,), (4,), (4,), (2, 2), (5,)]


def test_generators_are_cheap_and_pickle() -> None:
    import copy
    import pickle

    g = torch.Generator()
    assert g._host._bits is None  # no engine before the first draw
    g.manual_seed(4)
    torch.rand(3, generator=g)
    for twin in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert torch.equal(twin.get_state(), g.get_state()) and twin.initial_seed() == 4
