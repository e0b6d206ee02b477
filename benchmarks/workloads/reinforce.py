"""REINFORCE on a cart-pole written by hand: every episode has another length, every action is read.

One step is one episode; times are per environment step. The environment is plain Python on floats (`cartpole.py`).
"""

import torch
from torch import nn
from torch.distributions import Categorical
from workloads.cartpole import CartPole

VARIANTS = ("",)
STEPS, WARMUP = 300, 20
UNIT = "env step"


def setup(variant="", wrap=lambda module: module):
    torch.manual_seed(0)
    environment = CartPole(0)
    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 2))
    policy = wrap(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def step(i):
        state, done = environment.reset(), False
        log_probs, rewards = [], []
        while not done:
            distribution = Categorical(logits=policy(torch.tensor(state)))
            action = distribution.sample()
            log_probs.append(distribution.log_prob(action))
            state, reward, done = environment.step(action.item())
            rewards.append(reward)
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.append(total)
        returns = torch.tensor(returns[::-1])
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(log_probs) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), len(rewards)

    return step
