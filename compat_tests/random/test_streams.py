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


def test_other_stream_repeats_and_differs(jax_random: None) -> None:
    first, second = draws(), draws()
    config.jax_random = False
    host = draws()
    for a, b, c in zip(first, second, host, strict=True):
        assert torch.equal(a, b)
        assert a.dtype == c.dtype and a.shape == c.shape
    assert not any(torch.equal(a, c) for a, c in zip(first[:8], host[:8], strict=True))


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
    assert torch.equal(once, torch.randn(5))
    with pytest.raises(RuntimeError, match="expects to return a"):
        torch.empty(3).uniform_(3, 1)


def test_settings() -> None:
    with pytest.raises(AttributeError, match="no setting 'jaxrandom'"):
        config.jaxrandom = True
    with pytest.raises(TypeError, match="must be True or False"):
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


def test_compiled_transform_has_numpys_bits() -> None:
    from torchlike._src.random import box_muller, compiled

    if compiled._State.given_up:
        pytest.skip("this processor or compiler fuses otherwise: NumPy makes the numbers")
    for pairs in compiled.SIZES:
        if pairs not in compiled._State.programs:
            compiled._build(pairs, box_muller._polar_numpy)
        assert not compiled._State.given_up
        words = np.random.RandomState(pairs).randint(0, 1 << 24, (2, pairs)).astype(np.int32)
        for a, b in zip(compiled.polar(words, box_muller._polar_numpy), box_muller._polar_numpy(words), strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore")
def test_a_forked_child_draws_the_same() -> None:
    torch.manual_seed(5)
    torch.randn(1_500_000)
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
