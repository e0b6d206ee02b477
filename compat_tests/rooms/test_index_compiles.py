"""Indexing with a changing number is data: it compiles nothing new."""

import torchlike as torch


def test_changing_indices_compile_nothing():
    x = torch.zeros(50, 8)
    w = torch.zeros(8, 8, requires_grad=True)

    def step(i):
        loss = (x[i] @ w).sum() + x[i : i + 3].sum()
        x[i] = i * 0.5
        x[i, 2] = 1
        x[x > 100] = 0
        return loss.item()

    for i in range(6):
        step(i)
    before = dict(torch.stats())
    for i in range(6, 40):
        step(i)
    after = dict(torch.stats())
    assert {k: after[k] for k in ("compiles", "nodes")} == {k: before[k] for k in ("compiles", "nodes")}
