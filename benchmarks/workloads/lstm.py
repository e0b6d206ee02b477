"""A two-layer LSTM language model (width 128, 20 sequences of 35 tokens, 1,000 words), state carried on."""

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = ("",)
STEPS, WARMUP = 40, 8
WIDTH, LAYERS, BATCH, LENGTH, VOCABULARY = 128, 2, 20, 35, 1000


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, num_layers=LAYERS)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, state):
        hidden, state = self.lstm(self.embedding(tokens), state)
        return self.output(hidden), state


def setup(variant="", wrap=lambda module: module):
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (16 * LENGTH + 1, BATCH))
    model = LanguageModel()
    run = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    state = (torch.zeros(LAYERS, BATCH, WIDTH), torch.zeros(LAYERS, BATCH, WIDTH))

    def step(i):
        nonlocal state
        start = i % 16 * LENGTH
        tokens, targets = text[start : start + LENGTH], text[start + 1 : start + 1 + LENGTH]
        state = tuple(part.detach() for part in state)
        optimizer.zero_grad()
        logits, state = run(tokens, state)
        loss = F.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        return loss.item()

    return step
