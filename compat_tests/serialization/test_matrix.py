"""What PyTorch has saved is read bit for bit, and the other way round: dtypes, views, sharing, optimizers, schedules,
generators and whole modules. `recorded` holds files of PyTorch, so that PyTorch -> torchlike runs without it."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

import torchlike
from compat_tests.serialization import matrix
from compat_tests.state import preserved

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
EXPECTED = json.loads((RECORDED / "described.json").read_text())


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Where two descriptions differ."""
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [d for k, (a, b) in enumerate(zip(expected, found)) for d in differences(a, b, f"{path}.{k}")]
    return [] if expected == found else [f"{path}: {str(expected)[:200]} != {str(found)[:200]}"]


def assert_same(expected: dict, found: dict) -> None:
    out = [d for name in expected for d in differences(expected[name], found.get(name), name)]
    assert not out, "\n".join(out[:20])


@pytest.mark.filterwarnings("ignore")  # schedules resume before their optimizer's first step
@pytest.mark.parametrize("name", sorted(p.stem for p in RECORDED.glob("*.pt")))
def test_recorded_by_pytorch(name: str) -> None:
    with preserved(torchlike):
        loaded = torchlike.load(RECORDED / f"{name}.pt", weights_only=name not in matrix.TRUSTED)
        assert matrix.digests(matrix.described(torchlike, loaded)) == EXPECTED[name]
        after = matrix.described(torchlike, matrix.resumed(torchlike, name, loaded))
        assert matrix.digests(after) == EXPECTED[f"{name} resumed"]


@pytest.mark.filterwarnings("ignore")
def test_torchlike_to_torchlike(tmp_path: pathlib.Path) -> None:
    with preserved(torchlike):
        matrix.write(torchlike, tmp_path)
        found = matrix.read(torchlike, tmp_path)
    assert_same(json.loads((tmp_path / "described.json").read_text()), found)


def run(library: str, *arguments: Any) -> str:
    """matrix.py in a process of its own, on PyTorch or torchlike."""
    launcher = ["-m", "torchlike"] if library == "torchlike" else []
    command = [sys.executable, *launcher, str(HERE / "matrix.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("writer, reader", [("torch", "torchlike"), ("torchlike", "torch"), ("torchlike", "torchlike")])
def test_live(oracle: Any, tmp_path: pathlib.Path, writer: str, reader: str) -> None:
    run(writer, "write", tmp_path)
    found = json.loads(run(reader, "read", tmp_path))
    assert_same(json.loads((tmp_path / "described.json").read_text()), found)


def test_recorded_files_are_what_pytorch_writes(oracle: Any, tmp_path: pathlib.Path) -> None:
    run("torch", "record", tmp_path)
    assert json.loads((tmp_path / "described.json").read_text()) == EXPECTED
