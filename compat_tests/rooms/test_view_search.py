"""A write that gives a tensor a history looks for other views only if there may be some: the search takes 20 ms."""

from typing import Any

import pytest

import torchlike as torch
from torchlike._src.tensor import call


def searches(monkeypatch: pytest.MonkeyPatch, run: Any) -> int:
    count = [0]
    real = call.gc.get_referrers

    def counted(*objects: Any) -> list:
        count[0] += 1
        return real(*objects)

    monkeypatch.setattr(call.gc, "get_referrers", counted)
    run()
    monkeypatch.undo()
    return count[0]


def test_only_when_there_are_other_views(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2, 3, requires_grad=True)

    def alone() -> None:
        torch.zeros(2, 5)[:, :3] = x
        out = torch.zeros(2, 5)
        out[:, :3] = x
        out = torch.zeros(2, 3)
        out.add_(x)
        out = torch.zeros(2, 3)
        out[0].mul_(x[0])

    def viewed() -> None:
        out = torch.zeros(2, 3)
        row = out[0]
        out.add_(x)
        assert row.requires_grad

    assert searches(monkeypatch, alone) == 0
    assert searches(monkeypatch, viewed) == 1
