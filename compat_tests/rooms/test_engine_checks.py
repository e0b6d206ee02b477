"""Run-time checks: errors that depend on values still to be computed (engine/checks.py, ops/faults.py)."""

import gc
import sys
import threading
from typing import Any

import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.tensor import guarded
from torchlike.nn import functional as F

CHECKS = sys.modules["torchlike._src.engine.checks"]
FLUSH = sys.modules["torchlike._src.engine.flush"]
PROGRAM = sys.modules["torchlike._src.engine.program"]


@pytest.fixture
def compiled(monkeypatch: Any):
    """Every trace is compiled when it is first seen."""
    monkeypatch.setattr(FLUSH, "worth_compiling", lambda *_: "a test")
    monkeypatch.setattr(guarded, "in_try", bool)  # pytest itself stands in one
    torch.synchronize()
    yield
    CHECKS.PENDING.clear()


def pending(*values: int) -> Any:
    """Integers that no operation can see while it is recorded."""
    return torch.tensor(values) * 1


TABLE = torch.arange(12.0).reshape(3, 4)
FAILING = {
    "embedding": (lambda: F.embedding(pending(0, 3), TABLE), IndexError, "index out of range in self"),
    "gather": (
        lambda: TABLE.gather(0, pending(0, 3).reshape(1, 2)),
        RuntimeError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "two indices": (
        lambda: TABLE[pending(0, 1), pending(0, -5)],
        IndexError,
        "index -5 is out of bounds for dimension 1 with size 4",
    ),
    "assignment": (
        lambda: torch.index_put(TABLE, (pending(0, 3),), torch.tensor(1.0)),
        IndexError,
        "index 3 is out of bounds for dimension 0 with size 3",
    ),
    "cross entropy": (lambda: F.cross_entropy(TABLE, pending(0, 4, 1)), IndexError, "Target 4 is out of bounds."),
    "one_hot": (
        lambda: F.one_hot(pending(0, 3), 3),
        RuntimeError,
        "Class values must be smaller than num_classes.",
    ),
    "division": (lambda: pending(1, 2) // pending(0, 1), RuntimeError, "ZeroDivisionError"),
    "bce": (
        lambda: F.binary_cross_entropy(pending(2, 0) * 1.0, torch.ones(2)),
        RuntimeError,
        "all elements of input should be between 0 and 1",
    ),
    "cholesky": (
        lambda: torch.linalg.cholesky(torch.diag(pending(1, -1) * 1.0)),
        torch.linalg.LinAlgError,
        "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the "
        "leading minor of order 2 is not positive-definite).",
    ),
    "inv of a batch": (
        lambda: torch.linalg.inv(torch.diag_embed((pending(1, 1, 1, 0) * 1.0).reshape(2, 2))),
        torch.linalg.LinAlgError,
        "linalg.inv: (Batch element 1): The diagonal element 2 is zero, the inversion could not be completed because "
        "the input matrix is singular.",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_compiled_programs_raise(compiled: None, name: str):
    function, kind, text = FAILING[name]
    out = function()
    with pytest.raises(kind) as caught:
        out.sum().item()
    assert str(caught.value) == text
    assert ".py:" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="has no value"):
        out.tolist()


def step(weight: Any, top: int) -> tuple[Any, Any]:
    """The gradient of looked-up rows; only the gradient needs the indices."""
    before = weight * 2
    indices = torch.arange(8) * 1 % top
    (F.embedding(indices, weight) * 3).sum().backward()
    grad, weight.grad = weight.grad, None
    return before, grad


def test_what_came_before_is_there_and_what_came_after_is_not(compiled: None):
    weight = torch.ones(6, 2).requires_grad_()
    before, grad = step(weight, 6)
    assert grad.sum().item() == 48
    before, grad = step(weight, 7)
    later = grad + 1
    with pytest.raises(IndexError, match="index out of range in self"):
        torch.synchronize()
    assert before.sum().item() == 24
    for lost in (grad, later):
        with pytest.raises(RuntimeError, match="has no value"):
            lost.sum().item()
    before, grad = step(weight, 6)
    assert grad.sum().item() == 48


def test_later_traces_of_lost_results_are_lost(compiled: None):
    picked = TABLE[pending(0, 3)]
    FLUSH.flush()  # does not wait
    later = picked + 1  # recorded before the program has been looked at
    other = torch.ones(2) + 1
    with pytest.raises(IndexError):
        later.tolist()
    with pytest.raises(RuntimeError, match="has no value"):
        later.tolist()
    with pytest.raises(RuntimeError, match="has no value"):
        other.tolist()  # recorded after the error
    assert (torch.ones(2) + 1).tolist() == [2, 2]


def test_an_optimizer_step_does_not_hide_it(compiled: None):
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(5, 2)

        def forward(self, top: int) -> Any:
            return self.table(torch.arange(6) * 1 % top)

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for top in (5, 5, 6):
        optimizer.zero_grad()
        loss = model(top).sum()
        loss.backward()
        optimizer.step()
    with pytest.raises(IndexError):
        loss.item()
    with pytest.raises(RuntimeError, match="has no value"):
        model.table.weight.tolist()


def test_another_threads_error_is_its_own(compiled: None):
    out: list = []

    def work() -> None:
        out.append(TABLE[pending(0, 3)])
        FLUSH.flush()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (torch.ones(2) + 1).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="has no value.*index 3 is out of bounds"):
        out[0].tolist()


def test_programs_without_conditions_return_nothing_more(compiled: None):
    before = set(PROGRAM.PROGRAMS)
    x = torch.ones(3) * 2 - 1
    assert x.tolist() == [1, 1, 1]
    new = set(PROGRAM.PROGRAMS) - before
    assert new and all(not p.checks for p in new)
    assert not CHECKS.PENDING


def test_a_pending_check_keeps_nothing_after_it_is_looked_at(compiled: None):
    out = TABLE[pending(0, 2)]
    FLUSH.flush()
    assert len(CHECKS.PENDING) == 1
    assert out.sum().item() == 44
    assert not CHECKS.PENDING
    value = out._s.value
    del out
    gc.collect()
    assert sys.getrefcount(value) == 2


def test_the_host_tier_and_direct_mode_raise():
    for function, kind, text in FAILING.values():
        with pytest.raises(kind) as caught:
            function().sum().item()
        assert str(caught.value) == text
        with torch.direct_mode(), pytest.raises(kind) as caught:
            function()
        assert str(caught.value) == text
