"""ResNet-18 for 32x32 images in JAX, Flax (so NHWC) and optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

BATCH = 32


class Block(nn.Module):
    out: int
    stride: int

    @nn.compact
    def __call__(self, x):
        def norm(y):
            return nn.BatchNorm(use_running_average=False, momentum=0.9)(y)

        shape = (self.stride, self.stride)
        y = nn.relu(norm(nn.Conv(self.out, (3, 3), shape, padding=1, use_bias=False)(x)))
        y = norm(nn.Conv(self.out, (3, 3), padding=1, use_bias=False)(y))
        if self.stride != 1 or x.shape[-1] != self.out:
            x = norm(nn.Conv(self.out, (1, 1), shape, use_bias=False)(x))
        return nn.relu(y + x)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(64, (3, 3), padding=1, use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False, momentum=0.9)(x))
        for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            x = Block(out, 1)(Block(out, stride)(x))
        return nn.Dense(10)(x.mean((1, 2)))


def setup(variant=""):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, 4 * BATCH)
    images = generator.normal(size=(10, 32, 32, 3))[labels] + 0.5 * generator.normal(size=(4 * BATCH, 32, 32, 3))
    batches = [
        (jnp.asarray(images[k : k + BATCH], jnp.float32), jnp.asarray(labels[k : k + BATCH], jnp.int32))
        for k in range(0, 4 * BATCH, BATCH)
    ]
    model = ResNet()
    optimizer = optax.chain(optax.add_decayed_weights(5e-4), optax.sgd(0.01, momentum=0.9))
    variables = jax.jit(model.init)(jax.random.key(0), batches[0][0])
    params, averages = variables["params"], variables["batch_stats"]
    state = (params, averages, optimizer.init(params))

    @jax.jit(donate_argnums=0)
    def update(state, x, y):
        params, averages, moments = state

        def loss_fn(params):
            variables = {"params": params, "batch_stats": averages}
            logits, changed = model.apply(variables, x, mutable=["batch_stats"])
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
            return loss, changed["batch_stats"]

        (loss, averages), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), averages, moments), loss

    def step(i):
        nonlocal state
        state, loss = update(state, *batches[i % len(batches)])
        return float(loss)

    return step
