"""Convolutions and pooling on the host tier: alone and joined with what follows, against the generated functions."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike._src.core.tracing import trace
from torchlike._src.engine import cold
from torchlike._src.engine.host import compile_host
from torchlike._src.ops import convolution_cpu as cpu
from torchlike._src.ops.convolution import Config, conv_sizes, xla_conv

F = nn.functional
GENERATOR = np.random.default_rng(0)


def rand(*shape: int, dtype: Any = np.float32) -> Any:
    return torch.tensor(GENERATOR.standard_normal(shape, dtype))


def norm(x: Any, affine: bool = True) -> Any:
    c = x.shape[1]
    extra = (rand(c), rand(c)) if affine else ()
    return F.batch_norm(x, rand(c), torch.tensor(GENERATOR.random(c, np.float32) + 0.1), *extra)


CONV, NORM, RELU, POOL, AVG = "conv2d", "_batch_norm_eval", "relu", "_max_pool", "avg_pool2d"
IMAGE = rand(1, 3, 11, 14)

CALLS: dict[str, tuple[Callable[[], Any], list[list[str]]]] = {
    # what is computed, and which operations are joined
    "plain": (lambda: F.conv2d(IMAGE, rand(4, 3, 3, 3), rand(4)), [[CONV]]),
    "padded": (lambda: F.conv2d(IMAGE, rand(4, 3, 3, 3), padding=(2, 1)), [[CONV]]),
    "narrow": (lambda: F.conv2d(IMAGE[..., :5].clone(), rand(4, 3, 3, 2), rand(4), padding=1), [[CONV]]),
    "strided": (lambda: F.conv2d(IMAGE, rand(4, 3, 2, 3), rand(4), stride=(1, 2), padding=1), [[CONV]]),
    "dilated": (lambda: F.conv2d(IMAGE, rand(4, 3, 3, 2), rand(4), padding="same", dilation=(2, 3)), [[CONV]]),
    "points": (lambda: F.conv2d(IMAGE, rand(4, 3, 1, 1), rand(4), stride=2), [[CONV]]),
    "points_padded": (lambda: F.conv2d(IMAGE, rand(4, 3, 1, 1), padding=1), [[CONV]]),
    "blocks": (lambda: F.conv2d(rand(1, 32, 9, 11), rand(40, 32, 3, 3), padding=1), [[CONV]]),
    "double": (lambda: F.conv2d(rand(1, 2, 9, 9, dtype=float), rand(4, 2, 3, 3, dtype=float), padding=1), [[CONV]]),
    "one_dim": (lambda: F.conv1d(rand(1, 2, 15), rand(4, 2, 3), rand(4), padding=1, stride=2), [["conv1d"]]),
    "three_dims": (lambda: F.conv3d(rand(1, 2, 5, 6, 9), rand(4, 2, 3, 2, 2), rand(4), padding=1), [["conv3d"]]),
    "relu": (lambda: F.relu(F.conv2d(IMAGE, rand(4, 3, 3, 3))), [[CONV, RELU]]),
    "whole": (
        lambda: F.max_pool2d(F.relu(norm(F.conv2d(IMAGE, rand(4, 3, 3, 3), rand(4), padding=1))), 2),
        [[CONV, NORM, RELU, POOL]],
    ),
    "plain_norm": (lambda: norm(F.conv2d(IMAGE, rand(4, 3, 3, 3)), False), [[CONV, NORM]]),
    "overlapping": (
        lambda: F.max_pool2d(norm(F.conv2d(IMAGE, rand(4, 3, 3, 3))), 3, 2, 1, ceil_mode=True),
        [[CONV, NORM, POOL]],
    ),
    "one_dim_whole": (
        lambda: F.max_pool1d(norm(F.conv1d(rand(1, 2, 15), rand(4, 2, 3), rand(4))).relu(), 3),
        [["conv1d", NORM, RELU, POOL]],
    ),
    "no_batch": (lambda: F.max_pool2d(F.conv2d(IMAGE[0], rand(4, 3, 3, 3), rand(4)), 2), [[CONV, POOL]]),
    # Channels and rows change their places: without a batch, dim 1 of the convolution's result is its rows.
    "no_batch_norm": (lambda: norm(F.conv2d(rand(2, 9, 9), rand(4, 2, 3, 3))), [[CONV], [NORM]]),
    "other_dims": (lambda: F.max_pool2d(F.conv1d(rand(1, 2, 15), rand(4, 2, 3)), 2), [["conv1d"], [POOL]]),
    "pool": (lambda: F.max_pool2d(rand(2, 3, 9, 8) * 1, (3, 2), dilation=(1, 2), stride=1), [["mul"], [POOL]]),
    "mean": (lambda: F.avg_pool2d(rand(2, 3, 9, 8) * 1, (3, 2), stride=(2, 2)), [["mul"], [AVG]]),
    "kept_between": (lambda: KEPT.append(F.conv2d(IMAGE, rand(4, 3, 3, 3))) or F.relu(KEPT[-1]), [[CONV], [RELU]]),
    "used_twice": (lambda: (lambda y: F.relu(y) + y)(F.conv2d(IMAGE, rand(4, 3, 3, 3))), [[CONV], [RELU], ["add"]]),
    "indices": (
        lambda: F.max_pool2d(F.conv2d(IMAGE, rand(4, 3, 3, 3)), 2, return_indices=True)[1],
        [[CONV], [POOL], ["_max_pool_indices"]],
    ),
    "batch": (lambda: F.relu(F.conv2d(rand(2, 3, 9, 9), rand(4, 3, 3, 3))), [[CONV], [RELU]]),
    "linear": (lambda: F.linear(rand(1, 700), rand(600, 700), rand(600)), [["linear"]]),
    "groups": (lambda: F.relu(F.conv2d(rand(1, 4, 9, 9), rand(4, 2, 3, 3), groups=2)), [[CONV], [RELU]]),
}  # fmt: skip
KEPT: list = []


def operands(kernel: Any) -> list[np.ndarray]:
    out = []
    for s in kernel.specs:
        if type(s) is str:
            out.append(np.array(2, cold.NUMBER_DTYPES[s]))
        else:
            draws = GENERATOR.standard_normal(s.shape)
            out.append((np.abs(draws) + 0.1 if kernel.op.name == NORM else draws).astype(s.dtype.np))
    return out


def generated(kernel: Any, *arrays: np.ndarray) -> Any:
    return compile_host(trace(kernel, [cold.struct(s) for s in kernel.specs]))(*arrays)


@pytest.mark.parametrize("name", CALLS)
def test_near_the_generated_functions(name: str, monkeypatch: pytest.MonkeyPatch):
    steps: list = []
    original = cold.joined

    def note(*args: Any) -> list:
        found = original(*args)
        steps[:] = found
        return found

    monkeypatch.setattr(cold, "joined", note)
    monkeypatch.setattr(cold, "_one_by_one", lambda *_: None)
    call, expected = CALLS[name]
    result = call()
    steps.clear()
    result.tolist()
    KEPT.clear()
    names = [[k.op.name for k in kernels] for *_, kernels in steps]
    assert [n for n in names if n[0] not in ("select", "slice", "clone")] == expected
    for _, function, _, _, kernels in steps:
        given = [operands(k) for k in kernels]
        wanted = generated(kernels[0], *given[0])
        for kernel, more in zip(kernels[1:], given[1:], strict=True):
            wanted = generated(kernel, wanted[0], *more[1:])
        got = function(*given[0], *[a for more in given[1:] for a in more[1:]])
        for a, b in zip(got, wanted[: len(got)], strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_parameters_that_change_are_seen():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()).eval()
    conv, normal, _ = model
    memory = normal.running_mean.numpy()

    def written():
        conv.weight.mul_(2)

    def loaded():
        model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()})

    def assigned():
        normal.bias = nn.Parameter(rand(4))

    def in_numpy():
        memory[...] = 3

    def data():
        normal.weight.data = rand(4)

    def nothing():
        pass

    with torch.no_grad():
        for change in (nothing, nothing, written, loaded, assigned, in_numpy, nothing, data, nothing):
            change()
            got = model(IMAGE).numpy()
            x = F.conv2d(IMAGE.double(), conv.weight.double(), conv.bias.double(), padding=1)
            settings = [p.double() for p in (normal.running_mean, normal.running_var, normal.weight, normal.bias)]
            wanted = F.batch_norm(x, *settings, eps=normal.eps).relu()
            np.testing.assert_allclose(got, wanted.numpy(), rtol=2e-5, atol=2e-5, err_msg=change.__name__)


def test_a_dead_model_leaves_nothing_behind():
    x = rand(1, 3, 8, 9)

    def run():
        model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()).eval()
        with torch.no_grad():
            for _ in range(2):
                model(x).numpy()
        return weakref.ref(model[0].weight._s.value.array)

    assert run()() is None


def test_nan_reaches_the_pooled_result():
    x = IMAGE.clone()
    x[0, 0, 4, 4] = float("nan")
    with torch.no_grad():
        y = F.max_pool2d(F.relu(F.conv2d(x, torch.ones(2, 3, 3, 3), padding=1)), 2)
    assert y.isnan()[0, 0].nonzero().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]


@pytest.mark.parametrize("kernel, stride, dilation", [((3, 3), (1, 1), (1, 1)), ((2, 3), (2, 1), (1, 2))])
def test_a_heavy_weight_is_multiplied_as_it_lies(kernel: tuple, stride: tuple, dilation: tuple):
    c = Config(stride, ((1, 1), (0, 2)), dilation, 1)
    x, w = GENERATOR.standard_normal((1, 32, 5, 6)), GENERATOR.standard_normal((96, 32, *kernel))
    out = conv_sizes(x.shape[2:], kernel, c)
    assert cpu.heavy(x.shape, w.shape, out) and not cpu.heavy((2, *x.shape[1:]), w.shape, out)
    with jax.enable_x64(True):
        got = cpu.first(cpu.heavy_forward(cpu.last(jnp.asarray(x)), jnp.asarray(w), c, out))
        np.testing.assert_allclose(got, xla_conv(jnp.asarray(x), jnp.asarray(w), c), rtol=1e-9, atol=1e-9)
