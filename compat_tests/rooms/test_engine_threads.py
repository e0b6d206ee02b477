"""Threads that share tensors, and forked children."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import queue
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlike as torch
from torchlike import nn

RECORD = sys.modules["torchlike._src.engine.record"]
F = nn.functional


def run(code: str, timeout: float = 120, **env: str) -> str:
    """The output of a script in a process of its own, where no thread has yet used tensors."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env={**os.environ, **env}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def stacks() -> str:
    """Where every thread stands."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()


def in_threads(*works: Callable[[], Any]) -> list[Any]:
    """Run at the same time; the results, or the first error."""
    results: list[Any] = [None] * len(works)
    errors: list[BaseException] = []

    def call(k: int) -> None:
        try:
            results[k] = works[k]()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=call, args=(k,), daemon=True) for k in range(len(works))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
            assert not t.is_alive(), "a deadlock\n" + stacks()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return results


def training(seed: int, steps: int = 25) -> list[float]:
    generator = np.random.default_rng(seed)
    make = lambda *shape: torch.tensor(generator.standard_normal(shape, np.float32))  # noqa: E731
    first, second = nn.Parameter(make(6, 9)), nn.Parameter(make(9, 1))
    optimizer = torch.optim.SGD([first, second], lr=0.01, momentum=0.9)
    x, y = make(8, 6), make(8, 1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.mse_loss(torch.tanh(x @ first) @ second, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_threads_that_train_at_once():
    expected = [training(seed) for seed in range(4)]
    for seed, losses in enumerate(in_threads(*[lambda s=s: training(s) for s in range(4)])):
        assert losses == pytest.approx(expected[seed], rel=1e-3)


def test_a_second_threads_first_operation_is_its_own():
    """In a fresh process: another thread's very first operation, while this one is in the middle of recording."""
    code = """
        import sys, threading
        sys.setswitchinterval(1e-6)
        import torchlike as torch
        record = sys.modules["torchlike._src.engine.record"]
        a = torch.ones(50)
        out, wrong = [], []
        def other():
            for k in range(300):
                b = torch.relu(a * 3.0)
                out.append(b)
        thread = threading.Thread(target=other)
        thread.start()
        mine = []
        for k in range(300):
            mine.append(torch.tanh(a + float(k)))
        thread.join()
        assert all(t.tolist() == [3.0] * 50 for t in out)
        expected = [torch.tanh(torch.tensor(1.0 + k)).item() for k in range(300)]
        assert all(abs(t[7].item() - e) < 1e-6 for t, e in zip(mine, expected))
        owners = {t._s.value.epoch.trace for t in out if t._s.value.epoch is not None}
        assert record.MAIN not in owners, "recorded into another thread's trace"
        print("fine")
        """
    assert run(code) == "fine\n"


def test_tensors_passed_between_threads_while_pending():
    """A producer makes batches, its results still pending; the consumer trains on them."""
    q: queue.Queue = queue.Queue(maxsize=3)
    rounds = 60

    def produce() -> None:
        for k in range(rounds):
            x = torch.full((4, 3), float(k)) + torch.arange(3)
            q.put((x, x.sum(1) * 0.5))

    def consume() -> list[float]:
        seen = []
        w = torch.zeros(3, requires_grad=True)
        for _ in range(rounds):
            x, y = q.get(timeout=30)
            ((x @ w) - y).pow(2).mean().backward()
            seen.append(x.sum().item() + y.sum().item())
        assert torch.isfinite(w.grad).all()
        return seen

    _, seen = in_threads(produce, consume)
    assert seen == [4 * (3 * k + 3) + 4 * (3 * k + 3) * 0.5 for k in range(rounds)]


def test_one_tensor_read_by_many_threads_while_pending():
    for k in range(20):
        x = torch.full((100,), float(k)) * 2 + 1
        results = in_threads(*[lambda x=x, j=j: (x * j).sum().item() for j in range(4)])
        assert results == [(2 * k + 1) * 100 * j for j in range(4)]


def test_writes_and_reads_from_threads():
    shared = [torch.zeros(16) for _ in range(4)]

    def work(k: int) -> float:
        for j in range(50):
            shared[k].add_(1)
            if j % 10 == 0:
                shared[(k + 1) % 4].sum().item()
        return shared[k].sum().item()

    assert in_threads(*[lambda k=k: work(k) for k in range(4)]) == [800] * 4


def test_backward_in_another_thread():
    w = torch.ones(5, requires_grad=True)
    loss = (w.exp() * 2).sum()
    in_threads(lambda: loss.backward())
    np.testing.assert_allclose(w.grad.tolist(), [2 * np.e] * 5, rtol=1e-6)


def test_grad_mode_is_per_thread():
    def work() -> bool:
        return (torch.ones(2, requires_grad=True) * 2).requires_grad

    with torch.no_grad():
        assert in_threads(work) == [True]
        assert not work()


def test_ended_threads_leave_nothing_behind():
    kept = in_threads(lambda: torch.ones(3) * 7)[0]
    for _ in range(30):
        in_threads(lambda: torch.relu(torch.ones(3)).sum().item())
    gc.collect()
    assert len(RECORD.TRACES) < 10
    assert kept.tolist() == [7, 7, 7]


def test_an_error_in_a_thread_holds_no_lock():
    def fails() -> None:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)

    in_threads(fails, fails)
    assert (torch.ones(2) + 1).tolist() == [2, 2]


# -- fork --------------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def in_child(work: Callable[[], Any]) -> Any:
    """The result of `work` in a forked child."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(False)

    def call() -> None:
        try:
            send.send(("result", work()))
        except BaseException as e:
            send.send(("error", f"{type(e).__name__}: {e}"))

    child = context.Process(target=call, daemon=True)
    child.start()
    if not receive.poll(60):
        child.kill()
        raise AssertionError("the child hangs")
    kind, value = receive.recv()
    child.join(30)
    if kind == "error":
        raise AssertionError(value)
    return value


@needs_fork
def test_a_child_computes_on_the_parents_tensors():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(32, 4), torch.randn(32, 1)

    def step() -> float:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(6):
        step()  # parameters are JAX arrays now
    pending = (x * 2).sum()

    def work() -> tuple:
        return pending.item(), [p.sum().item() for p in model.parameters()], step(), step()

    child = in_child(work)
    assert child[0] == pytest.approx(pending.item())
    assert child[1] == pytest.approx([p.sum().item() for p in model.parameters()], rel=1e-5)
    assert child[2:] == pytest.approx((step(), step()), rel=1e-4)


@needs_fork
def test_fork_right_after_a_launch():
    """What the parent launched may still be running when it forks."""
    a = torch.randn(400, 400)
    for _ in range(4):
        b = (a @ a @ a).sin()
        torch.synchronize()
    assert in_child(lambda: b.sum().item()) == pytest.approx(b.sum().item(), rel=1e-3, abs=1e-2)


@needs_fork
def test_fork_beside_a_working_thread():
    stop = threading.Event()
    errors = []

    def work() -> None:
        k = 0
        while not stop.is_set():
            k += 1
            if (torch.ones(8) * k).sum().item() != 8 * k:
                errors.append(k)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        for k in range(4):
            assert in_child(lambda k=k: (torch.arange(5) * k).tolist()) == [j * k for j in range(5)]
    finally:
        stop.set()
        thread.join(30)
    assert not errors


@needs_fork
def test_fork_from_another_thread():
    a = torch.ones(3) * 2
    assert in_threads(lambda: in_child(lambda: (a + 1).tolist()))[0] == [3, 3, 3]


@needs_fork
def test_a_grandchild():
    a = torch.ones(3) * 2
    assert in_child(lambda: in_child_of_daemon(lambda: torch.relu(a).tolist())) == [2, 2, 2]


def in_child_of_daemon(work: Callable[[], Any]) -> Any:
    """As in_child, where daemons may not have children of their own through multiprocessing."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(send, repr(work()).encode())
        os._exit(0)
    time.sleep(0)
    os.waitpid(child, 0)
    return eval(os.read(receive, 10_000))
