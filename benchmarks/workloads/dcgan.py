"""A step of DCGAN on 32x32 images, batches of 32: the discriminator on real and made images, then the generator."""

import torch
import torch.nn.functional as F
from torch import nn

VARIANTS = ("",)
STEPS, WARMUP = 20, 4
BATCH, NOISE, WIDTH = 32, 100, 64


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 4 * WIDTH, 4, 1, 0, bias=False),
        nn.BatchNorm2d(4 * WIDTH),
        nn.ReLU(True),
        nn.ConvTranspose2d(4 * WIDTH, 2 * WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.ReLU(True),
        nn.ConvTranspose2d(2 * WIDTH, WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(True),
        nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )


def discriminator():
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(WIDTH, 2 * WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * WIDTH),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * WIDTH, 4 * WIDTH, 4, 2, 1, bias=False),
        nn.BatchNorm2d(4 * WIDTH),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4 * WIDTH, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
        nn.Flatten(0),
    )


def initialize(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


def setup(variant="", wrap=lambda module: module):
    torch.manual_seed(0)
    images = torch.tanh(torch.randn(4 * BATCH, 3, 32, 32))
    batches = images.split(BATCH)
    make, judge = generator().apply(initialize), discriminator().apply(initialize)
    run_make, run_judge = wrap(make), wrap(judge)
    make_optimizer = torch.optim.Adam(make.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judge_optimizer = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def step(i):
        real = batches[i % len(batches)]
        judge_optimizer.zero_grad()
        labels = torch.full((BATCH,), 1.0)
        real_error = F.binary_cross_entropy(run_judge(real), labels)
        real_error.backward()
        made = run_make(torch.randn(BATCH, NOISE, 1, 1))
        labels.fill_(0.0)
        made_error = F.binary_cross_entropy(run_judge(made.detach()), labels)
        made_error.backward()
        judge_optimizer.step()

        make_optimizer.zero_grad()
        labels.fill_(1.0)
        error = F.binary_cross_entropy(run_judge(made), labels)
        error.backward()
        make_optimizer.step()
        return (real_error + made_error).item() + error.item()

    return step
