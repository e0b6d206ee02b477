"""The three-layer MLP of many a tutorial: tiny operators, so the cost is the framework's own.

`loader`: batches of 16 from a shuffling DataLoader over 128 samples. `fixed`: one batch, again and again.
The loss is read in every step.
"""

import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VARIANTS = ("loader", "fixed")
STEPS, WARMUP = 800, 80


class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 32)
        self.fc2 = nn.Linear(32, 8)
        self.fc3 = nn.Linear(8, 1)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.dropout(x)
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


def endless(loader):
    while True:
        yield from loader


def setup(variant="loader", wrap=lambda module: module):
    torch.manual_seed(0)
    x, y = torch.randn(128, 20), torch.randn(128, 1)
    if variant == "fixed":
        batches = itertools.repeat((x[:16], y[:16]))
    else:
        batches = endless(DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True))
    model = SimpleMLP()
    run = wrap(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.MSELoss()

    def step(i):
        batch_x, batch_y = next(batches)
        optimizer.zero_grad()
        loss = loss_fn(run(batch_x), batch_y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
