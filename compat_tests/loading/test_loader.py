"""What cannot be a comparison with PyTorch: what loading costs, and what it leaves behind."""

import gc
import multiprocessing
import os
import random
import signal
import warnings
from typing import Any

import pytest

import torchlike as torch

data = torch.utils.data


class Rows(data.Dataset):
    """At module level, so that a spawned worker finds it."""

    def __init__(self) -> None:
        self.x = torch.arange(4000.0).reshape(1000, 4)
        self.x.sum().item()

    def __getitem__(self, i: int) -> Any:
        return self.x[i], i

    def __len__(self) -> int:
        return len(self.x)


def _records() -> int:
    torch.synchronize()
    return torch.stats()["records"]


@pytest.mark.parametrize("kind", ["tensors", "split", "custom"])
def test_a_batch_records_no_operators(kind: str) -> None:
    rows = Rows()
    dataset = data.TensorDataset(rows.x, torch.arange(1000))
    dataset = {"tensors": dataset, "split": data.random_split(dataset, [900, 100])[0], "custom": rows}[kind]
    before = _records()
    for x, _ in data.DataLoader(dataset, 64, shuffle=True):
        assert x.shape[1:] == (4,)
    assert _records() == before


def test_fast_and_slow_batches_are_equal() -> None:
    dataset = data.TensorDataset(torch.randn(50, 3), torch.arange(50))
    fast = data.DataLoader(dataset, 8)
    slow = data.DataLoader(dataset, 8, collate_fn=lambda samples: data.default_collate(samples))
    for a, b in zip(fast, slow, strict=True):
        assert all(torch.equal(x, y) and x.dtype == y.dtype for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("end", ["exhaust", "break", "error", "garbage"])
def test_no_worker_is_left(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list = []
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "terminate", forced.append)
    loader = data.DataLoader(Rows(), 10, num_workers=1)
    if end == "exhaust":
        assert sum(len(i) for _, i in loader) == 1000
    elif end == "break":
        for _ in loader:
            break
    elif end == "error":
        bad = data.DataLoader(Rows(), 10, num_workers=1, sampler=[5000])
        with pytest.raises(IndexError, match="Caught IndexError in DataLoader worker process 0"):
            list(bad)
    else:
        cycle = [iter(loader)]
        cycle.append(cycle)
        next(cycle[0])
        del cycle
    gc.collect()
    assert not multiprocessing.active_children()
    assert not forced, "a worker had to be ended by force"


def test_results_that_cannot_be_pickled_are_errors() -> None:
    loader = data.DataLoader([1, 2], num_workers=1, collate_fn=lambda samples: lambda: samples)
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        next(iter(loader))


@pytest.mark.slow
def test_spawn() -> None:
    loader = data.DataLoader(Rows(), 400, num_workers=1, multiprocessing_context="spawn")
    assert [len(i) for _, i in loader] == [400, 400, 200]


class Unsteady(data.Dataset):
    """Computes on tensors from before the fork, fails or dies at random."""

    def __init__(self, failing: float, dying: float) -> None:
        self.x = torch.arange(120.0).reshape(30, 4)
        self.pending = self.x * 2 + 1
        self.weight = torch.ones(4, requires_grad=True)
        self.failing, self.dying = failing, dying

    def __getitem__(self, i: int) -> Any:
        chance = random.random()
        if chance < self.failing:
            raise ValueError(f"bad {i}")
        if chance > 1 - self.dying:
            os.kill(os.getpid(), signal.SIGKILL)
        with torch.no_grad():
            rows = torch.stack([self.x[i], self.pending[i]]).clamp(min=1)
            padded = torch.nn.functional.pad(rows.sort(0)[0].mean(0, keepdim=True), (1, 1))
        return padded, (self.weight * self.x[i]).sum().detach(), i

    def __len__(self) -> int:
        return 30


@pytest.mark.parametrize("seed", range(3))
def test_workers_that_fail_and_die_never_hang(seed: int) -> None:
    rng = random.Random(seed)
    for how in ("steady", "failing", "dying", "killed", "broken off"):
        dataset = Unsteady(0.05 * (how == "failing"), 0.05 * (how == "dying"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer processors than workers
            loader = data.DataLoader(dataset, rng.choice([1, 4]), shuffle=True, num_workers=4)
        got = 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                batches = iter(loader)
            if how == "killed":
                os.kill(rng.choice(batches._workers).process.pid, signal.SIGKILL)
            for padded, _, indices in batches:
                assert padded.shape[1:] == (1, 6)
                got += len(indices)
                if how == "broken off" and rng.random() < 0.3:
                    break
            else:
                assert got == 30 and how != "killed"
        except ValueError as error:
            assert how == "failing" and "Caught ValueError in DataLoader worker process" in str(error)
        except RuntimeError as error:
            assert how in ("dying", "killed") and "DataLoader worker (pid" in str(error)
        batches = None
        gc.collect()
        assert not multiprocessing.active_children()
