"""NumPy functions that are written out or shared between shapes, against those generated from the kernel's jaxpr."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.core.aval import Aval
from torchlike._src.core.tracing import trace
from torchlike._src.engine import blas, cold
from torchlike._src.engine.host import compile_host
from torchlike._src.ops.declare import Faults

KERNELS = sys.modules["torchlike._src.engine.record"].KERNELS
F = nn.functional
GENERATOR = np.random.default_rng(0)
LEAVES: list = []


def rand(*shape: int, grad: bool = True) -> Any:
    out = torch.tensor(GENERATOR.standard_normal(shape, np.float32), requires_grad=grad)
    if grad:
        LEAVES.append(out)
    return out


def ints(high: int, *shape: int) -> Any:
    return torch.tensor(GENERATOR.integers(0, high, shape))


def wide(*shape: int) -> Any:
    return rand(*shape).double()


def gru(n: int, **options: Any) -> Any:
    cell = nn.GRUCell(3, 4, **options)
    return cell(rand(n, 3), cell(rand(n, 3, grad=False), rand(n, 4)))


def lstm(n: int, **options: Any) -> Any:
    cell = nn.LSTMCell(3, 4, **options)
    states = cell(rand(n, 3), cell(rand(n, 3, grad=False)))
    return cell(rand(n, 3), states)[1] * 2 + cell(rand(n, 3), states)[0]


def rnn(n: int, **options: Any) -> Any:
    cell = nn.RNNCell(3, 4, **options)
    return cell(rand(n, 3), cell(rand(n, 3, grad=False), rand(n, 4)))


def clipped(n: int) -> Any:
    """Sets gradients, clips them, and gives something that depends on them."""
    parameters = [rand(n, 3), rand(n), rand()]
    for p in parameters:
        p.grad = rand(*p.shape, grad=False)
    total = nn.utils.clip_grad_norm_(parameters, 0.5)
    return sum(p.grad.sum() for p in parameters) * total * rand(n)


CALLS: dict[str, Callable[[int], Any]] = {
    "views": lambda n: rand(n, 4, 6).view(n, 24).reshape(2 * n, 12).t().unsqueeze(1).transpose(0, 2),
    "permute": lambda n: rand(n, 4, 6).permute(2, 0, 1).permute(1, 2, 0),
    "expand": lambda n: rand(n, 1, 3).expand(n, 4, 3).expand(2, n, 4, 3),
    "select": lambda n: rand(n, 4, 6)[:, -1] + rand(n, 4, 6)[:, 2] + rand(4, n, 6)[0],
    "select_all": lambda n: rand(n)[-1] * rand(n)[0],
    "slice": lambda n: rand(n, 8)[:, 1:5] + rand(n, 8)[:, -4:] + rand(n, 8)[:, ::2],
    "chunk": lambda n: sum(c * c for c in rand(n, 9).chunk(3, dim=-1)),
    "cat": lambda n: torch.cat([rand(n, 3), rand(n, 5), rand(n, 1)], -1),
    "fills": lambda n: (rand(n, 3) + torch.full((n, 3), 2) * 1.5).tanh() * torch.full((n, 3), 0.3),
    "stack": lambda n: torch.stack([rand(n, 3), rand(n, 3)], 1) * torch.stack([rand(n, 2, 3)], 0).squeeze(0),
    "sum": lambda n: rand(n, 4, 6).sum(1) * rand(n, 4, 6).sum((-1, 1), keepdim=True).squeeze(1) * rand(n, 4).sum(),
    "mean": lambda n: rand(n, 4, 6).mean((0, 2)) * rand(n, 4).mean() * rand(n, 4, 6).mean(2).mean(0, keepdim=True),
    "sum_double": lambda n: wide(n, 4).sum(0) * wide(n, 4).mean(),
    "moments": lambda n: rand(n).std() + rand(n, 3).var() + rand(n).double().std(),
    "softmax": lambda n: rand(n, 5).softmax(1) * rand(n, 5).softmax(0) * rand(2, n, 5).log_softmax(-1),
    "matmul": lambda n: rand(n, 4) @ rand(4, 5) @ rand(5, 2, grad=False),
    "matmul_right": lambda n: rand(n, 4, grad=False) @ rand(4, 5),
    "matmul_batch": lambda n: rand(2, n, 4) @ rand(2, 4, n) @ rand(2, n, 3),
    "attention": lambda n: (rand(2, n, 4) @ rand(2, n, 4).transpose(1, 2)).softmax(-1) @ rand(2, n, 4),
    "matmul_four": lambda n: rand(2, 3, n, 4) @ rand(2, 3, 4, 5),
    "bmm": lambda n: torch.bmm(rand(3, n, 4), rand(3, 4, 2)),
    "mm": lambda n: torch.mm(rand(n, 4), rand(4, 3)),
    "linear": lambda n: F.linear(rand(n, 4), rand(3, 4), rand(3)) + F.linear(rand(n, 4), rand(3, 4)),
    "linear_wide": lambda n: F.linear(rand(n, 160), rand(128, 160), rand(128)) + F.linear(rand(n, 160), rand(128, 160)),
    "linear_deep": lambda n: F.linear(rand(2, n, 4), rand(3, 4), rand(3)),
    "linear_frozen": lambda n: F.linear(rand(2, n, 4), rand(3, 4, grad=False), rand(3, grad=False)),
    "linear_first": lambda n: F.linear(rand(2, n, 4, grad=False), rand(3, 4), rand(3)),
    "linear_vector": lambda n: F.linear(rand(4), rand(n, 4), rand(n)) * F.linear(rand(4), rand(n, 4)),
    "linear_row": lambda n: F.linear(rand(1, 4), rand(n, 4), rand(n)) + F.linear(rand(1, 4, grad=False), rand(n, 4)),
    "linear_value": lambda n: F.linear(rand(n), rand(1, n), rand(1)) * F.linear(rand(n, grad=False), rand(1, n)),
    "linear_rows": lambda n: F.linear(rand(1, 1, 4), rand(n, 4), rand(n)) + F.linear(rand(1, 64), rand(n, 64), rand(n)),
    "losses": lambda n: (
        F.cross_entropy(rand(n, 3), ints(3, n))
        + F.nll_loss(rand(n, 3), ints(3, n), reduction="sum")
        + F.nll_loss(rand(n, 3), ints(3, n), ignore_index=1)
        + F.nll_loss(rand(n, 3), ints(3, n), reduction="none", ignore_index=2)
    ),
    "remainder": lambda n: rand(n) * (ints(9, n) % 4 + ints(9, n) % -4),
    "numbers": lambda n: (2 - rand(n, 3)) / 3 + 0.1 * rand(n, 3) - 1 / (rand(n, 3) + 1) - rand(n, 3) * 2.5,
    "embedding": lambda n: F.embedding(ints(7, 2, n), rand(7, 4)),
    "embedding_one": lambda n: F.embedding(ints(7, 1), rand(7, n)) + F.embedding(ints(7, 1), rand(7, n), padding_idx=1),
    "embedding_padding": lambda n: F.embedding(ints(3, 2, n), rand(7, 4), padding_idx=1),
    "elementwise": lambda n: (rand(n, 3) * rand(n, 3) + rand(n, 3) / 2 - 3 * rand(n, 3)).tanh().sigmoid().exp(),
    "activations": lambda n: F.gelu(rand(n, 3)) + F.relu(rand(n, 3)) * F.silu(rand(n, 3)) + rand(n, 3).abs().sqrt(),
    "comparisons": lambda n: torch.where(rand(n, 3, grad=False) > 0, rand(n, 3), rand(n, 3)).clamp(-1, 1) ** 2,
    "mixed": lambda n: rand(n, 3) * wide(n, 3) + ints(5, n, 3) * rand(n, 3),
    "clip_grad_norm": clipped,
    "dropout": lambda n: F.dropout(rand(n, 5), 0.3),
    "broadcast": lambda n: rand(n, 3) * rand(3) + rand(n, 1) - rand(1, 3) / rand(2, n, 1),
    "broadcast_rows": lambda n: rand(4 * n, 300) * rand(300) - rand(300) / rand(n, 1, 1) + rand(2, 1, 4 * n, 300),
    "broadcast_scalars": lambda n: rand(n, 3) * rand() + rand() / rand(n) [:, None] - rand(1) * 2 / rand(1),
    "scalars": lambda n: (rand() * rand() + 2 - rand() / 3) * (1 / rand()) - rand() + 0 * rand(n),
    "unary": lambda n: -rand(n, 3) + rand(n, 3).exp() * rand(n, 3).abs().log() - rand(n, 3).relu() * rand(n, 3).abs(),
    "unary_scalars": lambda n: (-rand()).exp() + rand().abs().log() * rand() ** 2 + rand().abs().sqrt() * rand(n) ** 2,
    "logsumexp": lambda n: rand(n).logsumexp(0) + rand(n, 3).logsumexp(-1) * rand(3, 2, n).logsumexp(1, keepdim=True),
    "gather": lambda n: rand(n).gather(0, ints(n, 1)) * rand(n).gather(0, ints(n, 4)).sum(),
    "one_element": lambda n: rand(n)[ints(n)] * rand(n, 4)[ints(n), ints(4)] + rand(n, 4)[ints(n)].sum(),
}  # fmt: skip


NEAR_CALLS: dict[str, Callable[[int], Any]] = {
    f"{name}_{options}": lambda n, cell=cell, options=options: cell(n, **options)
    for name, cell in (("gru", gru), ("lstm", lstm), ("rnn", rnn))
    for options in ({}, {"bias": False})
}
"""Computed in another order than generated functions do."""


def operands(kernel: Any) -> list[np.ndarray]:
    out = []
    for s in kernel.specs:
        if type(s) is not Aval:
            out.append(np.array({"f": 0.3, "i": -1, "b": True}[s], cold.NUMBER_DTYPES[s]))
        elif s.dtype.np.kind == "b":
            out.append(GENERATOR.random(s.shape) < 0.5)
        elif s.dtype.np.kind == "i":
            out.append(GENERATOR.integers(0, 3, s.shape).astype(s.dtype.np))
        else:
            out.append(np.abs(GENERATOR.standard_normal(s.shape)).astype(s.dtype.np))
    return out


def generated(kernel: Any) -> Callable:
    return compile_host(trace(kernel, [cold.struct(s) for s in kernel.specs]))


@pytest.fixture
def kernels(monkeypatch: Any) -> set:
    """Every kernel that the host tier runs in a test."""
    found: set = set()
    original = cold.function_of

    def note(kernel: Any) -> Any:
        found.add(kernel)
        return original(kernel)

    monkeypatch.setattr(cold, "function_of", note)
    for kernel in KERNELS.values():
        kernel.cache.pop("facts", None)
    LEAVES.clear()
    return found


@pytest.mark.parametrize("name", CALLS)
def test_equal_to_the_generated_function(name: str, kernels: set):
    for n in (5, 8, 11):  # the second and third run what the first has left to share
        out = CALLS[name](n)
        (out * out).sum().backward()
        for leaf in LEAVES:
            leaf.grad.tolist()
        LEAVES.clear()
    assert kernels
    for kernel in kernels:
        function = kernel.cache["host"]
        for arrays in (operands(kernel), operands(kernel)):
            with np.errstate(all="ignore"):
                given, expected = function(*arrays), generated(kernel)(*arrays)
            for a, b, aval in zip(given, expected, kernel.outs, strict=True):
                assert type(a) is np.ndarray
                assert a.dtype == b.dtype == aval.dtype.np and a.shape == b.shape == aval.shape, kernel
                assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), kernel


@pytest.mark.parametrize("name", NEAR_CALLS)
def test_near_the_generated_function(name: str, kernels: set):
    for n in (5, 40):
        out = NEAR_CALLS[name](n)
        (out * out).sum().backward()
        for leaf in LEAVES:
            leaf.grad.tolist()
        LEAVES.clear()
    cells = [k for k in kernels if "_cell_" in k.op.name]
    assert len(cells) >= 4
    for kernel in cells:
        assert not hasattr(kernel.cache["host"], "source"), kernel
        arrays = operands(kernel)
        arrays = [a * GENERATOR.choice([-1, 1], a.shape).astype(a.dtype) for a in arrays]
        for a, b, aval in zip(kernel.cache["host"](*arrays), generated(kernel)(*arrays), kernel.outs, strict=True):
            assert a.dtype == b.dtype == aval.dtype.np and a.shape == b.shape == aval.shape, kernel
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


BAD_OPERANDS: dict[str, tuple[Callable[[Any], Any], list[list[int]]]] = {
    "embedding": (lambda i: F.embedding(i, rand(4, 2)), [[0, 3], [0, 4], [-1, 9], [3, -7], [2**62, 0]]),
    "gather": (lambda i: rand(4).gather(0, i), [[0, 3], [1, 4], [-1, 2]]),
    "index": (lambda i: rand(4)[i], [[0, -4], [3, 4], [-5, 7]]),
    "classes": (lambda i: F.nll_loss(rand(2, 3), i, ignore_index=-7), [[-7, 2], [-7, 3], [-1, 5], [-7, -7]]),
}


@pytest.mark.parametrize("name", BAD_OPERANDS)
def test_checks_of_values_equal_the_generated_ones(name: str, kernels: set):
    call, cases = BAD_OPERANDS[name]
    for case in cases:
        out = call(torch.tensor(case) + 0)  # pending: known ones are looked at when the function is called
        with contextlib.suppress(IndexError, RuntimeError):
            out.tolist()
    checked = [k for k in kernels if isinstance(k.op, Faults)]
    assert checked
    for kernel in checked:
        for case in cases:
            array = np.array(case)
            assert np.array_equal(kernel.cache["host"](array)[0], generated(kernel)(array)[0]), (kernel, case)
        assert kernel.op.infer(kernel.static, kernel.specs)[0].shape == generated(kernel)(array)[0].shape


def schedule_columns(schedule: Any) -> tuple:
    others = {
        k: (a.codes, b) if isinstance(a, cold.checks.Condition) else (a, b) for k, (a, b) in schedule.others.items()
    }
    columns = [schedule.functions, schedule.lefts, schedule.rights, schedule.firsts, schedule.drops]
    return (*columns, others, schedule.bools, schedule.threads)


def test_both_ways_to_plan_agree(monkeypatch: Any):
    """The quick walk of a trace in which nothing is computed together, and the general one."""
    compared: list = []
    quick = cold._one_by_one

    def both(plan: Any, live: tuple) -> Any:
        found, general = quick(plan, live), cold._with_joins(plan, live)
        if found is not None:
            assert schedule_columns(found) == schedule_columns(general)
            assert found.seconds == pytest.approx(general.seconds)
            assert found.products == pytest.approx(general.products)
            compared.append(plan.node.depth)
        return found

    monkeypatch.setattr(cold, "_one_by_one", both)
    w, table = torch.randn(4, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    for n in (3, 5):
        h = F.embedding(ints(9, n, 2), table)[:, -1]
        for _ in range(n):
            h = torch.tanh(h @ w + h)
        torch.where(ints(2, n) == 1, True, False).tolist()
        parts = h.split([1, 3], dim=1)
        loss = F.cross_entropy(h * 2 + parts[0] * 3, ints(4, n)) + h.max(1)[0].sum()
        unused = h * 3, F.embedding(ints(9, n), table)
        del unused
        (h * (1 + 2j)).tolist()
        loss.backward()
        ((h > 0) * True).tolist()
        loss.tolist()
        w.grad.tolist()
        w.grad = table.grad = None
    assert sum(depth > 20 for depth in compared) >= 2


@pytest.mark.skipif(blas.controls() is None, reason="NumPy has another BLAS than OpenBLAS")
def test_products_of_a_moment_take_one_thread(monkeypatch: Any):
    get, put = blas.controls()
    seen: list = []
    compute = cold._compute

    def note(*args: Any) -> Any:
        seen.append(get())
        return compute(*args)

    monkeypatch.setattr(cold, "_compute", note)
    before = get()
    put(2)
    try:
        (torch.ones(400, 64) @ torch.ones(64, 64)).sum().tolist()
        (torch.ones(4, 64) @ torch.ones(64, 64)).sum().tolist()
        assert seen == [1, 2]
        assert get() == 2
    finally:
        put(before)
