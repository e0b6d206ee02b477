"""The three-layer MLP in JAX, Flax and optax: one jitted function per step, buffers donated."""

import itertools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class SimpleMLP(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(32)(x))
        x = nn.Dropout(0.2, deterministic=False)(x)
        x = nn.relu(nn.Dense(8)(x))
        return nn.Dense(1)(x)


def shuffled(x, y, batch_size, generator):
    while True:
        order = generator.permutation(len(x))
        for start in range(0, len(x), batch_size):
            chosen = order[start : start + batch_size]
            yield x[chosen], y[chosen]


def setup(variant="loader"):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(128, 20)).astype("f4"), generator.normal(size=(128, 1)).astype("f4")
    if variant == "fixed":
        batches = itertools.repeat((jnp.asarray(x[:16]), jnp.asarray(y[:16])))
    else:
        batches = shuffled(x, y, 16, generator)
    model, optimizer = SimpleMLP(), optax.adam(1e-3)
    key = jax.random.key(0)
    params = model.init({"params": key, "dropout": key}, x[:16])
    state = (params, optimizer.init(params), key)

    @jax.jit(donate_argnums=0)
    def update(state, x, y):
        params, moments, key = state
        key, dropout = jax.random.split(key)

        def loss_fn(params):
            return jnp.mean((model.apply(params, x, rngs={"dropout": dropout}) - y) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments, key), loss

    def step(i):
        nonlocal state
        state, loss = update(state, *next(batches))
        return float(loss)

    return step
