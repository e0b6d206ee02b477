"""State dicts as Orbax checkpoints: bit for bit there and back, readable by JAX programs, and sharing no memory."""

import importlib
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

import torchlike as torch
from compat_tests.serialization import matrix
from compat_tests.state import preserved
from torchlike.interop import from_jax, to_jax
from torchlike.interop.orbax import load_orbax, save_orbax

RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"


@pytest.mark.filterwarnings("ignore")  # schedules resume before their optimizer's first step
def test_every_state_comes_back(tmp_path: pathlib.Path) -> None:
    with preserved(torch):
        state = {name: torch.load(RECORDED / f"{name}.pt") for name in (*matrix.RESUMED, "dtypes")}
        state["tied"] = matrix.tied(torch).state_dict()
        kept = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        state["tensors"] = [torch.tensor(2.5), torch.zeros(0, 3), kept, kept, kept.detach(), torch.ones(1).expand(3)]
        state["numbers"] = [1.5, float("nan"), 2**80, None, True, 1j]
        state["others"] = ["x", b"ab", bytearray(b"c"), torch.float16, torch.Size([1]), {1: (2,), "1": 3}]
        save_orbax(tmp_path / "state", state)
        back = load_orbax(tmp_path / "state")
        state["tensors"][-1] = torch.ones(3)  # strides are not kept
        assert matrix.described(torch, back) == matrix.described(torch, state)
        for name in matrix.RESUMED:
            after = [matrix.described(torch, matrix.resumed(torch, name, x[name])) for x in (state, back)]
            assert after[0] == after[1]
    assert back["tied"]._metadata == state["tied"]._metadata
    assert not jax.config.jax_enable_x64


def test_jax_programs_read_and_write_them(tmp_path: pathlib.Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
    save_orbax(
        tmp_path / "ours", {"net": net.state_dict(), "step": 3, "a.b": torch.ones(1), "a": {"b": torch.zeros(1)}}
    )
    with ocp.StandardCheckpointer() as checkpointer:
        arrays = checkpointer.restore(tmp_path / "ours")
        assert sorted(arrays) == ["a.b", "a.b~2", "net.0.bias", "net.0.weight"]
        assert np.array_equal(arrays["net.0.weight"], net[0].weight.detach().numpy())
        assert (arrays["a.b"], arrays["a.b~2"]) == (1, 0)
        tree = {
            "params": {"kernel": jnp.ones((2, 3), jnp.bfloat16), "bias": np.zeros(3)},
            "opt": [jnp.int32(4), (7, 0.5)],
        }
        checkpointer.save(tmp_path / "theirs", tree)
    back = load_orbax(tmp_path / "theirs")
    assert back["params"]["kernel"].dtype == torch.bfloat16 and back["params"]["bias"].dtype == torch.float64
    assert back["params"]["kernel"].tolist() == [[1.0] * 3] * 2
    assert back["opt"][0].tolist() == 4 and back["opt"][1] == [7, 0.5]


def test_nothing_is_shared(tmp_path: pathlib.Path) -> None:
    array = jnp.arange(4.0)
    tensor = from_jax(array)
    save_orbax(tmp_path / "state", {"w": tensor})
    loaded = load_orbax(tmp_path / "state")["w"]
    seen = to_jax(loaded)
    tensor.add_(1)
    parameter = torch.nn.Parameter(loaded)
    optimizer = torch.optim.Adam([parameter], 0.1)
    for _ in range(4):  # what is compiled may consume its inputs
        optimizer.zero_grad()
        parameter.square().sum().backward()
        optimizer.step()
    loaded.zero_()
    for x in (array, seen, to_jax(load_orbax(tmp_path / "state")["w"])):
        assert np.array_equal(x, [0, 1, 2, 3])


def test_refusals(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state"
    for bad, message in [
        ({"a": [object()]}, "a.0 is a object"),
        ({"a": np.ones(2)}, "a is a ndarray"),
        ({"a": jnp.ones(2)}, "a is a ArrayImpl"),
        (torch.empty(2, device="meta"), "the state is a tensor without data"),
        (torch.nn.LazyLinear(2).state_dict(), "weight is a tensor without data"),
    ]:
        with pytest.raises(TypeError, match=message):
            save_orbax(path, bad)
    assert os.listdir(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        load_orbax(path)
    save_orbax(path, torch.ones(2))
    with pytest.raises(ValueError, match="overwrite=True"):
        save_orbax(path, {})
    assert load_orbax(path).tolist() == [1, 1]
    save_orbax(path, {}, overwrite=True)
    assert load_orbax(path) == {}


def test_distributed_checkpoints_are_named() -> None:
    checkpoint: Any = importlib.import_module("torchlike.distributed.checkpoint")
    with pytest.raises(NotImplementedError, match=r"torchlike: torch\.distributed\.checkpoint\.save"):
        checkpoint.save({}, checkpoint_id="somewhere")
    with pytest.raises(NotImplementedError, match=r"torchlike: torch\.distributed\.checkpoint\.load"):
        checkpoint.load({}, checkpoint_id="somewhere")
