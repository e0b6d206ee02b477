"""A cart-pole in plain Python, shared by both versions of the `reinforce` workload."""

import math
import random

LIMIT = 200


class CartPole:
    """A pole on a cart, pushed left or right; balanced for at most LIMIT steps."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.steps = 0
        return self.state

    def step(self, action):
        x, speed, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(angle), math.sin(angle)
        push = (force + 0.05 * turn * turn * sin) / 1.1
        turn_rate = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        acceleration = push - 0.05 * turn_rate * cos / 1.1
        self.state = [x + 0.02 * speed, speed + 0.02 * acceleration, angle + 0.02 * turn, turn + 0.02 * turn_rate]
        self.steps += 1
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21 or self.steps >= LIMIT
        return self.state, 1.0, done
