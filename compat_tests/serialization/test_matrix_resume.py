"""Training that stopped in one library goes on in the other, and prints the same losses as if it had not stopped."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import pytest

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "recorded"
EXPECTED = json.loads((RECORDED / "resume.json").read_text())
"""What PyTorch prints for each kind when it trains all six epochs at once."""


def train(library: str, kind: str, path: pathlib.Path, epochs: int) -> list[str]:
    """The lines that the program prints on PyTorch, or on torchlike."""
    launcher = ["-m", "torchlike"] if library == "torchlike" else []
    command = [sys.executable, *launcher, str(HERE / "resume_program.py"), kind, str(path), str(epochs)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_from_a_checkpoint_of_pytorch(tmp_path: pathlib.Path) -> None:
    shutil.copy(RECORDED / "resume" / "adam.pt", tmp_path)
    assert train("torchlike", "adam", tmp_path / "adam.pt", 3) == EXPECTED["adam"][3:]


@pytest.mark.parametrize("kind", ["adam", "sgd", "adamw"])
def test_both_ways(oracle: Any, tmp_path: pathlib.Path, kind: str) -> None:
    assert train("torch", kind, tmp_path / "whole.pt", 6) == EXPECTED[kind]
    for first in ("torch", "torchlike"):
        assert train(first, kind, tmp_path / first, 3) == EXPECTED[kind][:3]
        for second in ("torch", "torchlike"):
            if (first, second) != ("torch", "torch"):
                shutil.copy(tmp_path / first, tmp_path / "file.pt")
                assert train(second, kind, tmp_path / "file.pt", 3) == EXPECTED[kind][3:], (first, second)
