"""Small arrays in packs: the same numbers whoever reads, keeps, swaps or replaces them."""

import copy
import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.engine import direct_mode, packs

F = nn.functional
DIRECT = os.environ.get("TORCHLIKE_EAGER") not in (None, "", "0")


class Model:
    """Everything that a loop changes."""

    def __init__(self, kind: str) -> None:
        torch.manual_seed(0)
        self.net = nn.Sequential(
            nn.Linear(6, 5), nn.Tanh(), nn.BatchNorm1d(5), nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)
        )
        options = {"SGD": {"lr": 0.05, "momentum": 0.9}, "Adam": {"lr": 0.01}, "RMSprop": {"lr": 0.01}}[kind]
        self.optimizer = getattr(torch.optim, kind)(self.net.parameters(), **options)
        self.x, self.y = torch.randn(8, 6), torch.randn(8, 2)
        self.kept: list = []

    def step(self, i: int) -> float:
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(self.x * (1 + i / 100)), self.y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def nothing(m: Model, i: int) -> None:
    """Only steps."""


def read(m: Model, i: int) -> None:
    m.kept += [p.sum().item() for p in m.net.parameters()]
    m.kept.append(m.net[0].weight[0, 0].item())
    m.kept.append(m.net[3].bias.tolist())


def keep(m: Model, i: int) -> None:
    m.kept.append([p.detach().clone() for p in m.net.parameters()])
    m.kept.append([p.grad for p in m.net.parameters()])
    m.kept.append(m.net[2].running_mean.clone())


def shared_memory(m: Model, i: int) -> None:
    m.kept.append(m.net[0].bias.detach().numpy().copy())
    if i == 7:
        m.net[5].bias.detach().numpy()[:] = 0.5


def evaluate(m: Model, i: int) -> None:
    m.net.eval()
    with torch.no_grad():
        m.kept.append(m.net(m.x).sum().item())
    m.net.train()


def replace(m: Model, i: int) -> None:
    if i % 4 == 3:
        with torch.no_grad():
            m.net[0].weight.mul_(0.5)
            m.net[3].bias.data = torch.full((4,), 0.1 * i)
            m.net[3].weight.copy_(m.net[3].weight.flip(0))


def swap(m: Model, i: int) -> None:
    a, b = m.net[0].bias, m.net[2].bias
    if i % 3 == 2:
        a.data, b.data = b.data, a.data


def reload(m: Model, i: int) -> None:
    if i in (5, 6, 11):
        file = io.BytesIO()
        torch.save([m.net.state_dict(), m.optimizer.state_dict()], file)
        file.seek(0)
        net, optimizer = torch.load(file)
        m.net.load_state_dict(net)
        m.optimizer.load_state_dict(optimizer)


def freeze(m: Model, i: int) -> None:
    for p in m.net[3].parameters():
        p.requires_grad_(not 4 <= i < 9)


def copies(m: Model, i: int) -> None:
    m.kept.append(copy.deepcopy(m.net))
    if i == 6:
        m.net, old = copy.deepcopy(m.net), m.net
        m.optimizer.param_groups[0]["params"] = list(m.net.parameters())
        m.kept.append(old)


def other_path(m: Model, i: int) -> None:
    if i % 3 == 1:
        m.optimizer.zero_grad()
        (m.net(m.x[:4]) ** 2).mean().backward()
        m.optimizer.step()


def accumulate(m: Model, i: int) -> None:
    m.optimizer.zero_grad()
    for part in (slice(0, 4), slice(4, 8)):
        F.mse_loss(m.net(m.x[part]), m.y[part]).backward()
        m.kept.append(m.net[0].bias.grad.norm().item())
    nn.utils.clip_grad_norm_(m.net.parameters(), 0.1)
    m.optimizer.step()


def averaged(m: Model, i: int) -> None:
    if not m.kept:
        m.kept.append([p.detach().clone() for p in m.net.parameters()])
    with torch.no_grad():
        for a, p in zip(m.kept[0], m.net.parameters(), strict=True):
            a.mul_(0.9).add_(p, alpha=0.1)


BETWEEN: list[Callable[[Model, int], None]] = [
    nothing, read, keep, shared_memory, evaluate, replace, swap, reload, freeze, copies, other_path, accumulate,
    averaged,
]  # fmt: skip


def flat(x: Any) -> list[np.ndarray]:
    if isinstance(x, nn.Module):
        return flat(list(x.state_dict().values()))
    if isinstance(x, (list, tuple)):
        return [a for part in x for a in flat(part)]
    return [] if x is None else [np.asarray(x.detach().numpy() if isinstance(x, torch.Tensor) else x, np.float64)]


def run(kind: str, between: Callable[[Model, int], None]) -> list[np.ndarray]:
    m = Model(kind)
    losses = []
    for i in range(16):
        losses.append(m.step(i))
        between(m, i)
    states = [v for state in m.optimizer.state.values() for v in state.values()]
    return flat([losses, m.net, m.kept, states])


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("between", BETWEEN, ids=lambda f: f.__name__)
def test_same_numbers(kind: str, between: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    take = packs.Pack.__init__
    monkeypatch.setattr(packs.Pack, "__init__", lambda self, *args: (made.append(1), take(self, *args))[1])
    got = run(kind, between)
    if not DIRECT:
        assert made, "no program returned a pack"
    with direct_mode():
        expected = run(kind, between)
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)


def test_two_models_and_two_optimizers() -> None:
    """A GAN's two programs read each other's packs; neither is compiled again for ever."""
    torch.manual_seed(0)
    g, d = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5)), nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 1))
    g_opt, d_opt = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())

    def step() -> float:
        fake = g(torch.randn(8, 4))
        d_opt.zero_grad()
        (d(fake.detach()).mean() - d(torch.ones(8, 5)).mean()).backward()
        d_opt.step()
        g_opt.zero_grad()
        loss = -d(fake).mean()
        loss.backward()
        g_opt.step()
        return loss.item()

    for _ in range(12):
        step()
    before = torch.stats()
    for _ in range(5):
        step()
    after = torch.stats()
    if not DIRECT:
        assert after["compiles"] + after["disk_hits"] == before["compiles"] + before["disk_hits"]
        assert after["copies"] == before["copies"]


def test_data_that_is_replaced_each_time_leaves_the_pack() -> None:
    """A guess that goes wrong: arrays that look like state and are data. The program settles, with right numbers."""
    state = [torch.zeros(3) for _ in range(8)]
    seen = []
    for i in range(20):
        data = [torch.full((3,), float(i + k)) for k in range(8)]
        for d in data:
            d.mul_(2.0)
        for s, d in zip(state, data, strict=True):
            s.add_(d)
        seen.append([d.sum().item() for d in data])
        del data, d
    for i, row in enumerate(seen):
        assert row == [6.0 * (i + k) for k in range(8)]
    for k, s in enumerate(state):
        assert s.tolist() == [float(sum(2 * (i + k) for i in range(20)))] * 3


def test_what_nodes_keep_comes_in_a_pack() -> None:
    """Read before backward, many small results stay in use; one array holds them, and backward takes it as one."""
    x = torch.linspace(0.9, 1.1, 64).reshape(4, 16)
    w = torch.full((4, 16), 1.01, requires_grad=True)

    def step() -> tuple[float, Any]:
        y, kept = x, []
        for _ in range(20):
            y = torch.sin(y * w)
            kept.append(y)
        loss = y.sum()
        value = loss.item()
        w.grad = None
        loss.backward()
        assert w.grad is not None
        return value, [w.grad.tolist(), kept[7].tolist(), kept[0][1, 2].item()]

    steps = [step() for _ in range(8)]
    with direct_mode():
        expected = step()
    for value, parts in steps:
        assert abs(value - expected[0]) < 1e-4
        for a, b in zip(parts, expected[1], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    if not DIRECT:
        y, kept = x, []
        for _ in range(20):
            y = torch.sin(y * w)
            kept.append(y)
        y.sum().item()
        made = [k._s.value.array for k in kept]
        assert {type(a) for a in made} == {packs.Piece}
        assert len({id(a.pack) for a in made}) == 1 and made[0].pack.kept
