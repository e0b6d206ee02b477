"""Single small operators in a Python loop in JAX, not jitted: what `jnp` costs when used like PyTorch.

`+grad` takes `jax.vjp` of the whole loop and calls no pullback, which is the counterpart of recording a graph.
"""

import jax
import jax.numpy as jnp
import numpy as np

COUNT = 100


def add(y, x, w, b):
    for _ in range(COUNT):
        y = y + x
    return y


def mul(y, x, w, b):
    for _ in range(COUNT):
        y = y * x
    return y


def relu(y, x, w, b):
    for _ in range(COUNT):
        y = jax.nn.relu(y)
    return y


def linear(y, x, w, b):
    for _ in range(COUNT):
        y = jnp.dot(y, w.T) + b
    return y


def setup(variant=""):
    generator = np.random.default_rng(0)
    y, x, w = generator.normal(size=(16, 32)), generator.uniform(0.99, 1.01, (16, 32)), generator.normal(size=(32, 32))
    operands = tuple(jnp.asarray(a, jnp.float32) for a in (y, x, w / 32**0.5, np.zeros(32)))
    cases = []
    for function in (add, mul, relu, linear):
        cases.append((function.__name__, function))
        cases.append((function.__name__ + "+grad", lambda *a, function=function: jax.vjp(function, *a)[0]))

    def step(i):
        name, run = cases[i % len(cases)]
        return float(run(*operands)[0, 0]), COUNT, name

    return step
