"""The sequence classifier in JAX, Flax and optax."""

import flax.linen as nn
import jax
import numpy as np
import optax

LAYERS, WIDTH, HEADS, HIDDEN, LENGTH, BATCH, VOCABULARY, CLASSES = 2, 256, 4, 1024, 64, 16, 1000, 10


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x):
        def dropout(x):
            return nn.Dropout(0.1, deterministic=False)(x)

        mixed = nn.MultiHeadDotProductAttention(HEADS, dropout_rate=0.1, deterministic=False)(x)
        x = nn.LayerNorm(epsilon=1e-5)(x + dropout(mixed))
        hidden = dropout(nn.relu(nn.Dense(HIDDEN)(x)))
        return nn.LayerNorm(epsilon=1e-5)(x + dropout(nn.Dense(WIDTH)(hidden)))


class Classifier(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(VOCABULARY, WIDTH)(tokens) + self.param("position", nn.initializers.zeros, (LENGTH, WIDTH))
        for _ in range(LAYERS):
            x = Layer()(x)
        return nn.Dense(CLASSES)(x.mean(1))


def setup(variant=""):
    random = np.random.default_rng(0)
    text = random.integers(0, VOCABULARY, (16 * BATCH, LENGTH)).astype("i4")
    labels = random.integers(0, CLASSES, 16 * BATCH).astype("i4")
    model = Classifier()
    optimizer = optax.adam(1e-4)
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    params = jax.jit(model.init)(keys, text[:BATCH])
    state = (params, optimizer.init(params))

    @jax.jit(donate_argnums=0)
    def update(state, key, batch, targets):
        params, moments = state

        def loss_fn(params):
            logits = model.apply(params, batch, rngs={"dropout": key})
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments), loss

    def step(i):
        nonlocal state
        start = i * BATCH % len(text)
        key = jax.random.key(i)
        state, loss = update(state, key, text[start : start + BATCH], labels[start : start + BATCH])
        return float(loss)

    return step
