"""The small GPT in JAX, Flax and optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

LAYERS, WIDTH, HEADS, CONTEXT, BATCH, VOCABULARY = 4, 256, 4, 128, 8, 256


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        batch, length, width = x.shape
        qkv = nn.Dense(3 * WIDTH)(nn.LayerNorm(epsilon=1e-5)(x))
        q, k, v = jnp.moveaxis(qkv.reshape(batch, length, 3, HEADS, width // HEADS), 2, 0)
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + nn.Dense(WIDTH)(mixed.reshape(batch, length, width))
        hidden = nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm(epsilon=1e-5)(x)), approximate=False)
        return x + nn.Dense(WIDTH)(hidden)


class GPT(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(VOCABULARY, WIDTH)(tokens) + nn.Embed(CONTEXT, WIDTH)(jnp.arange(tokens.shape[1]))
        for _ in range(LAYERS):
            x = Block()(x)
        return nn.Dense(VOCABULARY, use_bias=False)(nn.LayerNorm(epsilon=1e-5)(x))


def setup(variant=""):
    text = np.random.default_rng(0).integers(0, VOCABULARY, (64, CONTEXT + 1)).astype("i4")
    model = GPT()
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-4, weight_decay=0.1))
    params = jax.jit(model.init)(jax.random.key(0), text[:BATCH, :-1])
    state = (params, optimizer.init(params))

    @jax.jit(donate_argnums=0)
    def update(state, batch):
        params, moments = state

        def loss_fn(params):
            logits = model.apply(params, batch[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments), loss

    def step(i):
        nonlocal state
        start = i * BATCH % len(text)
        state, loss = update(state, text[start : start + BATCH])
        return float(loss)

    return step
