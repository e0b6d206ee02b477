"""A character-level language model: a small GPT from basic layers, on a text that comes with Python.

python char_lm.py                 # under PyTorch
python -m torchlike char_lm.py    # the same file, compiled by XLA
"""

import os
import sys
import sysconfig
import time

import torch
import torch.nn.functional as F
from torch import nn

CONTEXT, WIDTH, HEADS, LAYERS = 64, 64, 4, 2
BATCH, STEPS, LEARNING_RATE = 16, 500, 3e-3


def find_text():
    """Python's licence text, or else its help topics, or else its zen: (name, text)."""
    stdlib = sysconfig.get_paths()["stdlib"]
    for folder in (stdlib, os.path.dirname(stdlib), sys.base_prefix):
        for name in ("LICENSE.txt", "LICENSE"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    return name, file.read()
    try:
        from pydoc_data.topics import topics

        return "pydoc topics", "\n".join(topics[name] for name in sorted(topics))[:20_000]
    except ImportError:
        import codecs

        with open(os.path.join(stdlib, "this.py"), encoding="utf-8") as file:
            return "the Zen of Python", codecs.decode(file.read(), "rot13") * 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool)))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (width // HEADS) ** 0.5
        scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
        mixed = scores.softmax(dim=-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.token = nn.Embedding(vocabulary, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary)
        for embedding in (self.token, self.position):
            nn.init.normal_(embedding.weight, std=0.05)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(positions)
        return self.head(self.norm(self.blocks(x)))


@torch.no_grad()
def generate(model, tokens, count, temperature=0.7):
    """Continue `tokens` (1, CONTEXT) by `count` characters; the window keeps its length."""
    model.eval()
    produced = []
    for _ in range(count):
        logits = model(tokens)[:, -1] / temperature
        token = torch.multinomial(logits.softmax(dim=-1), num_samples=1)
        produced.append(token.item())
        tokens = torch.cat([tokens[:, 1:], token], dim=1)
    return produced


def main():
    torch.manual_seed(0)
    name, text = find_text()
    characters = sorted(set(text))
    index = {character: i for i, character in enumerate(characters)}
    data = torch.tensor([index[character] for character in text])
    print(f"{name}: {len(text):,} characters, {len(characters)} different ones")

    model = GPT(len(characters))
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        starts = torch.randint(len(data) - CONTEXT - 1, (BATCH, 1))
        window = data[starts + torch.arange(CONTEXT + 1)]
        logits = model(window[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step == 1 or step % 50 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print(f"trained in {time.perf_counter() - began:.1f} s", file=sys.stderr)

    prompt = data[None, :CONTEXT]
    sample = "".join(characters[i] for i in generate(model, prompt, 300))
    print("--- prompt ---")
    print(text[:CONTEXT])
    print("--- the model continues ---")
    print(sample)


if __name__ == "__main__":
    main()
