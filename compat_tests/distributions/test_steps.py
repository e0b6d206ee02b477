"""Distributions in a training step: one program, nothing compiled again, and no check that cuts it in two."""

from typing import Any

import pytest

import torchlike as torch
from torchlike import distributions as d
from torchlike import nn


def counted(step: Any) -> dict[str, int]:
    """How the engine's counters move over ten steps, once the step is known."""
    for _ in range(8):
        step()
    before = torch.stats()
    for _ in range(10):
        step()
    after = torch.stats()
    return {k: after[k] - before[k] for k in ("flushes", "compiles", "nodes")}


def training(parameters: list, loss_of: Any) -> Any:
    optimizer = torch.optim.Adam(parameters, lr=1e-3)

    def step() -> float:
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def test_variational_autoencoder() -> None:
    encoder, decoder = nn.Linear(20, 16), nn.Linear(8, 20)
    x = torch.rand(64, 20)

    def loss() -> Any:
        mean, raw = encoder(x).chunk(2, -1)
        q = d.Independent(d.Normal(mean, nn.functional.softplus(raw) + 1e-3), 1)
        p = d.Independent(d.Bernoulli(logits=decoder(q.rsample())), 1)
        prior = d.Independent(d.Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
        return (d.kl_divergence(q, prior) - p.log_prob((x > 0.5).float())).mean()

    counts = counted(training([*encoder.parameters(), *decoder.parameters()], loss))
    assert counts == {"flushes": 10, "compiles": 0, "nodes": 0}


def test_policy_update() -> None:
    net, seen = nn.Linear(4, 3), torch.rand(128, 4)
    with torch.no_grad():
        actions = d.Categorical(logits=net(seen)).sample()

    def loss() -> Any:
        policy = d.Categorical(logits=net(seen))
        return -policy.log_prob(actions).mean() - 0.01 * policy.entropy().mean()

    assert counted(training(list(net.parameters()), loss)) == {"flushes": 10, "compiles": 0, "nodes": 0}


def test_pending_parameters_are_checked_once_they_are_known() -> None:
    net = nn.Linear(2, 3)
    with torch.no_grad():
        net.weight.fill_(float("nan"))
    policy = d.Categorical(logits=net(torch.ones(2)))
    with pytest.raises((ValueError, RuntimeError), match="nan"):
        policy.sample()
    scale = nn.Linear(2, 3)(torch.ones(2)) * 0 - 1
    normal = d.Normal(torch.zeros(3), scale)
    scale.tolist()
    with pytest.raises(ValueError, match="Expected parameter scale"):
        normal.log_prob(torch.zeros(3))


BAD = {
    "categorical": lambda x: d.Categorical(probs=x),
    "categorical_logits": lambda x: d.Categorical(logits=torch.tensor([float("nan"), 0.5])),
    "one_hot": lambda x: d.OneHotCategorical(probs=x),
    "multinomial": lambda x: d.Multinomial(3, probs=x),
    "beta": lambda x: d.Beta(x, 1.0),
    "chi2": lambda x: d.Chi2(x),
    "student": lambda x: d.StudentT(x),
    "normal": lambda x: d.Normal(torch.zeros(2, 2), x),
}


@pytest.mark.parametrize("name", BAD)
def test_arguments_that_are_known_are_checked_at_once(name: str) -> None:
    """Other work is pending that a gradient needs, and stays so if the argument is fine."""
    pending = nn.Linear(2, 3)(torch.ones(2)).tanh()
    with pytest.raises(ValueError, match="Expected parameter"):
        BAD[name](torch.tensor([-1.0, 0.5]))
    good = torch.tensor([0.5, 1.5])
    flushes = torch.stats()["flushes"]
    pending = nn.Linear(2, 3)(torch.ones(2)).tanh()
    d.Categorical(probs=good), d.Categorical(logits=good), d.Beta(good, 1.0), d.Chi2(good)
    assert torch.stats()["flushes"] == flushes
    pending.sum().backward()
