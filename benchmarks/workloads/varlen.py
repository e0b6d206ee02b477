"""Sequences whose length changes with every batch (20 to 60 tokens, 8 sequences): shapes do not repeat soon.

`pool`: embedding, mean over the sequence, linear. `attention`: one self-attention layer before the mean.
`elman`: a simple recurrent network as a Python loop over the tokens, so even the number of operators changes.
"""

import random

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = ("pool", "attention", "elman")
STEPS, WARMUP = 300, 50
VOCABULARY, WIDTH, BATCH, CLASSES = 200, 64, 8, 4


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.output = nn.Linear(WIDTH, CLASSES)

    def encode(self, x):
        return x.mean(dim=1)

    def forward(self, tokens):
        return self.output(self.encode(self.embedding(tokens)))


class SelfAttention(Pool):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def encode(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(1, 2) / WIDTH**0.5, dim=-1)
        return (x + weights @ v).mean(dim=1)


class Elman(Pool):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(WIDTH, WIDTH)
        self.recurrent = nn.Linear(WIDTH, WIDTH, bias=False)

    def encode(self, x):
        inputs = self.input(x)
        hidden = torch.zeros(x.shape[0], WIDTH)
        for t in range(x.shape[1]):
            hidden = torch.tanh(inputs[:, t] + self.recurrent(hidden))
        return hidden


def setup(variant="pool", wrap=lambda module: module):
    torch.manual_seed(0)
    lengths = random.Random(0)
    model = {"pool": Pool, "attention": SelfAttention, "elman": Elman}[variant]()
    run = wrap(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(i):
        tokens = torch.randint(0, VOCABULARY, (BATCH, lengths.randint(20, 60)))
        labels = tokens[:, -1] % CLASSES
        loss = F.cross_entropy(run(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
