"""torch.__config__: what runs the programs."""

import jax
import jaxlib

import torchlike as torch


def show() -> str:
    """Versions."""
    return f"torchlike {torch.__version__}, built with:\n  - JAX {jax.__version__}\n  - jaxlib {jaxlib.__version__}\n"


def parallel_info() -> str:
    """Threads."""
    return f"torch.get_num_threads(): {torch.get_num_threads()} (remembered; XLA sets its own)\n"
