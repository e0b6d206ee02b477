"""The package safetensors works under the alias: it prints what it prints on PyTorch, and files go both ways."""

import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("safetensors", reason="the package safetensors is not installed")

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = HERE / "recorded" / "safetensors.txt"
"""What the program prints on PyTorch: written by `safetensors_program.py mine > safetensors.txt` in an empty folder."""


def run(library: str, folder: pathlib.Path, *arguments: str) -> list[str]:
    """The lines that the program prints on PyTorch, or on torchlike."""
    launcher = ["-m", "torchlike"] if library == "torchlike" else []
    command = [sys.executable, *launcher, str(HERE / "safetensors_program.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "PYTHONHASHSEED": "0"}
    (folder / arguments[0]).mkdir(exist_ok=True)
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_as_on_pytorch(tmp_path: pathlib.Path) -> None:
    assert run("torchlike", tmp_path, "mine") == RECORDED.read_text().splitlines()


def test_files_go_both_ways(oracle: Any, tmp_path: pathlib.Path) -> None:
    expected = RECORDED.read_text().splitlines()
    assert run("torch", tmp_path, "mine") == expected
    (tmp_path / "mine").rename(tmp_path / "theirs")
    assert run("torchlike", tmp_path, "mine", "theirs") == expected
    (tmp_path / "mine").rename(tmp_path / "theirs of torchlike")
    assert run("torch", tmp_path, "mine", "theirs of torchlike") == expected
