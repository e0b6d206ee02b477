"""Live outputs and donation: programs return what is referred to, consume what is not, and never lose a tensor."""

from __future__ import annotations

import copy
import gc
import pathlib
import random
import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.engine import Value
from torchlike._src.engine.values import UNREFERENCED, refcounts

RECORD = sys.modules["torchlike._src.engine.record"]
HEAP = sys.modules["torchlike._src.engine.heap"]
ROOT = pathlib.Path(__file__).parents[2]


def mlp(hidden: int = 24) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 3))


def batch() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    return torch.tensor(rng.standard_normal((16, 6), np.float32)), torch.tensor(
        rng.standard_normal((16, 3), np.float32)
    )


def train(model: nn.Module, optimizer: Any, data: tuple[Any, Any]) -> Any:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(data[0]), data[1])
    loss.backward()
    optimizer.step()
    return loss


# -- reference counts ------------------------------------------------------------------------------------------------


def test_the_baseline_is_what_an_unreferenced_value_counts():
    values = [Value(None), Value(None)]  # type: ignore[arg-type]
    held = values[0]
    assert refcounts(values) == [UNREFERENCED + 1, UNREFERENCED]
    del held
    assert refcounts(values) == [UNREFERENCED, UNREFERENCED]


def counted(make: Any) -> int:
    """How many pending results of the open trace are in use after `make`."""
    torch.synchronize()
    kept = make()
    trace = RECORD.current()
    n = sum(c > UNREFERENCED for c in refcounts(trace.values))
    del kept
    torch.synchronize()
    return n


def test_only_results_that_something_refers_to_are_live():
    x = torch.ones(4)
    assert counted(lambda: ((x + 1) * 2).sum()) == 1
    assert counted(lambda: [(x + 1), (x * 2)]) == 2
    assert counted(lambda: (x + 1).view(2, 2).sum()) == 1
    assert counted(lambda: None) == 0


def test_a_graph_holds_what_backward_needs_and_nothing_else():
    w = torch.ones(4, requires_grad=True)
    assert counted(lambda: (w + 1).sum()) == 1  # neither gradient needs a value
    assert counted(lambda: (w * 3.0).sum()) == 1
    assert counted(lambda: (w.exp()).sum()) == 2  # exp's gradient is its result


def test_backward_and_a_dropped_graph_leave_nothing_in_use():
    w = torch.ones(4, requires_grad=True)
    gc.collect()
    gc.disable()  # reference counts alone must do it
    try:
        torch.synchronize()
        loss = (w.exp() * w).sigmoid().sum()
        loss.backward()
        trace = RECORD.current()
        assert sum(c > UNREFERENCED for c in refcounts(trace.values)) == 2  # loss and w.grad
        del loss
        assert sum(c > UNREFERENCED for c in refcounts(trace.values)) == 1
    finally:
        gc.enable()


def test_references_from_frames_and_tracebacks_only_add_results():
    """`locals()`, a suspended generator or a kept traceback keep intermediate tensors: more outputs, same numbers."""
    x = torch.arange(4.0)

    def generate() -> Any:
        hidden = x * 3
        yield hidden.sum()

    generator = generate()
    total = next(generator)
    assert total.item() == 18

    def fails() -> None:
        between = x + 1
        raise ValueError(between)

    try:
        fails()
    except ValueError as e:
        kept = e
    seen = dict(locals())
    assert kept.args[0].tolist() == [1, 2, 3, 4]
    assert seen["total"].item() == 18
    assert generator.gi_frame.f_locals["hidden"].tolist() == [0, 3, 6, 9]


# -- donation --------------------------------------------------------------------------------------------------------


def step_program(node: Any = None) -> Any:
    """The program of the longest compiled path."""
    best, stack = None, [RECORD.ROOT]
    while stack:
        n = stack.pop()
        stack.extend(n.children.values())
        if n.programs and (best is None or n.used > best.used):
            best = n
    return best


def test_new_data_of_a_results_shape_is_not_copied_to_be_consumed():
    model, data = mlp(hidden=300), batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step():
        optimizer.zero_grad()
        out = model(data[0])
        loss = nn.functional.mse_loss(out + torch.randn_like(out), data[1])  # dead, of the shape of `out`
        loss.backward()
        optimizer.step()
        return out, loss.item()

    for _ in range(5):
        step()
    before = torch.stats()
    kept = [step() for _ in range(4)]
    after = torch.stats()
    assert after["launches"] - before["launches"] == len(kept) and after["compiles"] == before["compiles"]
    assert after["copies"] == before["copies"]


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW"])
def test_a_step_consumes_old_parameters_and_state(kind: str):
    model, data = mlp(hidden=37), batch()
    options = {"lr": 0.01, "momentum": 0.9} if kind == "SGD" else {"lr": 0.01}
    optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
    for _ in range(5):
        train(model, optimizer, data)
    before = torch.stats()
    for _ in range(4):
        train(model, optimizer, data)
    after = torch.stats()
    assert after["copies"] == before["copies"]
    assert after["launches"] - before["launches"] == 4
    node = step_program()
    program = node.programs[-1]
    parameters = sum(p.numel() * 4 for p in model.parameters())
    states = {"SGD": 1, "Adam": 2, "AdamW": 2}[kind]
    consumed = sum(node.plan.leaf_specs[k].numel * 4 for k in program.donate)
    consumed += sum(group.layout.size * 4 for group in program.groups if group.results)
    assert consumed >= parameters * (1 + states)
    analysis = program.executable.memory_analysis()
    assert analysis.alias_size_in_bytes >= parameters * (1 + states)


def test_a_step_needs_little_memory_besides_parameters_and_state():
    """A step of large layers on a small batch: the program's buffers are the parameters, the momentum, the gradients
    that stay in use, and temporaries that no copy of all parameters would fit into."""
    torch.manual_seed(0)
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.ReLU())])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(8, 256), torch.randn(8, 256)
    for _ in range(4):
        train(model, optimizer, (x, y))
    parameters = sum(p.numel() * 4 for p in model.parameters())
    analysis = step_program().programs[-1].executable.memory_analysis()
    small = 64 << 10
    assert 2 * parameters <= analysis.argument_size_in_bytes <= 2 * parameters + small
    assert 2 * parameters <= analysis.alias_size_in_bytes
    assert analysis.output_size_in_bytes <= 3 * parameters + small
    assert analysis.temp_size_in_bytes <= parameters // 2


GIVING_BACK = """
import sys
import torchlike
heap = sys.modules["torchlike._src.engine.heap"]
before = heap.resident_bytes()
blocks = [bytearray(b"1" * (100 << 10)) for _ in range(1500)]
kept = blocks[::10]  # what stays in use keeps the heap's end from falling
del blocks
grown = heap.resident_bytes()
assert grown > before + 2 * heap.LEAST
heap.give_back(grown)
assert heap.resident_bytes() > grown - heap.LEAST, "it has not grown since: the heap is left alone"
heap.give_back(before)
assert heap.resident_bytes() < grown - heap.LEAST
assert all(set(block) == {49} for block in kept[:3])
"""


@pytest.mark.skipif(HEAP.trimmer() is None, reason="only glibc returns memory on request")
def test_what_a_compilation_took_is_given_back():
    """In a process of its own: the memory that earlier tests freed would be used first."""
    done = subprocess.run([sys.executable, "-c", GIVING_BACK], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_kept_old_parameters_are_not_consumed():
    model, data = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for _ in range(6):
        history.append([p.detach().clone() for p in model.parameters()])
        train(model, optimizer, data)
    again, optimizer = mlp(), None
    optimizer = torch.optim.SGD(again.parameters(), lr=0.1)
    for kept in history:
        for a, p in zip(kept, again.parameters(), strict=True):
            np.testing.assert_allclose(a.numpy(), p.detach().tolist(), rtol=1e-5, atol=1e-6)
        train(again, optimizer, data)


def test_numpy_views_of_parameters_survive_training():
    """`.numpy()` shares memory with the parameter, as in PyTorch: it sees the updates, and is never freed memory."""
    model, data = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        train(model, optimizer, data)
    weight = model[0].weight
    snapshot = np.asarray(weight.detach().tolist())
    shared = weight.detach().numpy()
    copied = shared.copy()
    np.testing.assert_array_equal(snapshot.astype(np.float32), copied)
    for _ in range(4):
        train(model, optimizer, data)
    np.testing.assert_array_equal(shared, weight.detach().numpy())
    assert not np.array_equal(shared, copied)


def test_state_dicts_copied_in_the_middle_of_training_stay():
    model, data = mlp(), batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    best, losses = None, []
    for k in range(12):
        losses.append(train(model, optimizer, data))
        if k % 3 == 0:
            best = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()), k
    saved_model, saved_optimizer, k = best
    clone = mlp()
    clone.load_state_dict(saved_model)
    other = torch.optim.Adam(clone.parameters(), lr=0.05)
    other.load_state_dict(saved_optimizer)
    for expected in losses[k + 1 :]:
        assert train(clone, other, data).item() == pytest.approx(expected.item(), rel=1e-4)


def test_an_exponential_moving_average_beside_training():
    model, data = mlp(), batch()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = [p.detach().numpy().astype(np.float64).copy() for p in average.parameters()]
    counts = []
    for _ in range(10):
        train(model, optimizer, data)
        with torch.no_grad():
            for a, p in zip(average.parameters(), model.parameters(), strict=True):
                a.mul_(0.9).add_(p, alpha=0.1)
        counts.append(torch.stats())
        expected = [0.9 * e + 0.1 * np.asarray(p.tolist()) for e, p in zip(expected, model.parameters(), strict=True)]
    for a, e in zip(average.parameters(), expected, strict=True):
        np.testing.assert_allclose(np.asarray(a.tolist()), e, rtol=1e-4, atol=1e-6)


# -- random programs that keep random references -----------------------------------------------------------------------


class Program:
    """A random training program. Run twice from the same seed, recorded and in direct mode, it must read the same."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.model = mlp(8)
        self.kind = self.choose.choice(["SGD", "Momentum", "Adam"])
        self.optimizer = self.make_optimizer()
        self.data = batch()
        self.kept: list[Any] = []
        self.saved: Any = copy.deepcopy(self.model.state_dict())
        self.average = [p.detach().clone() for p in self.model.parameters()]
        self.seen: list[Any] = []

    def make_optimizer(self) -> Any:
        if self.kind == "Adam":
            return torch.optim.Adam(self.model.parameters(), lr=0.02)
        return torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9 if self.kind == "Momentum" else 0)

    def parameter(self) -> Any:
        return self.choose.choice(list(self.model.parameters()))

    def keep(self, t: Any) -> None:
        if len(self.kept) > 12:
            self.kept.pop(self.choose.randrange(len(self.kept)))
        self.kept.append(t)

    # the actions

    def train(self) -> None:
        loss = train(self.model, self.optimizer, self.data)
        if self.choose.random() < 0.5:
            self.seen.append(loss.item())
        elif self.choose.random() < 0.3:
            self.keep(loss.detach())

    def train_twice(self) -> None:
        self.train()
        self.train()

    def keep_clone(self) -> None:
        self.keep(self.parameter().detach().clone())

    def keep_alias(self) -> None:
        self.keep(self.parameter().detach())

    def keep_data(self) -> None:
        self.keep(self.parameter().data)

    def keep_view(self) -> None:
        p = self.parameter().detach()
        self.keep(self.choose.choice([p.view(-1), p[0], p.reshape(-1)[1:], p.flatten()[::2]]))

    def keep_gradient(self) -> None:
        grad = self.parameter().grad
        if grad is not None:
            self.keep(self.choose.choice([grad, grad.clone(), grad.detach()]))

    def keep_state(self) -> None:
        for state in self.optimizer.state.values():
            for t in state.values():
                if torch.is_tensor(t) and self.choose.random() < 0.5:
                    self.keep(t)

    def keep_copy(self) -> None:
        self.keep(copy.copy(self.parameter()))

    def keep_deep(self) -> None:
        self.keep(copy.deepcopy(self.parameter()))

    def keep_expression(self) -> None:
        a, b = self.parameter().detach(), self.choose.choice(self.kept or [self.data[0]])
        self.keep(a.sum() * 0.5 + b.mean())

    def keep_graph(self) -> None:
        self.keep(self.model(self.data[0]).sum())

    def save(self) -> None:
        self.saved = copy.deepcopy(self.model.state_dict())

    def save_shallow(self) -> None:
        self.saved = self.model.state_dict()

    def load(self) -> None:
        self.model.load_state_dict(self.saved)

    def restart(self) -> None:
        state = self.optimizer.state_dict()
        self.optimizer = self.make_optimizer()
        self.optimizer.load_state_dict(state)

    def average_step(self) -> None:
        with torch.no_grad():
            for a, p in zip(self.average, self.model.parameters(), strict=True):
                a.lerp_(p, 0.25)

    def write(self) -> None:
        with torch.no_grad():
            p = self.parameter()
            self.choose.choice([lambda: p.mul_(0.99), lambda: p.view(-1)[0].add_(0.01), lambda: p.clamp_(-2, 2)])()

    def write_kept(self) -> None:
        if self.kept:
            t = self.choose.choice(self.kept)
            if not t.requires_grad:
                t.mul_(0.5)

    def numpy(self) -> None:
        t = self.parameter().detach()
        self.seen.append(t.numpy().astype(np.float64).copy())
        if self.choose.random() < 0.3:
            self.keep(torch.from_numpy(t.numpy()))

    def swap_data(self) -> None:
        p = self.parameter()
        p.data = self.choose.choice([p.data.clone(), p.data * 1.0, p.detach()])

    def read(self) -> None:
        if self.kept:
            self.seen.append(self.choose.choice(self.kept).tolist())

    def drop(self) -> None:
        self.kept = [t for t in self.kept if self.choose.random() < 0.6]

    HELPERS = ("make_optimizer", "parameter", "keep", "train")
    ACTIONS = [name for name in dict(locals()) if not name.startswith("_") and name.islower() and name != "run"]

    def run(self, steps: int) -> list[Any]:
        for _ in range(steps):
            getattr(
                self,
                self.choose.choice(["train", "train", "train", *(a for a in self.ACTIONS if a not in self.HELPERS)]),
            )()
        for t in [*self.kept, *self.saved.values(), *self.average, *self.model.parameters()]:
            self.seen.append(t.tolist())
        for state in self.optimizer.state.values():
            self.seen += [t.tolist() for t in state.values() if torch.is_tensor(t)]
        return self.seen


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_read_the_same_as_in_direct_mode(seed: int):
    with torch.direct_mode():
        expected = Program(seed).run(40)
    actual = Program(seed).run(40)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=2e-3, atol=2e-4)


def test_jax_arrays_that_the_user_took_are_not_consumed():
    from torchlike import interop

    model, data = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        train(model, optimizer, data)
    taken = interop.to_jax(model[0].weight.detach())
    assert isinstance(taken, jax.Array)
    before = np.array(taken, copy=True)
    for _ in range(4):
        train(model, optimizer, data)
    assert not taken.is_deleted()
    np.testing.assert_array_equal(np.asarray(taken), before)


def test_parameters_that_are_not_trained_are_passed_once():
    """From the third launch on they are the backend's arrays; writes to them are seen as ever."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Tanh(), torch.nn.Linear(96, 64)).eval()
    shared = np.ones(64, np.float32)
    model[2].bias.data = torch.from_numpy(shared)
    x = torch.randn(128, 64)
    data, weight = np.array(x.tolist(), np.float32), model[0].weight

    def expected() -> np.ndarray:
        w0, b0, w2, b2 = (np.array(p.tolist(), np.float32) for p in model.parameters())
        return np.tanh(data @ w0.T + b0) @ w2.T + b2

    with torch.no_grad():
        for i in range(8):
            given = x + 0
            np.testing.assert_allclose(model(given).tolist(), expected(), rtol=1e-4, atol=1e-5)
            if i == 4:
                assert type(model[0].bias._s.value.array) is not np.ndarray
                weight.mul_(0.5)
                model[0].bias.add_(1.0)
                shared[:] = 3.0
    assert weight.detach().numpy().flags.writeable


def test_results_overwrite_what_they_replace() -> None:
    """Parameters and states have one shape, and gradients stay: each result gets its own old memory."""
    program = sys.modules["torchlike._src.engine.program"]
    packs = sys.modules["torchlike._src.engine.packs"]
    torch.manual_seed(0)
    model = nn.Linear(256, 256, bias=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    x = torch.randn(256, 256)
    known = set(program.PROGRAMS)
    for _ in range(20):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if any(p.donate for p in set(program.PROGRAMS) - known):
            break
    found = [p for p in set(program.PROGRAMS) - known if p.donate]
    assert found
    for p in found:
        replaced = packs.replacements(p.plan, p.live, set(p.donate))
        assert set(replaced) == set(p.donate)  # the weight, its two averages and the step count
        assert p.alone[: len(p.donate)] == [replaced[k] for k in p.donate]
