"""Mixed precision and checkpointing as programs: how many there are, and how much memory they take."""

import sys
from collections.abc import Iterator
from typing import Any

import torchlike as torch
from torchlike._src.tensor.call import Autocast

record = sys.modules["torchlike._src.engine.record"]


def _programs(root: Any) -> Iterator[Any]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield from node.programs
        stack.extend(node.children.values())


def test_a_step_with_a_scaler_is_one_program() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", growth_interval=2)
    x = torch.randn(4, 8)
    torch.synchronize()
    before = torch.stats()["flushes"]
    for _ in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu"):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    assert torch.stats()["flushes"] - before == 6
    assert not Autocast.enabled
    assert "autocast" not in record.SLOW


def test_checkpointing_saves_memory() -> None:
    def temporary(checkpointed: bool) -> int:
        torch.manual_seed(0)
        known = {id(p) for p in _programs(record.ROOT)}
        blocks = [
            torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 32), torch.nn.Tanh())
            for _ in range(6)
        ]
        optimizer = torch.optim.SGD([p for b in blocks for p in b.parameters()], lr=0.1)
        x = torch.randn(1024, 32)
        for _ in range(12):
            optimizer.zero_grad()
            h = x
            for block in blocks:
                h = torch.utils.checkpoint.checkpoint(block, h, use_reentrant=False) if checkpointed else block(h)
            h.square().mean().backward()
            optimizer.step()
        torch.synchronize()
        found = [p.executable for p in _programs(record.ROOT) if id(p) not in known]
        return max(e.memory_analysis().temp_size_in_bytes for e in found if e is not None)

    assert temporary(True) < 0.6 * temporary(False)
