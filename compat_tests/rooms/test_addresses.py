"""data_ptr() is an address that other code can read: the current contents, at a place that writes do not change."""

import ctypes
import gc
from typing import Any

import jax
import numpy as np
import pytest

import torchlike as torch
from torchlike._src.engine import direct_mode
from torchlike._src.tensor import addresses
from torchlike.interop import from_jax, to_jax


def at(t: Any) -> list[float]:
    """The float32 numbers at a tensor's address."""
    return list((ctypes.c_float * t.numel()).from_address(t.data_ptr()))


def steps() -> None:
    x = torch.arange(6.0)
    y = (x * 2).view(2, 3)
    place = y.data_ptr()
    assert at(y) == [0, 2, 4, 6, 8, 10] and place % 64 == 0
    y.add_(1)
    y[1].mul_(10)
    y.data[0, 0] = -1
    assert y.data_ptr() == place and at(y) == [-1, 3, 5, 70, 90, 110]
    assert y[1].data_ptr() == place + 12 and at(y[1]) == [70, 90, 110]
    p = torch.nn.Parameter(torch.ones(2))
    place = p.data_ptr()
    optimizer = torch.optim.SGD([p], 0.5)
    for k in range(1, 5):
        optimizer.zero_grad()
        (p * 2).sum().backward()
        optimizer.step()
        assert p.data_ptr() == place and at(p) == [1.0 - k] * 2


def test_steps() -> None:
    steps()


def test_steps_in_direct_mode() -> None:
    with direct_mode():
        steps()


def test_numpy_memory_is_the_address() -> None:
    array = np.arange(3, dtype=np.float32)
    x = torch.from_numpy(array)
    assert x.data_ptr() == array.ctypes.data and x[1:].data_ptr() == array.ctypes.data + 4
    (ctypes.c_float * 3).from_address(x.data_ptr())[1] = 9
    assert x.tolist() == [0, 9, 2]
    y = torch.zeros(2)
    seen = y.numpy()
    assert y.data_ptr() == seen.ctypes.data


def test_traced_tensors_have_a_number() -> None:
    @jax.jit
    def function(array: Any) -> Any:
        x = from_jax(array)
        y = x * 2
        assert x.data_ptr() and x.data_ptr() != y.data_ptr()
        assert y[1:].data_ptr() == y.data_ptr() + 4 == y.untyped_storage().data_ptr() + 4
        return to_jax(y)

    assert function(np.ones(3, np.float32)).tolist() == [2, 2, 2]


def test_memory_goes_with_the_storage() -> None:
    gc.collect()
    before = len(addresses._COPIES)
    x = torch.ones(4)
    x.data_ptr(), x[1:].data_ptr(), x.untyped_storage().data_ptr()
    assert len(addresses._COPIES) == before + 1
    del x
    gc.collect()
    assert len(addresses._COPIES) == before


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "bool", "complex64", "uint64"])
def test_every_dtype(dtype: str) -> None:
    x = torch.tensor([1, 0, 1]).to(getattr(torch, dtype))
    raw = bytes((ctypes.c_ubyte * x.nbytes).from_address(x.data_ptr()))
    assert list(raw) == x.view(torch.uint8).tolist()
