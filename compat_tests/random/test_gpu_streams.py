"""Random numbers on a GPU: keys of a generator of its own. The GPU here is the CPU under another name."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest

import torchlike as torch
from torchlike import config
from torchlike._src.tensor import devices
from torchlike._src.tensor.generators import Accelerators
from torchlike.utils.checkpoint import checkpoint

F = torch.nn.functional


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(devices, "_gpus", jax.devices()[:1])
    before = config.jax_random
    yield
    config.jax_random = before
    Accelerators.made.clear()


def on_gpu(*size: int) -> Any:
    return torch.full(size, 0.5, device="cuda")


FUNCTIONS: dict[str, Callable[[], Any]] = {
    "rand": lambda: torch.rand(9, device="cuda"),
    "randn": lambda: torch.randn(9, device="cuda"),
    "rand_like": lambda: torch.rand_like(on_gpu(9)),
    "randint": lambda: torch.randint(1000, (9,), device="cuda"),
    "randperm": lambda: torch.randperm(90, device="cuda"),
    "normal": lambda: torch.normal(on_gpu(9), on_gpu(9)),
    "normal_mean": lambda: torch.normal(on_gpu(9), 1.0),
    "bernoulli": lambda: torch.bernoulli(on_gpu(60)),
    "bernoulli_": lambda: on_gpu(60).bernoulli_(on_gpu(60)),
    "multinomial": lambda: torch.multinomial(on_gpu(90), 50),
    "poisson": lambda: torch.poisson(on_gpu(60)),
    "binomial": lambda: torch.binomial(on_gpu(60) * 20, on_gpu(60)),
    "gamma": lambda: torch.distributions.Gamma(on_gpu(9), 1.0).sample(),
    "dirichlet": lambda: torch.distributions.Dirichlet(on_gpu(9)).sample(),
    "rrelu": lambda: F.rrelu(-on_gpu(9), training=True),
    "exponential_": lambda: on_gpu(9).exponential_(),
    "random_": lambda: on_gpu(9).random_(),
    "dropout": lambda: F.dropout(on_gpu(60)),
    "feature_dropout": lambda: F.dropout2d(on_gpu(1, 60, 2, 2)),
    "gumbel_softmax": lambda: F.gumbel_softmax(on_gpu(9)),
    "trunc_normal_": lambda: torch.nn.init.trunc_normal_(on_gpu(9)),
    "vmap": lambda: torch.func.vmap(lambda v: v + torch.rand(2, device="cuda"), randomness="different")(on_gpu(3, 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_cpus_generator_does_not_move(name: str) -> None:
    draw = FUNCTIONS[name]
    torch.manual_seed(5)
    host, state = torch.get_rng_state(), torch.cuda.get_rng_state()
    first = draw()
    assert first.is_cuda
    assert torch.equal(host, torch.get_rng_state())
    assert not torch.equal(first, draw())
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, draw())
    torch.manual_seed(5)
    assert torch.equal(first, draw())
    torch.cuda.manual_seed(6)
    assert not torch.equal(first, draw())


def test_the_state_is_a_seed_and_an_offset() -> None:
    torch.cuda.manual_seed_all(258)
    torch.rand(3, device="cuda")
    state = torch.cuda.get_rng_state()
    assert state.dtype is torch.uint8
    assert state.tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]
    assert torch.cuda.initial_seed() == 258
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.cuda.set_rng_state(torch.get_rng_state())
    assert [g.get_state().tolist() for g in torch.cuda.default_generators] == [state.tolist()]


def test_generators_are_meant_for_one_kind_of_device() -> None:
    g = torch.Generator("cuda").manual_seed(5)
    first = torch.randn(4, device="cuda", generator=g)
    assert g.get_offset() == 4
    g.set_offset(0)
    assert torch.equal(first, torch.randn(4, device="cuda", generator=g))
    copy = g.clone_state()
    assert torch.equal(torch.rand(2, device="cuda", generator=g), torch.rand(2, device="cuda", generator=copy))
    with pytest.raises(RuntimeError, match="offset must be a multiple of 4"):
        g.set_offset(3)
    for draw in (
        lambda: torch.rand(2, generator=g),
        lambda: torch.empty(3).normal_(generator=g),
        lambda: torch.randperm(3, generator=g),
        lambda: torch.multinomial(torch.ones(3), 2, generator=g),
    ):
        with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
            draw()
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.rand(2, device="cuda", generator=torch.Generator())


def test_forks_and_checkpoints_put_the_state_back() -> None:
    with torch.random.fork_rng():
        inside = torch.rand(2, device="cuda")
    assert torch.equal(inside, torch.rand(2, device="cuda"))
    for reentrant in (True, False):
        x = torch.ones(40, device="cuda", requires_grad=True)
        out = checkpoint(lambda v: F.dropout(v * 2, 0.5), x, use_reentrant=reentrant)
        out.sum().backward()
        assert torch.equal(out, x.grad)


def test_the_hosts_stream_on_request() -> None:
    config.jax_random = False
    torch.manual_seed(5)
    here = torch.rand(4)
    torch.manual_seed(5)
    assert torch.equal(here, torch.rand(4, device="cuda").cpu())
    a, b = (torch.randperm(9, device="cuda", generator=torch.Generator("cuda").manual_seed(5)) for _ in range(2))
    assert torch.equal(a, b)


def test_a_mask_compiles_nothing() -> None:
    weight = torch.ones(8, 8, device="cuda", requires_grad=True)
    seen, compiles = set(), []
    for _ in range(8):
        weight.grad = None
        F.dropout(torch.ones(8, 8, device="cuda") @ weight, 0.5).sum().backward()
        seen.add(weight.grad.cpu().numpy().tobytes())
        compiles.append(torch.stats()["compiles"])
    assert len(seen) == 8
    assert compiles[-1] == compiles[4]
