"""What the model cases share: fixed data, and thirty steps of training."""

from collections.abc import Callable
from typing import Any

from compat_tests.harness import tensor

STEPS = 30


def labels(torch: Any, shape: Any, classes: int, seed: int = 7) -> Any:
    """Reproducible class numbers."""
    return tensor(torch, shape, "int64", seed).remainder(classes)


def train(torch: Any, loss_of: Callable[[int], Any], *optimizers: Any, after: Callable[[], None] | None = None) -> Any:
    """The loss of each of thirty steps, all parameters having one update a step."""
    losses = []
    for step in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        if after is not None:
            after()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    return losses
