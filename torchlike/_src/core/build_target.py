"""The platform that programs are built for.

A few formulations are right on one platform and wrong on another: half-precision convolutions, products whose operands
are copied to suit a CPU's library. The engine says which platform it found; until then, CPU is assumed."""


class Target:
    """platform: "cpu", "gpu" or "tpu"."""

    platform = "cpu"


ONE_THREAD = 1 << 18
"""Multiplications up to which NumPy's BLAS computes a matrix product in the calling thread."""


def on_cpu() -> bool:
    """Whether programs will run on a CPU."""
    return Target.platform == "cpu"
