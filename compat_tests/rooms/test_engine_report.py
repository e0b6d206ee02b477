"""The report names the user's line, why a program was compiled, and what was different from the one before."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import torchlike as torch
from torchlike import nn

REPORT = sys.modules["torchlike._src.engine.report"]
F = nn.functional


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.synchronize()
    REPORT.PROGRAMS.clear()
    yield
    REPORT.PROGRAMS.clear()


def line(function: Callable, text: str) -> str:
    """'file:12' of the line of a function that holds this text."""
    lines, first = inspect.getsourcelines(function)
    (offset,) = [k for k, source in enumerate(lines) if text in source]
    return f"{__file__}:{first + offset}"


def entries() -> list[str]:
    """One text for each compiled program."""
    return torch.report().split("\n  program ")[1:]


def setup(width: int) -> tuple[Any, Any, Any, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(40, 4), torch.randn(40, 1)


def test_a_first_program_differs_from_nothing():
    model, optimizer, x, y = setup(8)

    def step() -> None:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

    for _ in range(4):
        step()
    (text,) = entries()
    assert f"from {line(step, 'mse_loss')}" in text
    assert f"to   {line(step, 'optimizer.step')}" in text
    assert f"flushed by optimizer.step() at {line(step, 'optimizer.step')}" in text
    assert "because it ran again" in text
    assert re.search(
        r"outputs, (compiled in [\d.]+ s \(tracing [\d.]+ s, XLA [\d.]+ s\)|loaded from disk in [\d.]+ s)\n", text
    )
    assert "differs" not in text


def test_a_smaller_last_batch():
    model, optimizer, x, y = setup(9)
    batches = [(x[k : k + 16].clone(), y[k : k + 16].clone()) for k in (0, 16, 32)]
    torch.synchronize()

    def step(a: Any, b: Any) -> None:
        loss = F.mse_loss(model(a), b)
        loss.backward()
        optimizer.step()

    for _ in range(10):
        for a, b in batches[:2] * 3:
            step(a, b)
    for _ in range(10):
        step(*batches[2])
    text = entries()[-1]
    assert f"{line(step, 'mse_loss')}: an input of linear was float32[16,4] before and is float32[8,4] now." in text
    assert "DataLoader(..., drop_last=True)" in text


def test_a_change_of_dtype():
    w = torch.randn(30, 30)
    wide = w.double()
    torch.synchronize()

    def step(a: Any) -> float:
        return (a @ a).exp().sum(0).log().mean().item()

    for _ in range(6):
        step(w)
    for _ in range(6):
        step(wide)
    text = entries()[-1]
    assert f"{line(step, 'a @ a')}" in text
    assert "was float32[30,30] before and is float64[30,30] now. Convert it once" in text
    assert ".to(torch.float32)" in text


def test_a_changed_static_argument():
    x = torch.randn(50, 50)

    def step(dim: int) -> float:
        return torch.softmax((x + 1).exp(), dim).sum(0).log().mean().item()

    for dim in (0, 1):
        for _ in range(8):
            step(dim)
    text = entries()[-1]
    assert (
        f"{line(step, 'softmax')}: an argument of softmax that is part of the program changed: dim was 0 before" in text
    )


def test_a_changed_slice_length():
    x = torch.randn(60, 20)

    def step(n: int) -> float:
        return (x[:n] * 2).exp().sum(0).log().mean().item()

    for n in (40, 30):
        for _ in range(8):
            step(n)
    text = entries()[-1]
    assert "an argument of slice that is part of the program changed: length was 40 before and is 30 now" in text
    assert "drop_last=True" in text


def test_an_extra_operation():
    x = torch.randn(50, 50)

    def step(extra: bool) -> float:
        y = (x + 1).exp()
        if extra:
            y = y.tanh()
        return y.sum(0).log().mean().item()

    for extra in (False, True):
        for _ in range(8):
            step(extra)
    text = entries()[-1]
    assert (
        f"{line(step, 'y.tanh')} called tanh where {line(step, 'sum(0)')} had called sum after the same operations"
        in text
    )


def test_a_read_in_the_middle_makes_a_shorter_trace():
    x = torch.randn(50, 50)

    def step(read: bool) -> float:
        y = (x - 1).exp().sum(0)
        if read:
            y[0].item() if y.dim() else None
            y.tolist()
        return y.log().mean().sqrt().item()

    for read in (False, True):
        for _ in range(8):
            step(read)
    texts = [t for t in entries() if "differs" in t]
    assert texts
    assert f"{line(step, 'y[0]')}" in texts[0]


def test_a_tensor_that_is_kept():
    kept: list[Any] = []
    x = torch.randn(50, 50)

    def step(keep: bool) -> float:
        hidden = (x * 0.5).cos()
        if keep:
            kept.append(hidden)
        total = hidden.sum(0).log1p().mean()
        del hidden
        return total.item()

    for keep in (False, True):
        for _ in range(8):
            step(keep)
    text = entries()[-1]
    assert "other results are in use afterwards: that of cos at " + line(step, ".cos()") in text
    assert ".detach()" in text


def test_lengths_that_change_are_reported_as_such():
    def step(n: int) -> float:
        return (torch.ones(n, 70).exp().sum(0).log().mean() * 2).sqrt().item()

    for n in range(20, 40):
        step(n)
    text = torch.report()
    assert f"from {line(step, 'torch.ones')} to {line(step, 'torch.ones')}: 20 different traces" in text
    assert "padded to a few fixed sizes" in text


def test_the_list_is_bounded(monkeypatch: Any):
    monkeypatch.setattr(REPORT, "MAX_PROGRAMS", 3)
    for n in range(6):

        def step(n: int = n) -> float:
            return (torch.ones(n + 3, 50, 20).exp().sum(0).log().mean() * 2).sqrt().item()

        for _ in range(6):
            step()
    assert len(REPORT.PROGRAMS) <= 3


@pytest.mark.parametrize(("value", "printed"), [("1", True), ("0", False), ("", False)])
def test_the_environment_prints_it_at_exit(value: str, printed: bool):
    code = """
        import torchlike as torch
        x = torch.randn(200, 200)
        for _ in range(4):
            (x @ x).exp().sum(0).log().mean().item()
        """
    env = {**os.environ, "TORCHLIKE_REPORT": value}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    assert ("torchlike: " in done.stderr and "program 1" in done.stderr and "<string>:5" in done.stderr) is printed


def test_it_says_which_recorder_is_in_use() -> None:
    from torchlike._src.core.native import NATIVE

    said = re.search(r"operations are recorded in (C|Python)\b", torch.report())
    assert said is not None
    assert said[1] == ("Python" if NATIVE is None else "C")
