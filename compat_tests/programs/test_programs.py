"""Each program prints what it prints under PyTorch: words to the letter, numbers to a few parts in a thousand.

Numbers that a person would print (four digits) agree exactly on the machines tried; another CPU rounds sums in another
order, and training amplifies the last bit."""

import math
import re
from typing import Any

import pytest

from compat_tests.programs.record import OUTPUT, printed, programs

NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")
ADDRESS = re.compile(r"0x[0-9a-f]+")


def compare(got: str, expected: str) -> None:
    got, expected = ADDRESS.sub("0x", got), ADDRESS.sub("0x", expected)
    assert NUMBER.sub("#", got).split() == NUMBER.sub("#", expected).split()
    for a, b in zip(NUMBER.findall(got), NUMBER.findall(expected), strict=True):
        assert math.isclose(float(a), float(b), rel_tol=3e-3, abs_tol=2e-4), (a, b)


@pytest.mark.parametrize("name", sorted(programs()))
def test_prints_what_pytorch_prints(name: str) -> None:
    expected = (OUTPUT / f"{name}.txt").read_text(encoding="utf-8")
    compare(printed(programs()[name], "-m", "torchlike"), expected)


@pytest.mark.parametrize("name", sorted(programs()))
def test_reference_is_not_stale(name: str, oracle: Any) -> None:
    compare(printed(programs()[name]), (OUTPUT / f"{name}.txt").read_text(encoding="utf-8"))
