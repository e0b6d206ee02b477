"""A sequence classifier: nn.TransformerEncoder of 2 layers, width 256, 4 heads, dropout 0.1; 16 x 64 tokens a batch."""

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = ("",)
STEPS, WARMUP = 30, 6
LAYERS, WIDTH, HEADS, HIDDEN, LENGTH, BATCH, VOCABULARY, CLASSES = 2, 256, 4, 1024, 64, 16, 1000, 10


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        x = self.token(tokens) + self.position
        return self.head(self.encoder(x).mean(1))


def setup(variant="", wrap=lambda module: module):
    torch.manual_seed(0)
    text = torch.randint(0, VOCABULARY, (16 * BATCH, LENGTH))
    labels = torch.randint(0, CLASSES, (16 * BATCH,))
    model = Classifier()
    run = wrap(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(i):
        start = i * BATCH % len(text)
        loss = F.cross_entropy(run(text[start : start + BATCH]), labels[start : start + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
