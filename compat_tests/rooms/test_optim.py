"""Optimizers and the engine: one program per step, nothing compiled for a new learning rate, optax."""

import copy
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import torchlike as torch
from compat_tests.harness import tensor
from torchlike._src.core.tracing import trace
from torchlike._src.engine import cold
from torchlike._src.engine.host import compile_host
from torchlike.interop.optax import OptaxOptimizer
from torchlike.optim._kernel import StepOp
from torchlike.optim.lbfgs import DIRECTION

KERNELS = sys.modules["torchlike._src.engine.record"].KERNELS

SHAPES = [(40, 30), (30,), (4, 20, 6), (300,)]
SETTINGS = [
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Rprop", {}),
    ("ASGD", {"t0": 3}),
    ("Adafactor", {}),
]


WRITTEN_OUT = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"betas": (0.4, 0.9), "lr": torch.tensor(0.1)}),
    ("AdamW", {"amsgrad": True}),
]


def steps(optimizer, params, count=8):
    for i in range(count):
        for k, p in enumerate(params):
            p.grad = tensor(torch, tuple(p.shape), seed=10 * i + k) + 0.1 * p.detach()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.9


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, options", WRITTEN_OUT)
def test_written_out_steps_equal_generated_ones(name, options, dtype):
    KERNELS.clear()
    params = [tensor(torch, s, dtype, seed=k, requires_grad=True) for k, s in enumerate([*SHAPES, (150, 160), ()])]
    optimizer = getattr(torch.optim, name)(params, **({"lr": 0.1} | options))
    params[0].grad = torch.ones_like(params[0])  # the first has one step more than the others
    optimizer.step()
    steps(optimizer, params, 2)
    kernels = [k for k in KERNELS.values() if isinstance(k.op, StepOp)]
    assert kernels
    random = np.random.default_rng(0)
    for kernel in kernels:
        function = kernel.op.host_function(kernel)
        generated = compile_host(trace(kernel, [cold.struct(s) for s in kernel.specs]))
        for number in (0.3, 0.7):
            operands = [
                np.array(number) if s == "f" else np.asarray(np.abs(random.standard_normal(s.shape)), s.dtype.np)
                for s in kernel.specs
            ]
            for x, y, aval in zip(function(*operands), generated(*operands), kernel.outs, strict=True):
                assert type(x) is np.ndarray
                assert x.dtype == y.dtype == aval.dtype.np and x.shape == y.shape == aval.shape
                assert np.array_equal(x, y, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lbfgs_directions_are_near_generated_ones(dtype):
    KERNELS.clear()
    p = tensor(torch, (7,), dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], lr=0.1, max_iter=5)

    def closure():
        optimizer.zero_grad()
        loss = (p**4 + p * p.flip(0)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    random = np.random.default_rng(0)
    kernels = [k for k in KERNELS.values() if k.op is DIRECTION]
    assert len(kernels) >= 3
    for kernel in kernels:
        operands = [
            np.array(0.5) if s == "f" else np.asarray(random.standard_normal(s.shape), s.dtype.np) for s in kernel.specs
        ]
        generated = compile_host(trace(kernel, [cold.struct(s) for s in kernel.specs]))
        found = DIRECTION.host_function(kernel)(*operands)
        for x, y, aval in zip(found, generated(*operands), kernel.outs, strict=True):
            assert x.dtype == y.dtype == aval.dtype.np and x.shape == y.shape == aval.shape
            np.testing.assert_allclose(x, y, rtol=1e-5)


@pytest.mark.parametrize("name, options", SETTINGS)
def test_compiled_steps_equal_direct_ones(name, options):
    results = []
    for direct in (False, True):
        with torch.direct_mode(direct):
            params = [tensor(torch, s, seed=k, requires_grad=True) for k, s in enumerate(SHAPES)]
            optimizer = getattr(torch.optim, name)(params, lr=0.1, **options)
            steps(optimizer, params)
            results.append([p.detach().numpy() for p in params])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_a_step_is_one_program_and_a_new_rate_compiles_nothing():
    w, b = tensor(torch, (30, 40), seed=1, requires_grad=True), torch.zeros(40, requires_grad=True)
    x = tensor(torch, (64, 30), seed=2)
    optimizer = torch.optim.AdamW([{"params": [w]}, {"params": [b], "weight_decay": 0.0}], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)

    def step():
        optimizer.zero_grad()
        torch.tanh(x @ w + b).square().mean().backward()
        optimizer.step()
        schedule.step()

    for _ in range(4):
        step()
    before = dict(torch.stats())
    for _ in range(10):
        step()
    after = torch.stats()
    assert after["compiles"] == before["compiles"]
    assert after["launches"] - before["launches"] == 10


def test_parameters_share_one_step_count():
    params = [tensor(torch, (3,), seed=k, requires_grad=True) for k in range(5)]
    optimizer = torch.optim.Adam(params)
    steps(optimizer, params, 2)
    assert len({id(optimizer.state[p]["step"]._s.value) for p in params}) == 1
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    assert len({id(optimizer.state[p]["step"]._s.value) for p in params}) == 1
    optimizer.state[params[0]]["step"].add_(5)
    steps(optimizer, params, 1)
    assert [optimizer.state[p]["step"].item() for p in params] == [8, 3, 3, 3, 3]


@pytest.mark.parametrize(
    "transformation",
    [
        optax.adam(0.1),
        optax.chain(optax.clip_by_global_norm(0.5), optax.lion(0.01)),
        optax.inject_hyperparams(optax.sgd)(learning_rate=0.1, momentum=0.9),
        optax.adamw(optax.cosine_decay_schedule(0.1, 20)),
    ],
    ids=["adam", "lion", "injected", "scheduled"],
)
def test_optax(transformation):
    x = np.random.RandomState(0).standard_normal((8, 3)).astype("float32")
    w, b = torch.ones(3, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
    ours = OptaxOptimizer([w, b], transformation)
    theirs = [jnp.ones((3, 2)), jnp.zeros(2)]
    state = transformation.init(theirs)
    gradient = jax.jit(jax.grad(lambda p: ((x @ p[0] + p[1]) ** 2).mean()))
    for i in range(8):
        ours.zero_grad()
        ((torch.tensor(x) @ w + b) ** 2).mean().backward()
        ours.step()
        updates, state = transformation.update(gradient(theirs), state, theirs)
        theirs = optax.apply_updates(theirs, updates)
        if i == 4:
            saved = copy.deepcopy(ours.state_dict())
            ours = OptaxOptimizer([w, b], transformation)
            ours.load_state_dict(saved)
    np.testing.assert_allclose(w.detach().numpy(), theirs[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b.detach().numpy(), theirs[1], rtol=1e-5, atol=1e-6)


def test_a_step_within_a_step_ends_nothing():
    """An optimizer that calls another's: one flush, also after a step that failed."""

    class Shrinking(torch.optim.Optimizer):
        def __init__(self, inner):
            super().__init__(inner.param_groups, {})
            self.inner = inner

        def step(self, closure=None):
            self.inner.step()
            if self.fails:
                raise KeyboardInterrupt
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.mul_(0.9)

    p = torch.nn.Parameter(torch.ones(3))
    optimizer = Shrinking(torch.optim.SGD([p], lr=0.1))
    for turn in range(4):
        optimizer.fails = turn == 1
        before = torch.stats()["flushes"]
        optimizer.zero_grad()
        (p * p).sum().backward()
        if optimizer.fails:
            with pytest.raises(KeyboardInterrupt):
                optimizer.step()
        else:
            optimizer.step()
            assert torch.stats()["flushes"] == before + 1
    np.testing.assert_allclose(p.tolist(), [0.8**4 * 0.9**3] * 3, rtol=1e-5)
