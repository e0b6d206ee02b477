"""The MNIST-sized convolutional network in JAX, Flax (so NHWC) and optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(32, (3, 3), padding="VALID")(x))
        x = nn.relu(nn.Conv(64, (3, 3), padding="VALID")(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = nn.Dropout(0.25, deterministic=False)(x)
        x = nn.relu(nn.Dense(128)(x.reshape(len(x), -1)))
        x = nn.Dropout(0.5, deterministic=False)(x)
        return nn.Dense(10)(x)


def setup(variant=""):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, 512)
    images = generator.normal(size=(10, 28, 28, 1))[labels] + 0.5 * generator.normal(size=(512, 28, 28, 1))
    batches = [
        (jnp.asarray(images[start : start + 64], jnp.float32), jnp.asarray(labels[start : start + 64], jnp.int32))
        for start in range(0, 512, 64)
    ]
    model, optimizer = Net(), optax.adam(1e-3)
    key = jax.random.key(0)
    params = jax.jit(model.init)({"params": key, "dropout": key}, batches[0][0])
    state = (params, optimizer.init(params), key)

    @jax.jit(donate_argnums=0)
    def update(state, x, y):
        params, moments, key = state
        key, dropout = jax.random.split(key)

        def loss_fn(params):
            logits = model.apply(params, x, rngs={"dropout": dropout})
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments, key), loss

    def step(i):
        nonlocal state
        state, loss = update(state, *batches[i % len(batches)])
        return float(loss)

    return step
