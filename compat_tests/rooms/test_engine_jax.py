"""JAX in the same process: its global state stays the user's, and its transforms see through tensors."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import torchlike as torch
from torchlike import nn
from torchlike.interop import from_jax, to_jax

F = nn.functional


def run(code: str, **env: str) -> str:
    """The output of a script in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# -- global state ------------------------------------------------------------------------------------------------------


def trained() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(4, 3)

    def step() -> float:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(4):
        step()
    return model, step


def test_jax_keeps_its_settings():
    before = jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision
    trained()
    (torch.arange(4).double() / 3).sum().item()
    assert (jax.config.jax_enable_x64, jax.config.jax_default_matmul_precision) == before == (False, None)
    assert jnp.ones(3).dtype == jnp.float32
    assert jnp.arange(3).dtype == jnp.int32
    assert jax.jit(lambda a: a @ a)(jnp.ones((3, 3))).dtype == jnp.float32
    text = jax.jit(lambda a: a @ a).lower(jnp.ones((3, 3))).as_text()
    assert "HIGHEST" not in text.upper()


def test_the_settings_stay_inside_an_error():
    with pytest.raises(RuntimeError):
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert jnp.arange(3).dtype == jnp.int32


def test_importing_changes_no_setting():
    out = run(
        """
        import jax
        before = dict(jax.config.values)
        import torchlike
        after = dict(jax.config.values)
        print([k for k in before if before[k] != after[k]])
        """
    )
    assert out.strip() == "[]"


# -- conversion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool", "complex64"])
def test_round_trip(dtype: str):
    array = jnp.arange(6).reshape(2, 3).astype(dtype)
    tensor = from_jax(array)
    assert tensor.dtype is getattr(torch, dtype) and tensor.shape == (2, 3)
    back = to_jax(tensor)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(np.asarray(back), np.asarray(array))


def test_64_bit_tensors_follow_the_users_setting():
    assert to_jax(torch.arange(3)).dtype == jnp.int32
    assert to_jax(torch.ones(3, dtype=torch.float64)).dtype == jnp.float32
    with jax.enable_x64(True):
        assert to_jax(torch.arange(3)).dtype == jnp.int64
        assert to_jax(torch.ones(3, dtype=torch.float64)).dtype == jnp.float64


def test_errors():
    with pytest.raises(TypeError, match="expected a JAX array"):
        from_jax([1.0])
    with pytest.raises(TypeError, match="no counterpart"):
        from_jax(jax.random.key(0))
    with pytest.raises(TypeError, match="expected a Tensor"):
        to_jax(jnp.ones(2))
    with pytest.raises(RuntimeError, match="requires grad"):
        to_jax(torch.ones(2, requires_grad=True))
    with pytest.raises(TypeError, match="meta"):
        to_jax(torch.ones(2, device="meta"))


def test_writes_stay_on_their_side():
    array = jnp.zeros(3)
    tensor = from_jax(array)
    tensor.add_(1)
    other = to_jax(tensor)
    tensor.add_(1)
    assert array.tolist() == [0, 0, 0] and other.tolist() == [1, 1, 1] and tensor.tolist() == [2, 2, 2]


def test_a_users_array_is_not_consumed_by_training():
    array = jax.random.normal(jax.random.PRNGKey(0), (3, 1))
    expected = np.array(array, copy=True)
    alias = jax.device_put(array)  # another array over the same buffer
    weight = nn.Parameter(from_jax(array))
    del array
    optimizer = torch.optim.SGD([weight], lr=0.1)
    x = torch.randn(64, 3)
    for _ in range(5):
        optimizer.zero_grad()
        ((x @ weight) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_array_equal(np.asarray(alias), expected)


# -- transforms of the user's own --------------------------------------------------------------------------------------


def scalar(a: Any) -> Any:
    t = from_jax(a)
    w = torch.full((3,), 2.0) * torch.arange(3)
    return to_jax((torch.relu(t * w) + 1).sum())


def test_jit_grad_and_vmap():
    a = jnp.arange(3.0)
    assert jax.jit(scalar)(a) == 13
    np.testing.assert_allclose(jax.grad(scalar)(a), [0, 2, 4])
    np.testing.assert_allclose(jax.vmap(scalar)(jnp.ones((4, 3))), [9] * 4)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(scalar)))(jnp.ones((2, 3))), [[0, 2, 4]] * 2)


def test_jit_over_a_module():
    model, _ = trained()

    def call(a: Any) -> Any:
        with torch.no_grad():
            return to_jax(model(from_jax(a)))

    a = jnp.ones((2, 3))
    np.testing.assert_allclose(jax.jit(call)(a), model(torch.ones(2, 3)).detach().numpy(), rtol=1e-5)
    x = torch.ones(2, 3, requires_grad=True)
    model(x).sum().backward()
    np.testing.assert_allclose(jax.jit(jax.grad(lambda a: call(a).sum()))(a), x.grad.numpy(), rtol=1e-5)


def test_jit_over_in_place_writes_views_and_64_bit_results():
    def call(a: Any) -> tuple:
        t = from_jax(a).clone()
        t[0] = 5
        t.add_(1)
        t[1:, 0] *= 3
        return to_jax(t), to_jax(t.argmax(-1)), to_jax(t.double().sum())

    written, largest, total = jax.jit(call)(jnp.ones((2, 3)))
    np.testing.assert_allclose(written, [[6, 6, 6], [6, 2, 2]])
    assert largest.tolist() == [0, 0] and largest.dtype == jnp.int32
    assert total == 28 and total.dtype == jnp.float32


def test_jit_over_backward():
    def call(a: Any) -> Any:
        t = from_jax(a).requires_grad_()
        (t**3).sum().backward()
        return to_jax(t.grad)

    np.testing.assert_allclose(jax.jit(call)(jnp.arange(3.0)), [0, 3, 12])


def test_training_while_a_user_function_is_traced():
    """What a traced function does with concrete tensors happens at once, donation included, and leaks no tracer."""
    model, step = trained()

    def call(a: Any) -> Any:
        kept = [p.detach() for p in model.parameters()]  # makes the program consume copies
        loss = [step() for _ in range(3)][-1]
        assert all(p.isfinite().all() for p in kept)
        return a * loss

    assert np.isfinite(jax.jit(call)(jnp.ones(2))).all()
    assert np.isfinite(step())


# -- direct mode -------------------------------------------------------------------------------------------------------


def sample() -> list[Any]:
    """A broad sample: operators, gradients, in-place writes, views, optimizer steps."""
    torch.manual_seed(7)
    out: list[Any] = []
    x, y = torch.randn(4, 5), torch.rand(4, 5) + 0.5
    i = torch.tensor([[0, 2], [1, 1]])
    for f in (
        torch.add,
        torch.sub,
        torch.mul,
        torch.div,
        torch.maximum,
        torch.pow,
        torch.atan2,
        torch.fmod,
        torch.eq,
        torch.lt,
    ):
        out.append(f(y, x) if f is torch.pow else f(x, y))
    for f in (
        torch.exp,
        torch.tanh,
        torch.sigmoid,
        torch.floor,
        torch.sign,
        torch.erf,
        torch.cumsum,
        torch.softmax,
        torch.argmax,
    ):
        out.append(f(x, 1) if f in (torch.cumsum, torch.softmax, torch.argmax) else f(x))
    out += [
        x.sum(0),
        x.mean(),
        x.var(1),
        x.std(),
        x.prod(1),
        x.norm(),
        x.amax(1),
        x.logsumexp(0),
        x.T,
        x @ y.T,
        x[1:, ::2],
    ]
    out += [
        *x.sort(1),
        *x.topk(2),
        x.gather(1, i),
        x[i],
        x[x > 0],
        torch.where(x > 0, x, y),
        torch.cat([x, y]),
        x + 2,
        3 - x,
    ]
    out += [
        F.layer_norm(x, (5,)),
        F.cross_entropy(x, torch.tensor([0, 1, 2, 3])),
        F.gelu(x),
        F.one_hot(i),
        x.double() / 3,
    ]
    out.append(F.conv2d(torch.randn(1, 2, 5, 5), torch.randn(3, 2, 3, 3), padding=1))
    out.append(F.max_pool2d(torch.randn(1, 2, 4, 4), 2))
    z = x.clone()
    z[0] = 1
    z[:, 1].mul_(2)
    z.view(-1)[3:7].add_(5)
    z.t()[0] -= y[:, 0]
    out.append(z)
    w = torch.randn(5, 5, requires_grad=True)
    v = (x @ w).relu()
    v = v * 1.0
    v[0] = 0
    (v.exp().log1p().sum() + w.tril().pow(2).sum()).backward()
    out += [w.grad, v]
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop):
        model = nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 2))
        optimizer = make(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), torch.zeros(4, 2))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            out.append(loss)
        out += list(model.parameters())
    return [(t.dtype, t.tolist()) for t in out]


def test_direct_mode_gives_the_same_results():
    expected = sample()
    before = torch.stats()
    with torch.direct_mode():
        actual = sample()
    after = torch.stats()
    assert after["launches"] == before["launches"] and after["compiles"] == before["compiles"]
    assert after["nodes"] == before["nodes"]
    for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
        assert a[0] is e[0], k
        np.testing.assert_allclose(
            np.asarray(a[1], float), np.asarray(e[1], float), rtol=1e-4, atol=1e-5, err_msg=str(k)
        )


def test_direct_mode_ends_with_its_context():
    with pytest.raises(ValueError), torch.direct_mode():
        a = torch.ones(2) + 1
        assert a._s.value.array is not None
        raise ValueError
    b = torch.ones(2) + 1
    assert b._s.value.array is None
    assert b.tolist() == [2, 2]


def test_pending_work_enters_direct_mode():
    a = torch.ones(3) * 2
    with torch.direct_mode():
        assert (a + 1).tolist() == [3, 3, 3]


def test_the_environment_switches_direct_mode_on():
    code = """
        import torchlike as torch
        a = torch.ones(3) + 1
        print(a._s.value.array is None, a.tolist(), torch.stats()["flushes"])
        """
    assert run(code, TORCHLIKE_EAGER="1") == "False [2.0, 2.0, 2.0] 0.0\n".replace("0.0\n", "0\n")
    assert run(code, TORCHLIKE_EAGER="0").startswith("True [2.0, 2.0, 2.0] 1")
