"""The variational autoencoder in JAX, Flax and optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class VAE(nn.Module):
    @nn.compact
    def __call__(self, x, key):
        h = nn.relu(nn.Dense(400)(x))
        mean, logvar = nn.Dense(20)(h), nn.Dense(20)(h)
        z = mean + jax.random.normal(key, mean.shape) * jnp.exp(0.5 * logvar)
        return nn.Dense(784)(nn.relu(nn.Dense(400)(z))), mean, logvar


def setup(variant=""):
    generator = np.random.default_rng(0)
    batches = [jnp.asarray(generator.uniform(size=(128, 784)), jnp.float32) for _ in range(8)]
    model, optimizer = VAE(), optax.adam(1e-3)
    key = jax.random.key(0)
    params = jax.jit(model.init)(key, batches[0], key)
    state = (params, optimizer.init(params), key)

    @jax.jit(donate_argnums=0)
    def update(state, x):
        params, moments, key = state
        key, noise = jax.random.split(key)

        def loss_fn(params):
            logits, mean, logvar = model.apply(params, x, noise)
            error = optax.sigmoid_binary_cross_entropy(logits, x).sum()
            return error - 0.5 * jnp.sum(1 + logvar - mean**2 - jnp.exp(logvar))

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments, key), loss

    def step(i):
        nonlocal state
        state, loss = update(state, batches[i % len(batches)])
        return float(loss)

    return step
