"""Failure leaves the world as it was: errors while recording, compiling and running, and Ctrl-C at any moment."""

from __future__ import annotations

import copy
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.engine import backend, program

RECORD = sys.modules["torchlike._src.engine.record"]
FLUSH = sys.modules["torchlike._src.engine.flush"]
F = nn.functional
# An interrupt that lands in a generator being closed or in a collector callback is only reported.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def grad_mode() -> Iterator[None]:
    """Whatever an interrupt did to it ends with the test."""
    yield
    torch.set_grad_enabled(True)


# -- errors while recording --------------------------------------------------------------------------------------------


def line_of(error: BaseException) -> int:
    """The line in this file where an exception passed."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __file__:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@pytest.mark.parametrize(
    "fails",
    [
        lambda x: x + torch.ones(5),
        lambda x: x @ torch.ones(5, 5),
        lambda x: torch.cat([x, torch.ones(2, 2, 2)]),
        lambda x: x.view(7),
        lambda x: x[9],
        lambda x: x.sum(4),
        lambda x: F.linear(x, torch.ones(2, 9)),
        lambda x: F.conv2d(x, torch.ones(1, 1, 3, 3)),
        lambda x: torch.stack([x, x[:1]]),
        lambda x: x.long().mean(),
        lambda x: x.add_(torch.ones(2, 3, 4)),
        lambda x: x + 2**70,
        lambda x: x.expand(9, 9),
        lambda x: x.reshape(-1, 5),
        lambda x: torch.matmul(x.double(), x.t()),
        lambda x: x.bool() - x.bool(),
        lambda x: F.cross_entropy(x, torch.zeros(9, dtype=torch.long)),
    ],
)
def test_errors_come_at_the_users_line_and_leave_the_trace_intact(fails: Callable):
    x = torch.arange(6.0).view(2, 3)
    torch.synchronize()
    before = x * 2
    pending = RECORD.current().node.depth
    with pytest.raises((RuntimeError, ValueError, IndexError, TypeError, OverflowError)) as caught:
        fails(x)
    assert line_of(caught.value) == fails.__code__.co_firstlineno
    trace = RECORD.current()
    assert trace.node.depth >= pending
    after = before + x
    assert after.tolist() == [[0, 3, 6], [9, 12, 15]]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_same_error_comes_again():
    x = torch.ones(2, 3)
    for _ in range(4):
        with pytest.raises(RuntimeError, match="must match the size"):
            x + torch.ones(2, 4)


# -- a training step to disturb ----------------------------------------------------------------------------------------


class Training:
    """A model in training, its saved state, and what the next step gives when nothing disturbs it."""

    def __init__(self, kind: str = "Adam", warm: int = 4) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(5, 11), nn.ReLU(), nn.Dropout(0.2), nn.Linear(11, 2))
        self.optimizer = getattr(torch.optim, kind)(self.model.parameters(), lr=0.05)
        rng = np.random.default_rng(0)
        self.x, self.y = (torch.tensor(rng.standard_normal((7, n), np.float32)) for n in (5, 2))
        self.average = [p.detach().clone() for p in self.model.parameters()]
        for _ in range(warm):
            self.step()
        self.saved = copy.deepcopy((self.model.state_dict(), self.optimizer.state_dict()))
        self.saved_average = [a.clone() for a in self.average]
        self.rng = torch.get_rng_state()
        torch.synchronize()
        self.expected = self.step(), self.numbers()
        self.restore()

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(self.x * 1.5 - 0.5), self.y)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for a, p in zip(self.average, self.model.parameters(), strict=True):
                a.mul_(0.9).add_(p, alpha=0.1)
        return loss.item()

    def restore(self) -> None:
        torch.set_grad_enabled(True)  # an interrupt inside no_grad's own __exit__ leaves it off, as in PyTorch
        self.model.load_state_dict(self.saved[0])
        self.optimizer.load_state_dict(copy.deepcopy(self.saved[1]))  # it keeps the tensors that it is given
        for a, s in zip(self.average, self.saved_average, strict=True):
            a.copy_(s)
        torch.set_rng_state(self.rng)

    def tensors(self) -> list[Any]:
        state = [t for s in self.optimizer.state.values() for t in s.values() if torch.is_tensor(t)]
        return [*self.model.parameters(), *state, *self.average, self.x, self.y]

    def numbers(self) -> list[Any]:
        return [np.asarray(t.tolist()) for t in self.tensors()]

    def check_readable(self) -> None:
        assert jax.config.jax_enable_x64 is False
        for t in [*self.tensors(), *(p.grad for p in self.model.parameters() if p.grad is not None)]:
            assert np.isfinite(np.asarray(t.tolist())).all()

    def check_repeats(self) -> None:
        self.restore()
        loss = self.step()
        assert loss == pytest.approx(self.expected[0], rel=1e-5)
        for a, e in zip(self.numbers(), self.expected[1], strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-6)


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


PACKAGE = os.path.dirname(torch.__file__)


class Interrupt:
    """Raises KeyboardInterrupt at the n-th traced event in the package, except while SIGINT is held back."""

    def __init__(self, at: int, opcodes: bool) -> None:
        self.at, self.opcodes, self.seen = at, opcodes, 0
        self.handler = signal.getsignal(signal.SIGINT)

    def trace(self, frame: Any, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if frame.f_code is backend.call.__code__:
            return None  # restoring JAX's setting has no interruption point, but has lines for a tracer
        if not name.startswith((PACKAGE, "<torchlike")):
            return None
        frame.f_trace_opcodes = self.opcodes
        self.seen += 1
        if self.seen >= self.at and signal.getsignal(signal.SIGINT) is self.handler:
            self.at = sys.maxsize
            raise KeyboardInterrupt
        return self.trace

    def run(self, step: Callable[[], Any]) -> bool:
        """Whether the interrupt came before the step ended."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            step()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
            while RECORD.LOCK._is_owned():  # a tracer can raise just before a `with` releases, where Ctrl-C cannot
                RECORD.LOCK.release()
        return False


def events(training: Training, opcodes: bool) -> int:
    counter = Interrupt(sys.maxsize, opcodes)
    counter.run(training.step)
    training.restore()
    return counter.seen


@pytest.mark.parametrize(("kind", "opcodes", "samples"), [("Adam", False, 60), ("SGD", True, 60)])
def test_ctrl_c_at_any_moment_of_a_step(kind: str, opcodes: bool, samples: int):
    training = Training(kind)
    total = events(training, opcodes)
    hits = 0
    for k in range(samples):
        hits += Interrupt(1 + (k * total) // samples + k % 7, opcodes).run(training.step)
        training.check_readable()
        training.check_repeats()
        training.restore()
    assert hits > samples // 2


def test_ctrl_c_while_a_new_trace_is_recorded_and_compiled():
    training = Training(warm=1)
    total = None
    for k in range(12):
        width = 12 + k  # new shapes: everything is inferred and built anew

        def step(width: int = width) -> None:
            w = torch.ones(5, width, requires_grad=True)
            for _ in range(3):
                loss = ((training.x @ w).tanh() * training.average[0].sum()).sum()
                loss.backward()
                loss.item()

        if total is None:
            counter = Interrupt(sys.maxsize, False)
            counter.run(step)
            total = counter.seen
            continue
        Interrupt(1 + k * total // 12, False).run(step)
        torch.set_grad_enabled(True)  # a tracer can interrupt at the first line of a `finally`, where Ctrl-C cannot
        step()
        training.check_readable()
    training.check_repeats()


def test_signals_that_arrive_while_a_step_runs():
    """A storm of real SIGINTs from a timer."""
    training = Training()
    hits = 0
    state = {"on": True}

    def storm(number: int, frame: Any) -> None:
        if state["on"]:
            signal.raise_signal(signal.SIGINT)

    old = signal.signal(signal.SIGALRM, storm)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        for k in range(150):
            try:
                state["on"] = True
                signal.setitimer(signal.ITIMER_REAL, 0.00005 + 0.00003 * (k % 40))
                training.step()
                state["on"] = False
            except KeyboardInterrupt:
                hits += 1
            finally:
                state["on"] = False
                signal.setitimer(signal.ITIMER_REAL, 0)
            if k % 5 == 0:
                training.check_readable()
                training.check_repeats()
            training.restore()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        held_back = signal.signal(signal.SIGINT, handler) is not signal.default_int_handler
    training.check_repeats()
    assert hits > 50 and not held_back and not RECORD.LOCK._is_owned()


# -- the user's exceptions ---------------------------------------------------------------------------------------------


class Oops(Exception):
    """The user's own."""


def raising(*_: Any) -> None:
    raise Oops


def test_exceptions_in_forward_hooks_and_backward():
    training = Training()
    model = training.model
    places = [
        lambda: model[1].register_forward_hook(raising),
        lambda: model[3].register_forward_pre_hook(raising),
        lambda: model[0].weight.register_hook(raising),
        lambda: model[3].weight.register_post_accumulate_grad_hook(raising),
        lambda: training.optimizer.register_step_pre_hook(raising),
        lambda: training.optimizer.register_step_post_hook(raising),
    ]
    for place in places:
        handle = place()
        for _ in range(2):
            with pytest.raises(Oops):
                training.step()
        handle.remove()
        training.check_readable()
        training.check_repeats()
        training.restore()


def test_an_exception_in_a_custom_function():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise Oops

    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        y = Fails.apply(w * 2)
        with pytest.raises(Oops):
            y.sum().backward()
        assert y.tolist() == [4, 4, 4]
    (w * 3).sum().backward()
    assert w.grad.tolist() == [3, 3, 3]


# -- errors while compiling and running --------------------------------------------------------------------------------


def test_an_error_while_compiling_is_an_error_at_each_read(monkeypatch: Any):
    def refuse(*_: Any) -> None:
        raise RuntimeError("no room to compile")

    with monkeypatch.context() as m:
        m.setattr(backend, "compile_lowered", refuse)
        m.setattr(program, "load", lambda key: None)
        w = torch.ones(77, 5, requires_grad=True)
        failed = None
        for _ in range(8):
            y = (w.exp() @ torch.ones(5, 77)).tanh().sum() * 0.5
            try:
                y.backward()
                y.item()
            except RuntimeError as error:
                failed = y, error
                break
        assert failed is not None and "no room" in str(failed[1])
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no room to compile"):
                failed[0].item()
        with pytest.raises(RuntimeError, match="no room to compile"):
            (failed[0] + 1).item()
    assert w.tolist() == np.ones((77, 5)).tolist()
    assert (w.sum() * 2).item() == 770


def test_an_error_while_running_a_step(monkeypatch: Any):
    training = Training()

    def break_down(executable: Any, args: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")

    with monkeypatch.context() as m:
        m.setattr(backend, "call", break_down)
        with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
            training.step()
        with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
            training.model[0].weight.sum().item()
    assert training.x.isfinite().all()
    training.check_repeats()


def test_an_error_on_the_host_tier(monkeypatch: Any):
    cold = sys.modules["torchlike._src.engine.cold"]
    x = torch.ones(3)

    def break_down(*_: Any) -> Any:
        raise MemoryError("no room")

    with monkeypatch.context() as m:
        m.setattr(cold, "run", break_down)
        y = x * 3
        with pytest.raises(MemoryError):
            y.tolist()
        with pytest.raises(RuntimeError, match="MemoryError: no room"):
            y.tolist()
    assert (x * 3).tolist() == [3, 3, 3]


def test_a_signal_handlers_exception_after_the_inputs_were_consumed(monkeypatch: Any):
    """An alarm that raises between the launch and the storing of its results loses nothing."""
    training = Training()
    real = FLUSH._store
    state = {"raised": False}

    def store(*args: Any) -> None:
        if not state["raised"]:
            state["raised"] = True
            raise TimeoutError
        real(*args)

    monkeypatch.setattr(FLUSH, "_store", store)
    with pytest.raises(TimeoutError):
        training.step()
    training.check_readable()
    training.check_repeats()
