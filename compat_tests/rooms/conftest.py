"""Tests of the engine are about programs, however small their models are."""

import sys
from collections.abc import Iterator

import pytest

import torchlike  # noqa: F401 - loads the engine

FLUSH = sys.modules["torchlike._src.engine.flush"]


@pytest.fixture(autouse=True)
def small_models_are_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if launching a program cost little: only traces of two or three operations are too small for one. What other
    tests ran at the same lines does not count."""
    FLUSH._sites.clear()
    monkeypatch.setattr(FLUSH, "LAUNCH_SECONDS", 8e-6)
    monkeypatch.setattr(FLUSH, "LAUNCH_ARRAY_SECONDS", 0.0)
    monkeypatch.setattr(FLUSH, "LAUNCH_OPERATION_SECONDS", 0.0)
    yield
