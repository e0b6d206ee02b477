"""Single small operators in a Python loop, each fed by the one before; the last result is read at the end.

One step is 100 operators of one kind; times are per operator, the read shared among the 100.
`+grad`: an operand requires a gradient, so the graph is recorded (and dropped; nothing runs backward).
"""

import torch
import torch.nn.functional as F

VARIANTS = ("",)
STEPS, WARMUP = 400, 80
UNIT = "op"
COUNT = 100


def add(y, x, w, b):
    for _ in range(COUNT):
        y = y + x
    return y


def mul(y, x, w, b):
    for _ in range(COUNT):
        y = y * x
    return y


def relu(y, x, w, b):
    for _ in range(COUNT):
        y = torch.relu(y)
    return y


def linear(y, x, w, b):
    for _ in range(COUNT):
        y = F.linear(y, w, b)
    return y


def setup(variant="", wrap=lambda function: function):
    torch.manual_seed(0)
    y, x, w, b = torch.randn(16, 32), 0.99 + 0.02 * torch.rand(16, 32), torch.randn(32, 32) / 32**0.5, torch.zeros(32)
    cases = []
    for function in (add, mul, relu, linear):
        run = wrap(function)
        cases.append((function.__name__, run, (y, x, w, b)))
        cases.append((function.__name__ + "+grad", run, tuple(t.clone().requires_grad_() for t in (y, x, w, b))))

    def step(i):
        name, run, operands = cases[i % len(cases)]
        return run(*operands)[0, 0].item(), COUNT, name

    return step
