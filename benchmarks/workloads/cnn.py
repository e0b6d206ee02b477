"""A convolutional network on images of MNIST's size, batches of 64."""

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = ("",)
STEPS, WARMUP = 30, 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc2(self.dropout2(x))


def setup(variant="", wrap=lambda module: module):
    torch.manual_seed(0)
    labels = torch.randint(0, 10, (512,))
    images = torch.randn(10, 1, 28, 28)[labels] + 0.5 * torch.randn(512, 1, 28, 28)
    batches = list(zip(images.split(64), labels.split(64)))
    model = Net()
    run = wrap(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(i):
        x, y = batches[i % len(batches)]
        optimizer.zero_grad()
        loss = F.cross_entropy(run(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
