"""Random programs of random calls, on PyTorch and torchlike side by side: every value and every state."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlike
from compat_tests.random.sequences import STEPS, run

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what layers and splits have to say


def numbers(t: Any) -> np.ndarray:
    if str(t.dtype) == "torch.bfloat16":
        t = t.float()
    return t.numpy()


def compare(torch: Any, seed: int, length: int) -> set[str]:
    used = set()
    for k, (ours, theirs) in enumerate(zip(run(torchlike, seed, length), run(torch, seed, length), strict=True)):
        (name, exact, values, g), (_, _, expected, h) = ours, theirs
        where = f"program {seed}, step {k}, {name}"
        assert len(values) == len(expected), where
        for a, b in zip(values, expected, strict=True):
            assert str(a.dtype) == str(b.dtype) and tuple(a.shape) == tuple(b.shape), where
            a, b = numbers(a), numbers(b)
            if exact:
                np.testing.assert_array_equal(a, b, where)
                assert np.array_equal(np.signbit(a.real), np.signbit(b.real)), where
            else:
                np.testing.assert_allclose(a, b, 2e-4, 1e-5, err_msg=where)
        for mine, other in ((torchlike.default_generator, torch.default_generator), (g, h)):
            assert np.array_equal(mine.get_state().numpy(), other.get_state().numpy()), f"{where}: states differ"
            assert mine.initial_seed() == other.initial_seed(), where
        used.add(name)
    return used


@pytest.fixture(autouse=True)
def words_ahead(request: Any) -> Iterator[None]:
    """In every other group, the compiled programs are used from the start."""
    from torchlike._src.random import compiled

    before = compiled._State.seen
    if getattr(request.node, "callspec", None) is not None and request.node.callspec.params["group"] % 2:
        compiled._State.seen = 1 << 40
    yield
    compiled._State.seen = before


@pytest.mark.parametrize("group", range(10))
def test_200_programs(oracle: Any, group: int) -> None:
    used = set()
    for seed in range(20 * group, 20 * group + 20):
        used |= compare(oracle, seed, 30)
    assert used == set(STEPS)


def test_states_cross_over(oracle: Any) -> None:
    """A state saved by one is continued by the other."""
    for seed, words in ((0, 0), (1, 1), (2, 623), (3, 624), (4, 625), (5, 5000)):
        for first, second in ((torchlike, oracle), (oracle, torchlike)):
            first.manual_seed(seed)
            first.rand(words)
            first.randn(3)
            second.set_rng_state(second.tensor(first.get_rng_state().numpy()))
            assert second.initial_seed() == first.initial_seed()
            for draw in (lambda m: m.randn(5), lambda m: m.rand(700), lambda m: m.randn(40)):
                assert np.array_equal(draw(first).numpy(), draw(second).numpy())
            assert np.array_equal(first.get_rng_state().numpy(), second.get_rng_state().numpy())
