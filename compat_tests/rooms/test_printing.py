"""The text of tensors against PyTorch's: recorded, and fresh random cases where PyTorch is at hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from compat_tests.rooms import printing_cases as cases
from torchlike._src.core import device, dtype
from torchlike._src.tensor import printing


@pytest.fixture(autouse=True)
def untouched_state() -> Any:
    yield
    printing.set_printoptions(profile="default")
    dtype.set_default_dtype(dtype.float32)


def our_text(c: cases.Case) -> str:
    printing.set_printoptions(profile="default")
    printing.set_printoptions(**c.options)
    dtype.set_default_dtype(dtype.by_name(c.default))
    return printing.tensor_repr(
        None if c.meta else c.array,
        dtype.by_name(c.name),
        c.array.shape,
        device=device.META if c.meta else device.CPU,
        requires_grad=c.requires_grad,
        grad_fn="CloneBackward0" if c.grad_fn else None,
    )


def test_agrees_with_the_recorded_texts() -> None:
    given = cases.all_cases()
    expected = json.loads(cases.EXPECTED.read_text())
    assert len(given) == len(expected)
    for c, want in zip(given, expected, strict=True):
        assert our_text(c) == want, c


def test_agrees_with_pytorch_on_new_random_tensors(oracle: Any) -> None:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    r = np.random.default_rng(seed)
    for _ in range(2000):
        c = cases.random_case(r)
        assert our_text(c) == cases.pytorch_text(oracle, c), (seed, c)


def test_headers_and_class_names() -> None:
    two = np.array([[1.5, 2.5], [3.5, 4.5]], np.float32)

    def text(class_name: str) -> str:
        return printing.tensor_repr(two, dtype.float32, two.shape, requires_grad=True, class_name=class_name)

    assert text("Parameter containing:\ntensor") == (
        "Parameter containing:\ntensor([[1.5000, 2.5000],\n        [3.5000, 4.5000]], requires_grad=True)"
    )
    assert text("Mine") == "Mine([[1.5000, 2.5000],\n      [3.5000, 4.5000]], requires_grad=True)"


def test_other_suffixes() -> None:
    one = np.array([1.0], np.float32)

    class CopySlices:
        def name(self) -> str:
            return "torch::autograd::CopySlices"

    def text(**kwargs: Any) -> str:
        return printing.tensor_repr(one, dtype.float32, one.shape, **kwargs)

    assert text(device=device.device("cuda:0")) == "tensor([1.], device='cuda:0')"
    assert text(grad_fn=CopySlices()) == "tensor([1.], grad_fn=<CopySlices>)"
    assert text(tangent="tensor([2.])") == "tensor([1.], tangent=tensor([2.]))"
    assert text(text="...") == "tensor(...)"


def test_single_elements_format_as_numbers() -> None:
    assert printing.format_scalar(np.array(1.23456, np.float32), ".3f") == "1.235"
    assert printing.format_scalar(np.array(1.5, cases.numpy_type("bfloat16")), ".3e") == "1.500e+00"
    assert printing.format_scalar(np.array(3), "5d") == "    3"
    assert printing.format_scalar(np.array(True), "") == "True"
    assert printing.format_scalar(np.array(1 + 2j, np.complex64), ".1f") == "1.0+2.0j"
    with pytest.raises(ValueError, match="Unknown format code 'd' for object of type 'float'"):
        printing.format_scalar(np.array(3.7), "d")


def test_options_as_a_context() -> None:
    with printing.printoptions(precision=1, sci_mode=True):
        assert printing.get_printoptions() == {
            "precision": 1,
            "threshold": 1000,
            "edgeitems": 3,
            "linewidth": 80,
            "sci_mode": True,
        }
    assert printing.PRINT_OPTS == printing.PrintOptions()
