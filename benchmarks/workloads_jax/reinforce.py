"""REINFORCE in JAX: a jitted policy for each action, a jitted update on the episode padded to its limit.

Padding (and recomputing the log-probabilities in the update) is what JAX asks of its user here: without it
every new episode length would compile a new program.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from workloads.cartpole import LIMIT, CartPole


def init(key):
    key1, key2, key3, key4 = jax.random.split(key, 4)

    def uniform(key, bound, *shape):
        return jax.random.uniform(key, shape, minval=-bound, maxval=bound)

    return {
        "w1": uniform(key1, 0.5, 4, 64),
        "b1": uniform(key2, 0.5, 64),
        "w2": uniform(key3, 0.125, 64, 2),
        "b2": uniform(key4, 0.125, 2),
    }


def policy(params, states):
    return jax.nn.relu(states @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def setup(variant=""):
    environment = CartPole(0)
    key = jax.random.key(0)
    optimizer = optax.adam(5e-3)
    params = init(key)
    moments = optimizer.init(params)

    @jax.jit
    def act(params, key, state):
        key, draw = jax.random.split(key)
        return jax.random.categorical(draw, policy(params, state)), key

    @jax.jit(donate_argnums=(0, 1))
    def update(params, moments, states, actions, returns, valid):
        count = valid.sum()
        mean = (returns * valid).sum() / count
        std = jnp.sqrt((((returns - mean) * valid) ** 2).sum() / (count - 1))
        weights = (returns - mean) / (std + 1e-6) * valid

        def loss_fn(params):
            log_probs = jax.nn.log_softmax(policy(params, states))
            return -(jnp.take_along_axis(log_probs, actions[:, None], 1)[:, 0] * weights).sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, moments = optimizer.update(grads, moments, params)
        return optax.apply_updates(params, updates), moments, loss

    def step(i):
        nonlocal params, moments, key
        states, actions = np.zeros((LIMIT, 4), "f4"), np.zeros(LIMIT, "i4")
        returns, valid = np.zeros(LIMIT, "f4"), np.zeros(LIMIT, "f4")
        state, done, length, rewards = environment.reset(), False, 0, []
        while not done:
            states[length] = state
            action, key = act(params, key, states[length])
            actions[length] = action
            state, reward, done = environment.step(int(action))
            rewards.append(reward)
            length += 1
        total = 0.0
        for t in reversed(range(length)):
            total = rewards[t] + 0.99 * total
            returns[t] = total
        valid[:length] = 1
        params, moments, loss = update(params, moments, states, actions, returns, valid)
        return float(loss), length

    return step
