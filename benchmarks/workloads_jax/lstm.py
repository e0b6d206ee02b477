"""The two-layer LSTM language model in plain JAX and optax: lax.scan, the input products outside the scan."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH, LAYERS, BATCH, LENGTH, VOCABULARY = 128, 2, 20, 35, 1000


def init(key):
    bound = WIDTH**-0.5
    keys = iter(jax.random.split(key, 2 + 3 * LAYERS))

    def uniform(*shape):
        return jax.random.uniform(next(keys), shape, minval=-bound, maxval=bound)

    return {
        "embedding": jax.random.normal(next(keys), (VOCABULARY, WIDTH)),
        "layers": [
            {"input": uniform(WIDTH, 4 * WIDTH), "hidden": uniform(WIDTH, 4 * WIDTH), "bias": uniform(4 * WIDTH)}
            for _ in range(LAYERS)
        ],
        "output": {"weight": uniform(WIDTH, VOCABULARY), "bias": jnp.zeros(VOCABULARY)},
    }


def lstm_layer(layer, x, state):
    """(time, batch, features), (h, c) -> (time, batch, WIDTH), (h, c)."""

    def cell(state, projected):
        h, c = state
        i, f, g, o = jnp.split(projected + h @ layer["hidden"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    state, hidden = jax.lax.scan(cell, state, x @ layer["input"] + layer["bias"])
    return hidden, state


def setup(variant=""):
    text = np.random.default_rng(0).integers(0, VOCABULARY, (16 * LENGTH + 1, BATCH)).astype("i4")
    optimizer = optax.chain(optax.clip_by_global_norm(0.25), optax.sgd(2.0))
    params = jax.jit(init)(jax.random.key(0))
    states = [(jnp.zeros((BATCH, WIDTH)), jnp.zeros((BATCH, WIDTH))) for _ in range(LAYERS)]
    carry = (params, optimizer.init(params), states)

    @jax.jit(donate_argnums=0)
    def update(carry, tokens, targets):
        params, moments, states = carry

        def loss_fn(params):
            x, carried = params["embedding"][tokens], []
            for layer, state in zip(params["layers"], states):
                x, state = lstm_layer(layer, x, state)
                carried.append(state)
            logits = x @ params["output"]["weight"] + params["output"]["bias"]
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean(), carried

        (loss, carried), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments, carried), loss

    def step(i):
        nonlocal carry
        start = i % 16 * LENGTH
        carry, loss = update(carry, text[start : start + LENGTH], text[start + 1 : start + 1 + LENGTH])
        return float(loss)

    return step
