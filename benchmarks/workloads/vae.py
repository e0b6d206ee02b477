"""The usual variational autoencoder of MNIST's size, 784-400-20, batches of 128, Adam."""

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = ("",)
STEPS, WARMUP = 200, 20
BATCH = 128


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 400)
        self.fc21 = nn.Linear(400, 20)
        self.fc22 = nn.Linear(400, 20)
        self.fc3 = nn.Linear(20, 400)
        self.fc4 = nn.Linear(400, 784)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        mean, logvar = self.fc21(h), self.fc22(h)
        std = torch.exp(0.5 * logvar)
        z = mean + torch.randn_like(std) * std
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mean, logvar


def setup(variant="", wrap=lambda module: module):
    torch.manual_seed(0)
    images = torch.rand(8 * BATCH, 1, 28, 28)
    batches = images.split(BATCH)
    model = VAE()
    run = wrap(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(i):
        x = batches[i % len(batches)].view(-1, 784)
        optimizer.zero_grad()
        image, mean, logvar = run(x)
        error = F.binary_cross_entropy(image, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp())
        loss = error + divergence
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
