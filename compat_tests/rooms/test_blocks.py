"""Backward through loops whose number of turns varies, each of which reads a result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.autograd import blocks
from torchlike._src.engine import direct_mode, stats


def episodes(lengths: list[int], nodes: list[int] | None = None, fail_at: int = -1) -> list[list[float]]:
    """Losses and gradients of a recurrent policy; each turn's result decides what the next one sees."""
    generator = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
    for p in model.parameters():
        p.data = torch.tensor(generator.standard_normal(tuple(p.shape), np.float32) * 0.3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    found = []
    for episode, length in enumerate(lengths):
        state, chosen = [0.1, -0.2, 0.3, 0.4], []
        hook = None
        if episode == fail_at:

            def hook(g: Any) -> None:
                raise KeyError("a hook")

        for _ in range(length):
            scores = torch.log_softmax(model(torch.tensor(state)), -1)
            k = int(scores.argmax().item())
            chosen.append(scores[k])
            state = [state[1], state[2], state[3], 0.5 * state[0] + 0.1 * k]
        if hook is not None:
            chosen[1].register_hook(hook)
        loss = -(torch.stack(chosen) * torch.arange(1.0, length + 1)).mean()
        optimizer.zero_grad()
        if hook is not None:
            with pytest.raises(KeyError):
                loss.backward()
            continue
        loss.backward()
        found.append([loss.item(), *[p.grad.abs().sum().item() for p in model.parameters()]])
        optimizer.step()
        if nodes is not None:
            nodes.append(int(stats.COUNTS["nodes"]))
    return found


@pytest.fixture(autouse=True)
def forget():
    blocks._turns.clear()
    yield
    blocks._turns.clear()


LENGTHS = [5, 9, 7, 12, 6, 11, 8, 14, 10, 13]


def test_gradients_are_those_of_direct_mode():
    recorded = episodes(LENGTHS)
    with direct_mode():
        direct = episodes(LENGTHS)
    assert np.allclose(recorded, direct, rtol=2e-4)


def test_a_new_length_makes_nothing_new():
    nodes: list[int] = []
    episodes([*LENGTHS, 15, 16, 17], nodes)
    before, after = nodes[7] - nodes[6], nodes[-1] - nodes[-2]
    # Only the head (the stack of results, the loss) knows the length.
    assert after < 40 and before < 60, (before, after)


def test_an_error_in_the_middle_leaves_the_next_episodes_right():
    lengths = [*LENGTHS, 9, 15]
    with_error = episodes([*LENGTHS, 8, 9, 15], fail_at=len(LENGTHS))
    assert np.allclose(with_error, episodes(lengths), rtol=1e-5)


def test_a_loop_of_one_length_stays_one_program():
    episodes([6] * 5)
    assert not any(len(turns) >= blocks.DIFFERENT for turns in blocks._turns.values())
