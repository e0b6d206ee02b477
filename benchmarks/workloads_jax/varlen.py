"""Sequences of changing length in JAX: padded to the longest (60) and masked, as JAX asks of its user."""

import random

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCABULARY, WIDTH, BATCH, CLASSES, LONGEST = 200, 64, 8, 4, 60


class Classifier(nn.Module):
    variant: str

    @nn.compact
    def __call__(self, tokens, length):
        valid = jnp.arange(LONGEST) < length
        x = nn.Embed(VOCABULARY, WIDTH)(tokens)
        if self.variant == "elman":
            inputs = jnp.swapaxes(nn.Dense(WIDTH)(x), 0, 1)
            weight = self.param("recurrent", nn.initializers.lecun_normal(), (WIDTH, WIDTH))

            def cell(hidden, step):
                x, is_valid = step
                return jnp.where(is_valid, jnp.tanh(x + hidden @ weight), hidden), None

            encoded, _ = jax.lax.scan(cell, jnp.zeros((BATCH, WIDTH)), (inputs, valid))
        else:
            if self.variant == "attention":
                q, k, v = jnp.split(nn.Dense(3 * WIDTH)(x), 3, axis=-1)
                scores = jnp.where(valid, q @ jnp.swapaxes(k, 1, 2) / WIDTH**0.5, -jnp.inf)
                x = x + jax.nn.softmax(scores) @ v
            encoded = (x * valid[:, None]).sum(1) / length
        return nn.Dense(CLASSES)(encoded)


def setup(variant="pool"):
    generator, lengths = np.random.default_rng(0), random.Random(0)
    model, optimizer = Classifier(variant), optax.adam(3e-3)
    params = jax.jit(model.init)(jax.random.key(0), np.zeros((BATCH, LONGEST), "i4"), 20)
    state = (params, optimizer.init(params))

    @jax.jit(donate_argnums=0)
    def update(state, tokens, length, labels):
        params, moments = state

        def loss_fn(params):
            logits = model.apply(params, tokens, length)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments), loss

    def step(i):
        nonlocal state
        length = lengths.randint(20, LONGEST)
        tokens = np.zeros((BATCH, LONGEST), "i4")
        tokens[:, :length] = generator.integers(0, VOCABULARY, (BATCH, length))
        state, loss = update(state, tokens, length, tokens[:, length - 1] % CLASSES)
        return float(loss)

    return step
