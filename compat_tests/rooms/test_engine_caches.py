"""Caches: bounded in memory, and on disk from one process to the next, whatever happens to the files."""

from __future__ import annotations

import hashlib
import os
import pathlib
import pickle
import stat
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import torchlike as torch
from torchlike import nn

RECORD = sys.modules["torchlike._src.engine.record"]
FLUSH = sys.modules["torchlike._src.engine.flush"]
PROGRAM = sys.modules["torchlike._src.engine.program"]
VIEWS = sys.modules["torchlike._src.tensor.views"]
F = nn.functional


# -- in memory ---------------------------------------------------------------------------------------------------------


def training(width: int, data: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> float:
        optimizer.zero_grad()
        loss = F.mse_loss(model(data), data[:, :1])
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def nodes_in_tree() -> int:
    n, stack = -1, [RECORD.ROOT]
    while stack:
        n += 1
        stack.extend(stack.pop().children.values())
    return n


def test_pruning_in_the_middle_of_everything():
    x = torch.randn(5, 3)
    expected = [training(6, x)() for _ in range(1)]
    step = training(6, x)
    reference = training(6, x)
    losses = [step() for _ in range(3)]
    pending = (x * 2).sum() + 1
    w = torch.ones(3, requires_grad=True)
    graph = (w * x[0]).exp().sum()
    FLUSH.prune()
    FLUSH.prune()
    losses += [step() for _ in range(5)]
    for _ in range(3):
        FLUSH.prune()
        losses.append(step())
    graph.backward()
    assert pending.item() == pytest.approx(x.sum().item() * 2 + 1, rel=1e-5)
    assert torch.allclose(w.grad, x[0] * x[0].exp())
    assert losses == pytest.approx([reference() for _ in range(11)], rel=1e-4)
    assert losses[0] == pytest.approx(expected[0])


def test_pruning_keeps_what_was_used_last_and_counts_right():
    torch.synchronize()
    for k in range(30):
        (torch.ones(k + 2, 3) * 2).sum().item()
    assert torch.stats()["nodes"] == nodes_in_tree()
    (torch.ones(31, 3) * 2).sum().item()
    before = nodes_in_tree()
    FLUSH.prune()
    assert torch.stats()["nodes"] == nodes_in_tree() < before
    kept = torch.stats()["nodes"]
    (torch.ones(31, 3) * 2).sum().item()
    assert torch.stats()["nodes"] == kept, "the trace that ran last was forgotten"


def test_the_tree_is_bounded(monkeypatch: Any):
    monkeypatch.setattr(FLUSH, "MAX_NODES", torch.stats()["nodes"] + 100)
    for k in range(150):
        assert (torch.ones(k + 40) * 2 + 1).sum().item() == 3 * (k + 40)
        assert torch.stats()["nodes"] <= FLUSH.MAX_NODES + 10
    assert torch.stats()["nodes"] == nodes_in_tree()


def test_a_large_recent_trace_does_not_keep_loops_from_compiling(monkeypatch: Any):
    x = torch.randn(5, 3)
    y = x
    for _ in range(400):
        y = y * 1.01 + 0.1
    y.sum().item()
    monkeypatch.setattr(FLUSH, "MAX_NODES", 300)
    step = training(6, x)
    for _ in range(6):
        step()
    before = torch.stats()
    step()
    assert torch.stats()["launches"] == before["launches"] + 1
    assert torch.stats()["nodes"] == before["nodes"] <= 300


def test_programs_are_bounded(monkeypatch: Any):
    monkeypatch.setattr(PROGRAM, "MAX_PROGRAMS", 6)
    monkeypatch.setenv("TORCHLIKE_CACHE_DIR", "")
    monkeypatch.setattr(FLUSH, "worth_compiling", lambda *_: "a test")
    for k in range(14):
        assert (torch.ones(k + 5) * 3).sum().item() == 3 * (k + 5)
        assert len(PROGRAM.PROGRAMS) <= 6
    for k in (13, 0):
        assert (torch.ones(k + 5) * 3).sum().item() == 3 * (k + 5)


def test_small_caches_start_over_when_full(monkeypatch: Any):
    monkeypatch.setattr(RECORD, "MAX_KERNELS", 20)
    monkeypatch.setattr(VIEWS, "MAX_GEOMETRIES", 10)
    step = training(7, torch.randn(4, 3))
    for k in range(60):
        x = torch.ones(k + 2, 6)
        assert x.view(-1)[: k + 1].t().reshape(k + 1, 1).sum().item() == k + 1
        if k % 10 == 0:
            step()
    assert len(RECORD.KERNELS) <= 20
    assert len(VIEWS.GEOMETRIES) <= 12 and len(VIEWS.SHAPES) <= 12


# -- on disk -----------------------------------------------------------------------------------------------------------

SCRIPT = """
    import sys
    import torchlike as torch
    from torchlike import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 1500), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1500, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(9, 5)
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
    s = torch.stats()
    print(loss.item().hex(), int(s["compiles"]), int(s["disk_hits"]), int(s["launches"]))
    """


def start(folder: Any, code: str = SCRIPT) -> subprocess.Popen:
    env = {**os.environ, "TORCHLIKE_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> tuple[str, int, int, int]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-3000:]
    loss, *counts = out.split()
    return (loss, *map(int, counts))


def entries(folder: pathlib.Path) -> list[pathlib.Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: Any) -> tuple[pathlib.Path, tuple]:
    folder = tmp_path_factory.mktemp("programs")
    first = finish(start(folder))
    assert first[1] >= 1 and first[2] == 0
    return folder, first


def test_the_second_process_loads(filled: Any):
    folder, first = filled
    second = finish(start(folder))
    assert second == (first[0], 0, first[1], first[3])


FACTORS = """
    import torchlike as torch
    torch.manual_seed(0)
    a = torch.randn(160, 160)
    a = a @ a.T + 160 * torch.eye(160)
    for _ in range(6):
        x = torch.linalg.cholesky(a)
        y = torch.linalg.solve(a, x).tanh().exp().sum()
        loss = torch.linalg.qr(x)[0].abs().sum() + torch.linalg.eigvalsh(a).sum() + torch.linalg.svdvals(a).sum() + y
        loss.item()
    s = torch.stats()
    print(loss.item().hex(), int(s["compiles"]), int(s["disk_hits"]), int(s["launches"]))
    """


def test_programs_that_call_lapack(tmp_path: pathlib.Path):
    # The second process once jumped into a LAPACK that JAX had not looked up there.
    first = finish(start(tmp_path, FACTORS))
    assert first[1] >= 1, "this test needs a compiled program"
    assert finish(start(tmp_path, FACTORS))[0] == first[0]


def test_entries_are_private(filled: Any):
    folder, _ = filled
    for path in entries(folder):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def compiled_once() -> str:
    """The key of a stored program, made in this process."""
    keys = []
    real = PROGRAM.save
    try:
        PROGRAM.save = lambda key, executable: (keys.append(key), real(key, executable))
        FLUSH_worth, FLUSH.worth_compiling = FLUSH.worth_compiling, lambda *_: "a test"
        try:
            RECORD.ROOT.children.clear()
            FLUSH.stats.COUNTS["nodes"] = 0
            assert (torch.ones(3, 5) * 2 + 1).sum().item() == 45
        finally:
            FLUSH.worth_compiling = FLUSH_worth
    finally:
        PROGRAM.save = real
    return keys[0] if keys else ""


@pytest.mark.parametrize("damage", ["truncated", "empty", "changed", "text", "pickle", "a folder", "gone"])
def test_damaged_entries_are_misses(tmp_path: pathlib.Path, monkeypatch: Any, damage: str):
    monkeypatch.setenv("TORCHLIKE_CACHE_DIR", str(tmp_path))
    torch.synchronize()
    key = compiled_once()
    (path,) = entries(tmp_path)
    assert path.name == key
    assert PROGRAM.load(key) is not None
    data = path.read_bytes()
    body = pickle.dumps("not a program")
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "gone":
        path.write_bytes(
            {
                "truncated": data[: len(data) // 2],
                "empty": b"",
                "changed": data[:200] + bytes([data[200] ^ 1]) + data[201:],
                "text": b"x" * 500,
                "pickle": hashlib.sha256(body).digest() + body,
            }[damage]
        )
    assert PROGRAM.load(key) is None
    compiled_once()  # works, and stores the entry again where it can
    if damage != "a folder":
        assert PROGRAM.load(key) is not None


def test_entries_of_other_users_are_not_executed(tmp_path: pathlib.Path, monkeypatch: Any):
    monkeypatch.setenv("TORCHLIKE_CACHE_DIR", str(tmp_path))
    torch.synchronize()
    key = compiled_once()
    assert PROGRAM.load(key) is not None
    if hasattr(os, "getuid"):
        uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        assert PROGRAM.load(key) is None


@pytest.mark.parametrize("chosen", ["", "0", "a file", "/proc/nowhere"])
def test_no_usable_folder(tmp_path: pathlib.Path, monkeypatch: Any, chosen: str):
    """Switched off, or not writable: programs are compiled and not stored."""
    if chosen == "a file":
        (tmp_path / "file").write_text("not a folder")
        chosen = str(tmp_path / "file" / "programs")
    monkeypatch.setenv("TORCHLIKE_CACHE_DIR", chosen)
    torch.synchronize()
    before = torch.stats()["compiles"]
    for _ in range(2):
        compiled_once()
    assert torch.stats()["compiles"] == before + 2
    assert not [p for p in entries(tmp_path) if p.name != "file"]


def test_two_processes_at_once(filled: Any, tmp_path: pathlib.Path):
    _, first = filled
    both = [start(tmp_path / "new") for _ in range(2)]
    for process in both:
        assert finish(process)[0] == first[0]
    assert not [p for p in entries(tmp_path / "new") if p.name.startswith("tmp")]


def test_the_folder_is_kept_under_its_limit(tmp_path: pathlib.Path, monkeypatch: Any):
    sub = tmp_path / "ab"
    sub.mkdir()
    for k in range(6):
        (sub / f"old{k}").write_bytes(b"x" * 100)
        os.utime(sub / f"old{k}", (1000 + k, 1000 + k))
    monkeypatch.setattr(PROGRAM, "MAX_CACHE_BYTES", 250)
    monkeypatch.setattr(PROGRAM, "_saved", 0)
    PROGRAM._trim(tmp_path)
    assert sorted(p.name for p in sub.iterdir()) == ["old4", "old5"]


def test_the_users_own_functions_are_not_stored(tmp_path: pathlib.Path):
    """A custom Function's kernel may be any Python code: only what can be named across processes is stored."""
    code = """
        import torchlike as torch
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
        w = torch.ones(40, 40, requires_grad=True)
        for _ in range(5):
            w.grad = None
            loss = (Twice.apply(w) @ w).sum()
            loss.backward()
            loss.item()
        print("0", 0, 0, 0)
        """
    assert finish(start(tmp_path, code))[0] == "0"
