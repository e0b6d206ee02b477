"""The step of DCGAN in JAX, Flax (so NHWC) and optax; one jitted function for both updates."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

BATCH, NOISE, WIDTH = 32, 100, 64


def norm(x):
    return nn.BatchNorm(use_running_average=False, momentum=0.9)(x)


class Generator(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(norm(nn.ConvTranspose(4 * WIDTH, (4, 4), padding="VALID", use_bias=False)(x)))
        for channels in (2 * WIDTH, WIDTH):
            x = nn.relu(norm(nn.ConvTranspose(channels, (4, 4), (2, 2), use_bias=False)(x)))
        return jnp.tanh(nn.ConvTranspose(3, (4, 4), (2, 2), use_bias=False)(x))


class Discriminator(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.leaky_relu(nn.Conv(WIDTH, (4, 4), (2, 2), padding=1, use_bias=False)(x), 0.2)
        for channels in (2 * WIDTH, 4 * WIDTH):
            x = nn.leaky_relu(norm(nn.Conv(channels, (4, 4), (2, 2), padding=1, use_bias=False)(x)), 0.2)
        return nn.Conv(1, (4, 4), padding="VALID", use_bias=False)(x).reshape(-1)


def setup(variant=""):
    generator = np.random.default_rng(0)
    images = jnp.asarray(np.tanh(generator.normal(size=(4 * BATCH, 32, 32, 3))), jnp.float32)
    batches = [images[k : k + BATCH] for k in range(0, 4 * BATCH, BATCH)]
    make, judge = Generator(), Discriminator()
    optimizer = optax.adam(2e-4, b1=0.5)
    key = jax.random.key(0)
    made = jax.jit(make.init)(key, jnp.zeros((BATCH, 1, 1, NOISE)))
    judged = jax.jit(judge.init)(key, batches[0])
    state = (made, judged, optimizer.init(made["params"]), optimizer.init(judged["params"]), key)

    def run(model, params, averages, x):
        out, changed = model.apply({"params": params, "batch_stats": averages}, x, mutable=["batch_stats"])
        return out, changed["batch_stats"]

    def error(logits, label):
        return optax.sigmoid_binary_cross_entropy(logits, jnp.full((BATCH,), label)).mean()

    @jax.jit(donate_argnums=0)
    def update(state, real):
        made, judged, made_moments, judged_moments, key = state
        key, draw = jax.random.split(key)
        noise = jax.random.normal(draw, (BATCH, 1, 1, NOISE))
        fake, _ = run(make, made["params"], made["batch_stats"], noise)

        def judge_loss(params):
            on_real, averages = run(judge, params, judged["batch_stats"], real)
            on_fake, averages = run(judge, params, averages, fake)
            return error(on_real, 1.0) + error(on_fake, 0.0), averages

        (judge_error, averages), grads = jax.value_and_grad(judge_loss, has_aux=True)(judged["params"])
        updates, judged_moments = optimizer.update(grads, judged_moments)
        judged = {"params": optax.apply_updates(judged["params"], updates), "batch_stats": averages}

        def make_loss(params):
            fake, averages = run(make, params, made["batch_stats"], noise)
            on_fake, judge_averages = run(judge, judged["params"], judged["batch_stats"], fake)
            return error(on_fake, 1.0), (averages, judge_averages)

        (make_error, (averages, judge_averages)), grads = jax.value_and_grad(make_loss, has_aux=True)(made["params"])
        updates, made_moments = optimizer.update(grads, made_moments)
        made = {"params": optax.apply_updates(made["params"], updates), "batch_stats": averages}
        judged = {"params": judged["params"], "batch_stats": judge_averages}
        return (made, judged, made_moments, judged_moments, key), judge_error + make_error

    def step(i):
        nonlocal state
        state, loss = update(state, batches[i % len(batches)])
        return float(loss)

    return step
